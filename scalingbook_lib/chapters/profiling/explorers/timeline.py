"""What would a profile of a gather and a product show? A lane that computes, lanes that move, gaps."""

from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.reader.explorers.parts import (
    Chart,
    Choice,
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
from scalingbook_lib.reader.offered.chips import TORI
from scalingbook_lib.units import BF16, percent, si

SCHEDULES = {"gather, then multiply": "serial", "ring, one way": "one", "ring, both ways": "both"}
_WIDTHS = [2.0 ** (e / 4) for e in range(36, 65)]  # local columns, 512 to 65,536
_TITLE = "One chip; a gap in the first lane is exposed"
_CHIP, _LINK, _BACK = "computes", "link →", "link ←"


@dataclass(frozen=True, slots=True)
class Layer:
    """In[B, D] split over n chips by rows, gathered, times W[D, F] of which a chip has `columns` columns."""

    B: int
    D: int
    columns: float
    axis: Axis
    chip: Chip

    @property
    def chunk_bytes(self) -> float:
        """What one chip has of In."""
        return BF16.bytes * self.B * self.D / self.axis.size

    @property
    def chunk_s(self) -> float:
        """The arithmetic of one chunk, at the documented peak."""
        return 2 * self.B / self.axis.size * self.D * self.columns / self.chip.bf16_flops_per_s

    @property
    def hop_s(self) -> float:
        """One chunk over one link, one way."""
        return self.chunk_bytes / self.axis.link_bytes_per_s + self.axis.hop_s

    @property
    def gather_s(self) -> float:
        """The whole AllGather, both ways round the ring."""
        return collectives.all_gather(self.chunk_bytes * self.axis.size, self.axis).total_s


@dataclass(frozen=True, slots=True)
class Played:
    """The blocks of one schedule."""

    spans: tuple[Span, ...]

    def of(self, *lanes: str) -> list[Span]:
        """The blocks of some lanes."""
        return [s for s in self.spans if s.lane in lanes]

    @property
    def total_s(self) -> float:
        """When the last block ends."""
        return max(s.end for s in self.spans)

    @property
    def math_s(self) -> float:
        """The time in which the chip computes."""
        return sum(s.end - s.start for s in self.of(_CHIP))

    @property
    def exposed_s(self) -> float:
        """The time in which it waits: communication that nothing hides."""
        return self.total_s - self.math_s


def played(layer: Layer, schedule: str) -> Played:
    """One layer as a device runs it."""
    return Played(tuple(_serial(layer) if schedule == "serial" else _ring(layer, schedule == "both")))


def _serial(layer: Layer) -> Iterator[Span]:
    moved, n = layer.gather_s, layer.axis.size
    yield from (Span(lane, 0, moved, "all-gather", 1) for lane in (_LINK, _BACK))
    yield Span(_CHIP, moved, moved + n * layer.chunk_s, "product", 0)


def _ring(layer: Layer, both: bool) -> Iterator[Span]:
    """A product for every chunk as it arrives; its own chunk is there at the start."""
    free = layer.chunk_s
    yield Span(_CHIP, 0, free, "0", 0)
    for sent in sorted(_sends(layer, both), key=lambda s: s.end):
        yield sent
        start = max(free, sent.end)
        free = start + layer.chunk_s
        yield Span(_CHIP, start, free, sent.label, 0)


def _sends(layer: Layer, both: bool) -> Iterator[Span]:
    """Every chunk's way here, hop after hop on each link; an odd last one comes by the first link."""
    others, hop = layer.axis.size - 1, layer.hop_s
    if not both:
        yield from (Span(_LINK, k * hop, (k + 1) * hop, str(k + 1), 1) for k in range(others))
        return
    for k in range(others // 2):
        for side, lane in enumerate((_LINK, _BACK)):
            yield Span(lane, k * hop, (k + 1) * hop, str(2 * k + 1 + side), 1)
    if others % 2:
        yield Span(_LINK, others // 2 * hop, (others // 2 + 1) * hop, str(others), 1)


def hidden_from(layer: Layer) -> float:
    """The columns on a chip from which on a product takes as long as a hop: C/W, and the hop's own delay."""
    return layer.columns * layer.hop_s / layer.chunk_s


def _timeline(*, schedule: str, B: int, D: int, F: int, n: int, W: float, chip: str) -> View:
    on, how = chips.find(chip), SCHEDULES[schedule]
    layer = Layer(B, D, F / n, Axis(n, True, W, on.hop_s), on)
    now = played(layer, how)
    plain = played(layer, "serial")
    return View(
        _verdict(layer, schedule, now),
        (_lanes(now, plain), _curves(layer, how, now)),
        (
            Readout("of a layer", now.total_s, "s"),
            Readout("computing", now.math_s, "s"),
            Readout("communicating", _busy(now), "s"),
            Readout("of it exposed", now.exposed_s, "s"),
            Readout("columns on a chip", layer.columns, "", f"{layer.columns:,.0f}"),
            Readout("C/W", on.bf16_flops_per_s / W, "", f"{on.bf16_flops_per_s / W:,.0f}"),
        ),
    )


def _busy(now: Played) -> float:
    """The time in which some link is busy."""
    return max(s.end for s in now.of(_LINK, _BACK))


def _lanes(now: Played, plain: Played) -> Timeline:
    refs = () if now.total_s == plain.total_s else (RefLine("gather first", plain.total_s),)
    end = 1.04 * max(plain.total_s, now.total_s)
    return Timeline((_CHIP, _LINK, _BACK), now.spans, end=end, refs=refs, title=_TITLE)


def _curves(layer: Layer, how: str, now: Played) -> Chart:
    curves = [
        Curve(name, _WIDTHS, [_waits(layer, width, key) for width in _WIDTHS], k)
        for k, (name, key) in enumerate(SCHEDULES.items())
    ]
    share = 100 * now.exposed_s / now.total_s
    edge = layer.chip.bf16_flops_per_s / layer.axis.link_bytes_per_s
    here = min(max(layer.columns, _WIDTHS[0]), _WIDTHS[-1])
    marks = [*curves, RefLine("C/W", edge), RefLine("C/2W", edge / 2)]
    return Chart(
        Scale("columns on a chip, F/n", "", "pow2", _WIDTHS[0], _WIDTHS[-1]),
        Scale("exposed, of the time", "%", low=0, high=100),
        (*marks, Points("", [here], [share], [percent(share / 100)], list(SCHEDULES.values()).index(how))),
    )


def _waits(layer: Layer, columns: float, how: str) -> float:
    """The exposed share of the time, in percent."""
    other = Layer(layer.B, layer.D, columns, layer.axis, layer.chip)
    run = played(other, how)
    return 100 * run.exposed_s / run.total_s


def _verdict(layer: Layer, schedule: str, now: Played) -> str:
    said = f"A layer takes {si(now.total_s, 's')} and the chip waits for {si(now.exposed_s, 's')} of it"
    columns, edge = f"{layer.columns:,.0f} columns", f"{hidden_from(layer):,.0f}"
    if SCHEDULES[schedule] == "serial":
        best = min(played(layer, how).total_s for how in ("one", "both"))
        return f"{said}: the whole AllGather is exposed. A ring would take {si(best, 's')}."
    if now.exposed_s <= 1e-9 * now.total_s:
        return f"{schedule.capitalize()}: no gap. {_longer(layer)}, as {columns} are over {edge}."
    if SCHEDULES[schedule] == "both" and layer.chunk_s >= layer.hop_s / 2:
        return f"{said}: for the first chunks alone, then two come in every hop and two products hide it."
    more = f"With {edge} columns on a chip or more nothing would show; more rows lengthen both"
    return f"{said}: {_shorter(layer)}. {more}."


def _longer(layer: Layer) -> str:
    return f"A chunk's product ({si(layer.chunk_s, 's')}) outlasts its hop ({si(layer.hop_s, 's')})"


def _shorter(layer: Layer) -> str:
    return f"a hop takes {si(layer.hop_s, 's')}, the product of a chunk {si(layer.chunk_s, 's')}"


TIMELINE = Explorer(
    key="profiling.timeline",
    title="A profile of a gather and a product",
    question="In[B, D] gathered over n chips in whole chunks, times W[D, F]: how much shows as waiting?",
    controls={
        "schedule": Choice("schedule", tuple(SCHEDULES), "ring, one way"),
        "B": Slider("rows B", 512, 65536, 8192, "pow2"),
        "D": Slider("width D", 1024, 16384, 8192, "pow2"),
        "F": Slider("columns F", 1024, 131072, 8192, "pow2"),
        "n": Slider("chips n", 2, 16, 4),
        "W": Slider("link, one way", 1e10, 4e11, 5e10, "log", "B/s"),
        "chip": Choice("chip", TORI, "TPU v5e"),
    },
    view=_timeline,
)
