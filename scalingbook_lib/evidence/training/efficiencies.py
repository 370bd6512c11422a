"""What share of its peak does each class of operation reach, if predicted steps shall be near published ones?

`fit` finds them from runs of one chip, `calibrated` looks them up in the frozen table, with a rule for chips
that it never saw.

For each chip and type of the products apart, the least sum over its runs of h(ln(predicted / published) / s):
h(x) = 2 (sqrt(1 + x²) - 1) counts far rows less, s is 0.07 (0.175 with experts). What is `EXPECTED` was
measured on kernels and collectives (`kernels.csv`, `collectives.csv`, `data/attention.csv`) or assumed, and
holds where the runs say nothing: see `fitting.fitted`. Chapter: Training.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from math import exp, log, log2
from typing import Any

from scalingbook_lib.evidence import kernels, tables
from scalingbook_lib.evidence.fitting import Expected, Values, far, fitted
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.tables import Key, Table, frozen
from scalingbook_lib.evidence.training.planned import planned, seconds
from scalingbook_lib.machines.chips import CATALOGUE, Chip
from scalingbook_lib.training.efficiency import MATH, Efficiency

KERNELS = ("attention", "early", "unfused")
EXPECTED = {
    "matmul": Expected(0.72, 0.15, 0.2, 1.0),  # kernels: 0.70 to 0.87 of the peak at the best shapes
    "attention": Expected(0.6, 0.2, 0.1, 1.0),  # kernels: 0.55, the ramp apart
    "early": Expected(0.3, 0.3, 0.05, 1.0),
    "unfused": Expected(0.3, 0.3, 0.05, 1.0),
    "experts": Expected(0.5, 0.4, 0.05, 1.0),
    "memory": Expected(0.6, 0.3, 0.1, 1.0),
    "torus": Expected(0.8, 0.2, 0.2, 1.0),
    "domain": Expected(0.75, 0.2, 0.1, 1.0),  # collectives: 0.75 to 0.82
    "network": Expected(0.75, 0.2, 0.1, 1.0),
    "dcn": Expected(0.7, 0.3, 0.1, 1.0),
    "exposed": Expected(0.1, 0.7, 0.005, 1.0),  # 1 - overlap
    "layer_s": Expected(2e-5, 1.0, 1e-6, 5e-3),
    "expert_layer_s": Expected(5e-4, 1.5, 1e-5, 2e-2),
}
TORUS = {"matmul": Expected(0.86, 0.15, 0.2, 1.0)}  # kernels: 0.82 on TPU7x, 0.90 on v6e
NOISE, NOISE_EXPERTS = 0.07, 0.175
RAMP_S = 1024 / 989e12  # tokens for each FLOP/s: what is lost is a time, and faster chips lose more in it


def ramp(chip: Chip) -> float:
    """The tokens of a sequence at which attention has half of its rate: 1,024 on H100."""
    return RAMP_S * chip.bf16_flops_per_s


def efficiency(values: Values, kernel: str, chip: Chip, name: str = "") -> Efficiency:
    """The table for one kernel of attention; what a chip's runs do not have is as `EXPECTED`."""
    v = {key: one.value for key, one in EXPECTED.items()} | values
    names = ("experts", "memory", "torus", "domain", "network", "dcn", "layer_s", "expert_layer_s")
    same: dict[str, Any] = {name: v[name] for name in names}
    return Efficiency(
        matmul=v["matmul"],
        head=v["matmul"],
        attention=v[kernel],
        overlap=1 - v["exposed"],
        ramp=ramp(chip),
        operands=1.0,
        name=name,
        **same,
    )


def expected(name: str, chip: Chip) -> Expected:
    """What is expected of a class on chips joined in a torus, or by switches."""
    return TORUS.get(name, EXPECTED[name]) if chip.torus else EXPECTED[name]


def classes(runs: Sequence[TrainingRun], kernel: str = "") -> tuple[str, ...]:
    """The classes of operation that these runs have; with a kernel named, as if all had that one."""
    kernels = [kernel] if kernel else [k for k in KERNELS if any(planned(run).kernel == k for run in runs)]
    links = ["torus", "dcn"] if runs[0].chip.torus else ["domain", "network"]
    experts = ["experts", "expert_layer_s"] if any(run.experts for run in runs) else []
    return ("matmul", *kernels, "memory", *links, "exposed", "layer_s", *experts)


def fit(runs: Sequence[TrainingRun], rounds: int = 25, kernel: str = "", doubling: float = 0.0) -> Values:
    """The values of all classes of one chip and type; with a kernel named, as if all runs had that one.

    `doubling`: as if a step took that share longer with each doubling of the chips.
    """

    def errors(values: Values) -> list[float]:
        found = []
        for run in runs:
            table = efficiency(values, kernel or planned(run).kernel, run.chip)
            step_s = seconds(run, table).total_s * (1 + doubling * log2(run.chips))
            found.append(far(log(step_s / run.step_s), NOISE_EXPERTS if run.experts else NOISE))
        return found

    return fitted({name: expected(name, runs[0].chip) for name in classes(runs, kernel)}, errors, rounds)


@cache
def calibrated(chip: Chip, precision: str = "bf16", kernel: str = "attention") -> Efficiency:
    """The efficiency of a chip whose products are of that type, by the frozen table and its rule."""
    return of(frozen("training").table, chip, precision, kernel)


def of(table: Table, chip: Chip, precision: str, kernel: str = "attention") -> Efficiency:
    """By any table. A class without a value of its own takes the mean of the nearest kin that has it.

    Kin are, in this order: the same type of the same width; variants of the chip (H100 of 500 W); all chips
    that are joined alike (tori, or switches), first in types of that width, then in all. The mean is
    geometric. A variant's matrix unit runs as the cube root of its power, which grows as clock · voltage².
    Where there is no kin at all, a class is as `expected`.
    """
    values = {name: _value(table, chip, precision, name) for name in EXPECTED}
    kin = "" if (chip.name, precision) in table else ", by its kin"
    return efficiency(values, kernel, chip, f"{chip.name}, {precision}, {frozen('training').date}{kin}")


def _value(table: Table, chip: Chip, precision: str, name: str) -> float:
    near = tables.nearest(table, _kin(table, chip, precision), name)
    if not near:
        return expected(name, chip).value
    logarithms = [log(value * _power(chip, key[0], name)) for key, value in near.items()]
    return min(exp(sum(logarithms) / len(logarithms)), EXPECTED[name].high)


def _kin(table: Table, chip: Chip, precision: str) -> Iterator[list[Key]]:
    same, alike = tables.same(table, chip), tables.alike(table, chip)
    yield [key for key in same if key[1] == precision]
    for kin in (same, tables.variants(table, chip), alike):
        yield [key for key in kin if _width(key[1]) == _width(precision)]
    yield alike


def _power(chip: Chip, other: str, name: str) -> float:
    kin = CATALOGUE.get(other)
    if name not in MATH or not kin or not kin.power_w or not chip.power_w:
        return 1.0
    return (chip.power_w / kin.power_w) ** (1 / 3) if kernels.is_variant(chip, other) else 1.0


def _width(precision: str) -> str:
    return "".join(letter for letter in precision if letter.isdigit())
