"""Explorer of the cheapest way from one sharding to another: its steps, and the alternatives."""

from scalingbook_book.reader.explorers.parts import (
    LINKED,
    Bars,
    Cell,
    Chips,
    Choice,
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
from scalingbook_lib.collectives.resharding import Resharding, Sequence, reshard
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.sharded_matmul.prices import describe_mesh, machine
from scalingbook_lib.units import dtype, si

_SHOWN = 4


def resharding(
    before: str, after: str, *, chip: str, X: int, Y: int, I: int, J: int, numbers: str, idle: bool
) -> Resharding:
    """The search between two typed shardings; the sizes belong to their dimensions in order."""
    mesh = Mesh(X=X, Y=Y)
    a, b = parse(before, mesh), parse(after, mesh)
    if len(a.dims) > 2:
        raise ValueError(
            f"{a} has {len(a.dims)} dimensions, but there are sliders for only two; write one or two, as "
            "in A[I_X, J]"
        )
    sizes = dict(zip(a.names, (I, J), strict=False))
    return reshard(a, b, machine(chip, X=X, Y=Y), sizes, dtype(numbers), idle_links=idle)


def _reshard(
    *, before: str, after: str, X: int, Y: int, I: int, J: int, numbers: str, chip: str, idle: bool
) -> View:
    found = resharding(before, after, chip=chip, X=X, Y=Y, I=I, J=J, numbers=numbers, idle=idle)
    ways = (found.best, *found.rejected[: _SHOWN - 1])
    return View(
        _verdict(found),
        (_steps(found.best), _bars(ways), *_others(ways[1:])),
        (
            Readout("cheapest", found.best.total_s, "s"),
            Readout("steps", len(found.best.moves), "", str(len(found.best.moves))),
            Readout("bytes moved by all steps", found.best.nbytes, "B"),
            Readout("mesh", X * Y, "", describe_mesh(machine(chip, X=X, Y=Y))),
        ),
    )


def _steps(best: Sequence) -> Grid:
    """A cell for each step of the cheapest sequence, the free ones in gray."""
    cells = [
        [Cell(wrap_lines(f"{i}. {move}"), 0 if move.seconds else None, level=0.6)]
        for i, move in enumerate(best.moves, 1)
    ]
    return Grid("The cheapest sequence", (), (), cells or [[Cell("nothing to move")]])


def _bars(ways: tuple[Sequence, ...]) -> Bars:
    return Bars(
        Scale("time", "s", low=0, high=None if any(way.total_s for way in ways) else 1e-6),
        [f"{i}. {way.description}" for i, way in enumerate(ways, 1)],
        (
            Series("bytes", [sum(m.transfer.bandwidth_s for m in way.moves) for way in ways], 0),
            Series("hops", [sum(m.transfer.latency_s for m in way.moves) for way in ways], 1),
        ),
        stacked=True,
        title="Cheapest sequences",
    )


def _others(ways: tuple[Sequence, ...]) -> tuple[Grid, ...]:
    if not ways:
        return ()
    cells = [
        [Cell(wrap_lines(f"{i}. {way.description}", f"{si(way.total_s, 's')}, {way.why}"))]
        for i, way in enumerate(ways, 2)
    ]
    return (Grid("Slower sequences", (), (), cells),)


def _verdict(found: Resharding) -> str:
    said = f"{found.before} → {found.after}"
    if not found.best.moves:
        return f"{said}: there is nothing to do."
    if not found.best.total_s:
        moves = found.best.description
        return f"{said} is free: every chip already holds what it needs ({moves})."
    said += f": {found.best.description}, {si(found.best.total_s, 's')}."
    if not found.rejected:
        return f"{said} There is no other sequence."
    second = found.rejected[0]
    return f"{said} The next best is {second.description}: {second.why}."


RESHARD = Explorer(
    key="sharding.reshard",
    title="Resharding",
    question="What is the cheapest sequence of collectives from one sharding to another?",
    controls={
        "before": Notation("from", "A[I_X, J]", "such as A[I_XY, J] or A[I, J]{U_X}"),
        "after": Notation("to", "A[I, J_Y]", "the same letters, as in A[I, J] or A[I, J_X]"),
        "X": Slider("mesh axis X", 1, 16, 4, "pow2"),
        "Y": Slider("mesh axis Y", 1, 16, 4, "pow2"),
        "I": Slider("rows", 16, 131072, 4096, "pow2"),
        "J": Slider("columns", 16, 131072, 8192, "pow2"),
        "numbers": Choice("data type", ("bf16", "int8", "fp32")),
        "chip": Chips("chip", LINKED, "TPU v5p"),
        "idle": Switch("use idle mesh axes", False),
    },
    view=_reshard,
)
