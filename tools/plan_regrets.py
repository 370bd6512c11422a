"""Record the regret of every published plan: `python -m tools.plan_regrets`, about five minutes.

It writes `data/plan_regrets.csv`, a row for each question of `evidence.training.regret`, which the page on
accuracy sums up. The rows depend on the fitted efficiencies, the recorded plans and the planner.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from scalingbook_lib.calibrated.memory_margin import memory_margin
from scalingbook_lib.evidence.scores import quantile, signed
from scalingbook_lib.evidence.training import regret
from tools.environment import ROOT
from tools.published import Cells, csv_text

FILE = ROOT / "data" / "plan_regrets.csv"
WORST = 5  # runs that the page lists


def row(found: regret.Regret) -> dict[str, object]:
    """The question, the two plans, and their ratios, of the published plan over the recommended one."""
    run, published, best = found.run, found.published, found.best
    room = (1 - memory_margin(run.chip).headroom) * run.chip.hbm_bytes
    return {
        "run": run.id,
        "model": run.model.name,
        "chip": run.chip.name,
        "chips": run.chips,
        "published_plan": published.plan.summary,
        "recommended_plan": best.plan.summary,
        "regret": found.regret,
        "p80_ratio": found.objective.p80(published) / found.objective.p80(best.step),
        "published_leaves_headroom": published.memory.total <= room,
        "outside": " ".join(found.outside),
        "slower_by": _slower_by(published.terms, best.step.terms),
    }


def _slower_by(published: Mapping[str, float], best: Mapping[str, float]) -> str:
    """The term of a step in which the published plan loses most time against the recommended one."""
    return max(published, key=lambda name: published[name] - best.get(name, 0.0))


def rows(runs: Iterable[regret.TrainingRun] | None = None) -> Iterator[dict[str, object]]:
    """The rows of these runs, by default of all questions."""
    return map(row, regret.regrets(runs).found)


@cache
def recorded() -> tuple[Mapping[str, str], ...]:
    """The rows of the file."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def page_values() -> dict[str, str]:
    """The numbers that the page on accuracy quotes."""
    regrets = sorted(float(one["regret"]) for one in recorded())
    return {
        "regret_plans": str(len(regrets)),
        "regret_median": signed(quantile(regrets, 0.5), 0),
        "regret_p90": signed(quantile(regrets, 0.9), 0),
        "regret_p10": signed(quantile(regrets, 0.1), 0),
        "regret_worst": signed(regrets[-1], 0),
        "regret_cause": max(recorded(), key=lambda one: float(one["regret"]))["slower_by"],
    }


def worst() -> Cells:
    """The published plans with the largest regret, beside what is recommended instead."""
    for one in sorted(recorded(), key=lambda one: -float(one["regret"]))[:WORST]:
        asked = f"{one['model']} on {int(one['chips']):,} {one['chip']}"
        plans = one["published_plan"], one["recommended_plan"]
        yield asked, *plans, signed(float(one["regret"]), 0), one["slower_by"]


if __name__ == "__main__":
    FILE.write_text(csv_text(rows()), encoding="utf-8")
