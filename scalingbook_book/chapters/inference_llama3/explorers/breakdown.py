"""Explorer of the parts of a decode step's time as the batch grows."""

from typing import NamedTuple

from scalingbook_book.reader.explorers.parts import (
    SERVING_MACHINES,
    SERVING_MODELS,
    TYPES,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Switch,
    View,
    machine,
    pluralize,
    sig3,
    spread,
)
from scalingbook_lib import inference, models, rules
from scalingbook_lib.units import count, percent, si

PARTS = ("weights", "compute", "cache", "activations", "network")
_SAID = ("reading the weights", "compute", "reading the cache", "activations", "the network")
_OF = {"weights": 0, "matmul": 1, "attention": 1, "KV": 2, "activations": 3}
_MOST = 1024


def parts(step: inference.InferenceStep, links: bool) -> tuple[float, ...]:
    """Seconds by `PARTS`; without the network, what the rule counts."""
    found = [0.0] * len(PARTS)
    for name, s in step.terms.items():
        found[_OF.get(name, 4)] += s
    return (*found[:4], found[4] if links else 0.0)


class BatchSweep(NamedTuple):
    """Batches from 1 in steps of a quarter of a doubling, and the parts of a step with each."""

    sizes: list[int]
    rows: list[tuple[float, ...]]
    chips: int
    knee: float
    level: float
    most: int

    def refs(self) -> list[RefLine]:
        """What happens at which batch."""
        named = (("critical batch", self.knee), ("cache = weights", self.level), ("memory full", self.most))
        return [RefLine(name, x) for name, x in named if 1 <= x <= _MOST]


def swept(model: str, where: str, *, weights: str, kv: str, S: int, links: bool) -> BatchSweep:
    """All batches of one setting."""
    m, on, o = models.find(model), machine(where), spread(model, where, weights, kv)
    sizes = sorted({round(2 ** (k / 4)) for k in range(41)})
    rows = [parts(inference.decode(m, on, o, batch=B, S=S), links) for B in sizes]
    knee = rules.critical_batch(on.chip, sparsity=m.sparsity, weights=o.weights, compute=o.compute).tokens
    level = inference.crossover_batch(m, S=S, weights=o.weights, kv=o.kv).sequences
    return BatchSweep(sizes, rows, on.chips, knee, level, inference.largest_batch(m, o, on, S=S))


def _breakdown(*, model: str, where: str, weights: str, kv: str, S: int, B: int, links: bool) -> View:
    sweep = swept(model, where, weights=weights, kv=kv, S=S, links=links)
    step = inference.decode(
        models.find(model), machine(where), spread(model, where, weights, kv), batch=B, S=S
    )
    now = parts(step, links)
    return View(
        _verdict(where, B, S, now, sweep.most),
        (_parts(sweep, B, sum(now)), _rates(sweep, B, B / sum(now) / sweep.chips)),
        (
            Readout("step time", sum(now), "s"),
            Readout("tokens/s per chip", B / sum(now) / sweep.chips),
            Readout("critical batch size", sweep.knee, "", f"B = {count(round(sweep.knee))}"),
            Readout("crossover: cache = weights", sweep.level, "", f"B = {count(round(sweep.level))}"),
            Readout("largest batch that fits", sweep.most, "", pluralize(sweep.most, "sequence")),
        ),
        columns=2,
    )


def _parts(sweep: BatchSweep, B: int, total_s: float) -> Chart:
    lines = [
        Curve(name, sweep.sizes, [row[i] or float("nan") for row in sweep.rows], i)
        for i, name in enumerate(PARTS)
        if any(row[i] for row in sweep.rows)
    ]
    all_of = Curve("step", sweep.sizes, [sum(row) for row in sweep.rows], 5, dashed=True)
    here = Points("", [B], [total_s], [si(total_s, "s")], 5)
    least = max(total_s, max(map(sum, sweep.rows[:1]))) / 300
    x, y = Scale("sequences at once, B", "", "pow2", 1, _MOST), Scale("time per step", "s", "log", least)
    return Chart(x, y, (*lines, all_of, *sweep.refs(), here), title="Step time by component")


def _rates(sweep: BatchSweep, B: int, rate: float) -> Chart:
    rates = [b / sum(row) / sweep.chips for b, row in zip(sweep.sizes, sweep.rows, strict=True)]
    here = Points("", [B], [rate], [sig3(rate)], 0)
    return Chart(
        Scale("sequences at once, B", "", "pow2", 1, _MOST),
        Scale("tokens/s per chip"),
        (Curve("throughput", sweep.sizes, rates, 0), *sweep.refs(), here),
        title="Throughput per chip",
    )


def _verdict(where: str, B: int, S: int, now: tuple[float, ...], most: int) -> str:
    total = sum(now)
    first = max(range(len(now)), key=lambda i: now[i])
    step = f"With {pluralize(B, 'sequence')} of {count(S)} tokens, a step takes {si(total, 's')}"
    said = f"{step}. The largest part is {_SAID[first]}, which takes {percent(now[first] / total)} of it"
    if not most:
        return f"{said}. But not even one sequence fits in the memory of {where}."
    return (
        f"{said}. {f'But only {most:,}' if most < B else f'Up to {most:,}'} of these sequences fit in memory."
    )


BREAKDOWN = Explorer(
    key="inference_llama3.breakdown",
    title="The time of a decode step, by component",
    question="Which components of the step grow with the batch, and when do they dominate?",
    controls={
        "model": Choice("model", SERVING_MODELS, "Llama 3 70B"),
        "where": Chips("machine", SERVING_MACHINES, "TPU v5e 4x4"),
        "weights": Choice("weights", tuple(TYPES), "int8"),
        "kv": Choice("cache", tuple(TYPES), "int8"),
        "S": Slider("tokens of context", 512, 131072, 8192, "pow2"),
        "B": Slider("sequences, B", 1, _MOST, 32, "log"),
        "links": Switch("include the network", True),
    },
    view=_breakdown,
)
