"""What does each class of operation reach, if predicted inference shall be near published runs?

    time = ideal / (share of the class · of the chip) · slowness of the software, and what its host loses

`fit` finds all figures of all runs at once, `calibrated` looks them up in the frozen record. Classes have one
figure for all chips. A chip has one for its products in each type, drawn to what its kernels attain, and one
for its reading of weights (`evidence.factors`). What is lost between steps is the software's, whatever chip
it runs on: each has figures of its own, drawn to the mean of its kind, which is what nobody has seen takes.

Least is the sum over all runs of h(ln(predicted / published) / s): h(x) = 2 (sqrt(1 + x²) - 1) counts far
rows less, s is 0.07 (0.11 with experts). `CLASSES` holds where runs say nothing, and is rounded from measured
kernels where there are some (`kernels.csv`, `data/decode_attention.csv`). Chapter: Inference.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import log

from scalingbook_lib.evidence import factors
from scalingbook_lib.evidence.fitting import Expected, Values, far, fitted
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.inference import Efficiency
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import BF16, DType

CLASSES = {
    "attention": Expected(0.5, 0.15, 0.1, 1.0),  # kernels: 0.56, their launches apart
    "weights": Expected(0.85, 0.07, 0.3, 1.0),  # kernels: 0.75 to 0.9 of the rate for one token
    "kv": Expected(0.88, 0.1, 0.2, 1.0),  # kernels: 0.83 to 0.93 where they read 1 GiB
    "memory": Expected(0.7, 0.3, 0.1, 1.0),
    "apart": Expected(0.3, 0.7, 0.01, 1.0),
    "torus": Expected(0.75, 0.2, 0.2, 1.0),
    "domain": Expected(0.7, 0.2, 0.1, 1.0),  # collectives: 0.71 to 0.76 of large arrays
    "hosted": Expected(0.6, 0.3, 0.1, 1.0),  # cards that have no links but their slots
    "network": Expected(0.6, 0.3, 0.1, 1.0),
    "exposed": Expected(0.5, 0.5, 0.02, 1.0),
    "dequantize": Expected(1.0, 0.5, 0.1, 10.0),
    "layer_s": Expected(2e-5, 0.5, 1e-6, 5e-4),
    "collective_s": Expected(8e-6, 0.5, 1e-6, 1e-4),  # collectives: 5 to 10 µs for the smallest
    "network_s": Expected(5e-5, 0.7, 1e-6, 1e-3),
    "Grace": Expected(1.0, 0.7, 0.1, 10.0),
    **{f"experts, {n} bits": Expected(0.6, 0.3, 0.05, 1.4) for n in (16, 8, 4)},
    **{f"expert_layer_s, {n} bits": Expected(7e-5, 1.0, 1e-6, 5e-3) for n in (16, 8, 4)},
    "scheduling: slowness": Expected(1.1, 0.15, 0.5, 3.0),
    "scheduling: fixed_s": Expected(2e-3, 0.7, 1e-5, 0.1),
    "scheduling: sequence_s": Expected(2e-6, 0.8, 1e-8, 1e-3),
    "scheduling: host_s": Expected(2.5e-5, 0.3, 1e-8, 1e-3),
    "bare: slowness": Expected(1.1, 0.15, 0.5, 3.0),
    "bare: fixed_s": Expected(5e-4, 0.7, 1e-5, 0.1),
    "bare: sequence_s": Expected(1e-6, 0.8, 1e-8, 1e-3),
    "bare: host_s": Expected(1e-6, 0.3, 1e-8, 1e-3),
}
"""Shares of the documented rate, but: `experts` of what dense products reach, `apart` of the shorter of
arithmetic and reading, `exposed` of collectives (on tori; under switches all is), `dequantize` instructions
of the vector unit for a weight that is stored narrower than it is multiplied, `Grace` how many times as much
hosts lose that are Arm processors beside their chips, and seconds."""
SOFTWARE = {  # beside the mean of its kind: how many times as long
    "slowness": Expected(1.0, 0.15, 0.3, 5.0),
    "kv": Expected(1.0, 0.5, 0.2, 8.0),
    "fixed_s": Expected(1.0, 0.7, 0.01, 100.0),
    "sequence_s": Expected(1.0, 0.7, 0.01, 100.0),
    "host_s": Expected(1.0, 0.3, 0.01, 100.0),
    "experts": Expected(1.0, 0.4, 0.3, 3.0),
    "expert_layer_s": Expected(1.0, 0.7, 0.01, 100.0),
}
EXPERTS = "experts", "expert_layer_s"
BARE = "gpt-fast", "PaLM's JAX", "TensorRT-LLM before continuous batching", "NeuronX", "Optimum Habana"
"""These run steps one after the other; nobody schedules requests between them."""
PRODUCTS, READS = 0.15, 0.1  # spreads of chips about what their kernels attain
NOISE, NOISE_EXPERTS = 0.07, 0.11


def efficiency(values: Values, chip: Chip, compute: DType, software: str = "", name: str = "") -> Efficiency:
    """The efficiency of a chip under that software; without figures, under software as it is on average."""

    def v(key: str) -> float:
        return values.get(key) or CLASSES[key].value

    kind, wide = "bare" if software in BARE else "scheduling", f"{factors.bits(compute.name)} bits"
    own = {what: factors.of_software(values, (software,), what) for what in SOFTWARE}
    slow = v(f"{kind}: slowness") * own["slowness"]
    products = factors.of_chip(values, chip, compute.name)
    reads = _below_one(v("weights") * factors.reads(values, chip) / slow)
    host = v("Grace") if chip.host_bytes_per_s else 1.0
    vector = chip.vector_flops_per_s
    return Efficiency(
        matmul=_below_one(products / slow),
        head=_below_one(products / slow),
        experts=_below_one(products * v(f"experts, {wide}") / slow / own["experts"]),
        attention=_below_one(v("attention") / slow),
        weights=reads,
        head_weights=reads,
        expert_weights=reads,
        kv=_below_one(v("kv") / slow / own["kv"]),
        memory=_below_one(v("memory") / slow),
        apart=v("apart"),
        torus=v("torus"),
        domain=v("hosted" if chip.links == 1 else "domain"),
        network=v("network"),
        overlap=1 - v("exposed") if chip.torus else 0.0,
        dequantize_s=2 * v("dequantize") / vector if vector else 0.0,
        layer_s=v("layer_s") * slow,
        expert_layer_s=v(f"expert_layer_s, {wide}") * own["expert_layer_s"] * slow,
        collective_s=v("collective_s"),
        network_s=v("network_s"),
        fixed_s=host * v(f"{kind}: fixed_s") * own["fixed_s"],
        sequence_s=host * v(f"{kind}: sequence_s") * own["sequence_s"],
        host_s=host * v(f"{kind}: host_s") * own["host_s"],
        name=name,
    )


def _below_one(share: float) -> float:
    """A share of a rate that nothing exceeds: bent (0.85 to 0.846), not cut, so that fits see their way."""
    return share / (1 + share**16) ** (1 / 16)


def expected(runs: Sequence[InferenceRun]) -> dict[str, Expected]:
    """What is expected of every figure that these runs have."""
    found = dict(CLASSES)
    for run in runs:
        precision = run.compute.name
        attained = factors.attained(run.chip, precision)
        found[factors.line(run.chip, precision)] = Expected(attained, PRODUCTS, 0.05, 1.0)
        found[f"{run.chip.name}: reads"] = Expected(1.0, READS, 0.1, 1.2)
        for what, one in SOFTWARE.items():
            if run.experts or what not in EXPERTS:
                found[f"{run.software[0]}: {what}"] = one
    return found


@lru_cache(maxsize=2**16)
def _rate(run: InferenceRun, efficiency: Efficiency) -> float:
    """The rate; most figures change the efficiency of few runs, so the others are remembered."""
    return tokens_per_s(run, efficiency)


def errors(runs: Sequence[InferenceRun]) -> Callable[[Values], list[float]]:
    """How far these runs are off with given figures, far ones counted less."""
    kinds = [(run.chip.name, run.compute.name, run.software[0]) for run in runs]
    first = dict(zip(kinds, runs, strict=True))  # one efficiency for all runs of a kind

    def found(values: Values) -> list[float]:
        reached = {kind: of(values, run) for kind, run in first.items()}
        rates = (_rate(run, reached[kind]) for kind, run in zip(kinds, runs, strict=True))
        return [far(log(rate / run.tokens_per_s), noise(run)) for rate, run in zip(rates, runs, strict=True)]

    return found


def fit(runs: Sequence[InferenceRun], rounds: int = 25, start: Values | None = None) -> Values:
    """All figures of these runs."""
    return fitted(expected(runs), errors(runs), rounds, start)


def noise(run: InferenceRun) -> float:
    """How far a prediction is expected to be off, in logarithms."""
    return NOISE_EXPERTS if run.experts else NOISE


def of(values: Values, run: InferenceRun) -> Efficiency:
    """The efficiency of a run."""
    return efficiency(values, run.chip, run.compute, run.software[0])


def source(run: InferenceRun) -> str:
    """A model as one engine ran it, on all its chips: what is left out together."""
    return f"{run.model.name.split(',')[0]}, {run.engine}"


@cache
def calibrated(chip: Chip, compute: DType = BF16, software: str = "") -> Efficiency:
    """The efficiency of a chip whose layers compute in that type, under named software, or under any.

    Without a name, what is lost is that of software which schedules requests between steps; "gpt-fast", and
    what else is in `BARE`, lose less.
    """
    found = factors.record("inference")
    kin = "" if factors.line(chip, compute.name) in found.values else ", by its kin"
    name = f"{chip.name}, {compute}, {software or 'any software'}, {found.date}{kin}"
    return efficiency(found.values, chip, compute, software, name)
