"""Can a reader weigh an exchange? Its bandwidth, its cores, its turns, its bubble."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.machines import chips
from scalingbook_lib.steps import overlap, pipelines
from scalingbook_lib.steps.overlap import Stages, two_microbatches

_LAYER = Stages(attention_s=400e-6, dispatch_s=200e-6, experts_s=400e-6, combine_s=400e-6)
_WAVES = Stages(attention_s=0, dispatch_s=200e-6, experts_s=900e-6, combine_s=400e-6)
_C = chips.TRAINIUM3.fp8_flops_per_s or 0.0

CHECKS = (
    Check(
        key="machines.hides",
        title="Who hides it",
        answer=lambda: "Trainium3",
        choices=("Trainium3", "GB300", "Rubin", "MI355X"),
        hints=("The expert has 1,536 columns.", "C/W in fp8 must be at most 2 F."),
        mistakes=(
            Mistake("GB300", "5,556 FLOPs for a byte are more than 3,072."),
            Mistake("Rubin", "9,722 FLOPs for a byte are more than 3,072."),
            Mistake("MI355X", "9,337 FLOPs for a byte are more than 3,072."),
        ),
    ),
    Check(
        key="machines.expert-in-bf16",
        title="Both ways in bf16",
        answer=lambda: 4 / 6 * _C / 1.28e12,
        unit="columns",
        hints=("How many bytes travel for an element of a token?", "6 D F / C against 4 D / W."),
        mistakes=(
            Mistake(lambda: _C / 1.28e12 / 2, "That is with fp8 out."),
            Mistake(lambda: 4 / 6 * _C / 2.56e12, "That is the rate of both ways together; count one way."),
        ),
    ),
    Check(
        key="machines.combine-rate",
        title="Back over 256 ranks",
        answer=lambda: 128 * 8 * 7168 * 2 / 360e-6,
        unit="B/s",
        hints=("Tokens, experts, width, bytes.", "Results come back in bf16."),
        mistakes=(
            Mistake(lambda: 128 * 8 * 7168 / 360e-6, "Two bytes an element.", slip="wrong-dtype-size"),
            Mistake(lambda: 128 * 7168 * 2 / 360e-6, "Each token has eight experts.", slip="one-for-total"),
        ),
    ),
    Check(
        key="machines.turns-total",
        title="Two microbatches by hand",
        answer=lambda: two_microbatches(_LAYER, taken=24, cores=144).total_s,
        unit="s",
        difficulty=2,
        hints=(
            "24 of 144 cores are a sixth: products take 6/5 as long.",
            "Twice the larger of products and exchange.",
        ),
        mistakes=(
            Mistake(lambda: two_microbatches(_LAYER).total_s, "The exchange takes cores."),
            Mistake(
                lambda: two_microbatches(_LAYER, taken=24, cores=144).total_s / 2,
                "There are two microbatches.",
            ),
            Mistake(lambda: _LAYER.products_s * 2 * 7 / 6, "What is left is 5/6 of the cores."),
        ),
    ),
    Check(
        key="machines.cores-break-even",
        title="Too many cores",
        answer=lambda: 132 * (1 - 2 * 900e-6 / (2 * 1000e-6)),
        unit="SMs",
        difficulty=3,
        hints=(
            "In a row, the layer of both takes products and exchange, with every core.",
            "In turns it takes the slowed products alone. When are they equal?",
        ),
        mistakes=(
            Mistake(
                lambda: 132 * 0.1 / 0.9,
                "A share of the cores is gone, not a share of what is left.",
                slip="wrong-formula-ratio",
            ),
            Mistake(lambda: 132 * 0.9, "That many are left.", slip="complement"),
        ),
    ),
    Check(
        key="machines.three-waves",
        title="Three waves",
        answer=lambda: overlap.waves(_WAVES, 3).gain,
        difficulty=2,
        hints=(
            "A third of everything to fill and to empty.",
            "Between, the larger of both ways and products.",
        ),
        mistakes=(
            Mistake(lambda: 1500 / 900, "That is for ever more waves.", slip="wrong-formula-limit"),
            Mistake(
                lambda: 1 / overlap.waves(_WAVES, 3).gain,
                "How many times as fast, not as long.",
                slip="inverted-ratio",
            ),
        ),
    ),
    Check(
        key="machines.dual-bubble",
        title="A bubble of eight stages",
        answer=lambda: float(pipelines.bubble("dualpipe", 8, 16, both_s=2.5).idle_s),
        difficulty=2,
        hints=("Half of the stages, less one.", "A pair, a backward, less three times the weights' part."),
        mistakes=(
            Mistake(lambda: float(pipelines.bubble("dualpipe", 8, 16).idle_s), "A pair takes 2.5 here."),
            Mistake(lambda: float(pipelines.bubble("zero-bubble", 8, 16).idle_s), "That is ZB1P's."),
            Mistake(lambda: float(pipelines.bubble("1f1b", 8, 16).idle_s), "That is 1F1B's."),
        ),
    ),
)
