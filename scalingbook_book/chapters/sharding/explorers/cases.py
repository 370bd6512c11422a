"""Explorer of the cases of a sharded matmul and the fastest strategy, with the time of every strategy."""

import math
from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Bars,
    Cell,
    Chips,
    Explorer,
    Grid,
    Notation,
    Readout,
    Scale,
    Series,
    Slider,
    Switch,
    View,
    wrap_lines,
)
from scalingbook_lib.notation import Mesh, parse_product
from scalingbook_lib.sharded_matmul import CASES, Solution, Strategy, solve
from scalingbook_lib.sharded_matmul.prices import describe_mesh, machine
from scalingbook_lib.units import count, si

_SHOWN, _REFUSALS = 5, 3


@lru_cache(maxsize=256)
def solution(text: str, *, chip: str, X: int, Y: int, sizes: tuple[int, ...], idle: bool) -> Solution:
    """Solve a typed matmul; the sizes belong to its dimensions in the order in which they first appear."""
    product = parse_product(text, Mesh(X=X, Y=Y))
    names = product.names
    if len(names) > len(sizes):
        raise ValueError(
            f"{product} has {len(names)} dimensions ({', '.join(names)}), but there are sliders for three; "
            "leave out a batch dimension"
        )
    return solve(product, machine(chip, X=X, Y=Y), dict(zip(names, sizes, strict=False)), idle_axes=idle)


def _cases(*, text: str, X: int, Y: int, I: int, J: int, K: int, chip: str, idle: bool) -> View:
    found = solution(text, chip=chip, X=X, Y=Y, sizes=(I, J, K), idle=idle)
    shown = found.strategies[:_SHOWN]
    best = found.best
    sizes = ", ".join(f"{n} {count(s)}" for n, s in zip(found.product.names, (I, J, K), strict=False))
    return View(
        _verdict(found),
        (_bars(shown), _table(found, shown), *_refused(found)),
        (
            Readout("case", found.case, "", str(found.case)),
            Readout("fastest", best.lower_s, "s"),
            Readout("next", best.lower_s * found.margin if len(found.strategies) > 1 else 0, "s"),
            Readout("strategies", len(found.strategies), "", f"{len(found.strategies)}"),
            Readout("sizes", 0, "", sizes),
            Readout("mesh", X * Y, "", describe_mesh(machine(chip, X=X, Y=Y))),
        ),
    )


def _bars(shown: tuple[Strategy, ...]) -> Bars:
    return Bars(
        Scale("time of each term", "s"),
        [f"{i}. {strategy.name}" for i, strategy in enumerate(shown, 1)],
        (
            Series("math", [s.math_s for s in shown], 2),
            Series("HBM", [s.hbm_s for s in shown], 3),
            Series("network", [s.comms_s for s in shown], 1),
        ),
    )


def _table(found: Solution, shown: tuple[Strategy, ...]) -> Grid:
    """Each strategy in full: its collectives and its times."""
    cells = [
        [Cell(_told(f"{i}. {s.name}", s), 0 if s is found.best else None, found.why(s), level=0.6)]
        for i, s in enumerate(shown, 1)
    ]
    more = len(found.strategies) - len(shown)
    return Grid(
        f"The {len(shown)} fastest strategies ({more} more take longer)" if more else "All strategies",
        (),
        (),
        cells,
    )


def _told(name: str, s: Strategy) -> str:
    times = f"{si(s.lower_s, 's')} with overlap, {si(s.upper_s, 's')} without"
    return wrap_lines(name, f"{times}; {s.bound}-bound")


def _refused(found: Solution) -> tuple[Grid, ...]:
    if not found.rejected:
        return ()
    shown = found.rejected[:_REFUSALS]
    cells = [[f"{r.local.canonical()}\n{wrap_lines(r.why)}"] for r in shown]
    more = len(found.rejected) - len(shown)
    return (
        Grid(
            "Not possible" + (f" ({more} more)" if more else ""),
            (),
            (),
            [[Cell(text) for text in row] for row in cells],
        ),
    )


def _verdict(found: Solution) -> str:
    best = found.best
    said = f"{CASES[found.case][0].upper()}{CASES[found.case][1:]}."
    said += f" Fastest: {best.name}, {si(best.lower_s, 's')}, {best.bound}-bound."
    if math.isinf(found.margin):
        return f"{said} There is no other strategy."
    second = found.strategies[1]
    if found.margin < 1.001:
        return f"{said} {second.name[0].upper()}{second.name[1:]} takes equally long."
    return f"{said} The next best, {second.name}, takes {found.margin:.3g} times as long."


CASE_SOLVER = Explorer(
    key="sharding.cases",
    title="Four cases of sharded matmul",
    question="Which of the four cases is this matmul, what strategies are possible, and which one is "
    "fastest?",
    controls={
        "text": Notation(
            "matmul",
            "A[I, J_Y] · B[J, K] -> C[I, K]",
            "type * for · and -> for →; the mesh axes are X and Y; {U_X} marks a partial sum",
        ),
        "X": Slider("mesh axis X", 1, 16, 4, "pow2"),
        "Y": Slider("mesh axis Y", 1, 16, 4, "pow2"),
        "I": Slider("size of I (1st)", 64, 65536, 2048, "pow2"),
        "J": Slider("size of J (2nd)", 64, 65536, 8192, "pow2"),
        "K": Slider("size of K (3rd)", 64, 65536, 2048, "pow2"),
        "chip": Chips("chip", TORI, "TPU v5p"),
        "idle": Switch("use idle mesh axes", False),
    },
    view=_cases,
)
