"""Explorer of one MLP's forward and backward pass, operation by operation: arrays held and received."""

from functools import lru_cache
from itertools import accumulate

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    Scale,
    Slider,
    Steps,
    View,
)
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.training.program import ARRAYS, SCHEMES, ProgramLine, ProgramSizes, program
from scalingbook_lib.units import binary

_COLORS = {"AllGather": 1, "ReduceScatter": 1, "AllReduce": 1, "product": 2, "arrives": 2}


@lru_cache(maxsize=64)
def counted(
    scheme: str, X: int, *, Y: int, B: int, D: int, F: int
) -> tuple[ProgramSizes, list[float], list[float]]:
    """Sizes, and after every operation the bytes that a chip holds, and those that it has received."""
    mesh = Mesh(X=1 if scheme == "TP" else X, Y=Y if "TP" in scheme else 1)
    sizes = ProgramSizes(B, D, F, mesh)
    moves = program(scheme)
    return sizes, [sizes.held(m) for m in moves], list(accumulate(sizes.received(m) for m in moves))


def _steps(*, scheme: str, X: int, Y: int, B: int, D: int, F: int, step: int) -> View:
    sizes, held, received = counted(scheme, X, Y=Y, B=B, D=D, F=F)
    moves = program(scheme)
    at = min(step, len(moves) - 1)
    return View(
        _verdict(at, moves, sizes),
        (_arrays(moves[at], sizes), _curves(held, received, at)),
        (
            Readout("chips", sizes.mesh.devices),
            Readout.binary("held now", held[at]),
            Readout.binary("peak bytes held", max(held)),
            Readout.binary("received so far", received[at]),
            Readout.binary("received in total", received[-1]),
        ),
        frames=len(moves),
    )


def _arrays(move: ProgramLine, sizes: ProgramSizes) -> Grid:
    """Forward arrays above, their gradients below; the part that the first chip holds."""
    cells = [_cell(name, move, sizes) for name in ARRAYS]
    title = "Blue: held; green: just computed; orange: just moved"
    return Grid(title, ("forward", "gradient"), ARRAYS[:5], (cells[:5], cells[5:]))


def _cell(name: str, move: ProgramLine, sizes: ProgramSizes) -> Cell:
    dims = move.held.get(name)
    if dims is None:
        return Cell("\n", None, f"{name} is not held", part=(0, 0, 0, 0))
    array = parse(name + dims, sizes.mesh)
    rows, columns = (1 / sizes.mesh.size(array.axes_of(d)) for d in array.names)
    shown, _, pending = dims.partition("{")
    color = _COLORS[move.what] if move.array == name else 0
    note = f"{name}{dims}: {binary(sizes.nbytes(name + dims))}"
    return Cell(f"{shown}\n{'{' * bool(pending)}{pending}", color, note, part=(0, rows, 0, columns))


def _curves(held: list[float], received: list[float], at: int) -> Chart:
    xs = list(range(len(held)))
    return Chart(
        Scale("operation", "", "linear", 0, 10 if len(held) <= 11 else 20),
        Scale("bytes per chip", "B"),
        (
            Curve("held", xs, held, 0),
            Curve("received so far", xs, received, 1),
            Points("", [at], [held[at]], [binary(held[at])], 0),
            Points("", [at], [received[at]], [], 1),
        ),
    )


def _verdict(at: int, moves: tuple[ProgramLine, ...], sizes: ProgramSizes) -> str:
    move = moves[at]
    if not at:
        return "Before the first operation, a chip holds its shards of the tokens and of the weights."
    said = f"Operation {at} of {len(moves) - 1}, {move.when}: "
    if not move.axis:
        return f"{said}{move.text}{'' if move.what == 'arrives' else ', without communication'}."
    waits = (
        "the next matmul has to wait for the collective"
        if move.waited
        else "the collective can overlap with other matmuls"
    )
    got = binary(sizes.received(move))
    return f"{said}{move.what} over {move.axis}, {move.text}. Each chip receives {got}, and {waits}."


STEPS = Explorer(
    key="training.steps",
    title="Forward and backward pass of a layer, operation by operation",
    question="What does a chip hold and receive, and which collectives are on the critical path?",
    controls={
        "scheme": Choice("scheme", SCHEMES, "FSDP with TP"),
        "X": Slider("FSDP degree X", 1, 16, 4, "pow2"),
        "Y": Slider("TP degree Y", 1, 16, 2, "pow2"),
        "B": Slider("global batch B, tokens", 256, 2**20, 8192, "pow2"),
        "D": Slider("model width D", 512, 16384, 4096, "pow2"),
        "F": Slider("layer width F", 512, 65536, 16384, "pow2"),
        "step": Steps("operation", 2),
    },
    view=_steps,
)
