"""Explorer that paints which chip holds which shard, for any sharding of one or two dimensions."""

import itertools
import math
from dataclasses import dataclass

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Choice,
    Explorer,
    Grid,
    Notation,
    Readout,
    Slider,
    View,
    join_and,
    join_counts,
)
from scalingbook_lib.notation import Array, Mesh, parse
from scalingbook_lib.units import binary, count, dtype

_MOST_ROWS, _MOST_COLUMNS = 16, 8
_DOTS = "\N{HORIZONTAL ELLIPSIS}"

type Block = tuple[range, ...]
type Device = tuple[int, ...]


@dataclass(frozen=True)
class Painting:
    """An array on a mesh: its blocks, the devices that hold each, and the sizes of its dimensions by name."""

    array: Array
    mesh: Mesh
    sizes: dict[str, int]
    held: dict[Device, Block]
    holders: dict[Block, tuple[Device, ...]]
    shape: tuple[int, ...]  # of the mesh
    splitting: list[int]  # the mesh axes that split a dimension, by their place in the mesh
    numbers: dict[Device, int]  # devices are counted with the last mesh axis fastest


def painting(text: str, mesh: Mesh, rows: int, columns: int) -> Painting:
    """Parse a sharding and give every device its block; ValueError where it cannot be drawn."""
    array = parse(text, mesh)
    if len(array.dims) > 2:
        raise ValueError(
            f"{array} has {len(array.dims)} dimensions, but only one or two can be drawn; "
            "write one or two, as in A[I_X, J]"
        )
    sizes = dict(zip(array.names, (rows, columns), strict=False))
    held = array.blocks(mesh, **sizes)
    holders: dict[Block, list[Device]] = {}
    for device, block in held.items():
        holders.setdefault(block, []).append(device)
    splitting = [mesh.axes.index(axis) for axis in sorted(array.axes)]
    who = {block: tuple(devices) for block, devices in holders.items()}
    numbers = {device: k for k, device in enumerate(held)}
    return Painting(array, mesh, sizes, held, who, mesh.shape, splitting, numbers)


def _painter(*, text: str, X: int, Y: int, Z: int, I: int, J: int, numbers: str) -> View:
    picture = painting(text, Mesh(X=X, Y=Y, Z=Z), I, J)
    kind = dtype(numbers)
    array, mesh, sizes = picture.array, picture.mesh, picture.sizes
    local = array.local_bytes(mesh, kind, **sizes)
    return View(
        _verdict(picture, local),
        (_array_grid(picture), _mesh_grid(picture)),
        (
            Readout("local shape", 0, "", f"[{join_counts(array.local_shape(mesh, **sizes))}]"),
            Readout.binary("bytes per device", local),
            Readout("replicas of each block", array.replicas(mesh), "", count(array.replicas(mesh))),
            Readout.binary("whole array", array.global_bytes(kind, **sizes)),
            Readout.binary("all devices, total", array.total_bytes(mesh, kind, **sizes)),
        ),
        columns=2,
    )


# The array: a cell for every block


def _array_grid(picture: Painting) -> Grid:
    """Rows and columns of blocks; where there are too many, the middle ones are left out."""
    spans = [
        sorted({block[d] for block in picture.holders}, key=lambda span: (span.start, span.stop))
        for d in range(len(picture.sizes))
    ]
    downs = [span for span in spans[0] if span] or spans[0]
    acrosses = [span for span in spans[1] if span] if len(spans) > 1 else [None]
    rows, columns = _shortened(downs, _MOST_ROWS), _shortened(acrosses, _MOST_COLUMNS)
    roomy = len(columns) <= 3
    cells = [[_block_cell(picture, down, across, roomy) for across in columns] for down in rows]
    down_name, *across_name = picture.array.names
    return Grid(
        "The array: which devices hold each block" if len(picture.held) > 1 else "The array",
        [_span_text(down_name, span, span is rows[0]) for span in rows],
        [_span_text(across_name[0], span, span is columns[0]) if across_name else "" for span in columns],
        cells,
    )


def _shortened(items: list, most: int) -> list:
    """The items, or the first and the last of them with a gap, an empty string, between."""
    return items if len(items) <= most else [*items[: most - 2], "", items[-1]]


def _span_text(name: str, span: range | str, first: bool) -> str:
    """Where a block starts; the first one says of which dimension."""
    if not isinstance(span, range):
        return _DOTS
    return f"{name} {span.start:,}" if first else f"{span.start:,}"


def _block_cell(picture: Painting, down: range | str, across: range | str | None, roomy: bool) -> Cell:
    if isinstance(down, str) or isinstance(across, str):
        return Cell(_DOTS)
    block = (down,) if across is None else (down, across)
    devices = picture.holders[block]
    color, level = _paint(picture, devices[0])
    noun, text = f"device{'s' * (len(devices) > 1)}", _who(picture, devices)
    words = f"{noun}\n{text}" if roomy and len(devices) <= 4 else text
    note = f"{_where(picture, block)}: {noun} {join_counts(picture.numbers[d] for d in devices)}"
    return Cell(words, color, note, level=level)


