"""What share of its peak does each class of operation reach? The chip, the kernel and the software apart.

    time = ideal / (share of the class · of the chip) · slowness of the software

`fit` finds all figures of all runs at once, `calibrated` looks them up in the frozen record. Classes have one
figure for all chips. A chip has one for its products, drawn to what its kernels attain. Software has its
slowness, its release another beside it, and both have two for their layers of experts, drawn to the mean of
all software: what nobody has seen is taken to be as slow as that (`evidence.factors`). A chip is held near
its kernels, software is not (nobody measured it by itself): what runs of both lose is the software's.

Layers of experts: their grouped products reach a share of what dense ones do, by type; `expert_layer_s` is
what the host needs to learn how many tokens each expert got, and to launch the rest. On chips that share the
memory of their host (Grace), recipes record layers as graphs, so that software has another figure there.
`exchange` is how much of the tokens' exchange nothing hides.

Least is the sum over all runs of h(ln(predicted / published) / s): h(x) = 2 (sqrt(1 + x²) - 1) counts far
rows less, s is 0.05 (0.1 with experts). `CLASSES` holds where runs say nothing. Chapter: Training.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from math import log

from scalingbook_lib.evidence import factors
from scalingbook_lib.evidence.fitting import Expected, Values, far, fitted
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.training.planned import planned, seconds
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.training.efficiency import Efficiency

CLASSES = {
    "attention": Expected(0.56, 0.15, 0.1, 1.0),  # kernels: 0.56, the ramp apart
    "early": Expected(0.3, 0.3, 0.05, 1.0),
    "early, after A100": Expected(0.2, 0.3, 0.05, 1.0),  # written for the A100: no instructions of Hopper's
    "unfused": Expected(0.3, 0.3, 0.05, 1.0),
    "memory": Expected(0.75, 0.25, 0.1, 1.3),  # kernels: 0.73 to 0.84
    "torus": Expected(0.8, 0.2, 0.2, 1.0),
    "domain": Expected(0.75, 0.2, 0.1, 1.0),  # collectives: 0.71 to 0.76 of large arrays
    "network": Expected(0.75, 0.2, 0.1, 1.0),
    "dcn": Expected(0.7, 0.3, 0.1, 1.0),
    "exposed": Expected(0.1, 0.7, 0.005, 1.0),  # 1 - overlap
    "layer_s": Expected(3e-5, 1.0, 1e-6, 5e-3),
    "exchange": Expected(0.8, 0.3, 0.05, 1.0),
    "experts, 16 bits": Expected(0.5, 0.3, 0.05, 1.4),  # of what dense products reach
    "experts, 8 bits": Expected(0.6, 0.3, 0.05, 1.4),
    "experts, mx": Expected(0.6, 0.3, 0.05, 1.4),  # scales for each block of 32, in the matrix unit
    "expert_layer_s, 16 bits": Expected(7e-4, 1.0, 1e-5, 2e-2),
    "expert_layer_s, 8 bits": Expected(5e-4, 1.0, 1e-5, 2e-2),
    "expert_layer_s, mx": Expected(3e-4, 1.0, 1e-5, 2e-2),
    "software": Expected(1.1, 0.1, 0.5, 3.0),  # the mean of all: how many times as long it takes
}
SOFTWARE = {  # beside that mean; and a release, beside its software
    "slowness": (Expected(1.0, 0.3, 0.4, 3.0), Expected(1.0, 0.05, 0.4, 3.0)),
    "experts": (Expected(1.0, 0.3, 0.3, 3.0), Expected(1.0, 0.5, 0.3, 3.0)),
    "expert_layer_s": (Expected(1.0, 0.6, 0.03, 30.0), Expected(1.0, 0.5, 0.03, 30.0)),
}
CHIP, TORUS = 0.05, 0.1  # spreads of the products' share: of tori few kernels were measured
NOISE, NOISE_EXPERTS = 0.05, 0.1
RAMP_S = 1024 / 989e12  # tokens for each FLOP/s: what is lost is a time, and faster chips lose more in it

type Software = tuple[str, ...]  # its name, and its release


def ramp(chip: Chip) -> float:
    """The tokens of a sequence at which attention has half of its rate: 1,024 on H100."""
    rates = chip.rates()
    # V100 has no bf16; a chip with neither type is refused in a sentence
    return RAMP_S * (rates.get("bf16") or rates.get("fp16") or chip.flops_per_s())


def efficiency(
    values: Values, chip: Chip, precision: str, kernel: str = "attention", software: Software = ()
) -> Efficiency:
    """The efficiency of a chip under that software; without figures, under software as it is on average."""

    def v(key: str) -> float:
        return values.get(key) or CLASSES[key].value

    def own(what: str) -> float:
        return factors.of_software(values, software, what)

    grouped_products = "mx" if precision in ("mxfp8", "nvfp4") else f"{factors.bits(precision)} bits"
    slow, products = v("software") * own("slowness"), factors.of_chip(values, chip, precision)
    experts = products * v(f"experts, {grouped_products}") * own("experts")
    return Efficiency(
        matmul=min(products / slow, 1.0),
        head=min(products / slow, 1.0),
        experts=min(experts / slow, 1.0),
        attention=min(v(_on(kernel, chip)) / slow, 1.0),
        memory=min(v("memory") / slow, 1.0),
        layer_s=v("layer_s") * slow,
        expert_layer_s=v(f"expert_layer_s, {grouped_products}") * own(launched(chip)),
        exchange=v("exchange"),
        overlap=1 - v("exposed"),
        ramp=ramp(chip),
        operands=1.0,
        torus=v("torus"),
        domain=v("domain"),
        network=v("network"),
        dcn=v("dcn"),
    )


def _on(kernel: str, chip: Chip) -> str:
    return f"{kernel}, after A100" if kernel == "early" and not chip.name.startswith("A100") else kernel


def launched(chip: Chip) -> str:
    """The name of software's figure for what is lost with a layer of experts."""
    return "expert_layer_s, Grace" if chip.host_bytes_per_s else "expert_layer_s"


