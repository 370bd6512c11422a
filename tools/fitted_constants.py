"""The fitted constants of training and of serving in words, as tables and as records of a data file."""

from collections.abc import Iterator

from scalingbook_lib.calibrated import factors
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import inference, training
from scalingbook_lib.evidence.fitting import Prior
from scalingbook_lib.evidence.inference import efficiencies as of_serving
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.training import efficiencies as of_training
from scalingbook_lib.units import si
from tools.published import Cells

NAMES = {
    "domain": "links of an NVLink domain, share of the rate",
    "network": "network between nodes, share of the rate",
    "torus": "links of a torus, share of the rate",
}
TRAINING_NAMES = NAMES | {
    "attention": "attention, share of peak without the ramp",
    "early": "attention, first fused kernels (2022)",
    "early, after A100": "attention, first fused kernels on later chips",
    "unfused": "attention, unfused",
    "memory": "HBM, share of the rate",
    "dcn": "data-center network, share of the rate",
    "exposed": "exposed share of collectives that can overlap",
    "exchange": "exposed share of the expert all-to-all",
    "head_ramp": "elements of a head that take as long as its exponentials",
    "experts": "expert matmuls, share of the rate of grouped kernels",
    "permutation": "times that routed tokens are read or written to sort them",
    "expert_launch_s": "lost per expert of a chip",
    "layer_s": "lost per layer per microbatch",
    "software": "slowdown factor of the average software",
}
SERVING_NAMES = NAMES | {
    "attention": "attention of prompts, share of the 16-bit peak",
    "weights": "reading weights, share of the memory bandwidth",
    "kv": "reading the KV cache, share of the memory bandwidth",
    "memory": "norms, activations and copies for experts, share of the memory bandwidth",
    "apart": "part of the shorter of compute and memory time that does not overlap",
    "hosted": "PCIe links of cards, share of the rate",
    "exposed": "exposed share of collectives on a torus",
    "dequantize": "vector instructions per dequantized weight",
    "layer_s": "lost per layer",
    "collective_s": "lost per collective",
    "network_s": "lost per collective that leaves a node",
    "Grace": "host overhead of Arm hosts over that of others",
    "slowness": "slowdown factor",
    "fixed_s": "lost per step",
    "sequence_s": "lost per sequence of a step",
    "host_s": "host time per sequence",
}
ENGINES = {"scheduling": "engines that schedule", "bare": "engines that do not schedule"}


def named(key: str, names: dict[str, str]) -> str:
    """Return a constant that all chips share, in words."""
    kind, _, what = key.partition(": ")
    if what:
        return f"{names[what]}, {ENGINES[kind]}"
    if key.startswith("expert_layer_s"):
        return key.replace("expert_layer_s", "lost per expert layer")
    return names.get(key, key.replace("experts,", "expert matmuls, share of the dense share,"))


def training_table() -> Cells:
    """Return the constants of training that all chips share: expected, spread, fitted."""
    return _table(of_training.CLASSES, record("training").values, TRAINING_NAMES)


def serving_table() -> Cells:
    """Return the constants of serving that all chips share: expected, spread, fitted."""
    return _table(of_serving.CLASSES, record("inference").values, SERVING_NAMES)


def _table(classes: dict[str, Prior], values: dict[str, float], names: dict[str, str]) -> Cells:
    for key, one in classes.items():
        expected, fitted = (
            si(value, "s", 2) if "_s" in key else f"{value:.2f}" for value in (one.value, values[key])
        )
        yield named(key, names), expected, f"{one.spread:.2f}", fitted


def of_all() -> Iterator[dict[str, object]]:
    """Yield every fitted constant, with its prior: the expected value and the spread of its logarithm."""
    yield from _training()
    yield from _serving()


def _training() -> Iterator[dict[str, object]]:
    every = training.all_runs()
    kinds = grouped(every, lambda run: factors.figure_key(run.chip, run.precision))
    pairs = [(name, run) for run in every for name in dict.fromkeys(run.software)]
    counted = grouped(pairs, lambda pair: pair[0])
    for key, value in record("training").values.items():
        name, _, what = key.partition(": ")
        if key in of_training.CLASSES:
            group, name, runs = "operation", named(key, TRAINING_NAMES), len(every)
            expected, spread = of_training.CLASSES[key][:2]
        elif key in kinds:
            run, runs = kinds[key][0], len(kinds[key])
            group, expected = "chip: share of the matmul peak", factors.kernel_share(run.chip, run.precision)
            spread = of_training.TPU_SPREAD if run.chip.torus else of_training.CHIP_SPREAD
        else:
            is_release = name not in {run.software[0] for _, run in counted[name]}
            group, runs = f"software: {what}", len(counted[name])
            expected, spread = of_training.SOFTWARE[what.removesuffix(", Grace")][is_release][:2]
        yield _record("training", group, name, value, expected, spread, runs)


def _serving() -> Iterator[dict[str, object]]:
    every = inference.all_runs()
    kinds = grouped(every, lambda run: factors.figure_key(run.chip, run.compute.name))
    on, under = grouped(every, lambda run: run.chip.name), grouped(every, lambda run: run.software[0])
    for key, value in record("inference").values.items():
        name, _, what = key.partition(": ")
        if key in of_serving.CLASSES:
            group, name, runs = "operation", named(key, SERVING_NAMES), len(every)
            expected, spread = of_serving.CLASSES[key][:2]
        elif key in kinds:
            run, runs = kinds[key][0], len(kinds[key])
            group, spread = "chip: share of the matmul peak", of_serving.MATMUL_SPREAD
            expected = factors.kernel_share(run.chip, run.compute.name)
        elif what == "reads":
            group, runs = "chip: rate of reading weights", len(on[name])
            expected, spread = 1.0, of_serving.READ_SPREAD
        else:
            group, runs = f"software: {what}", len(under[name])
            expected, spread = of_serving.SOFTWARE[what][:2]
        yield _record("serving", group, name, value, expected, spread, runs)


def _record(
    model: str, group: str, name: str, value: float, expected: float, spread: float, runs: int
) -> dict[str, object]:
    columns = ("model", "group", "name", "value", "expected", "spread", "runs")
    return dict(zip(columns, (model, group, name, value, expected, spread, runs), strict=True))
