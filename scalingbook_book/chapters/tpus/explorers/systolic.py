"""Explorer that plays a systolic array: what every cell does in every cycle."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Steps,
    Switch,
    View,
    pluralize,
)
from scalingbook_lib.machines import systolic
from scalingbook_lib.units import percent

_ROWS, _LOADING = 3, 3  # rows of X take colors 0 to 2 in turn
_TEXTS = 5  # sides up to this show numbers in their cells


@lru_cache(maxsize=64)
def played(t: int, M: int, tiles: int, double: bool) -> systolic.ArrayRun:
    """X[M, t] times `tiles` square tiles of weights side by side, in small numbers that can be followed."""
    X = [[1 + (2 * m + k) % 5 for k in range(t)] for m in range(M)]
    W = [[1 + (3 * k + n) % 7 for n in range(tiles * t)] for k in range(t)]
    return systolic.simulate(X, W, side=t, double_buffered=double)


def _systolic(*, t: int, M: int, tiles: int, double: bool, step: int) -> View:
    run = played(t, M, tiles, double)
    frame = run.frames[min(step, len(run.frames) - 1)]
    return View(
        _verdict(run, frame.cycle),
        (_array(run, frame), _curve(run, frame)),
        (
            Readout("busy cells now", frame.busy, "", f"{frame.busy} of {t * t}"),
            Readout("cycles for loading", run.load_cycles),
            Readout("cycles after loading", run.cycles),
            Readout("one tile: B + 2t - 2", systolic.cycles(M, t)),
            Readout("each further tile takes", systolic.tile_period(M, t, double)),
            Readout.percent("utilization", run.utilization, 3),
        ),
        frames=len(run.frames),
        columns=2,
    )


# The cells


def _array(run: systolic.ArrayRun, frame: systolic.ArrayFrame) -> Grid:
    """Every cell in the color of the row of X that passes, with its activation, weight and sum."""
    entering = [f"row {k}" for k in range(run.side)]
    cells = [[_cell(cell, k, n, run.side) for n, cell in enumerate(row)] for k, row in enumerate(frame.cells)]
    shown = "activation × weight, sum below" if run.side <= _TEXTS else "the sum in every cell"
    return Grid(f"Cycle {frame.cycle}: {shown}", entering, (), cells)


def _cell(cell: systolic.ArrayCell, k: int, n: int, t: int) -> Cell:
    color = _LOADING if cell.loading else None
    if cell.busy:
        color = (cell.row or 0) % _ROWS
    level = 1.0 if cell.busy else 0.45
    short = f"{cell.partial}" if cell.busy else ""
    return Cell(_text(cell) if t <= _TEXTS else short, color, _note(cell, k, n), level=level)


def _text(cell: systolic.ArrayCell) -> str:
    weight = "" if cell.weight is None else f"{cell.weight}"
    if cell.busy:
        return f"{cell.activation} × {weight}\n{cell.partial}"
    if cell.loading and cell.waiting is not None and cell.weight is None:
        weight = f"{cell.waiting}"
    return f"{weight}\n " if weight else " \n "


def _note(cell: systolic.ArrayCell, k: int, n: int) -> str:
    said = [f"cell ({k}, {n})"]
    if cell.busy:
        said.append(f"row {cell.row} of X: {cell.activation} × {cell.weight}, sum so far {cell.partial}")
    elif cell.weight is not None:
        said.append(f"weight {cell.weight}, idle")
    if cell.waiting is not None and cell.waiting_tile != cell.tile:
        said.append(f"weight {cell.waiting} of tile {cell.waiting_tile} waits")
    return "; ".join(said)


# All cycles


def _curve(run: systolic.ArrayRun, frame: systolic.ArrayFrame) -> Chart:
    cycles = list(range(len(run.frames)))
    return Chart(
        Scale("cycle", "", "linear", 0, max(len(cycles) - 1, 1)),
        Scale("busy cells", ""),
        (
            Curve("multiplying", cycles, run.busy, 0),
            Curve("loading a weight", cycles, [f.loading for f in run.frames], _LOADING, dashed=True),
            RefLine(f"all {run.side**2}", run.side**2, axis="y"),
            Points("now", [frame.cycle], [frame.busy], [], 1),
        ),
    )


def _verdict(run: systolic.ArrayRun, cycle: int) -> str:
    rows = pluralize(run.rows, "row")
    said = (
        f"{rows} and {pluralize(run.tiles, 'tile')} of {run.side} × {run.side} weights take "
        f"{run.cycles} cycles, during which {percent(run.utilization)} of the cells are busy on average."
    )
    return f"{said} {_now(run, cycle)}"


def _now(run: systolic.ArrayRun, cycle: int) -> str:
    busy, after = run.busy[cycle], cycle - run.load_cycles
    if after < 0:
        return f"In cycle {cycle}, the array loads weights, and no cell multiplies yet."
    if busy == run.side**2:
        return f"In cycle {cycle}, every cell is busy."
    first, last = run.busy.index(max(run.busy)), len(run.busy) - run.drain_cycles - 1
    if cycle < first:
        return (
            f"In cycle {cycle}, the array is still filling: {pluralize(busy, 'cell')} "
            f"{'is' if busy == 1 else 'are'} busy."
        )
    if cycle > last:
        return (
            f"In cycle {cycle}, the array is draining: {pluralize(busy, 'cell')} "
            f"{'is' if busy == 1 else 'are'} busy."
        )
    if max(run.busy) < run.side**2 and run.tiles == 1:
        return "There are too few rows to fill the array."
    if run.double_buffered and run.rows < run.side:
        return (
            f"The rows finish before the next tile's weights are loaded, so a tile costs {run.side} cycles."
        )
    if not run.double_buffered and run.tiles > 1:
        return "With only one register, a cell cannot multiply while it loads a weight."
    return "The next tile's rows follow without a gap."


SYSTOLIC = Explorer(
    key="tpus.systolic",
    title="The systolic array, cycle by cycle",
    question="How many rows must stream past the weights before most cells are busy in most cycles?",
    controls={
        "t": Slider("side t of the array", 2, 8, 3),
        "M": Slider("rows B of X", 1, 16, 4),
        "tiles": Slider("tiles of weights", 1, 4, 2),
        "double": Switch("double-buffered weights", True),
        "step": Steps("cycle", 6),
    },
    view=_systolic,
)
