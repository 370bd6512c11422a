"""Figures of sharded arrays and matmuls: the example, eleven shardings, and the four cases."""

from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.placement import placed, spread
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.shards import extent, part, sharded, subscripted
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.collectives import all_gather
from scalingbook_lib.machines.chips import V5E, Slice
from scalingbook_lib.notation import Mesh, parse, parse_product
from scalingbook_lib.sharded_matmul import Strategy, solve
from scalingbook_lib.units import INT8, si

SQUARE = Mesh(X=2, Y=2)
LAYER = {"B": 128, "D": 8192, "F": 32768}
WEIGHT, ACTIVATION = 2.0 * LAYER["D"] * LAYER["F"], 2.0 * LAYER["B"] * LAYER["D"]
ELEVEN = (
    *("A[I, J]", "A[I_X, J]", "A[I_Y, J]", "A[I, J_X]", "A[I, J_Y]", "A[I_X, J_Y]", "A[I_Y, J_X]"),
    *("A[I_XY, J]", "A[I_YX, J]", "A[I, J_XY]", "A[I, J_YX]"),
)
SHARES = {1.0: "all", 0.5: "half of", 0.25: "a quarter of"}
CASES = {
    "A[I_X, J] · B[J, K] → C[I_X, K]": "J is not sharded:\nmultiply",
    "A[I, J_X] · B[J, K] → C[I, K]": "J is sharded in A only:\nAllGather A",
    "A[I, J_X] · B[J_X, K] → C[I, K]{U_X}": "partial sums: AllReduce\nor ReduceScatter",
    "A[I_X, J] · B[J, K_X]": "diagonal blocks only:\nAllGather A or B",
}


class Cut(NamedTuple):
    """One way to shard the layer of the example: an array that shows it, and the arrays that move."""

    array: str
    dim: str
    moves: str
    nbytes: float
    seconds: float


def halves() -> tuple[Strategy, Strategy]:
    """Both matmuls of the example's layer on four v5e, with the weights in place."""
    four = Slice.of(V5E, "2x2").mesh(X=2, Y=2)
    products = "A[B, D_XY] · W[D, F_XY] -> H[B, F_XY]", "H[B, F_XY] · W[F_XY, D] -> Z[B, D_XY]"
    into, out = (solve(text, four, LAYER) for text in products)
    return into.named("gather A over XY"), out.named("reduce-scatter Z over XY")


def gathered_s() -> float:
    """Seconds of an AllGather of both matrices of the layer over the four chips."""
    return all_gather(2 * WEIGHT, *Slice.of(V5E, "2x2").mesh(X=2, Y=2).axes("XY")).total_s


def two_cuts() -> Figure:
    """The same layer, sharded along F or along B: what moves, as areas, and for how long."""
    pair = halves()
    math_s, moved_s = (sum(getattr(half, term) for half in pair) for term in ("math_s", "comms_s"))
    ways = (
        Cut("W[D, F_XY]", "F", "activations", ACTIVATION, moved_s),
        Cut("A[B_XY, D]", "B", "weights", WEIGHT, gathered_s()),
    )
    return Figure(
        key="sharding.two_cuts",
        alt="Four chips compute one layer in two ways. If the weights are sharded along F, two arrays of "
        f"{si(ACTIVATION, 'B', 2)} move, drawn as two tiny squares, in {si(moved_s, 's', 2)}. If the batch "
        f"is sharded, two matrices of {si(WEIGHT, 'B')} move, drawn as large squares, in "
        f"{si(gathered_s(), 's')}.",
        caption="Two ways to shard one layer over four chips, and what each of them moves. The arithmetic "
        "per chip is the same, but the sharded dimension decides whether activations or weights "
        f"move. (Areas are proportional to bytes. Two bf16 matrices, {LAYER['B']} tokens, four TPU "
        "v5e.)",
        parts=lambda wide: [_moved(wide, ways), _clock(wide, ways, math_s)],
    )


def _moved(wide: float, ways: tuple[Cut, ...]) -> Sketch:
    """What the chips hold, and what moves: squares with areas as the bytes."""
    abreast = wide > 400
    across, down = extent(SQUARE, 44)
    shapes: list[Shape] = []
    for k, cut in enumerate(ways):
        x, y = (k * wide / 2 + 4, 30.0) if abreast else (4.0, 30 + k * 164.0)
        side, under = down * (cut.nbytes / WEIGHT) ** 0.5, y + down + 18
        shapes += [
            Words(x=x, y=y - 15, text=f"sharded along {cut.dim}: {cut.moves} move", bold=True, align="start"),
            *sharded(cut.array, SQUARE, x=x, y=y, side=44),
            Words(x=x + across / 2, y=under, text=subscripted(cut.array)),
            *(Area(x=x + 114 + i * (side + 6), y=y, wide=side, high=side, color=NETWORK) for i in (0, 1)),
            Words(x=x + 114, y=under, text=f"moved: 2 × {si(cut.nbytes, 'B')}", align="start"),
        ]
    return Sketch(wide, 156 if abreast else 318, shapes)


def _clock(wide: float, ways: tuple[Cut, ...], math_s: float) -> Sketch:
    """Compute, then communication, on one time axis."""
    spans = [
        span
        for cut in ways
        for span in (
            Span(f"along {cut.dim}", 0, math_s, "", MATH),
            Span(f"along {cut.dim}", math_s, math_s + cut.seconds, si(cut.seconds, "s"), NETWORK),
        )
    ]
    return lanes(wide, spans, title=f"compute {si(math_s, 's')}, then communication")


