"""Which link of a chain binds? A matrix on its way to the matrix unit, and the vectors sent to it instead."""

from dataclasses import dataclass

from scalingbook_lib import collectives, roofline
from scalingbook_lib.machines.chips import Slice
from scalingbook_lib.reader.explorers.parts import (
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
)
from scalingbook_lib.reader.offered.machines import torus
from scalingbook_lib.units import BF16, INT8, binary, percent, si

HOSTS, SPLIT, FAR, OTHER = "host memory", "HBM, split", "HBM of the farthest chip", "another slice"
FETCH, SEND = "bring A to x", "bring x to A"
_SLICES = ("TPU v5e 4x4", "TPU v5e 8x8", "TPU v5e 16x16", "TPU v6e 4x4", "TPU v4 4x4x4", "TPU v5p 4x4x4")
_NAMED = 12  # chunks that are numbered in the picture
_OUT, _IN, _BACK = "PCIe out", "PCIe in", "y, back"
_LANES = ("PCIe", _OUT, "DCN", _IN, "ICI", "HBM", "VMEM", "MXU", _BACK)
_PLANS = {FETCH: "Bringing A to x", SEND: "Bringing x to A"}


@dataclass(frozen=True, slots=True)
class Chain:
    """x[B, n] · A[n, n] on a slice, x in bf16 on the chip at the origin, where y is wanted; A in int8.

    Arrays that are split lie in equal parts on all chips or their hosts. Every chunk of A is a collective or
    a message of its own; spreading x is timed as an AllGather, which is what it costs but for one share.
    """

    slice: Slice
    n: int
    B: int
    lies: str
    plan: str
    chunks: int

    @property
    def nbytes(self) -> float:
        """All of A."""
        return INT8.bytes * self.n**2

    @property
    def vector_bytes(self) -> float:
        """All of x, and as much for y."""
        return BF16.bytes * self.B * self.n

    @property
    def workers(self) -> int:
        """The chips that multiply: the one that has x, the one that has A, or all."""
        return 1 if self.plan == FETCH or self.lies == FAR else self.slice.chips

    @property
    def pipeline(self) -> roofline.Pipeline:
        """Every stage that a chunk of A passes, or the part of x that belongs to it."""
        crosses = (self.nbytes if self.plan == FETCH else self.vector_bytes) / self.chunks
        parts = self.slice.chips if self.plan == FETCH else 1
        stages: dict[str, float] = {}
        if self.lies == HOSTS:
            stages |= self._over(PCIe=self.nbytes / self.chunks / self.slice.chips)
        if self.lies == OTHER:
            stages |= self._between(crosses, parts)
        return roofline.pipeline(stages | {"ICI": self._within(crosses)} | self._worked(), self.chunks)

    @property
    def back_s(self) -> float:
        """The time in which y comes to the origin where it was not made there."""
        if self.plan == FETCH:
            return 0.0
        there = self._between(self.vector_bytes, self.slice.chips) if self.lies == OTHER else {}
        return sum(there.values()) + self._within(self.vector_bytes)

    @property
    def total_s(self) -> float:
        """The pipeline, and y's way back."""
        return self.pipeline.total_s + self.back_s

    def _over(self, **nbytes: float) -> dict[str, float]:
        return dict(roofline.ladder(0, nbytes, self.slice.chip).level_s)

    def _between(self, nbytes: float, parts: int) -> dict[str, float]:
        """From slice to slice: out of HBM by PCIe, over the network, and in by PCIe, in equal parts."""
        times = self._over(PCIe=nbytes / parts, DCN=nbytes / parts)
        return {_OUT: times["PCIe"], "DCN": times["DCN"], _IN: times["PCIe"]}

    def _within(self, nbytes: float) -> float:
        """Over ICI: from the farthest chip, or gathered from all."""
        if self.lies != FAR:
            return collectives.all_gather(nbytes, *self.slice.axes).total_s
        far = tuple(axis.diameter_hops for axis in self.slice.axes)
        return self.slice.route(far, (0,) * len(far)).message(nbytes).total_s

    def _worked(self) -> dict[str, float]:
        """A chunk of A out of HBM, out of VMEM where its rate is documented, and multiplied."""
        share = self.nbytes / self.chunks / self.workers
        known = roofline.levels(self.slice.chip)
        flops = 2 * self.B * self.n**2 / self.chunks / self.workers
        one = roofline.ladder(flops, {lv: share for lv in ("HBM", "VMEM") if lv in known}, self.slice.chip)
        return dict(one.level_s) | {"MXU": one.math_s}


