"""Can a reader turn hours into energy, and find the line that two sites need?"""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models
from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.machines.energy import SITE, energy
from scalingbook_lib.units import FP8

_H100 = chips.H100
_HOURS = next(run for run in WHOLE_RUNS if run.name == "Llama-3.1-8B").chip_hours
_M8 = models.find("LLaMA-3 8B")


def _joules(B: int = 64) -> float:
    narrow = Layout(weights=FP8, kv=FP8, compute=FP8)
    step = inference.decode(_M8, Cluster.of(_H100, 1), narrow, batch=B, S=4096)
    return _H100.power_w * step.total_s / B if _H100.power_w else 0.0


CHECKS = (
    Check(
        key="posttraining.run-energy",
        title="The energy of the smallest",
        answer=lambda: energy(_H100, _HOURS * 3600, SITE).mwh,
        hints=("Watts times hours are watt-hours.", "Then what the node adds, then what the site adds."),
        mistakes=(
            Mistake(lambda: energy(_H100, _HOURS * 3600).mwh, "Those are the chips alone."),
            Mistake(1 / SITE.pue, "The site's cooling belongs to it.", slip="factor-left-out"),
            Mistake(
                lambda: energy(_H100, _HOURS * 3600).mwh * SITE.pue,
                "The node draws more than its GPUs.",
                slip="wrong-rate",
            ),
        ),
    ),
    Check(
        key="posttraining.joules-a-token",
        title="Joules a token",
        answer=_joules,
        difficulty=2,
        hints=("A step serves the whole batch.", "Power times the time of a step, over its tokens."),
        mistakes=(
            Mistake(64.0, "That is the step; it makes a token for each of the 64."),
            Mistake(lambda: _joules(1), "That is for a sequence alone."),
            Mistake(8.0, "The model is on one GPU."),
        ),
    ),
    Check(
        key="posttraining.site-line",
        title="A line between two sites",
        answer=lambda: 2 * 2 * 8 * 30e9 / 2 / (200 * 8.0),
        unit="bits/s",
        difficulty=3,
        hints=(
            "An AllReduce is a gather and a scatter.",
            "Of two sites each sends half of the array in either half of the AllReduce. A byte is 8 bits.",
        ),
        mistakes=(
            Mistake(
                200.0, "The sync may take as long as all steps until the next one.", slip="factor-left-out"
            ),
            Mistake(1 / 8, "A line is counted in bits a second.", slip="bits-for-bytes"),
            Mistake(
                0.5,
                "An AllReduce passes each half of the array twice: once summed, once gathered.",
                slip="one-pass",
            ),
            Mistake(
                2.0, "Each of two sites sends half of the array at a time, not all of it.", slip="factor-two"
            ),
        ),
    ),
)
