"""Figures of one matmul in JAX's three modes, and of four output shardings of it."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.shards import extent, sharded, subscripted
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.collectives import Collective, all_reduce, bytes_received
from scalingbook_lib.machines.chips import V5E, Slice
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.notation.types import spec
from scalingbook_lib.units import BF16, si

MESH = Mesh(X=2, Y=4)
SIZES = {"B": 8192, "D": 8192, "F": 8192}
SUMS = parse("Out[B_X, F]{U_Y}")
WHOLE = SUMS.local_bytes(MESH, BF16, **SIZES)  # of the result on a chip, before anything is sent
MATH_S = 2.0 * SIZES["B"] * SIZES["D"] * SIZES["F"] / MESH.devices / V5E.bf16_flops_per_s
SUM_S = all_reduce(WHOLE, *Slice.of(V5E, "2x4").mesh(X=2, Y=4).axes("Y")).bandwidth_s
ONES = 16  # in the page's manual example, each row of x holds so many ones
MODES = (
    ("Auto", "the compiler decides"),
    ("Explicit", "the types decide, or JAX asks"),
    ("Manual", "you decide"),
)
ENDS = {  # the four output shardings of the partial sum, with the collectives that they take
    "replicated": ("Out[B_X, F]", ("AllReduce",)),
    "columns": ("Out[B_X, F_Y]", ("ReduceScatter",)),
    "rows": ("Out[B_XY, F]", ("ReduceScatter",)),
    "unreduced": ("Out[B_X, F]{U_Y}", ()),
}


def three_answers() -> Figure:
    """One line under three modes: a collective that nobody wrote, an error, a wrong number."""
    part = ONES // MESH.size("Y")
    return Figure(
        key="jax.three_answers",
        alt="Eight chips hold In and W, both sharded along the contracting dimension. Below, three columns for out = x @ w. "
        f"Auto: an arrow over each row of chips, an AllReduce of {si(WHOLE, 'B')}, {si(SUM_S, 's')} beside {si(MATH_S, 's')} "
        "of compute. Explicit: the line is crossed out as ambiguous; with out_sharding the result is sharded over both axes. "
        f"Manual: every chip holds {part}, although {ONES} would be correct.",
        caption="The same matmul, with both operands sharded along the contracting dimension, in three "
        "modes. Auto mode chooses a collective, explicit mode asks you for an output sharding, and "
        "manual mode runs only what you wrote. A mistake therefore shows up as a slow program, an "
        "error, or a wrong number. (Bars to scale.)",
        parts=lambda wide: [_operands(wide), _three(wide, str(part))],
    )


def _operands(wide: float) -> Sketch:
    """The operands of the matmul, as the eight chips hold them."""
    across, down = extent(MESH, 26)
    left = (wide - 2 * across - 24) / 2
    shapes: list[Shape] = [Words(x=left + across + 12, y=down / 2 + 5, text="·", bold=True)]
    for k, text in enumerate(("In[B_X, D_Y]", "W[D_Y, F]")):
        x = left + k * (across + 24)
        shapes += [
            *sharded(text, MESH, x=x, y=2, side=26),
            Words(x=x + across / 2, y=down + 20, text=subscripted(text)),
        ]
    return Sketch(wide, down + 28, shapes)


def _three(wide: float, part: str) -> Sketch:
    abreast = wide > 400
    shapes: list[Shape] = []
    for k, ((name, who), draw) in enumerate(zip(MODES, (_auto, _explicit, _manual), strict=True)):
        x, y = (2 + k * wide / 3, 0.0) if abreast else (2.0, k * 212.0)
        shapes += [
            Words(x=x, y=y + 20, text=name, bold=True, align="start", size=15),
            Words(x=x, y=y + 40, text=who, quiet=True, align="start"),
            *draw(x, y + 54, part),
        ]
    return Sketch(wide, 196 if abreast else 602, shapes)


def _auto(x: float, y: float, part: str) -> list[Shape]:
    """The result, replicated along Y by an AllReduce that nobody wrote, and its time beside the compute time."""
    times = {"compute": (MATH_S, MATH), "network": (SUM_S, NETWORK)}
    rows = [y + 17 + 39 * k for k in (0, 1)]
    return [
        *sharded("Out[B_X, F]", MESH, x=x, y=y, side=34),
        *(Arrow(x0=x, y0=row, x1=x + 151, y1=row, heads=2, color=NETWORK, thick=3.5) for row in rows),
        Words(x=x, y=y + 92, text=f"AllReduce over Y: {si(WHOLE, 'B')}", align="start"),
        *(
            Area(
                x=x,
                y=y + 101 + 19 * k,
                wide=34 * s / MATH_S,
                high=15,
                color=color,
                shade=0.6,
                right=f"{si(s, 's')} {name}",
            )
            for k, (name, (s, color)) in enumerate(times.items())
        ),
    ]


def _explicit(x: float, y: float, part: str) -> list[Shape]:
    """The line that JAX refuses, and the line that it accepts."""
    return [
        Words(x=x, y=y + 12, text="out = x @ w", align="start"),
        Arrow(x0=x - 2, y0=y + 8, x1=x + 76, y1=y + 8, heads=0, color=MATH, thick=2),
        Words(x=x + 86, y=y + 12, text="ambiguous!", color=MATH, bold=True, align="start"),
        Words(x=x, y=y + 36, text='jnp.dot(x, w,\n   out_sharding=P("X", "Y"))', align="start"),
        *sharded("Out[B_X, F_Y]", MESH, x=x, y=y + 64, side=34),
    ]


def _manual(x: float, y: float, part: str) -> list[Shape]:
    """The result on each chip without an AllReduce: the same number, which is too small."""
    cells = [(x + 39 * (k % 4), y + 39 * (k // 4)) for k in range(MESH.devices)]
    said = f"each chip returns {part},\nbut {ONES} is correct"
    return [
        *(Area(x=left, y=top, wide=34, high=34, text=part, color=MATH, shade=0.15) for left, top in cells),
        Words(x=x, y=y + 92, text=said, align="start"),
    ]


def received(kinds: tuple[str, ...]) -> float:
    """The bytes that a chip receives in these collectives over Y."""
    return sum(bytes_received(Collective.named(kind), WHOLE, MESH.size("Y")) for kind in kinds)


def four_answers() -> Figure:
    """Four output shardings of one partial sum, and the bytes that a chip receives for each."""
    said = {name: si(received(kinds), "B") if kinds else "nothing" for name, (_, kinds) in ENDS.items()}
    return Figure(
        key="jax.four_answers",
        alt="A partial sum on eight chips, each block pale with a plus. Four arrows lead from it, and thicker arrows stand for more bytes that a chip "
        f"receives: {', '.join(f'{name} {words}' for name, words in said.items())}.",
        caption="Four correct output shardings of one matmul, and their communication. Replicating the "
        "result takes twice the bytes of sharding it, and leaving it unreduced takes none. (The "
        f"bytes are those that a chip receives, for matrices of {SIZES['B']:,} × {SIZES['B']:,} in "
        "bf16.)",
        parts=lambda wide: [_ends(wide, said)],
    )


def _ends(wide: float, said: dict[str, str]) -> Sketch:
    """The partial sum on the left (on a phone above), and its four output shardings as rows."""
    abreast = wide > 400
    side, deep = (26.0, 84.0) if abreast else (24.0, 104.0)
    across, down = extent(MESH, side)
    x0, y0 = (2.0, 1.5 * deep) if abreast else ((wide - across) / 2, 2.0)
    top, x1 = (0.0, 340.0) if abreast else (down + 52, 218.0)
    shapes: list[Shape] = [
        *sharded(str(SUMS), MESH, x=x0, y=y0, side=side),
        Words(x=x0 + across / 2, y=y0 + down + 18, text=subscripted(SUMS.canonical()), bold=True),
    ]
    for k, (name, (text, kinds)) in enumerate(ENDS.items()):
        y, thick = top + k * deep, 1.5 + received(kinds) / 1.2e7
        start = (x0 + across + 14, y0 + down / 2) if abreast else (4.0, y + 44)
        left = x1 + across + 12 if abreast else 2.0
        kind = " ".join(kinds) or "nothing moves"
        told = f"{said[name]} received" if kinds else "the sum is still pending"
        shapes += [
            Arrow(
                x0=start[0],
                y0=start[1],
                x1=x1 - 12,
                y1=y + (38 if abreast else 44),
                color=NETWORK,
                thick=thick,
                dashed=not kinds,
            ),
            *sharded(text, MESH, x=x1, y=y + 8, side=side),
            Words(x=left, y=y + 20, text=f"{name}: {kind}", bold=True, align="start"),
        ]
        below = f"{told}\n{spec.spec(parse(text))}" if abreast else told
        shapes.append(Words(x=left, y=y + (38 if abreast else 74), text=below, align="start", quiet=True))
    return Sketch(wide, top + 4 * deep, shapes)
