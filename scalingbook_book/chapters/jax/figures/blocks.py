"""Figures of which device holds which block: axis order in a spec, a dict of shardings, varying values."""

from collections.abc import Callable

from scalingbook_book.chapters.jax.figures.modes import MESH
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import Area, Shape, Words
from scalingbook_book.reader.figures.shards import extent, sharded, subscripted
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.notation import parse
from scalingbook_lib.notation.types import spec

PLACES = tuple(MESH.coordinates())  # (x, y) of devices 0 to 7
SPECS = ("P(('X', 'Y'), None)", "P(('Y', 'X'), None)", "P('X', None)")
ROWS = ("A[I, J]", "A[I_X, J]", "A[I_X, J_Y]", "A[I_XY, J]", "A[I_X, J]{U_Y}")
# what `evaluate_state` on the page computes: on which place each value depends, and over which axes JAX lets it vary
VARIES: dict[str, tuple[Callable[[tuple[int, ...]], object], str]] = {
    "x.sum()": (lambda at: at, "X, Y"),
    'psum(x, "Y")': (lambda at: at[0], "X"),
    'all_gather(x, "Y")': (lambda at: at[0], "X, Y"),
    'axis_index("X")': (lambda at: at[0], "X"),
    "zeros(3)": (lambda at: 0, ""),
    'x * psum(x, "Y")': (lambda at: at, "X, Y"),
}


def holders(text: str, rows: int = MESH.devices) -> list[list[int]]:
    """The devices that hold each row block of an array under this spec."""
    held = spec.read(text, 2, MESH).blocks(MESH, I=rows, J=rows)
    return [[k for k, (mine, _) in enumerate(held.values()) if row in mine] for row in range(rows)]


def device(k: int, x: float, y: float, wide: float, high: float) -> Area:
    """A device by its number: a color for its position along Y, paler for the second row of X."""
    down, across = PLACES[k]
    return Area(x=x, y=y, wide=wide, high=high, text=str(k), color=across, shade=0.25 if down else 0.6)


def mesh_blocks() -> Figure:
    """Eight devices on a mesh, and the devices that hold each row block of an array, for three specs."""
    orders = {text: " ".join(str(row[0]) for row in holders(text)) for text in SPECS[:2]}
    said = "; ".join(f"{text}: devices {order}" for text, order in orders.items())
    return Figure(
        key="jax.mesh_blocks",
        alt="Eight numbered devices, two along X and four along Y. Beside them an array of eight blocks of rows, three times, each "
        f"block with the number of its holder. {said}; P('X', None): four devices hold each half.",
        caption="Which device holds which block of rows, for three PartitionSpecs. The first axis in a "
        "tuple varies slowest: as you go down the rows, the last axis changes first. Along an axis "
        "that the spec does not name, the array is replicated.",
        parts=lambda wide: [_mesh(wide)],
    )


def _mesh(wide: float) -> Sketch:
    abreast = wide > 400
    side, deep = 34.0, 22.0
    left, top = (26.0, 96.0) if abreast else (120.0, 20.0)
    shapes: list[Shape] = [
        device(k, left + side * y + 3 * y, top + side * x + 3 * x, side, side)
        for k, (x, y) in enumerate(PLACES)
    ]
    shapes += [Words(x=left + 17 + 37 * k, y=top - 6, text=f"Y{k}", quiet=True) for k in range(4)]
    shapes += [Words(x=left - 6, y=top + 22 + 37 * k, text=f"X{k}", quiet=True, align="end") for k in (0, 1)]
    x0, y0, pitch = (216.0, 30.0, 160.0) if abreast else (2.0, 140.0, 113.0)
    for i, text in enumerate(SPECS):
        x, name = x0 + i * pitch, text.replace("P(", "").replace(", None)", "")
        shapes.append(Words(x=x + 52, y=y0 - 12, text=name if not abreast else text))
        for j, row in enumerate(holders(text)):
            long = 104 / len(row)
            shapes += [device(k, x + long * i, y0 + (deep + 2) * j, long, deep) for i, k in enumerate(row)]
    return Sketch(wide, y0 + 8 * (deep + 2) + 2, shapes)


