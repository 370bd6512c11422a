"""Explorer of JAX shardings: the block that a PartitionSpec gives to each device."""

import math
from dataclasses import dataclass
from itertools import permutations

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Choice,
    Explorer,
    Grid,
    Notation,
    Readout,
    Slider,
    View,
    join_counts,
)
from scalingbook_lib.collectives import resharding
from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.notation import Array, Mesh
from scalingbook_lib.notation.types import spec
from scalingbook_lib.units import count, dtype, si

_MOST = 4  # dimensions
_ROOMY = 4  # columns of devices that have room for both ends of a slice


@dataclass(frozen=True)
class ShardedArray:
    """An array of that shape on a mesh, and the block of every device, by its place on the mesh."""

    array: Array
    shape: tuple[int, ...]
    mesh: Mesh

    @property
    def sizes(self) -> dict[str, int]:
        """The shape by the letters of the dimensions."""
        return dict(zip(self.array.names, self.shape, strict=True))

    @property
    def local(self) -> tuple[int, ...]:
        """The shape of one device's block."""
        return self.array.local_shape(self.mesh, **self.sizes)

    @property
    def split_axes(self) -> tuple[str, ...]:
        """The axes of more than one device that split a dimension."""
        return tuple(axis for axis in self.array.axes if self.mesh.size(axis) > 1)

    @property
    def unused(self) -> tuple[str, ...]:
        """The axes of more than one device along which every block is repeated."""
        return tuple(axis for axis in self.array.unused_axes(self.mesh) if self.mesh.size(axis) > 1)


def split(text: str, shape: str, X: int, Y: int) -> ShardedArray:
    """Read a spec and a shape; refuse what JAX refuses."""
    mesh, sizes = Mesh(X=X, Y=Y), numbers(shape)
    array = spec.read(text, len(sizes), mesh)
    for dim, n in zip(array.dims, sizes, strict=True):
        if n % mesh.size(dim.axes):
            raise ValueError(
                f"{spec.spec(array)} shards a dimension of {n:,} into {mesh.size(dim.axes)} uneven "
                "blocks, which JAX refuses; pad it to "
                f"{-(-n // mesh.size(dim.axes)) * mesh.size(dim.axes):,}"
            )
    return ShardedArray(array, sizes, mesh)


def numbers(shape: str) -> tuple[int, ...]:
    """'1024, 2048', with or without parentheses, as a shape."""
    words = shape.strip().strip("()").rstrip(", ").split(",")
    found = tuple(int(word) for word in words if word.strip().isdecimal())
    if len(found) < len(words) or not 1 <= len(found) <= _MOST or not all(0 < n < 10**9 for n in found):
        raise ValueError(
            f"{shape!r} is not a shape; write one to {_MOST} sizes separated by commas, as in 1024, 2048"
        )
    return found


def _calculator(*, text: str, shape: str, X: int, Y: int, kind: str) -> View:
    s = split(text, shape, X, Y)
    one, sizes = dtype(kind), s.sizes
    local = s.array.local_bytes(s.mesh, one, **sizes)
    return View(
        _verdict(s, kind),
        (_devices(s), _code(s, kind), _axes(s)),
        (
            Readout("local shape", 0, "", f"[{join_counts(s.local)}]"),
            Readout.binary("bytes per device", local),
            Readout("replicas", s.array.replicas(s.mesh), "", count(s.array.replicas(s.mesh))),
            Readout.binary("bytes on all devices", s.mesh.devices * local),
        ),
        columns=2,
    )


# The devices, each with the indices that it holds


def _devices(s: ShardedArray) -> Grid:
    held = s.array.blocks(s.mesh, **s.sizes)
    x, y = s.mesh.shape
    cells = [[_device(s, (i, j), held[i, j]) for j in range(y)] for i in range(x)]
    rows, columns = [f"X{i}" for i in range(x)], [f"Y{j}" for j in range(y)]
    return Grid("The block of x on each device", rows, columns, cells)


def _device(s: ShardedArray, at: tuple[int, int], block: tuple[range, ...]) -> Cell:
    """A device by its number, with the indices along the dimensions that are split."""
    number = at[0] * s.mesh.shape[1] + at[1]
    cut = [span for span, dim in zip(block, s.array.dims, strict=True) if s.mesh.size(dim.axes) > 1]
    note = f"device {number} holds x[{', '.join(map(_slice, block))}]"
    note += " (a partial sum)" * bool(s.array.partial)
    color, level = _paint(s, at)
    texts = (f"{span.start}:" if s.mesh.shape[1] > _ROOMY else _slice(span) for span in cut)
    return Cell("\n".join([str(number), *texts]), color, note, level=level)


