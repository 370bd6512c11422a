"""Explorer of a collective matmul on a ring: the chunks on each device, the link and the matrix unit."""

from dataclasses import replace

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Cell,
    Chips,
    Choice,
    Explorer,
    Grid,
    Link,
    Network,
    Node,
    Readout,
    RefLine,
    Slider,
    Span,
    Steps,
    Switch,
    Timeline,
    View,
    layouts,
)
from scalingbook_lib.machines import chips
from scalingbook_lib.roofline import ChunkTurn
from scalingbook_lib.sharded_matmul.overlap import LINK, UNIT, RingMatmul
from scalingbook_lib.units import percent, si

GATHER, SCATTER = "AllGather, then matmul", "matmul, then ReduceScatter"
_ARRAYS = {GATHER: "In[B, D_Y] · W[D, F_Y] -> Tmp[B, F_Y]", SCATTER: "Tmp[B, F_Y] · W[F_Y, D] -> Out[B, D_Y]"}
_NOW, _PALE = 1.0, 0.35


def _ring(*, kind: str, n: int, both: bool, B: int, D: int, F: int, chip: str, step: int) -> View:
    on = chips.find(chip)
    axis = on.axis(n, wrapped=True)
    r = RingMatmul(B=B, D=D, F=F, axis=axis, chip=on, links=2 if both else 1, scatter=kind == SCATTER)
    done = min(step, n)
    return View(
        _verdict(r),
        (_network(r, done), _table(r, done), _timeline(r, done)),
        (
            Readout("matmul per step", r.matmul_s, "s"),
            Readout("transfer per step", r.transfer_s, "s"),
            Readout("as a ring", r.total_s, "s"),
            Readout("without overlap", r.serial_s, "s"),
            Readout("C/W of these links", r.ratio, "", f"{r.ratio:,.0f}"),
            Readout("F that hides the transfers", r.overlap_threshold_F, "", f"{r.overlap_threshold_F:,.0f}"),
        ),
        frames=n + 1,
        columns=2,
    )


# Who holds what


def _network(r: RingMatmul, done: int) -> Network:
    at = max(done - 1, 0)
    nodes = [
        Node(str(i), x, y, r.chunks(i, at), _note(r, i, at)) for i, (x, y) in enumerate(layouts.ring(r.n))
    ]
    wires = [Link(i, (i + 1) % r.n) for i in range(r.n)]
    what = "Sums" if r.scatter else "Chunks"
    title = f"{what} on each device in step {done}" if done else f"{what} before the first step"
    return Network(nodes, [*wires, *_arrows(r, done)], title, 0.74)


def _note(r: RingMatmul, device: int, at: int) -> str:
    names = " and ".join(map(str, r.chunks(device, at)))
    return f"device {device}: {'sum for device' if r.scatter else 'chunk'} {names}"


def _arrows(r: RingMatmul, done: int) -> list[Link]:
    """What is on its way during a step: chunks beside their product, sums after it."""
    sent = done - 2 if r.scatter else done - 1
    if not 0 <= sent < r.n - 1:
        return []
    return [
        Link(i, (i + way) % r.n, 1, color=chunk, bend=0.3 if r.links == 2 else 0.0)
        for i in range(r.n)
        for way, chunk in zip((1, -1), r.chunks(i, sent), strict=False)
    ]


def _table(r: RingMatmul, done: int) -> Grid:
    what = "Sum added to" if r.scatter else "Chunk multiplied"
    cells = [[_cell(r, i, s, done) for s in range(r.n)] for i in range(r.n)]
    return Grid(
        f"{what}, by device and step", [str(i) for i in range(r.n)], [str(s + 1) for s in range(r.n)], cells
    )


def _cell(r: RingMatmul, device: int, at: int, done: int) -> Cell:
    """The chunk by its number, of both halves where they come from two sides; pale where it is not yet."""
    names = r.chunks(device, at)
    text = "+".join(map(str, names)) if len(set(names)) > 1 else str(names[0])
    return Cell(text, names[0], _note(r, device, at), level=_NOW if at < done else _PALE)


# When


def _timeline(r: RingMatmul, done: int) -> Timeline:
    drawn = [
        Span(t.stage, t.start_s, t.end_s, str(t.chunk + 1), _color(r, t, done)) for t in r.lockstep().turns
    ]
    refs = (RefLine("without overlap", r.serial_s),)
    return Timeline((LINK, UNIT), drawn, end=1.03 * r.serial_s, refs=refs, label="elapsed time")


def _color(r: RingMatmul, turn: ChunkTurn, done: int) -> int:
    """Blue and green for steps that are done or running, gray for later ones."""
    at = turn.chunk + 1 if turn.stage == LINK and r.scatter else turn.chunk
    return (1 if turn.stage == LINK else 2) if at < done else 5


# What there is to discover


def _verdict(r: RingMatmul) -> str:
    arrays = _ARRAYS[SCATTER if r.scatter else GATHER]
    said = f"{arrays} takes {si(r.total_s, 's')} as a ring of {r.n} steps, "
    said += f"and {si(r.serial_s, 's')} without overlap"
    if r.matmul_s >= r.transfer_s:
        least = f"{r.overlap_threshold_F:,.0f}"
        return f"{said}. Compute-bound: every transfer is hidden, because F per device is at least {least}."
    waits = (r.n - 1) * (r.transfer_s - r.matmul_s)
    said += f". Network-bound: the matrix unit waits for the link for {si(waits, 's')}, "
    said += f"{percent(waits / r.total_s)} of the time"
    both = (
        ""
        if r.links == 2
        else f", or {replace(r, links=2).overlap_threshold_F:,.0f} if both directions are used"
    )
    return (
        f"{said}. To hide the transfers, F per device has to be at least {r.overlap_threshold_F:,.0f}{both}."
    )


RING = Explorer(
    key="jax.ring",
    title="Collective matmul, step by step",
    question="What chunk does each device multiply while the next one arrives, and is the transfer hidden?",
    controls={
        "kind": Choice("matmul", (GATHER, SCATTER)),
        "n": Slider("devices on the ring", 2, 8, 4),
        "both": Switch("both directions", False),
        "B": Slider("B per device", 64, 65536, 1024, "pow2"),
        "D": Slider("D in total", 512, 65536, 2048, "pow2"),
        "F": Slider("F per device", 256, 32768, 2048, "pow2"),
        "chip": Chips("chip", TORI, "TPU v5e"),
        "step": Steps("step", 2),
    },
    view=_ring,
)
