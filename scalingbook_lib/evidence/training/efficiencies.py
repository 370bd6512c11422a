"""The fit of training efficiencies to published runs: by chip, kernel and software.

    time = ideal / (share of the class · of the chip) · slowness of the software

`fit` fits the values of all runs at once; `calibrated` reads the recorded fit. Classes of operations have one
value for all chips. A chip has one for its matmuls, with a prior from measured kernels. Software and its
release each have a slowness and two values for expert layers, regularized toward the mean of all software,
which unknown software takes (`evidence.factors`). A chip's prior is tight and software's is wide (nothing
else measures it), so losses in runs are attributed to the software.

In expert layers, grouped matmuls reach a share of the dense ones, by dtype; `expert_layer_s` is the host time
to learn how many tokens each expert has and to launch the rest. On chips that share memory with their host
(Grace), layers are recorded as CUDA graphs, so software has a separate value there. `exchange` is the exposed
share of the all-to-all.

The objective is the sum over runs of h(ln(predicted / published) / s), with the pseudo-Huber loss h(x) = 2
(sqrt(1 + x²) - 1) and s = 0.05 (0.1 with experts). `CLASSES` has the priors. Chapter: Training.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

from scalingbook_lib.evidence import factors
from scalingbook_lib.evidence.calibration import Calibration
from scalingbook_lib.evidence.fitting import Prior, Values
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.training.planned import planned, seconds
from scalingbook_lib.machines.chips import Chip
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
    "experts, 16 bits": Prior(0.5, 0.3, 0.05, 1.4),  # of the dense matmul share
    "experts, 8 bits": Prior(0.6, 0.3, 0.05, 1.4),
    "experts, mx": Prior(0.6, 0.3, 0.05, 1.4),  # block scales of 32 elements, in the matrix unit
    "expert_layer_s, 16 bits": Prior(7e-4, 1.0, 1e-5, 2e-2),
    "expert_layer_s, 8 bits": Prior(5e-4, 1.0, 1e-5, 2e-2),
    "expert_layer_s, mx": Prior(3e-4, 1.0, 1e-5, 2e-2),
    "software": Prior(1.1, 0.1, 0.5, 3.0),  # the mean slowness of all software
}
SOFTWARE = {  # software relative to that mean, and a release relative to its software
    "slowness": (Prior(1.0, 0.3, 0.4, 3.0), Prior(1.0, 0.05, 0.4, 3.0)),
    "experts": (Prior(1.0, 0.3, 0.3, 3.0), Prior(1.0, 0.5, 0.3, 3.0)),
    "expert_layer_s": (Prior(1.0, 0.6, 0.03, 30.0), Prior(1.0, 0.5, 0.03, 30.0)),
}
CHIP_SPREAD, TPU_SPREAD = 0.05, 0.1  # standard deviations of the matmul share; few TPU kernels were measured
NOISE, NOISE_EXPERTS = 0.05, 0.1
RAMP_S = 1024 / 989e12  # tokens per FLOP/s: the loss is a time, in which faster chips lose more

type Software = tuple[str, ...]  # its name and its release


def ramp(chip: Chip) -> float:
    """The sequence length at which attention reaches half of its rate, in tokens: 1,024 on H100."""
    rates = chip.rates()
    # V100 has no bf16; flops_per_s raises an error for a chip with neither
    return RAMP_S * (rates.get("bf16") or rates.get("fp16") or chip.flops_per_s())


def efficiency(
    values: Values, chip: Chip, precision: str, kernel: str = "attention", software: Software = ()
) -> TrainingEfficiency:
    """The efficiency of a chip with these values under `software`, by default the average software."""

    def v(key: str) -> float:
        return values.get(key) or CLASSES[key].value

    def own(what: str) -> float:
        return factors.software_factor(values, software, what)

    grouped_products = "mx" if precision in ("mxfp8", "nvfp4") else f"{factors.bits(precision)} bits"
    slow, products = v("software") * own("slowness"), factors.matmul_share(values, chip, precision)
    experts = products * v(f"experts, {grouped_products}") * own("experts")
    return TrainingEfficiency(
        matmul=min(products / slow, 1.0),
        head=min(products / slow, 1.0),
        experts=min(experts / slow, 1.0),
        attention=min(v(_attention_key(kernel, chip)) / slow, 1.0),
        memory=min(v("memory") / slow, 1.0),
        layer_s=v("layer_s") * slow,
        expert_layer_s=v(f"expert_layer_s, {grouped_products}") * own(expert_overhead_key(chip)),
        exchange=v("exchange"),
        overlap=1 - v("exposed"),
        ramp=ramp(chip),
        operands=1.0,
        torus=v("torus"),
        domain=v("domain"),
        network=v("network"),
        dcn=v("dcn"),
    )


def _attention_key(kernel: str, chip: Chip) -> str:
    return f"{kernel}, after A100" if kernel == "early" and not chip.name.startswith("A100") else kernel


def expert_overhead_key(chip: Chip) -> str:
    """The name of software's value for the host overhead of an expert layer."""
    return "expert_layer_s, Grace" if chip.host_bytes_per_s else "expert_layer_s"


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
    return efficiency(values, run.chip, run.precision, planned(run).kernel, run.software)


CALIBRATION = Calibration(
    priors=priors,
    kind=lambda run: (run.chip.name, run.precision, planned(run).kernel, run.software),
    efficiency=efficiency_of,
    predicted=step_s,
    published=lambda run: run.step_s,
    noise=lambda run: NOISE_EXPERTS if run.experts else NOISE,
    rounds=12,
)


@cache
def calibrated(
    chip: Chip, precision: str = "bf16", kernel: str = "attention", software: Software = ()
) -> TrainingEfficiency:
    """The recorded efficiency of a chip whose matmuls are of that dtype.

    For named software, or, without a name, for the average of all software.
    """
    found = factors.record("training")
    name = found.name(chip, precision, software[0] if software else "")
    return replace(efficiency(found.values, chip, precision, kernel, software), name=name)
