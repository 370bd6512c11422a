"""Explorer of the bottleneck of a chain of links: move a matrix to the matrix unit, or the vectors to it."""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Span,
    Timeline,
    View,
    torus,
)
from scalingbook_lib.sharded_matmul.overlap import FAR, FETCH, HOSTS, IN, OTHER, OUT, SEND, SPLIT, MatvecChain
from scalingbook_lib.units import binary, percent, si

_SLICES = ("TPU v5e 4x4", "TPU v5e 8x8", "TPU v5e 16x16", "TPU v6e 4x4", "TPU v4 4x4x4", "TPU v5p 4x4x4")
_NAMED = 12  # chunks that are numbered in the picture
_BACK = "y, back"
_LANES = ("PCIe", OUT, "DCN", IN, "ICI", "HBM", "VMEM", "MXU", _BACK)
_PLANS = {FETCH: "Bringing A to x", SEND: "Bringing x to A"}


def _chain(*, on: str, n: int, B: int, lies: str, plan: str, chunks: int) -> View:
    here = torus(on)
    both = {p: MatvecChain(here, n, B, lies, p, chunks) for p in (FETCH, SEND)}
    now = both[plan]
    return View(
        _verdict(now, both[SEND if plan == FETCH else FETCH]),
        (_timeline(now), _bars(both)),
        (
            Readout("total time", now.total_s, "s"),
            Readout("slowest stage alone", now.pipeline.lower_s, "s"),
            Readout("without overlap", now.pipeline.upper_s + now.return_s, "s"),
            Readout.binary("size of A", now.matrix_bytes),
            Readout.binary("size of x, and of y", now.vector_bytes),
            Readout.binary("HBM of one chip", here.chip.hbm_bytes),
        ),
    )


def _timeline(now: MatvecChain) -> Timeline:
    """Every chunk in every lane, and y on its way back."""
    line = now.pipeline
    spans = [
        Span(t.stage, t.start_s, t.end_s, str(t.chunk + 1) if now.chunks <= _NAMED else "", t.chunk % 2)
        for t in line.turns
    ]
    lanes = list(line.chunk_s)
    if now.return_s:
        lanes.append(_BACK)
        spans.append(Span(_BACK, line.total_s, now.total_s, "y", 2))
    return Timeline(lanes, spans, refs=(RefLine("slowest alone", line.lower_s),), title=_PLANS[now.plan])


def _bars(both: dict[str, MatvecChain]) -> Bars:
    """What each lane needs for all chunks, in both plans."""
    needs = {plan: _needs(chain) for plan, chain in both.items()}
    lanes = [lane for lane in _LANES if any(lane in need for need in needs.values())]
    return Bars(
        Scale("time of each stage alone", "s"),
        lanes,
        [
            Series(plan, [need.get(lane, 0.0) for lane in lanes], i)
            for i, (plan, need) in enumerate(needs.items())
        ],
    )


def _needs(chain: MatvecChain) -> dict[str, float]:
    stages = {lane: chain.chunks * t for lane, t in chain.pipeline.chunk_s.items()}
    return stages | ({_BACK: chain.return_s} if chain.return_s else {})


def _verdict(now: MatvecChain, other: MatvecChain) -> str:
    line = now.pipeline
    said = (
        f"{_PLANS[now.plan]} takes {si(now.total_s, 's')}. The bottleneck is {line.slowest}, which is busy "
        f"{percent(now.chunks * line.pace_s / now.total_s)} of the time"
    )
    ratio = now.total_s / other.total_s
    if ratio > 1.005:
        said += f". {_PLANS[other.plan]} would be {ratio:.3g} times as fast."
    else:
        said += f". {_PLANS[other.plan]} would take {1 / ratio:.3g} times as long."
    return f"{said} {_room(now)}".strip()


def _room(now: MatvecChain) -> str:
    """The warning if a chip's shard of A is as large as its HBM."""
    part, room = now.matrix_bytes / now.workers, now.slice.chip.hbm_bytes
    if part < room:
        return ""
    end = "it cannot be stored there" if now.location == FAR else "each piece must be consumed as it arrives"
    return f"But each chip's shard of A takes {binary(part)}, and a chip has {binary(room)} of HBM: {end}."


CHAIN = Explorer(
    key="tpus.chain",
    title="A chain of transfers: move the matrix or the vectors?",
    question="A matrix is far from the vectors it multiplies. What is the bottleneck, and which of the two "
    "should move?",
    controls={
        "plan": Choice("plan", (FETCH, SEND)),
        "lies": Choice("A is stored in", (HOSTS, SPLIT, FAR, OTHER)),
        "n": Slider("side n of A", 8192, 262144, 131072, "pow2"),
        "B": Slider("vectors in x", 1, 4096, 8, "pow2"),
        "chunks": Slider("chunks", 1, 64, 8, "pow2"),
        "on": Choice("slice", _SLICES),
    },
    view=_chain,
)