def dictionary() -> Figure:
    """One sharding per row: the notation, the JAX type, the spec, and the blocks on the chips."""
    types = {text: spec.typed(parse(text), (64, 32)) for text in ROWS}
    said = "; ".join(f"{text} is {written}" for text, written in types.items())
    return Figure(
        key="jax.dictionary",
        alt=f"Five rows, each with a drawing of the blocks on eight chips. {said}.",
        caption="Five shardings in this book's notation and as JAX types. In a JAX type, the axes that "
        "shard a dimension follow its size after an @, and braces list the axes over which the "
        "array is unreduced.",
        parts=lambda wide: [_dictionary(wide, types)],
    )


def _dictionary(wide: float, types: dict[str, str]) -> Sketch:
    abreast = wide > 400
    side, deep = (26.0, 76.0) if abreast else (24.0, 96.0)
    across, _ = extent(MESH, side)
    heads = {2: "notation", 128: "jax.typeof", 326: "spec", wide - across - 4: "on the chips"}
    shapes: list[Shape] = [
        Words(x=x, y=13, text=name, align="start", quiet=True) for x, name in heads.items() if abreast
    ]
    for k, (text, written) in enumerate(types.items()):
        y = k * deep + (24 if abreast else 0)
        places = (
            [(2, y + 34), (128, y + 34), (326, y + 34)]
            if abreast
            else [(2, y + 18), (2, y + 42), (2, y + 72)]
        )
        texts = (subscripted(text), written, spec.spec(parse(text)))
        shapes += [
            Words(x=x, y=level, text=said, align="start", bold=said == texts[0])
            for (x, level), said in zip(places, texts, strict=True)
        ]
        left, top = wide - across - 4, y + 2
        shapes += sharded(text, MESH, x=left, y=top, side=side)
    return Sketch(wide, deep * len(types) + (20 if abreast else 2), shapes)


def varies() -> Figure:
    """Six values inside shard_map, equal ones in the same color, and the axes over which each varies in JAX."""
    said = ", ".join(
        f"{code} {f'over {axes}' if axes else 'over none'}" for code, (_, axes) in VARIES.items()
    )
    return Figure(
        key="jax.varies",
        alt=f"Six rows of two by four devices, equal values in equal colors. The axes over which JAX counts them as varying: {said}.",
        caption="Six values inside shard_map, and the mesh axes over which their types vary. For five of "
        "them, the type agrees with the colors. The AllGather is the exception: its colors differ "
        "only along X, but its type also varies along Y, so that each device may use its replica "
        "differently.",
        parts=lambda wide: [_varies(wide)],
    )


def _varies(wide: float) -> Sketch:
    columns = 3 if wide > 400 else 2
    pitch, deep, side = wide / columns, 112.0, 26.0
    shapes: list[Shape] = []
    for k, (code, (value, axes)) in enumerate(VARIES.items()):
        x, y = 2 + k % columns * pitch, k // columns * deep
        values = [value(at) for at in PLACES]
        kinds = list(dict.fromkeys(values))
        shapes.append(Words(x=x, y=y + 14, text=code, align="start", bold=True))
        for (down, across), one in zip(PLACES, values, strict=True):
            number, paint = kinds.index(one), kinds.index(one) % 6
            shade = 0.6 if number < 6 else 0.2
            shapes.append(
                Area(x=x + 30 * across, y=y + 24 + 30 * down, wide=side, high=side, color=paint, shade=shade)
            )
        told = f"varies over {axes}" if axes else "the same on all"
        shapes.append(Words(x=x, y=y + 98, text=told, align="start", quiet=True))
    return Sketch(wide, deep * len(VARIES) / columns, shapes)
