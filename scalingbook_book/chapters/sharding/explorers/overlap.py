"""Explorer of the time that a collective matmul saves: chunks on the link, and matmuls on the matrix unit."""

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Chart,
    Chips,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Span,
    Timeline,
    View,
)
from scalingbook_lib.roofline import CopyPipeline
from scalingbook_lib.sharded_matmul import Strategy, solve
from scalingbook_lib.sharded_matmul.prices import describe_mesh, machine
from scalingbook_lib.units import percent, si

_PRODUCT, _GATHER = "A[I, J_Y] · B[J, K_Y] -> C[I, K_Y]", "gather A over Y"
_MOST = 32
_LANES = {"network": "link", "chip": "matrix unit"}


def gathered(I: int, J: int, K: int, n: int, chip: str) -> Strategy:
    """Case 2 by its AllGather, on one axis of n chips."""
    return solve(_PRODUCT, machine(chip, Y=n), {"I": I, "J": J, "K": K}).named(_GATHER)


def _overlap(*, chunks: int, I: int, J: int, K: int, n: int, chip: str) -> View:
    strategy = gathered(I, J, K, n, chip)
    now, plain = strategy.overlapped(chunks), strategy.upper_s
    counts = range(1, _MOST + 1)
    chart = Chart(
        Scale("chunks", "", "pow2", 1, _MOST),
        Scale("total time", "s", low=0.9 * strategy.lower_s),
        (
            Curve("in chunks", counts, [strategy.overlapped(k).total_s for k in counts], 0),
            RefLine("full overlap", strategy.lower_s, "y"),
            Points("you", [chunks], [now.total_s], [si(now.total_s, "s")], 3),
        ),
    )
    return View(
        _verdict(now, strategy),
        (_gantt(now, plain), chart),
        (
            Readout("matrix unit", strategy.chip_s, "s"),
            Readout("network", strategy.comms_s, "s"),
            Readout("without overlap", plain, "s"),
            Readout("in chunks", now.total_s, "s"),
            Readout.percent("saved", _saved(now, plain)),
            Readout("axis", n, "", describe_mesh(machine(chip, Y=n))),
        ),
    )


def _saved(now: CopyPipeline, plain: float) -> float:
    """The fraction of the time without overlap that is saved: at most a half."""
    return 1 - now.total_s / plain


def _gantt(now: CopyPipeline, plain: float) -> Timeline:
    in_turn = sorted(now.turns, key=lambda turn: turn.chunk)
    spans = [
        Span(_LANES[t.stage], t.start_s, t.end_s, str(t.chunk + 1), 1 + list(_LANES).index(t.stage))
        for t in in_turn
    ]
    refs = (RefLine("without overlap", plain),) if now.chunks > 1 else ()
    return Timeline(tuple(_LANES.values()), spans, end=1.04 * plain, refs=refs)


def _verdict(now: CopyPipeline, strategy: Strategy) -> str:
    plain, total = si(strategy.upper_s, "s"), si(now.total_s, "s")
    by_chip = strategy.chip_s >= strategy.comms_s
    longer, shorter = ("matrix unit", "network") if by_chip else ("network", "matrix unit")
    if now.chunks == 1:
        return (
            f"With one chunk, nothing overlaps: {total}. With more chunks, most of the shorter "
            f"time can be hidden."
        )
    rest, saved = si(min(now.chunk_s.values()), "s"), percent(_saved(now, strategy.upper_s))
    return (
        f"In {now.chunks} chunks, the collective matmul takes {total} instead of {plain}, which is "
        f"{saved} less. The {longer} never waits, and {rest} of the {shorter} is exposed."
    )


OVERLAP = Explorer(
    key="sharding.overlap",
    title="Collective matmul",
    question="A[I, J_Y] · B[J, K_Y]: how much of the AllGather hides behind the matmul?",
    controls={
        "chunks": Slider("chunks", 1, _MOST, 4),
        "I": Slider("size of I", 64, 65536, 4096, "pow2"),
        "J": Slider("size of J", 256, 65536, 8192, "pow2"),
        "K": Slider("size of K", 256, 131072, 32768, "pow2"),
        "n": Slider("chips on Y", 2, 16, 4, "pow2"),
        "chip": Chips("chip", TORI, "TPU v5e"),
    },
    view=_overlap,
)
