"""Figures of the all-to-all of experts: which chips hide it, its time over more ranks, two ways to overlap
it.
"""

from scalingbook_book.chapters.machines.case import EIGHT, RANKS, SMS, V3_EXPERT, V4_EXPERT, balance, layer
from scalingbook_book.chapters.machines.explorers.experts import spans
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, RefLine, Scale, Series, Span, Timeline
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import EXPERTS, MATH, NETWORK
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.steps import overlap
from scalingbook_lib.steps.overlap import Stages, two_microbatches
from scalingbook_lib.units import count, si

WAVES, PART = 4, Stages(attention_s=0, dispatch_s=1.0, experts_s=2.0, combine_s=1.0)


def hidden() -> Figure:
    """Which chips can hide the all-to-all of which experts?"""
    needs = {chip.name: balance(chip) for chip in EIGHT}
    said = ", ".join(f"{name} {count(need)}" for name, need in needs.items())
    return Figure(
        key="machines.balance",
        alt=f"A bar chart of fp8 FLOPs per byte that a chip can send into its domain: {said}. Two lines mark {2 * V3_EXPERT:,} and {2 * V4_EXPERT:,}, twice the number of columns of DeepSeek-V3's and V4's experts.",
        caption="FLOPs per byte that chips can send into their domain, compared with the experts of two "
        "models (lines at 2F for DeepSeek-V3 and V4). If a bar ends before a line, the experts of that model take longer to compute than "
        "to communicate, so their all-to-all can be hidden. Newer chips are not always better: "
        "Rubin's compute rate has grown more than its link bandwidth. (All in fp8 and inside the "
        "domain. MI455X is drawn with half its quoted rate.)",
        parts=lambda wide: [
            Bars(
                Scale("fp8 FLOPs per byte sent into the domain", "", "linear", 0, 11_000),
                list(needs),
                [Series("", list(needs.values()), 2)],
                refs=(RefLine("V3: 2F", 2 * V3_EXPERT), RefLine("V4: 2F", 2 * V4_EXPERT)),
            )
        ],
    )


def latency() -> Figure:
    """How long do one dispatch and one combine take?"""
    out, back = ([float(pair[k]) for pair in RANKS.values()] for k in range(2))
    return Figure(
        key="machines.latency",
        alt=f"The time of DeepEP's low-latency kernels against the number of ranks, from 8 to 256. Dispatch rises from {out[0]:.0f} to {out[-1]:.0f} µs and combine from {back[0]:.0f} to {back[-1]:.0f} µs. Both level off.",
        caption="Time of dispatch and combine against the number of ranks (GPUs), measured on H800s. Each rank "
        "sends 128 tokens of width 7,168 to eight experts each. From 8 to 64 ranks, more and more of the bytes "
        "leave the node. Beyond that, nearly all of them do, so further ranks add little time.",
        parts=lambda wide: [
            Chart(
                Scale("ranks", "", "pow2"),
                Scale("time (µs)", "", "linear", 0, 400),
                (Curve("dispatch, fp8", list(RANKS), out, 0), Curve("combine, bf16", list(RANKS), back, 1)),
            )
        ],
    )


def turns() -> Figure:
    """When are cores and network busy, with two microbatches?"""
    one = layer()
    found, counted = two_microbatches(one), two_microbatches(one, taken=SMS, cores=132)
    row, now = [], 0.0
    for k in range(4):
        for lane, name, lasts, color in (
            ("cores", overlap.ATTENTION, one.attention_s, 1),
            ("network", overlap.DISPATCH, one.dispatch_s, 2),
            ("cores", overlap.EXPERTS, one.experts_s, 3),
            ("network", overlap.COMBINE, one.combine_s, 2),
        ):
            row.append(Span(lane, now, now + lasts, f"{'AB'[k % 2]} {name}", color))
            now += lasts
    lanes = ("cores", "network")
    return Figure(
        key="machines.turns",
        alt=f"Two timelines of cores and network, for two layers and two microbatches. One after the other, cores and network wait for each other. Overlapped, both are nearly always busy. A layer takes {si(found.alone_s, 's')} without overlap and {si(found.total_s, 's')} with it.",
        caption="Timelines of a layer of DeepSeek-V3 on 64 H100s, without and with the overlap of two microbatches of "
        "4,096 tokens per GPU. While one microbatch computes, the tokens of the other travel. Without counting the "
        f"SMs that communication occupies, the layer becomes {found.gain:.2f} times as fast ({counted.gain:.2f} with them, see "
        "below), although it sends the same number of bytes.",
        parts=lambda wide: [
            _stages(wide),
            Timeline(lanes, row, title="One after the other", end=now),
            Timeline(lanes, spans(one, 2), title="Overlapped", end=now),
        ],
    )


def _stages(wide: float) -> Sketch:
    """The color of each stage of the layer."""
    shapes, end = key(wide, 2, {MATH: "attention", EXPERTS: "experts", NETWORK: "dispatch and combine"})
    return Sketch(wide, end, shapes)


def waves() -> Figure:
    """How does a fused kernel overlap the experts of one layer?"""
    found = overlap.waves(PART, WAVES)
    each = PART.dispatch_s / WAVES
    shown: list[Span] = []
    for k in range(WAVES):
        begin = each * (1 + 2 * k)
        shown.append(Span("dispatch", begin - each, begin, f"{k + 1}", 2))
        shown.append(Span("compute", begin, begin + 2 * each, f"{k + 1}", 3))
        shown.append(Span("combine", begin + 2 * each, begin + 3 * each, f"{k + 1}", 2))
    return Figure(
        key="machines.waves",
        alt=f"A timeline with three rows, dispatch, compute and combine, for {WAVES} waves of experts. "
        "While wave 1 computes, wave 2 arrives, and then wave 1 returns. The total is "
        f"{found.total_s:.3g} units of time instead of {found.alone_s:.3g}.",
        caption=f"Timeline of the experts of one layer in {WAVES} waves, if compute takes as long as "
        f"dispatch and combine together. The waves make it {found.gain:.2f} times as fast as running "
        "the parts one after the other. With more waves, the factor approaches 2.",
        parts=lambda wide: [
            Timeline(("dispatch", "compute", "combine"), shown, unit="", label="time (one dispatch = 1)")
        ],
    )