def eleven() -> Figure:
    """Every way to shard a matrix over two by two chips, by the bytes on each chip."""
    share = {text: parse(text).local_bytes(SQUARE, INT8, I=4, J=4) / 16 for text in ELEVEN}
    return Figure(
        key="sharding.eleven",
        alt="Eleven groups of two by two squares, one square for each chip. The shard that the chip holds "
        "is filled in the color of the chip: the whole matrix in one group, half of it in four, a quarter "
        "of it in six.",
        caption="Eleven ways to shard a matrix over a 2 × 2 mesh with axes X and Y. Each mesh axis that is used halves the bytes per "
        "chip, and each axis that is not used replicates the array. The order, XY or YX, changes "
        "which chip holds which shard.",
        parts=lambda wide: [_eleven(wide, share)],
    )


def _eleven(wide: float, share: dict[str, float]) -> Sketch:
    side, cell, deep = (38.0, 112.0, 122.0) if wide > 400 else (32.0, 85.0, 108.0)
    (across, down), columns, y = extent(SQUARE, side), int(wide // cell), 0.0
    shapes: list[Shape] = []
    for held, texts in groupby(share, key=lambda text: share[text]):
        said, k = f"{SHARES[held]} the bytes on each chip", 0
        shapes.append(Words(x=2, y=y + 14, text=said, align="start", bold=True))
        for k, text in enumerate(texts):
            x, top = 4 + k % columns * cell, y + 26 + k // columns * deep
            shapes += sharded(text, SQUARE, x=x, y=top, side=side)
            shapes.append(Words(x=x + across / 2, y=top + down + 17, text=subscripted(text)))
        y += 30 + deep * (k // columns + 1)
    return Sketch(wide, y - 4, shapes)


def cases() -> Figure:
    """The four cases on two chips: what each chip holds of A and B, and what it can compute of C."""
    return Figure(
        key="sharding.cases",
        alt="Four rows with two chips each. Case 1: each chip holds some rows of A and all of B, and "
        "computes those rows of C. Case 2: it holds some columns of A and all of B, and cannot compute C. "
        "Case 3: it holds some columns of A and the matching rows of B, and computes a partial sum of all "
        "of C. Case 4: it can compute one block of C, on the diagonal.",
        caption="The four cases of a sharded matmul. In the first three, look at the contracting dimension "
        "J: it is not sharded in case 1, sharded in one operand in case 2, and sharded in both in "
        "case 3. In case 4, I and K use the same mesh axis, so no chip has the operands of the "
        "blocks off the diagonal.",
        parts=lambda wide: [_cases(wide)],
    )


def _cases(wide: float) -> Sketch:
    """A row for each case: the matmul, both chips, and what to do. On a phone they are stacked."""
    abreast = wide > 400
    deep, left, top = (84.0, 178.0, 6.0) if abreast else (136.0, 2.0, 26.0)
    shapes: list[Shape] = []
    for k, (text, said) in enumerate(CASES.items()):
        y, line = k * deep, "\n" if abreast else " "
        written = subscripted(f"{k + 1}.  {text.replace(' →', line + '→')}")
        shapes.append(Words(x=2, y=y + 28 if abreast else y + 14, text=written, align="start"))
        for chip in (0, 1):
            shapes += _chip(text.partition(" → ")[0], chip, left + 170 * chip, y + top)
        x, level = (508.0, y + 28) if abreast else (2.0, y + 98)
        shapes.append(Words(x=x, y=level, text=said.replace("\n", line), align="start", quiet=True))
    return Sketch(wide, 4 * deep - 18, shapes)


def _chip(text: str, chip: int, x: float, y: float) -> list[Shape]:
    """A · B = C on one chip: C complete, a partial sum, or not computable, as the ranges of J agree."""
    product, side = parse_product(f"{text} -> C[I, K]"), 38.0
    held = [array.blocks(Mesh(X=2), I=2, J=2, K=2)[(chip,)] for array in (product.a, product.b)]
    (rows, j), (i, columns) = held
    shapes = part(held[0], 2, x=x, y=y, side=side, color=chip)
    shapes += part(held[1], 2, x=x + 54, y=y, side=side, color=chip)
    shapes += [Words(x=x + 46, y=y + 24, text="·"), Words(x=x + 100, y=y + 24, text="=")]
    shapes.append(Words(x=x + 73, y=y + side + 16, text=f"chip {chip}", quiet=True, size=12))
    if i == j:
        return shapes + part((rows, columns), 2, x=x + 108, y=y, side=side, color=chip, summed=len(j) < 2)
    nothing = Area(x=x + 108, y=y, wide=side, high=side, color=IDLE, shade=0.05, text="?", dashed=True)
    return [*shapes, nothing]


def collectives_by_hand() -> Figure:
    """The four shardings between which the collectives of the exercise go, on eight devices."""
    line, texts = Mesh(X=8), ("A[I_X, J]", "A[I, J]{U_X}", "A[I, J]", "A[I, J_X]")
    return replace(
        spread(line, [placed(text, line, (1024, 1024)) for text in texts]),
        key="sharding.collectives_by_hand",
        caption="Four collectives on an array, before and after. AllGather and AllToAll start from the "
        "shards of one array, while AllReduce and ReduceScatter start from partial sums, a "
        "different one on each device (dashed).",
    )
