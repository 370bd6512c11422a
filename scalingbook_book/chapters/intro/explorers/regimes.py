"""Explorer of strong and weak scaling: with a fixed batch, and with one that grows with the chips."""

from scalingbook_book.chapters.intro.explorers.more_chips import ALL, COUNTS, ONE, axes_of
from scalingbook_book.reader.explorers.parts import (
    NETWORKED,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_book.reader.figures.shapes import MATH, NETWORK
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import count_in_words

_PARAMETERS = 8e9


def _regimes(*, n: int, B: int, per_chip: int, chip: str, network: str) -> View:
    on = chips.find(chip)
    axes = axes_of(on, network)

    def strong(n: float) -> scaling.ScalingStep:
        return scaling.data_parallel(_PARAMETERS, B, n, on, axes=axes)

    def weak(n: float) -> scaling.ScalingStep:
        return scaling.data_parallel(_PARAMETERS, per_chip * n, n, on, axes=axes)

    def strong_at(n: float) -> float:
        return scaling.strong_efficiency(strong(n), strong(1))

    def weak_at(n: float) -> float:
        return scaling.weak_efficiency(weak(n), weak(1))

    s, w = strong(n), weak(n)
    chart = Chart(
        Scale("chips n", "", "log", 1, COUNTS[-1]),
        Scale("efficiency", "%", "linear", 0, 110),
        (
            Curve("strong", COUNTS, [100 * strong_at(c) for c in COUNTS], 0),
            Curve("weak", COUNTS, [100 * weak_at(c) for c in COUNTS], 1),
            RefLine("you", n),
        ),
    )
    return View(
        f"On {pluralize(n, 'chip')}, strong scaling has an efficiency of {100 * strong_at(n):.0f}%; weak "
        f"scaling has an efficiency of {100 * weak_at(n):.0f}%, with a batch of "
        f"{count_in_words(per_chip * n)} tokens.",
        (chart, _bars(s, w)),
        (
            Readout("strong: tokens per chip", B / n, "", count_in_words(round(B / n))),
            Readout("weak: batch", per_chip * n, "tokens"),
            Readout("tokens needed per chip", rules.data_parallel_tokens(on, axes=axes), "tokens"),
        ),
    )


def _bars(s: scaling.ScalingStep, w: scaling.ScalingStep) -> Bars:
    return Bars(
        Scale("time of one step", "s"),
        ("strong", "weak"),
        (
            Series("compute", (s.math_s, w.math_s), MATH),
            Series("exposed AllReduce", (s.exposed_s, w.exposed_s), NETWORK),
        ),
        stacked=True,
    )


REGIMES = Explorer(
    key="intro.regimes",
    title="Strong and weak scaling",
    question="How does efficiency change with a fixed batch, and with a batch that grows with the chips?",
    controls={
        "n": Slider("chips n", 1, 16384, 6144, "log", "chips"),
        "B": Slider("strong: batch B", 2**16, 2**24, 2**21, "pow2", "tokens"),
        "per_chip": Slider("weak: tokens per chip", 2**7, 2**15, 2**10, "pow2", "tokens"),
        "chip": Chips("chip", NETWORKED, "TPU v5p"),
        "network": Choice("AllReduce over", (ONE, ALL), ALL),
    },
    view=_regimes,
)
