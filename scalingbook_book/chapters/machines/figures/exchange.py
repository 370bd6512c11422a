"""Who hides the exchange of experts, what it takes over more ranks, and two ways to overlap it."""

from scalingbook_book.chapters.machines.case import EIGHT, RANKS, V3_EXPERT, V4_EXPERT, balance, layer
from scalingbook_book.chapters.machines.explorers.experts import spans
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, RefLine, Scale, Series, Span, Timeline
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_lib.steps import overlap
from scalingbook_lib.steps.overlap import Stages, two_microbatches
from scalingbook_lib.units import count, si

WAVES, PART = 4, Stages(attention_s=0, dispatch_s=1.0, experts_s=2.0, combine_s=1.0)


def hidden() -> Figure:
    """Who hides it?"""
    needs = {chip.name: balance(chip) for chip in EIGHT}
    said = ", ".join(f"{name} {count(need)}" for name, need in needs.items())
    return Figure(
        key="machines.balance",
        alt=f"Bars of FLOPs in fp8 for each byte that a chip can send into its domain: {said}. Lines at {2 * V3_EXPERT:,} and {2 * V4_EXPERT:,}, twice the columns of DeepSeek-V3's and V4's experts.",
        caption="Where a bar ends before a line, that model's experts take longer to multiply than their tokens to come and go, and the exchange can be hidden. Newer is not better: Rubin's products grew more than its links. "
        "(fp8, inside the domain; MI455X with half of the printed rate.)",
        parts=lambda wide: [
            Bars(
                Scale("FLOPs for a byte", "", "linear", 0, 11_000),
                list(needs),
                [Series("", list(needs.values()), 0)],
                refs=(RefLine("V3", 2 * V3_EXPERT), RefLine("V4", 2 * V4_EXPERT)),
            )
        ],
    )


def latency() -> Figure:
    """What does one exchange take?"""
    out, back = ([float(pair[k]) for pair in RANKS.values()] for k in range(2))
    return Figure(
        key="machines.latency",
        alt=f"Microseconds of DeepEP's low-latency kernels against ranks, from 8 to 256: out from {out[0]:.0f} to {out[-1]:.0f}, back from {back[0]:.0f} to {back[-1]:.0f}. Both rise, then level off.",
        caption="128 tokens of width 7,168 to eight experts each, on H800. From 8 ranks to 64 ever more bytes leave the node; from then on nearly all do, and more ranks cost little.",
        parts=lambda wide: [
            Chart(
                Scale("ranks", "", "pow2"),
                Scale("µs", "", "linear", 0, 400),
                (Curve("out, fp8", list(RANKS), out, 0), Curve("back, bf16", list(RANKS), back, 1)),
            )
        ],
    )


def turns() -> Figure:
    """What do cores and network do?"""
    one = layer()
    found = two_microbatches(one)
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
        alt=f"Two time lines of cores and network for two layers and two microbatches. In a row each waits for the other; in turns both are nearly always busy. A layer takes {si(found.alone_s, 's')} in a row and {si(found.total_s, 's')} in turns.",
        caption=f"A layer of DeepSeek-V3 on 64 H100, 4,096 tokens on each chip. Orange is attention, violet experts, green the way there and back. While one microbatch is multiplied, the other's tokens travel: {found.gain:.2f} times as fast, and no byte less is sent.",
        parts=lambda wide: [
            Timeline(lanes, row, title="One after the other", end=now),
            Timeline(lanes, spans(one, 2), title="In turns", end=now),
        ],
    )


def waves() -> Figure:
    """What does one kernel do with experts in waves?"""
    found = overlap.waves(PART, WAVES)
    each = PART.dispatch_s / WAVES
    shown: list[Span] = []
    for k in range(WAVES):
        begin = each * (1 + 2 * k)
        shown.append(Span("out", begin - each, begin, f"{k + 1}", 2))
        shown.append(Span("products", begin, begin + 2 * each, f"{k + 1}", 3))
        shown.append(Span("back", begin + 2 * each, begin + 3 * each, f"{k + 1}", 2))
    return Figure(
        key="machines.waves",
        alt=f"Three lanes, out, products and back, in {WAVES} waves of experts: while wave 1 is multiplied, wave 2 arrives; then wave 1 returns. In all {found.total_s:.3g} in place of {found.alone_s:.3g}.",
        caption=f"One layer's experts in {WAVES} waves, where products take as long as both ways: {found.gain:.2f} times as fast. With ever more waves it nears 2.",
        parts=lambda wide: [Timeline(("out", "products", "back"), shown, unit="", label="time, one way = 1")],
    )
