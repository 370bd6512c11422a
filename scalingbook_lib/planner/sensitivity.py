"""The best plan on a machine with faster links, memory or compute, found by another search.

Chapter: Training Llama 3.
"""

from dataclasses import dataclass, replace
from typing import Any

from scalingbook_lib import training
from scalingbook_lib.machines import Chip, Machine, Slice
from scalingbook_lib.planner.ranking import Ranked, Ranking
from scalingbook_lib.planner.search import plans
from scalingbook_lib.units import Result, percent, si

WHAT = ("compute", "HBM", "HBM capacity", "links", "network")
_RATES = {
    "HBM": ("hbm_bytes_per_s",),
    "HBM capacity": ("hbm_bytes",),
    "links": ("link_bytes_per_s",),
    "network": ("dcn_bytes_per_s",),
}


@dataclass(frozen=True, slots=True)
class Change(Result):
    """One component `factor` times as fast (or large): the step of the same plan, and the new best plan."""

    what: str
    factor: float
    before_s: float
    same_s: float
    then: Ranked

    @property
    def gain(self) -> float:
        """The speedup of the step with the new best plan."""
        return self.before_s / self.then.step.total_s

    def __str__(self) -> str:
        same_gain = self.before_s / self.same_s
        same = f" ({percent(1 - 1 / same_gain)} shorter with the same plan)"
        other = same if self.gain > same_gain * (1 + 1e-9) else ""
        return (
            f"{self.factor:g}× {self.what}: step time {si(self.then.step.total_s, 's')}, "
            f"{percent(1 - 1 / self.gain)} shorter{other}"
        )


@dataclass(frozen=True, slots=True)
class Sensitivity(Result):
    """A ranking, and the effect of each change on its best plan; the most helpful change comes first."""

    ranking: Ranking
    changes: tuple[Change, ...]

    def __getitem__(self, what: str) -> Change:
        for change in self.changes:
            if change.what == what:
                return change
        raise KeyError(f"no change of {what!r}; there are {', '.join(c.what for c in self.changes)}")

    def __str__(self) -> str:
        now = self.ranking.winner.step.total_s
        return "\n".join((f"Step time now {si(now, 's')}; with:", *map(str, self.changes)))


def sensitivity(ranking: Ranking, *, factor: float = 2.0, what: tuple[str, ...] = WHAT) -> Sensitivity:
    """Search again for each component in `what`, made `factor` times as fast (or HBM as large)."""
    changes = [_change(ranking, name, factor) for name in what if _has(ranking, name)]
    return Sensitivity(ranking, tuple(sorted(changes, key=lambda c: (-c.gain, c.what))))


def faster(machine: Machine, what: str, factor: float) -> Machine:
    """Return the machine with one of its rates (or its HBM capacity) multiplied by `factor`."""
    if not factor > 0:
        raise ValueError(f"factor={factor}: write a positive number, as 2 for twice as fast")
    if what not in WHAT:
        raise ValueError(f"{what!r} is none of {', '.join(WHAT)}")
    chip = _scaled(machine.chip, what, factor)
    if isinstance(machine, Slice):
        return replace(machine, chip=chip)
    nic = machine.nic_bytes_per_s
    # a cluster has its cards' rate apart from its chip's
    return replace(machine, chip=chip, nic_bytes_per_s=nic * factor if nic and what == "network" else nic)


def _scaled(chip: Chip, what: str, factor: float) -> Chip:
    """Return the chip with its known rates of `what` scaled; "compute" is all matrix and vector rates."""
    math = [name for name in chip.figures() if name.endswith(("flops_per_s", "ops_per_s"))]
    names = math if what == "compute" else _RATES[what]
    more = {name: n * factor for name in names if (n := getattr(chip, name)) and isinstance(n, float | int)}
    return replace(chip, **more)


def _change(ranking: Ranking, what: str, factor: float) -> Change:
    r = ranking
    machine = faster(r.machine, what, factor)
    again: dict[str, Any] = {"batch": r.batch, "T": r.T, "efficiency": r.efficiency}
    how: dict[str, Any] = {"fixed": r.fixed, "tried": r.tried, "headroom": r.headroom}
    then = plans(r.model, machine, pods=r.pods, keep=1, objective=r.objective, **how, **again)
    # what the change brings without a new plan
    same = training.step(r.model, machine, r.winner.plan, **again)
    return Change(what, factor, r.winner.step.total_s, same.total_s, then.winner)


def _has(ranking: Ranking, what: str) -> bool:
    """Return whether the machine has that component, with a known rate."""
    if what != "network":
        return True
    machine = ranking.machine
    # a torus uses the network only between pods
    outside = ranking.pods > 1 if isinstance(machine, Slice) else machine.nodes > 1
    return outside and machine.chip.dcn_bytes_per_s is not None