def _chain(*, on: str, n: int, B: int, lies: str, plan: str, chunks: int) -> View:
    here = torus(on)
    both = {p: Chain(here, n, B, lies, p, chunks) for p in (FETCH, SEND)}
    now = both[plan]
    return View(
        _verdict(now, both[SEND if plan == FETCH else FETCH]),
        (_timeline(now), _bars(both)),
        (
            Readout("in all", now.total_s, "s"),
            Readout("slowest lane alone", now.pipeline.lower_s, "s"),
            Readout("nothing overlapped", now.pipeline.upper_s + now.back_s, "s"),
            Readout.binary("A", now.nbytes),
            Readout.binary("x, and as much for y", now.vector_bytes),
            Readout.binary("HBM of one chip", here.chip.hbm_bytes),
        ),
    )


def _timeline(now: Chain) -> Timeline:
    """Every chunk in every lane, and y on its way back."""
    line = now.pipeline
    spans = [
        Span(t.stage, t.start_s, t.end_s, str(t.chunk + 1) if now.chunks <= _NAMED else "", t.chunk % 2)
        for t in line.turns
    ]
    lanes = list(line.chunk_s)
    if now.back_s:
        lanes.append(_BACK)
        spans.append(Span(_BACK, line.total_s, now.total_s, "y", 2))
    return Timeline(lanes, spans, refs=(RefLine("slowest alone", line.lower_s),), title=_PLANS[now.plan])


def _bars(both: dict[str, Chain]) -> Bars:
    """What each lane needs for all chunks, in both plans."""
    needs = {plan: _needs(chain) for plan, chain in both.items()}
    lanes = [lane for lane in _LANES if any(lane in need for need in needs.values())]
    return Bars(
        Scale("each lane alone", "s"),
        lanes,
        [
            Series(plan, [need.get(lane, 0.0) for lane in lanes], i)
            for i, (plan, need) in enumerate(needs.items())
        ],
    )


def _needs(chain: Chain) -> dict[str, float]:
    stages = {lane: chain.chunks * t for lane, t in chain.pipeline.chunk_s.items()}
    return stages | ({_BACK: chain.back_s} if chain.back_s else {})


def _verdict(now: Chain, other: Chain) -> str:
    line = now.pipeline
    said = (
        f"{_PLANS[now.plan]} takes {si(now.total_s, 's')}; {line.slowest} binds and works "
        f"{percent(now.chunks * line.pace_s / now.total_s)} of it"
    )
    ratio = now.total_s / other.total_s
    if ratio > 1.005:
        said += f". {_PLANS[other.plan]} would be {ratio:.3g} times as fast."
    else:
        said += f". {_PLANS[other.plan]} would take {1 / ratio:.3g} times as long."
    return f"{said} {_room(now)}".strip()


def _room(now: Chain) -> str:
    """What to say where a chip's part of A is as large as its HBM."""
    part, room = now.nbytes / now.workers, now.slice.chip.hbm_bytes
    if part < room:
        return ""
    end = "it cannot lie there" if now.lies == FAR else "it must be used up as it comes"
    return f"But {binary(part)} of A meet a chip with {binary(room)} of HBM: {end}."


CHAIN = Explorer(
    key="tpus.chain",
    title="A chain of transfers",
    question="A matrix is far from the vectors it multiplies. Which lane binds, and which should move?",
    controls={
        "plan": Choice("plan", (FETCH, SEND)),
        "lies": Choice("A lies in", (HOSTS, SPLIT, FAR, OTHER)),
        "n": Slider("side n of A", 8192, 262144, 131072, "pow2"),
        "B": Slider("vectors in x", 1, 4096, 8, "pow2"),
        "chunks": Slider("chunks", 1, 64, 8, "pow2"),
        "on": Choice("slice", _SLICES),
    },
    view=_chain,
)
