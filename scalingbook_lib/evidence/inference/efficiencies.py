"""What does each class of operation reach, if predicted inference shall be near published runs?

`fit` finds them from runs of one chip, `calibrated` looks them up in the frozen table, with a rule for chips
that it never saw.

For each chip and type of the products apart, the least sum over its runs of h(ln(predicted / published) / s):
h(x) = 2 (sqrt(1 + x²) - 1) counts far rows less, s is 0.07 (0.11 with experts). `EXPECTED` holds where the
runs say nothing (see `fitting.fitted`), and is rounded from measured kernels where there are some
(`kernels.csv`, `data/decode_attention.csv`), else from what most chips show. Chapter: Inference.
"""

from collections.abc import Sequence
from functools import cache
from math import log
from statistics import median
from typing import Any

from scalingbook_lib.evidence import tables
from scalingbook_lib.evidence.fitting import Expected, Values, far, fitted
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun, runs
from scalingbook_lib.evidence.tables import Key, Table, frozen
from scalingbook_lib.inference import Efficiency
from scalingbook_lib.machines import Chip
from scalingbook_lib.units import BF16, DType

EXPECTED = {
    "matmul": Expected(0.7, 0.15, 0.2, 0.97),  # kernels: 0.70 to 0.87 of the peak at the best shapes
    "experts": Expected(0.35, 0.4, 0.05, 0.97),
    "attention": Expected(0.5, 0.25, 0.1, 0.97),  # kernels: 0.55
    "weights": Expected(0.87, 0.07, 0.3, 0.97),  # kernels: 0.85 to 0.9 of the rate for one token
    "kv": Expected(0.87, 0.1, 0.2, 0.97),  # kernels: 0.83 to 0.93 where they read 1 GiB
    "pointwise": Expected(2e12, 0.3, 2e11, 1e13),
    "torus": Expected(0.75, 0.2, 0.2, 0.97),
    "domain": Expected(0.6, 0.3, 0.1, 0.97),  # collectives: 0.75 to 0.82, large ones
    "network": Expected(0.6, 0.3, 0.1, 0.97),
    "exposed": Expected(0.5, 0.5, 0.02, 1.0),
    "dequantize": Expected(1.0, 0.5, 0.1, 10.0),
    "ramp": Expected(40.0, 0.7, 1.0, 500.0),
    "layer_s": Expected(2e-5, 0.5, 1e-6, 5e-4),
    "expert_layer_s": Expected(7e-5, 1.5, 1e-6, 5e-3),
    "collective_s": Expected(8e-6, 0.5, 1e-6, 1e-4),  # collectives: 10 µs for the smallest
    "network_s": Expected(5e-5, 0.7, 1e-6, 1e-3),
    "fixed_s": Expected(3e-3, 0.7, 1e-5, 0.1),
    "sequence_s": Expected(2e-6, 0.8, 1e-7, 1e-3),
    "host_s": Expected(2.5e-5, 0.3, 1e-7, 1e-3),
}
"""Shares of the documented rate, but: `pointwise` bytes/s of norms and activations, `exposed` of collectives
(on tori; under switches all is), `dequantize` instructions of the vector unit for a weight that is stored
narrower than it is multiplied, `ramp` tokens, and seconds."""
SECONDS = tuple(name for name in EXPECTED if name.endswith("_s"))
TORUS = {"matmul": Expected(0.8, 0.15, 0.2, 0.97)}  # kernels: 0.82 on TPU7x, 0.90 on v6e
BARE = {"fixed_s": Expected(5e-4, 0.7, 1e-5, 0.1), "host_s": Expected(1e-6, 0.3, 1e-7, 1e-3)}
BARE_ENGINES = "gpt-fast", "JAX (Pope et al.)", "FasterTransformer", "TensorRT-LLM (2024)"
"""These run steps one after the other; nobody schedules requests between them."""
NOISE, NOISE_EXPERTS = 0.07, 0.11
ALWAYS = {"matmul", "attention", "weights", "kv", "pointwise", "ramp"}
ALWAYS |= {"layer_s", "fixed_s", "sequence_s", "host_s"}


def efficiency(values: Values, chip: Chip, name: str = "") -> Efficiency:
    """The table for a chip; what is not among the values is as expected."""
    v = {key: expected(key, chip).value for key in EXPECTED} | values
    names = ("matmul", "experts", "attention", "weights", "kv", "torus", "domain", "network", "ramp")
    same: dict[str, Any] = {name: v[name] for name in (*names, *SECONDS)}
    vector = chip.vector_flops_per_s
    return Efficiency(
        head=v["matmul"],
        expert_weights=v["weights"],
        head_weights=v["weights"],
        memory=min(v["pointwise"] / chip.hbm_bytes_per_s, 0.97),
        overlap=1 - v["exposed"] if chip.torus else 0.0,
        dequantize_s=2 * v["dequantize"] / vector if vector else 0.0,
        name=name,
        **same,
    )


