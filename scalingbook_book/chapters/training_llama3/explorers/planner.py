"""Explorer of the planner's fastest plan, searched live over a few stages, replicas and schedules."""

from functools import lru_cache
from typing import Any

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
    View,
    join_and,
    machine,
)
from scalingbook_lib import models, planner
from scalingbook_lib.units import count_in_words, percent, si

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B", "Gemma-2 27B")
BATCHES = ("256", "512", "1024", "2048", "2240", "4096", "4480", "8192", "16384")
ANY = "any"
_TP, _CP, _PP = (1, 2, 4, 8, 16), (1, 2, 4, 8, 16), (1, 2, 4, 8, 16)
_SHOWN = 6
_KEPT = {"none": "all saved", "selective": "matmuls saved", "full": "inputs saved"}


@lru_cache(maxsize=64)
def ranked(model: str, where: str, batch: int, T: int, fixed: tuple[tuple[str, Any], ...]) -> planner.Ranking:
    """The ranking with these fields fixed; the others over a few values each."""
    on = machine(where)
    odd = on.chips // (on.chips & -on.chips)  # copies take the odd sides of a torus
    given = dict(fixed)
    values = {
        "tp": _TP,
        "cp": _CP,
        "pp": _PP,
        "dp": tuple(sorted({1, odd})),
        "schedule": ("1f1b",),
        "microbatch": (1,),
    }
    tried = {name: some for name, some in values.items() if name not in given}
    return planner.plans(models.find(model), on, batch=batch, T=T, fixed=given, tried=tried, keep=_SHOWN)


def _planner(*, model: str, where: str, batch: str, T: int, tp: str, cp: str, pp: str, remat: str) -> View:
    ways: dict[str, Any] = {n: int(v) for n, v in (("tp", tp), ("cp", cp), ("pp", pp)) if v != ANY}
    ways |= {"remat": remat} if remat != ANY else {}
    found = ranked(model, where, int(batch), T, tuple(ways.items()))
    if not found.spreads:
        fixed = " · ".join(f"{name.upper()} {n}" for name, n in ways.items() if name != "remat")
        raise ValueError(
            f"degrees {fixed} do not divide the {machine(where).chips:,} chips of {where}; lower one of them"
        )
    if not found.best:
        return View(_none(found), (_refused(found),), (Readout("combinations of degrees", found.spreads),))
    step = found.winner.step
    return View(
        _verdict(found),
        (_table(found), _terms(found), *([_refused(found)] if found.rejected else [])),
        (
            Readout("combinations of degrees", found.spreads),
            Readout("valid combinations", found.legal),
            Readout("plans timed", found.judged),
            Readout("best step", step.total_s, "s"),
            Readout.percent("MFU ceiling", step.mfu),
            Readout("tokens/s", step.tokens_per_s, "", count_in_words(step.tokens_per_s)),
        ),
    )


def _table(found: planner.Ranking) -> Grid:
    best = found.winner.step.total_s
    cells = [_row(one, best) for one in found.best]
    heads = ("degrees", "ZeRO,\nsaved", "step", "per chip")
    return Grid("The best plans", [f"{i + 1}" for i in range(len(cells))], heads, cells)


def _row(one: planner.Ranked, best: float) -> list[Cell]:
    p, s = one.plan, one.step
    also = [f"{name} {n}" for name, n in (("TP", p.tp), ("CP", p.cp), ("PP", p.pp), ("DP", p.dp)) if n > 1]
    level = best / s.total_s
    zero = f"ZeRO-{p.zero}" if p.fsdp * p.cp > 1 else "no ZeRO"
    texts = (
        f"FSDP {p.fsdp:,}\n{', '.join(also) or 'alone'}",
        f"{zero}\n{_KEPT[p.remat]}",
        f"{si(s.total_s, 's')}\n{percent(s.mfu)} MFU",
        f"{si(s.memory.total, 'B')}\n ",
    )
    return [Cell(text, 2, str(s), level=level) for text in texts]


def _terms(found: planner.Ranking) -> Bars:
    """The best plan and the best on another mesh, term by term."""
    steps = {"best plan": found.winner.step}
    if len(found.best) > 1:
        steps["best plan on another mesh"] = found.runner_up.step
    names = list(dict.fromkeys(name for step in steps.values() for name in step.terms))
    series = [
        Series(label, [step.terms.get(name, 0.0) for name in names], color)
        for color, (label, step) in enumerate(steps.items())
    ]
    return Bars(Scale("time per step", "s"), names, series)


def _refused(found: planner.Ranking) -> Bars:
    kinds = found.rejected[:6]
    return Bars(
        Scale("combinations rejected", ""),
        [one.kind for one in kinds],
        (Series("rejected", [one.count for one in kinds], 5),),
        title="Why other combinations are rejected",
    )


def _none(found: planner.Ranking) -> str:
    first = found.rejected[0]
    fail = f"{first.count} of {found.spreads} combinations fail because of {first.kind}"
    return f"No plan is valid. {fail}: {first.why}."


def _verdict(found: planner.Ranking) -> str:
    p, step = found.winner.plan, found.winner.step
    ways = (("TP", p.tp), ("CP", p.cp), ("PP", p.pp), ("DP", p.dp))
    also = [f"{name} {n}" for name, n in ways if n > 1]
    with_ = f" with {join_and(also)}" if also else ""
    said = f"FSDP {p.fsdp:,}{with_} is the fastest plan: {si(step.total_s, 's')} per step at peak rates."
    if len(found.best) > 1:
        lost = found.runner_up.step.total_s / step.total_s - 1
        said += (
            f" The best plan on another mesh takes {percent(lost)} longer."
            if lost > 1e-3
            else " Other meshes tie."
        )
    return f"{said} The largest loss is {step.largest_overhead}."


PLANNER = Explorer(
    key="training_llama3.planner",
    title="The planner: search for the best plan",
    question="What is the fastest way to divide this model among these chips, and why are other ways "
    "rejected?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "where": Chips("machine", TRAINING_MACHINES, "TPU v5p 16x16x16"),
        "batch": Choice("sequences per step", BATCHES, "1024"),
        "T": Slider("tokens per sequence", 1024, 131072, 4096, "pow2"),
        "tp": Choice("TP", (ANY, *map(str, _TP)), ANY),
        "cp": Choice("CP", (ANY, *map(str, _CP)), ANY),
        "pp": Choice("PP", (ANY, *map(str, _PP)), ANY),
        "remat": Choice("rematerialization", (ANY, "none", "selective", "full"), ANY),
    },
    view=_planner,
)
