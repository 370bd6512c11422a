"""The fit of inference efficiencies to published runs.

`CALIBRATION` fits the values of `calibrated.serving_efficiency` to all runs at once. A chip's prior comes
from its measured kernels. The overheads of software are regularized toward the mean of their kind.

The objective is the sum over runs of h(ln(predicted / published) / s), with the pseudo-Huber loss h(x) = 2
(sqrt(1 + x²) - 1) and s = 0.07 (0.11 with experts). The priors in `CLASSES` are rounded from measured kernels
where possible (`kernels.csv`, `data/decode_attention.csv`). Chapter: Inference.
"""

from collections.abc import Sequence
from functools import lru_cache

from scalingbook_lib.calibrated import factors
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.calibrated.serving_efficiency import efficiency
from scalingbook_lib.evidence.calibration import Calibration
from scalingbook_lib.evidence.fitting import Prior
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.inference import ServingEfficiency

CLASSES = {
    "attention": Prior(0.5, 0.15, 0.1, 1.0),  # kernels: 0.56, their launches apart
    "weights": Prior(0.85, 0.07, 0.3, 1.0),  # kernels: 0.75 to 0.9 of the rate for one token
    "kv": Prior(0.88, 0.1, 0.2, 1.0),  # kernels: 0.83 to 0.93 where they read 1 GiB
    "memory": Prior(0.7, 0.3, 0.1, 1.0),
    "apart": Prior(0.3, 0.7, 0.01, 1.0),
    "torus": Prior(0.75, 0.2, 0.2, 1.0),
    "domain": Prior(0.7, 0.2, 0.1, 1.0),  # collectives: 0.71 to 0.76 of large arrays
    "hosted": Prior(0.6, 0.3, 0.1, 1.0),  # PCIe cards without links of their own
    "network": Prior(0.6, 0.3, 0.1, 1.0),
    "exposed": Prior(0.5, 0.5, 0.02, 1.0),
    "dequantize": Prior(1.0, 0.5, 0.1, 10.0),
    "layer_s": Prior(2e-5, 0.5, 1e-6, 5e-4),
    "collective_s": Prior(8e-6, 0.5, 1e-6, 1e-4),  # collectives: 5 to 10 µs for the smallest
    "network_s": Prior(5e-5, 0.7, 1e-6, 1e-3),
    "Grace": Prior(1.0, 0.7, 0.1, 10.0),
    "experts": Prior(0.8, 0.2, 0.05, 1.4),
    "expert_layer_s": Prior(7e-5, 1.0, 1e-6, 5e-3),
    "scheduling: slowness": Prior(1.1, 0.15, 0.5, 3.0),
    "scheduling: fixed_s": Prior(2e-3, 0.7, 1e-5, 0.1),
    "scheduling: sequence_s": Prior(2e-6, 0.8, 1e-8, 1e-3),
    "scheduling: host_s": Prior(2.5e-5, 0.3, 1e-8, 1e-3),
    "bare: slowness": Prior(1.1, 0.15, 0.5, 3.0),
    "bare: fixed_s": Prior(5e-4, 0.7, 1e-5, 0.1),
    "bare: sequence_s": Prior(1e-6, 0.8, 1e-8, 1e-3),
    "bare: host_s": Prior(1e-6, 0.3, 1e-8, 1e-3),
}
"""Shares of the documented rate, except: `experts` of the share of measured grouped kernels, `apart` the part
of the shorter of compute and memory time that does not overlap, `exposed` of collectives (on tori; under
switches all are exposed), `dequantize` vector instructions per dequantized weight, `Grace` the host overhead
of Arm hosts relative to others, and seconds."""
SOFTWARE = {  # relative to the mean of its kind
    "slowness": Prior(1.0, 0.15, 0.3, 5.0),
    "kv": Prior(1.0, 0.5, 0.2, 8.0),
    "fixed_s": Prior(1.0, 0.7, 0.01, 100.0),
    "sequence_s": Prior(1.0, 0.7, 0.01, 100.0),
    "host_s": Prior(1.0, 0.3, 0.01, 100.0),
    "experts": Prior(1.0, 0.4, 0.3, 3.0),
    "expert_layer_s": Prior(1.0, 0.7, 0.01, 100.0),
}
EXPERTS = "experts", "expert_layer_s"
MATMUL_SPREAD, READ_SPREAD = 0.15, 0.1  # standard deviations of chips around their kernels, as logarithms
NOISE, NOISE_EXPERTS = 0.07, 0.11


def priors(runs: Sequence[InferenceRun]) -> dict[str, Prior]:
    """The prior of every value that these runs determine."""
    found = dict(CLASSES)
    for run in runs:
        precision = run.compute.name
        attained = factors.kernel_share(run.chip, precision)
        found[factors.figure_key(run.chip, precision)] = Prior(attained, MATMUL_SPREAD, 0.05, 1.0)
        found[f"{run.chip.name}: reads"] = Prior(1.0, READ_SPREAD, 0.1, 1.2)
        for what, one in SOFTWARE.items():
            if run.experts or what not in EXPERTS:
                found[f"{run.software[0]}: {what}"] = one
    return found


@lru_cache(maxsize=2**16)
def _cached_rate(run: InferenceRun, efficiency: ServingEfficiency) -> float:
    """`tokens_per_s`, cached: most values change the efficiency of few runs."""
    return tokens_per_s(run, efficiency)


def efficiency_of(values: Values, run: InferenceRun) -> ServingEfficiency:
    """The efficiency of a run with these values."""
    return efficiency(values, run.chip, run.compute, run.software[0])


CALIBRATION = Calibration(
    priors=priors,
    kind=lambda run: (run.chip.name, run.compute.name, run.software[0]),
    efficiency=efficiency_of,
    predicted=_cached_rate,
    published=lambda run: run.tokens_per_s,
    noise=lambda run: NOISE_EXPERTS if run.experts else NOISE,
)


def source(run: InferenceRun) -> str:
    """The source that is left out together: a model as one engine ran it, on all its chips."""
    return f"{run.model.name.split(',')[0]}, {run.engine}"
