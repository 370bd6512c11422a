"""Exercises on energy, and on the bandwidth between sites."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models
from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.machines.energy import SITE, energy
from scalingbook_lib.units import FP8

_H100 = chips.H100
_HOURS = next(run for run in WHOLE_RUNS if run.name == "Llama-3.1-8B").chip_hours
_M8 = models.find("Llama 3 8B")


def _joules(B: int = 64) -> float:
    narrow = Layout(weights=FP8, kv=FP8, compute=FP8)
    step = inference.decode(_M8, Cluster.of(_H100, 1), narrow, batch=B, S=4096)
    return _H100.power_w * step.total_s / B if _H100.power_w else 0.0


CHECKS = (
    Check(
        key="posttraining.run-energy",
        title="Energy of a training run",
        answer=lambda: energy(_H100, _HOURS * 3600, SITE).mwh,
        hints=(
            "Watts times hours are watt-hours.",
            "Multiply by the overhead of the node, then by that of the site.",
        ),
        mistakes=(
            Mistake(lambda: energy(_H100, _HOURS * 3600).mwh, "That is the energy of the chips alone."),
            Mistake(1 / SITE.pue, "Include the cooling of the site, by its PUE.", slip="factor-left-out"),
            Mistake(
                lambda: energy(_H100, _HOURS * 3600).mwh * SITE.pue,
                "A node draws more power than its GPUs.",
                slip="wrong-rate",
            ),
        ),
    ),
    Check(
        key="posttraining.joules-a-token",
        title="Energy per token",
        answer=_joules,
        difficulty=2,
        hints=(
            "A step serves the whole batch.",
            "Multiply the power by the time of a step, and divide by its tokens.",
        ),
        mistakes=(
            Mistake(64.0, "That is the energy of a step, which generates 64 tokens."),
            Mistake(lambda: _joules(1), "That is for a batch of one sequence."),
            Mistake(8.0, "The model runs on one GPU."),
        ),
    ),
    Check(
        key="posttraining.site-line",
        title="Bandwidth between two sites",
        answer=lambda: 2 * 2 * 8 * 30e9 / 2 / (200 * 8.0),
        unit="bits/s",
        difficulty=3,
        hints=(
            "An AllReduce is a ReduceScatter followed by an AllGather.",
            "With two sites, each sends half of the array in each of the two parts. A byte has 8 bits.",
        ),
        mistakes=(
            Mistake(
                200.0,
                "The sync may take as long as all local steps until the next sync.",
                slip="factor-left-out",
            ),
            Mistake(1 / 8, "The question asks for bits per second.", slip="bits-for-bytes"),
            Mistake(
                0.5,
                "An AllReduce sends twice: once to sum, and once to distribute the sums.",
                slip="one-pass",
            ),
            Mistake(
                2.0,
                "Each of the two sites sends half of the array at a time, not all of it.",
                slip="factor-two",
            ),
        ),
    ),
)
