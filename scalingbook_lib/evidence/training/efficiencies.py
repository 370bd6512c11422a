"""The fit of training efficiencies to published runs: by chip, kernel and software.

`CALIBRATION` fits the values of `calibrated.training_efficiency` to all runs at once. A chip's prior comes
from its measured kernels and is tight; software's prior is wide, because nothing else measures it, so losses
in runs are attributed to the software.

The objective is the sum over runs of h(ln(predicted / published) / s), with the pseudo-Huber loss h(x) = 2
(sqrt(1 + x²) - 1) and s = 0.05 (0.1 with experts). `CLASSES` has the priors. Chapter: Training.
"""

from collections.abc import Sequence
from functools import lru_cache

from scalingbook_lib.calibrated import factors
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.calibrated.training_efficiency import efficiency, expert_overhead_key
from scalingbook_lib.evidence.calibration import Calibration
from scalingbook_lib.evidence.fitting import Prior
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.training.planned import seconds
from scalingbook_lib.training.efficiency import TrainingEfficiency

CLASSES = {
    "attention": Prior(0.56, 0.15, 0.1, 1.0),  # kernels: 0.56, without the ramp
    "early": Prior(0.3, 0.3, 0.05, 1.0),
    "early, after A100": Prior(0.2, 0.3, 0.05, 1.0),  # written for the A100, without Hopper's instructions
    "unfused": Prior(0.3, 0.3, 0.05, 1.0),
    "memory": Prior(0.75, 0.25, 0.1, 1.3),  # kernels: 0.73 to 0.84
    "torus": Prior(0.8, 0.2, 0.2, 1.0),
    "domain": Prior(0.75, 0.2, 0.1, 1.0),  # collectives: 0.71 to 0.76 of large arrays
    "network": Prior(0.75, 0.2, 0.1, 1.0),
    "dcn": Prior(0.7, 0.3, 0.1, 1.0),
    "exposed": Prior(0.1, 0.7, 0.005, 1.0),  # 1 - overlap
    "layer_s": Prior(3e-5, 1.0, 1e-6, 5e-3),
    "exchange": Prior(0.8, 0.3, 0.05, 1.0),
    "head_ramp": Prior(64.0, 0.5, 1.0, 1000.0),  # of H100, whose exponentials take as long as 64 elements
    "experts": Prior(0.9, 0.15, 0.05, 1.4),  # of the share of measured grouped kernels
    "permutation": Prior(6.0, 0.5, 0.5, 60.0),  # copied, and in order of the experts: read and written
    "expert_layer_s": Prior(1.5e-3, 0.7, 1e-5, 2e-2),
    "expert_launch_s": Prior(1e-5, 0.7, 1e-7, 1e-3),  # grouped kernels: 10 µs more than dense ones
    "software": Prior(1.1, 0.1, 0.5, 3.0),  # the mean slowness of all software
}
SOFTWARE = {  # software relative to that mean, and a release relative to its software
    "slowness": (Prior(1.0, 0.3, 0.4, 3.0), Prior(1.0, 0.05, 0.4, 3.0)),
    "experts": (Prior(1.0, 0.3, 0.3, 3.0), Prior(1.0, 0.5, 0.3, 3.0)),
    "expert_layer_s": (Prior(1.0, 0.6, 0.03, 30.0), Prior(1.0, 0.5, 0.03, 30.0)),
}
CHIP_SPREAD, TPU_SPREAD = 0.05, 0.1  # standard deviations of the matmul share; few TPU kernels were measured
NOISE, NOISE_EXPERTS = 0.05, 0.1


def priors(runs: Sequence[TrainingRun]) -> dict[str, Prior]:
    """The prior of every value that these runs determine."""
    found = dict(CLASSES)
    for run in runs:
        spread = TPU_SPREAD if run.chip.torus else CHIP_SPREAD
        attained = factors.kernel_share(run.chip, run.precision)
        found[factors.figure_key(run.chip, run.precision)] = Prior(attained, spread, 0.1, 1.0)
        for what in ("slowness", "experts", expert_overhead_key(run.chip)) if run.experts else ("slowness",):
            each = SOFTWARE[what.split(",")[0]]
            for name, one in zip(run.software, each, strict=True):
                found.setdefault(f"{name}: {what}", one)  # some software has the name of its only release
    return found


@lru_cache(maxsize=2**16)
def step_s(run: TrainingRun, efficiency: TrainingEfficiency) -> float:
    """The step time in seconds, cached: most values change the efficiency of few runs."""
    return seconds(run, efficiency).total_s


def efficiency_of(values: Values, run: TrainingRun) -> TrainingEfficiency:
    """The efficiency of a run with these values."""
    return efficiency(values, run.chip, run.precision, software=run.software)


CALIBRATION = Calibration(
    priors=priors,
    kind=lambda run: (run.chip.name, run.precision, run.software),
    efficiency=efficiency_of,
    predicted=step_s,
    published=lambda run: run.step_s,
    noise=lambda run: NOISE_EXPERTS if run.experts else NOISE,
    rounds=12,
)
