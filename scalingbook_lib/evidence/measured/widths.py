"""Losses of the laboratory's small Transformer at several widths and learning rates, with and without muP.

From `evidence/data/own_widths.csv`, which `python -m scalingbook_lab.train.widths` writes: two layers, 100
steps of 8 sequences of 32 bytes, Adam, and the mean loss of the last 20 steps. Chapter: Scaling laws.

>>> [round(sweep.best_rate, 4) for sweep in sweeps(mup=False)]
[0.0053, 0.0028, 0.0014]
"""

from dataclasses import dataclass
from functools import cache
from statistics import mean

from scalingbook_lib.evidence import resources
from scalingbook_lib.units import Result

BASE = 64  # the width at which both parametrizations are the same program


@dataclass(frozen=True, slots=True)
class Sweep(Result):
    """The losses of one model by learning rate, each the mean over the seeds."""

    D: int
    mup: bool
    rates: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def lowest_rate(self) -> float:
        """The learning rate that was tried with the lowest loss."""
        return self.rates[self._lowest]

    @property
    def best_rate(self) -> float:
        """The learning rate at the vertex of a parabola in log(rate) through the three lowest losses."""
        before, lowest, after = self.losses[self._lowest - 1 : self._lowest + 2]
        # the learning rates that were tried are powers of two
        octaves = (before - after) / (before - 2 * lowest + after) / 2
        return self.lowest_rate * 2**octaves

    @property
    def _lowest(self) -> int:
        return self.losses.index(min(self.losses))

    def loss_at(self, rate: float) -> float:
        """The loss at one of the learning rates."""
        return self.losses[self.rates.index(rate)]

    def __str__(self) -> str:
        named = "muP" if self.mup else "standard"
        lowest = min(self.losses)
        return f"width {self.D}, {named}: best learning rate {self.best_rate:.2g}, lowest loss {lowest:.3f}"


@cache
def sweeps(*, mup: bool) -> tuple[Sweep, ...]:
    """The sweeps of one parametrization, from the narrowest model to the widest."""
    found: dict[int, dict[int, list[float]]] = {}
    for row in resources.rows("own_widths"):
        if int(row["D"]) == BASE or bool(int(row["muP"])) == mup:
            of_width = found.setdefault(int(row["D"]), {})
            of_width.setdefault(int(row["log2_rate"]), []).append(float(row["loss"]))
    return tuple(
        Sweep(
            D, mup, tuple(2.0**e for e in sorted(of_rate)), tuple(mean(of_rate[e]) for e in sorted(of_rate))
        )
        for D, of_rate in sorted(found.items())
    )