def _paint(s: ShardedArray, at: tuple[int, int]) -> tuple[int, float]:
    """A color for the place along the first axis that splits, stronger or weaker along the second."""
    places = [(at[s.mesh.axes.index(axis)], s.mesh.size(axis)) for axis in s.split_axes]
    first = places[0][0] if places else 0
    rest, size = places[1] if len(places) > 1 else (0, 1)
    return first, 1.0 - 0.7 * rest / max(size - 1, 1)


def _slice(span: range) -> str:
    return f"{span.start}:{span.stop}"


# What each axis does, and how JAX is told


def _axes(s: ShardedArray) -> Grid:
    rows = [_role(s, axis) for axis in s.mesh.axes]
    names = [f"{name} of {size}" for name, size in s.mesh.items]
    return Grid("What each mesh axis does", names, ("this axis", "next device along it"), rows)


def _role(s: ShardedArray, axis: str) -> list[Cell]:
    """What the axis does, and how far on in the array the next device along it is."""
    if s.mesh.size(axis) == 1:
        return [Cell("has one device"), Cell("none")]
    if axis in s.array.partial:
        return [
            Cell("unreduced", 3, "the blocks along this axis have to be summed", level=0.6),
            Cell("another summand"),
        ]
    for d, dim in enumerate(s.array.dims):
        if axis in dim.axes:
            after = math.prod(s.mesh.size(a) for a in dim.axes[dim.axes.index(axis) + 1 :])
            return [Cell(f"shards dim {d}", 0, level=0.6), Cell(f"starts {s.local[d] * after:,} later")]
    return [Cell("replicates", 1, "devices along it hold the same block", level=0.6), Cell("the same block")]


def _code(s: ShardedArray, kind: str) -> Grid:
    rows = {
        "mesh": f"jax.make_mesh({s.mesh.shape}, ('X', 'Y'), axis_types=(AxisType.Explicit,) * 2)",
        "array": f"jax.device_put(x, {spec.spec(s.array)})",
        "type": spec.typed(s.array, s.shape, spec.JAX_NAMES[kind]),
    }
    return Grid("In JAX", list(rows), (), [[Cell(text)] for text in rows.values()])


# What there is to discover


def _verdict(s: ShardedArray, kind: str) -> str:
    said = f"{spec.spec(s.array)} is {s.array.canonical()} in the notation of this book: "
    said += f"each of the {s.mesh.devices} devices holds a block [{join_counts(s.local)}]"
    if s.unused:
        said += f", replicated on {count(s.array.replicas(s.mesh))} devices because no entry names "
        said += " or ".join(s.unused)
    if s.array.partial:
        said += f"; the array is the sum of the blocks along {' and '.join(s.array.partial)}"
    return f"{said}.{_other_order(s, kind)}"


def _other_order(s: ShardedArray, kind: str) -> str:
    """What it takes to go to the same blocks in the other order of a tuple."""
    for dim in s.array.dims:
        for axes in permutations(a for a in dim.axes if s.mesh.size(a) > 1):
            other = s.array.with_axes(**{dim.name: axes})
            if axes != tuple(a for a in dim.axes if a in axes):
                moved, seconds = reordered(s, other, kind)
                said = f" {spec.spec(other)} puts the same blocks on other devices: for that, {moved} of "
                return (
                    f"{said}{s.mesh.devices} devices have to send their block, which takes "
                    f"{si(seconds, 's')} on a v5e slice, whose axes are lines."
                )
    return ""


def reordered(s: ShardedArray, other: Array, kind: str) -> tuple[int, float]:
    """How many devices hold another block under the other sharding, and the seconds of the permutation."""
    before, after = (a.blocks(s.mesh, **s.sizes) for a in (s.array, other))
    moved = sum(before[at] != after[at] for at in before)
    on = chips.V5E
    # only axes of 16 chips are rings on a v5e, and the sliders end at 8
    lines = Rings(on, **{n: Axis(k, False, on.link_bytes_per_s, on.hop_s) for n, k in s.mesh.items})
    return moved, resharding.reshard(s.array, other, lines, s.sizes, dtype(kind)).best.total_s


CALCULATOR = Explorer(
    key="jax.calculator",
    title="Sharding calculator",
    question="What block does a PartitionSpec put on each device, and what is the type of the array?",
    controls={
        "text": Notation(
            "spec", "P(('X', 'Y'), None)", "such as P('X', 'Y'), P(None, 'X'), P('X', unreduced={'Y'})"
        ),
        "shape": Notation("shape", "1024, 2048", "one to four sizes"),
        "X": Slider("mesh axis X", 1, 8, 2),
        "Y": Slider("mesh axis Y", 1, 8, 4),
        "kind": Choice("data type", ("bf16", "fp32", "int8"), "bf16"),
    },
    view=_calculator,
)
