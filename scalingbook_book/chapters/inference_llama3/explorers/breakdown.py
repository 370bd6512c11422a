"""Where does a decode step's time go as the batch grows?"""

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

PARTS = ("weights", "arithmetic", "cache", "activations", "links")
_OF = {"weights": 0, "matmul": 1, "attention": 1, "KV": 2, "activations": 3}
_MOST = 1024


def parts(step: inference.InferenceStep, links: bool) -> tuple[float, ...]:
    """Seconds by `PARTS`; without links what the rule counts."""
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
        named = (("B_crit", self.knee), ("cache = weights", self.level), ("memory full", self.most))
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
            Readout("the step", sum(now), "s"),
            Readout("tokens/s of a chip", B / sum(now) / sweep.chips),
            Readout("arithmetic takes over", sweep.knee, "", f"at B = {count(round(sweep.knee))}"),
            Readout(
                "the cache outweighs the weights", sweep.level, "", f"at B = {count(round(sweep.level))}"
            ),
            Readout("the memory holds", sweep.most, "", pluralize(sweep.most, "sequence")),
        ),
        columns=2,
    )


def _parts(sweep: BatchSweep, B: int, total_s: float) -> Chart:
    lines = [
        Curve(name, sweep.sizes, [row[i] or float("nan") for row in sweep.rows], i)
        for i, name in enumerate(PARTS)
        if any(row[i] for row in sweep.rows)
    ]
    all_of = Curve("the step", sweep.sizes, [sum(row) for row in sweep.rows], 5, dashed=True)
    here = Points("", [B], [total_s], [si(total_s, "s")], 5)
    least = max(total_s, max(map(sum, sweep.rows[:1]))) / 300
    x, y = Scale("sequences at once, B", "", "pow2", 1, _MOST), Scale("time in a step", "s", "log", least)
    return Chart(x, y, (*lines, all_of, *sweep.refs(), here), title="Where the step's time goes")


def _rates(sweep: BatchSweep, B: int, rate: float) -> Chart:
    rates = [b / sum(row) / sweep.chips for b, row in zip(sweep.sizes, sweep.rows, strict=True)]
    here = Points("", [B], [rate], [sig3(rate)], 0)
    return Chart(
        Scale("sequences at once, B", "", "pow2", 1, _MOST),
        Scale("tokens/s of each chip"),
        (Curve("throughput", sweep.sizes, rates, 0), *sweep.refs(), here),
        title="What it buys",
    )


def _verdict(where: str, B: int, S: int, now: tuple[float, ...], most: int) -> str:
    total = sum(now)
    first = max(range(len(now)), key=lambda i: now[i])
    step = f"{pluralize(B, 'sequence')} of {count(S)} tokens: {si(total, 's')} a step"
    said = f"{step}, {percent(now[first] / total)} of it {PARTS[first]}"
    if not most:
        return f"{said}; but {where} has no room for a single one."
    return f"{said}. The memory holds {most:,}{f', not {B:,}' if most < B else ''}."


BREAKDOWN = Explorer(
    key="inference_llama3.breakdown",
    title="A decode step, part by part",
    question="Which part of the step grows with the batch, and when does it take over?",
    controls={
        "model": Choice("model", SERVING_MODELS, "LLaMA-3 70B"),
        "where": Chips("machine", SERVING_MACHINES, "TPU v5e 4x4"),
        "weights": Choice("weights", tuple(TYPES), "int8"),
        "kv": Choice("cache", tuple(TYPES), "int8"),
        "S": Slider("tokens of context", 512, 131072, 8192, "pow2"),
        "B": Slider("sequences, B", 1, _MOST, 32, "log"),
        "links": Switch("count the links", True),
    },
    view=_breakdown,
)