def _where(picture: Painting, block: Block) -> str:
    names = zip(picture.array.names, block, strict=True)
    return ", ".join(f"{name} {_bounds(span)}" for name, span in names)


def _who(picture: Painting, devices: tuple[Device, ...]) -> str:
    """The device numbers of a block, joined by plus signs where their values are partial sums."""
    numbers = [picture.numbers[device] for device in devices]
    summed = picture.array.partial and picture.array.replicas(picture.mesh) == 1
    sign = " + " if summed else ", "
    if len(numbers) <= 4:
        return sign.join(map(str, numbers))
    return f"{len(numbers)} devices" if len(numbers) < picture.mesh.devices else "all"


def _bounds(span: range) -> str:
    return f"{span.start:,} to {span.stop - 1:,}" if len(span) > 1 else f"{span.start:,}"


def _paint(picture: Painting, device: Device) -> tuple[int, float]:
    """A color for the place along the first axis that splits the array, stronger along the second."""
    order = picture.splitting
    first = device[order[0]] if order else 0
    rest, steps = 0, 1
    for k in order[1:]:
        rest, steps = rest * picture.shape[k] + device[k], steps * picture.shape[k]
    return first, 1.0 - 0.6 * rest / max(steps - 1, 1)


# The mesh: a cell for every device, with the part of the array that it holds


def _mesh_grid(picture: Painting) -> Grid:
    first, *others = picture.mesh.items
    rest = [(name, size) for name, size in others if size > 1] or others[:1]
    places = list(itertools.product(*(range(size) for _, size in others)))
    columns = _shortened(places, _MOST_COLUMNS)
    downs = _shortened(list(range(first[1])), _MOST_ROWS)
    names = [name for name, _ in others]
    cells = [
        [_device_cell(picture, (x, *place)) if place else Cell(_DOTS) for place in columns] for x in downs
    ]
    return Grid(
        f"The mesh {picture.mesh}: what each device holds",
        [f"{first[0]}{x}" for x in downs],
        [_place_text(names, place, {name for name, _ in rest}) for place in columns],
        cells,
    )


def _place_text(names: list[str], place: tuple[int, ...] | str, shown: set[str]) -> str:
    if not place:
        return _DOTS
    return " ".join(f"{name}{at}" for name, at in zip(names, place, strict=True) if name in shown)


def _device_cell(picture: Painting, device: Device) -> Cell:
    block, shape, number = picture.held[device], tuple(picture.sizes.values()), picture.numbers[device]
    color, level = _paint(picture, device)
    edges = [(span.start / n, span.stop / n) for span, n in zip(block, shape, strict=True)] + [(0.0, 1.0)]
    part = (*edges[0], *edges[1])
    if not all(block):
        return Cell(str(number), None, "only padding", (0.0, 0.0, 0.0, 0.0))
    partial = " (a partial sum)" * bool(picture.array.partial)
    note = f"device {number} holds {_where(picture, block)}{partial}"
    return Cell(str(number), color, note, part, level)


# What there is to discover


def _verdict(picture: Painting, local: float) -> str:
    array, mesh, sizes = picture.array, picture.mesh, picture.sizes
    shape = join_counts(array.local_shape(mesh, **sizes))
    each = f"Each of the {mesh.devices} devices" if mesh.devices > 1 else "The only device"
    said = f"{each} holds a block [{shape}] of {binary(local)}"
    unused = [axis for axis in array.unused_axes(mesh) if mesh.size(axis) > 1]
    if unused:
        copies = count(array.replicas(mesh))
        said += f"; no subscript uses {join_and(unused, 'or')}, so {copies} devices hold each block"
    elif mesh.devices > 1 and not array.partial:
        said += "; every mesh axis is used, so nothing is replicated"
    summed = [axis for axis in array.partial if mesh.size(axis) > 1]
    if summed:
        said += f"; it is a partial sum over the {mesh.size(summed)} devices along {join_and(summed, 'and')}"
    if not array.is_even(mesh, **sizes):
        said += f"; the sharding is uneven, so the devices hold {_padding(picture)}% padding"
    return said + "."


def _padding(picture: Painting) -> str:
    whole = math.prod(picture.array.shape(**picture.sizes))
    stored = math.prod(picture.array.local_shape(picture.mesh, **picture.sizes))
    parts = picture.mesh.size(picture.array.axes)
    return f"{100 * (1 - whole / (stored * parts)):.2g}"


PAINTER = Explorer(
    key="sharding.painter",
    title="Sharding painter",
    question="What block of the array does each device hold, and how many replicas of the array are there?",
    controls={
        "text": Notation("array", "A[I_X, J_Y]", "such as A[I_XY, J], A[I, J], A[I_X, J]{U_Y}"),
        "numbers": Choice("data type", ("bf16", "int8", "fp32"), "bf16"),
        "X": Slider("mesh axis X", 1, 8, 2),
        "Y": Slider("mesh axis Y", 1, 8, 2),
        "Z": Slider("mesh axis Z", 1, 8, 2),
        "I": Slider("rows", 8, 131072, 1024, "pow2"),
        "J": Slider("columns", 8, 131072, 4096, "pow2"),
    },
    view=_painter,
)