def expected(name: str, chip: Chip, engine: str = "") -> Expected:
    """What is expected of a class on chips joined in a torus, or by switches, under an engine."""
    found = EXPECTED | (TORUS if chip.torus else {}) | (BARE if engine in BARE_ENGINES else {})
    return found[name]


def classes(runs: Sequence[InferenceRun]) -> tuple[str, ...]:
    """The classes of operation that these runs have, in the order of `EXPECTED`."""
    found = set(ALWAYS)
    for run in runs:
        found |= {"experts", "expert_layer_s"} if run.experts else set()
        found |= {"dequantize"} if run.weights.bytes < run.compute.bytes else set()
        found |= _links(run) if run.chips > 1 else set()
    return tuple(name for name in EXPECTED if name in found)


def _links(run: InferenceRun) -> set[str]:
    if run.chip.torus:
        return {"torus", "exposed", "collective_s"}
    hosts = {"network", "network_s"} if run.tp > (run.chip.domain_chips or run.tp) else set()
    return {"domain", "collective_s"} | hosts


def fit(runs: Sequence[InferenceRun], rounds: int = 25, fixed: Values | None = None) -> Values:
    """The values of all classes of one chip and type; what is `fixed` stays."""
    chip, engine, stays = runs[0].chip, runs[0].engine, fixed or {}

    def errors(values: Values) -> list[float]:
        table = efficiency(values | stays, chip)
        ratios = [tokens_per_s(run, table) / run.tokens_per_s for run in runs]
        noises = [NOISE_EXPERTS if run.experts else NOISE for run in runs]
        return [far(log(ratio), noise) for ratio, noise in zip(ratios, noises, strict=True)]

    assumed = {name: expected(name, chip, engine) for name in classes(runs) if name not in stays}
    return fitted(assumed, errors, rounds) | stays


def key(run: InferenceRun) -> tuple[str, str]:
    """The line of the table that a run belongs to: its chip, and the type of the products of its layers."""
    return run.chip.name, run.compute.name


def source(run: InferenceRun) -> str:
    """A model as one engine ran it, on all its chips: what is left out together."""
    return f"{run.model.name.split(',')[0]}, {run.engine}"


HOST = "fixed_s", "sequence_s", "host_s"


@cache
def _bare_lines() -> frozenset[Key]:
    """The lines of the table that runs without a scheduler gave."""
    return frozenset(key(run) for run in runs() if run.engine in BARE_ENGINES)


@cache
def calibrated(chip: Chip, compute: DType = BF16, engine: str = "") -> Efficiency:
    """The efficiency of a chip whose layers compute in that type, by the frozen table and its rule.

    Without an `engine`, what is lost to it is that of one which schedules requests between steps; "gpt-fast",
    and what else is in `BARE_ENGINES`, lose less.
    """
    return of(frozen("inference").table, chip, compute, engine)


def of(table: Table, chip: Chip, compute: DType, engine: str = "") -> Efficiency:
    """By any table. A class without a value of its own takes the median of the nearest kin that have it.

    Kin are, in this order: the chip in its other types; variants of it (the A100 of 330 W); all chips that
    are joined alike (tori, or switches). Where there is no kin at all, a class is as `expected`. What
    is lost to an engine is no property of other chips, nor of an engine of the other kind: it is as expected
    where the chip has no line of that kind.
    """
    values = {name: _value(table, chip, compute, name, engine) for name in EXPECTED}
    kin = "" if (chip.name, compute.name) in table else ", by its kin"
    return efficiency(values, chip, f"{chip.name}, {compute}, {frozen('inference').date}{kin}")


def _value(table: Table, chip: Chip, compute: DType, name: str, engine: str) -> float:
    same = tables.same(table, chip)
    kin = [[line for line in same if line[1] == compute.name], same]
    if name in HOST:
        bare = engine in BARE_ENGINES
        kin = [[line for line in lines if (line in _bare_lines()) == bare] for lines in kin]
    else:
        kin += [tables.variants(table, chip), tables.alike(table, chip)]
    near = tables.nearest(table, kin, name)
    return median(near.values()) if near else expected(name, chip, engine).value