def expected(runs: Sequence[TrainingRun]) -> dict[str, Expected]:
    """What is expected of every figure that these runs have."""
    found = dict(CLASSES)
    for run in runs:
        spread = TORUS if run.chip.torus else CHIP
        attained = factors.attained(run.chip, run.precision)
        found[factors.line(run.chip, run.precision)] = Expected(attained, spread, 0.1, 1.0)
        for what in ("slowness", "experts", launched(run.chip)) if run.experts else ("slowness",):
            each = SOFTWARE[what.split(",")[0]]
            for name, one in zip(run.software, each, strict=True):
                found.setdefault(f"{name}: {what}", one)  # some have the name of their only release
    return found


@lru_cache(maxsize=2**16)
def step_s(run: TrainingRun, efficiency: Efficiency) -> float:
    """The step; most figures change the efficiency of few runs, so the others are remembered."""
    return seconds(run, efficiency).total_s


def errors(runs: Sequence[TrainingRun]) -> Callable[[Values], list[float]]:
    """How far these runs are off with given figures, far ones counted less."""
    kinds = [(run.chip.name, run.precision, planned(run).kernel, run.software) for run in runs]
    first = dict(zip(kinds, runs, strict=True))  # one efficiency for all runs of a kind

    def found(values: Values) -> list[float]:
        reached = {kind: of(values, run) for kind, run in first.items()}
        steps = (step_s(run, reached[kind]) for kind, run in zip(kinds, runs, strict=True))
        return [
            far(log(step / run.step_s), NOISE_EXPERTS if run.experts else NOISE)
            for step, run in zip(steps, runs, strict=True)
        ]

    return found


def fit(runs: Sequence[TrainingRun], rounds: int = 12, start: Values | None = None) -> Values:
    """All figures of these runs."""
    return fitted(expected(runs), errors(runs), rounds, start)


def of(values: Values, run: TrainingRun) -> Efficiency:
    """The efficiency of a run."""
    return efficiency(values, run.chip, run.precision, planned(run).kernel, run.software)


@cache
def calibrated(
    chip: Chip, precision: str = "bf16", kernel: str = "attention", software: Software = ()
) -> Efficiency:
    """The efficiency of a chip whose products are of that type, by the frozen figures.

    Under named software, or, unnamed, under software as it is on average.
    """
    found = factors.record("training")
    kin = "" if factors.line(chip, precision) in found.values else ", by its kin"
    name = f"{chip.name}, {precision}, {software[0] if software else 'any software'}, {found.date}{kin}"
    return replace(efficiency(found.values, chip, precision, kernel, software), name=name)
