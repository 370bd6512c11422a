"""Exercises on expert parallelism: its bandwidth, its cores, microbatch overlap, the bubble of a pipeline."""

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
        title="Which chip hides the all-to-all?",
        answer=lambda: "Trainium3",
        choices=("Trainium3", "GB300", "Rubin", "MI355X"),
        hints=(
            "For each chip, divide its fp8 rate by the bandwidth into its domain.",
            "C/W_dom may be at most 2 F.",
        ),
        mistakes=(
            Mistake("GB300", "GB300 performs 5,556 FLOPs per byte. That is more than 3,072."),
            Mistake("Rubin", "Rubin performs 9,722 FLOPs per byte. That is more than 3,072."),
            Mistake("MI355X", "MI355X performs 9,337 FLOPs per byte. That is more than 3,072."),
        ),
    ),
    Check(
        key="machines.expert-in-bf16",
        title="Dispatch in bf16",
        answer=lambda: 4 / 6 * _C / 1.28e12,
        unit="columns",
        hints=(
            "How many bytes travel for each element of a token, in dispatch and combine together?",
            "Compare 6 D F / C with 4 D / W.",
        ),
        mistakes=(
            Mistake(
                lambda: _C / 1.28e12 / 2,
                "That is the width for dispatch in fp8. Here, both directions are in bf16.",
            ),
            Mistake(
                lambda: 4 / 6 * _C / 2.56e12,
                "You used the bandwidth of both directions together. Use one direction.",
            ),
        ),
    ),
    Check(
        key="machines.combine-rate",
        title="The rate of a combine over 256 ranks",
        answer=lambda: 128 * 8 * 7168 * 2 / 360e-6,
        unit="B/s",
        hints=(
            "How many bytes arrive? Multiply tokens, experts, width and bytes per element.",
            "The results are in bf16.",
        ),
        mistakes=(
            Mistake(
                lambda: 128 * 8 * 7168 / 360e-6,
                "An element in bf16 takes two bytes.",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: 128 * 7168 * 2 / 360e-6,
                "Each token has results from eight experts.",
                slip="one-for-total",
            ),
        ),
    ),
    Check(
        key="machines.turns-total",
        title="Two microbatches by hand",
        answer=lambda: two_microbatches(_LAYER, taken=24, cores=144).total_s,
        unit="s",
        difficulty=2,
        hints=(
            "24 of 144 cores is one sixth, so compute takes 6/5 as long.",
            "The layer takes twice the larger of compute and communication.",
        ),
        mistakes=(
            Mistake(
                lambda: two_microbatches(_LAYER).total_s,
                "Communication occupies some of the cores, so compute slows down.",
            ),
            Mistake(
                lambda: two_microbatches(_LAYER, taken=24, cores=144).total_s / 2,
                "That is the time for one microbatch. There are two.",
            ),
            Mistake(
                lambda: _LAYER.products_s * 2 * 7 / 6,
                "Compute has 5/6 of the cores left, so its time is divided by 5/6.",
            ),
        ),
    ),
    Check(
        key="machines.cores-break-even",
        title="Too many cores",
        answer=lambda: 132 * (1 - 2 * 900e-6 / (2 * 1000e-6)),
        unit="SMs",
        difficulty=3,
        hints=(
            "Without overlap, each microbatch takes compute plus communication, with all cores.",
            "With overlap, each takes only the slowed-down compute. When are the two equal?",
        ),
        mistakes=(
            Mistake(
                lambda: 132 * 0.1 / 0.9,
                "Communication takes a fraction of all cores, not a fraction of the cores that are left.",
                slip="wrong-formula-ratio",
            ),
            Mistake(lambda: 132 * 0.9, "That is how many SMs are left for compute.", slip="complement"),
        ),
    ),
    Check(
        key="machines.three-waves",
        title="Three waves",
        answer=lambda: overlap.waves(_WAVES, 3).gain,
        difficulty=2,
        hints=(
            "A third of each part is never overlapped: one dispatch, one compute and one combine.",
            "For the other two thirds, the larger of communication and compute counts.",
        ),
        mistakes=(
            Mistake(lambda: 1500 / 900, "That is the limit for very many waves.", slip="wrong-formula-limit"),
            Mistake(
                lambda: 1 / overlap.waves(_WAVES, 3).gain,
                "That is how many times as long the fused kernel takes. The question asks how many "
                "times as fast it is.",
                slip="inverted-ratio",
            ),
        ),
    ),
    Check(
        key="machines.dual-bubble",
        title="The bubble of DualPipe with eight stages",
        answer=lambda: float(pipelines.bubble("dualpipe", 8, 16, both_s=2.5).idle_s),
        difficulty=2,
        hints=(
            "The first factor is half the number of stages, minus one.",
            "The second factor is the time of a pair, plus a backward pass, minus three times the "
            "weight gradients.",
        ),
        mistakes=(
            Mistake(
                lambda: float(pipelines.bubble("dualpipe", 8, 16).idle_s),
                "That is for a pair that takes 3 units. Here it takes 2.5.",
            ),
            Mistake(
                lambda: float(pipelines.bubble("zero-bubble", 8, 16).idle_s), "That is the bubble of ZB1P."
            ),
            Mistake(lambda: float(pipelines.bubble("1f1b", 8, 16).idle_s), "That is the bubble of 1F1B."),
        ),
    ),
)
