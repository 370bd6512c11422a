"""Explorer of all plans for a machine: step time, or the reason why a plan is not possible."""

from dataclasses import replace

from scalingbook_book.reader.explorers.parts import (
    TRAINING_MACHINES,
    Bars,
    Cell,
    Chips,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    Slider,
    Switch,
    View,
    divisors,
    join_and,
    machine,
    word,
)
from scalingbook_lib import models, training
from scalingbook_lib.units import count, percent, si

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Gemma-2 27B", "Qwen3 32B")
BATCHES = ("256", "512", "1024", "1120", "2048", "2240", "4096", "4480", "8192", "16384")
REST = {"context (CP)": "cp", "stages (PP)": "pp", "replicas (DP)": "dp"}
_MOST_TP = 32


def judged(
    name: str, where: str, *, batch: int, T: int, rest: str, base: training.Plan
) -> dict[tuple[int, int], training.PlanEvaluation]:
    """Every TP degree and degree of the third scheme that the chips allow; FSDP takes what is left."""
    on = machine(where)
    case = training.TrainingCase(models.find(name), on, batch=batch, T=T)
    found = {}
    for tp in divisors(on.chips, _MOST_TP):
        for ways in _rest_ways(on.chips):
            if on.chips % (tp * ways) == 0:
                found[tp, ways] = training.evaluate(case, _plan(base, rest, tp, ways, on.chips))
    return found


def _rest_ways(chips: int) -> list[int]:
    """Powers of two, and the odd factors of a torus with odd sides."""
    all_of = divisors(chips, 35)
    return [d for d in all_of if d & (d - 1) == 0 and d <= 16] + [d for d in all_of if d % 2 and d > 1]


def _plan(base: training.Plan, rest: str, tp: int, ways: int, chips: int) -> training.Plan:
    return replace(base, tp=tp, fsdp=chips // (tp * ways), **{REST[rest]: ways})


def _split(
    *, name: str, where: str, batch: str, T: int, rest: str, remat: str, zero: str, hidden: bool, matmul: bool
) -> View:
    base = training.Plan(
        remat=remat, zero=int(zero), overlap="full" if hidden else "none", collective_matmul=matmul
    )
    found = judged(name, where, batch=int(batch), T=T, rest=rest, base=base)
    legal = {at: one for at, one in found.items() if not one.why}
    table = _table(found, legal, rest, machine(where).chips)
    if not legal:
        return View(_none(found, where), (table,), (Readout("plans", len(found)),))
    best = min(legal, key=lambda at: (legal[at].step_s, at))
    plan = _plan(base, rest, *best, machine(where).chips)
    step = training.step(models.find(name), machine(where), plan, batch=int(batch), T=T)
    bars = Bars(
        Scale("time per step", "s"),
        list(step.terms),
        (Series("time", list(step.terms.values()), 0),),
        title="The fastest plan, term by term",
    )
    return View(
        _verdict(found, legal, step),
        (table, bars),
        (
            Readout("plans", len(found)),
            Readout("possible plans", len(legal)),
            Readout("fastest step", step.total_s, "s"),
            Readout.percent("its MFU, at most", step.mfu),
            Readout("its memory per chip", step.memory.total, "B"),
            Readout("tokens per chip", step.tokens / step.chips, "", count(round(step.tokens / step.chips))),
        ),
    )


def _table(
    found: dict[tuple[int, int], training.PlanEvaluation],
    legal: dict[tuple[int, int], training.PlanEvaluation],
    rest: str,
    chips: int,
) -> Grid:
    rows = sorted({tp for tp, _ in found})
    columns = sorted({ways for _, ways in found})
    best = min((one.step_s for one in legal.values()), default=1.0)
    cells = [[_cell(found.get((tp, w)), tp, w, chips, best) for w in columns] for tp in rows]
    short = REST[rest].upper()
    title = "Step time, or why the plan is not possible"
    return Grid(title, [f"TP {tp}" for tp in rows], [f"{short} {w}" for w in columns], cells)


def _cell(one: training.PlanEvaluation | None, tp: int, ways: int, chips: int, best: float) -> Cell:
    if one is None:
        return Cell("", None, f"{tp} · {ways} does not divide {chips:,} chips")
    note = f"FSDP {chips // (tp * ways):,}: "
    if one.why:
        return Cell(word(one.why[0]), 1, note + "; ".join(one.why), level=0.25)
    color = 0 if one.step_s == best else 2
    return Cell(
        si(one.step_s, "s"), color, f"{note}{si(one.memory_bytes, 'B')} per chip", level=best / one.step_s
    )


def _none(found: dict[tuple[int, int], training.PlanEvaluation], where: str) -> str:
    why = [word(one.why[0]) for one in found.values()]
    most = max(set(why), key=lambda w: (why.count(w), w))
    return (
        f"None of the {len(found)} plans for {where} is possible; for {why.count(most)} of them, the "
        f"reason is the {most}. Try a different batch size, more rematerialization, or another third "
        "scheme."
    )


def _verdict(
    found: dict[tuple[int, int], training.PlanEvaluation],
    legal: dict[tuple[int, int], training.PlanEvaluation],
    step: training.TrainingStep,
) -> str:
    slowest = max(one.step_s for one in legal.values())
    p = step.plan
    said = f"{len(legal)} of {len(found)} plans are possible. The fastest is FSDP {p.fsdp:,}"
    also = [f"{n} {w}" for n, w in (("TP", p.tp), ("CP", p.cp), ("PP", p.pp), ("DP", p.dp)) if w > 1]
    said += f" with {join_and(also)}" if also else " alone"
    said += f": {si(step.total_s, 's')} per step at peak rates, {percent(step.mfu)} MFU"
    if len(legal) > 1:
        said += f". The slowest takes {slowest / step.total_s:.3g} times as long"
    loses = (
        f"The largest overhead is {step.largest_overhead}"
        if step.largest_overhead
        else "There is no overhead: only compute takes time"
    )
    return f"{said}. {loses}."


SPLIT = Explorer(
    key="training.split",
    title="All plans for one machine",
    question="Which plans are possible for this model, batch and machine, and which is the fastest?",
    controls={
        "name": Choice("model", MODELS, "Llama 3 70B"),
        "where": Chips("machine", TRAINING_MACHINES, "TPU v5p 16x16x16"),
        "batch": Choice("global batch, sequences", BATCHES, "1024"),
        "T": Slider("sequence length", 1024, 131072, 4096, "pow2"),
        "rest": Choice("third scheme, with FSDP and TP", tuple(REST), "context (CP)"),
        "remat": Choice("rematerialization", ("none", "selective", "full"), "selective"),
        "zero": Choice("ZeRO stage", ("1", "2", "3"), "3"),
        "hidden": Switch("collectives overlap with compute", True),
        "matmul": Switch("TP overlaps too (collective matmul)", False),
    },
    view=_split,
)
