"""The plans of published training runs: their degrees, and which of them are runs of a similar shape.

`tools.measured_plans` records them from the published runs, so that a search knows which plans were ever
measured. Runs are of a similar shape if both models are dense or both have experts, both train all weights or
both have frozen weights beside adapters, parameters differ by at most a factor of 3, chips by 4, and the
sequence length by 2. Chapter: Training Llama 3.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import log2
from typing import Any

from scalingbook_lib.calibrated import records
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan
from scalingbook_lib.training.plan import WAYS
from scalingbook_lib.units import Result, count, percent

DEGREES = ("tp", "cp", "pp", "ep")
PARAMS_WITHIN, CHIPS_WITHIN, LENGTHS_WITHIN = 3.0, 4.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a run trains, on how many chips, at which sequence length.

    `frozen` weights are not trained, as beside the adapters of LoRA.
    """

    params: int
    experts: bool
    chips: int
    T: int
    frozen: bool = False

    @classmethod
    def of(cls, model: Transformer, chips: int, T: int, frozen: bool = False) -> "Shape":
        """The shape of a question."""
        return cls(params=model.params, experts=model.experts is not None, chips=chips, T=T, frozen=frozen)

    def similar(self, other: "Shape") -> bool:
        """Whether two shapes are alike enough for the degrees of one to say something about the other."""
        return (
            self.experts == other.experts
            and self.frozen == other.frozen
            and _within(self.params, other.params, PARAMS_WITHIN)
            and _within(self.chips, other.chips, CHIPS_WITHIN)
            and _within(self.T, other.T, LENGTHS_WITHIN)
        )

    def distance(self, other: "Shape") -> float:
        """Squared doublings between two shapes; a dense model is far from one with experts."""
        pairs = (self.params, other.params), (self.chips, other.chips), (self.T, other.T)
        return sum(log2(a / b) ** 2 for a, b in pairs) + 100 * (self.experts != other.experts)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPlan(Result):
    """The plan of a published run, with what it trained and the MFU that it reached."""

    id: str
    model: str
    chip: str
    shape: Shape
    mfu: float
    plan: dict[str, Any]  # the fields of `training.Plan` that differ from its defaults, without types

    def degree(self, name: str) -> int:
        """A field of the plan, or its default."""
        return self.plan.get(name, 1)

    def on(self, chips: int, pods: int = 1) -> Plan:
        """The plan on another number of chips per pod: its data ranks take what the other degrees leave."""
        inside = self.degree("tp") * self.degree("cp") * self.degree("pp")
        fields: dict[str, Any] = self.plan | {"fsdp": max(chips // inside, 1), "dp": 1, "dcn": pods}
        return Plan(**fields)

    @property
    def degrees(self) -> str:
        """The degrees of parallelism above 1, as in 'TP 8, PP 16'."""
        told = (f"{WAYS[name]} {self.degree(name)}" for name in DEGREES if self.degree(name) > 1)
        return ", ".join(told) or "FSDP"

    def __str__(self) -> str:
        return (
            f"{self.model} on {self.shape.chips:,} {self.chip} at {count(self.shape.T)} tokens with "
            f"{self.degrees}, MFU {percent(self.mfu)} ({self.id})"
        )


type Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MeasuredRanges:
    """The least and the largest degree of each kind among published runs of a similar shape."""

    runs: int
    degrees: dict[str, Range]

    def doublings(self, **degrees: int) -> float:
        """How far degrees lie outside the measured ranges: squared doublings, summed over the kinds."""
        return sum(
            _doublings(n, *self.degrees[name]) ** 2 for name, n in degrees.items() if name in self.degrees
        )


@cache
def measured_plans() -> tuple[MeasuredPlan, ...]:
    """Every distinct plan of a published run."""
    return tuple(
        MeasuredPlan(**row | {"shape": Shape(**row["shape"])}) for row in records.record("measured_plans")
    )


def ranges(shape: Shape, among: Iterable[MeasuredPlan] | None = None) -> MeasuredRanges:
    """The measured ranges of runs of a similar shape; no range where there is none."""
    found = [one for one in (measured_plans() if among is None else among) if shape.similar(one.shape)]
    names = (*DEGREES, "microbatch") if found else ()
    return MeasuredRanges(
        len(found), {name: (min(d), max(d)) for name in names if (d := [one.degree(name) for one in found])}
    )


def by_nearness(shape: Shape, plan: Plan, chip: str = "") -> list[MeasuredPlan]:
    """The published plans, the closest in shape and degrees first; of equals, that on the same chip first.

    Runs of this very shape on the same chip precede all others. All train all weights if the shape does, or
    adapters beside frozen weights: a step of the two differs by a third of its matmuls and by the optimizer's
    state.
    """

    def distance(one: MeasuredPlan) -> tuple[bool, float, bool, str]:
        degrees = sum(log2(getattr(plan, name) / one.degree(name)) ** 2 for name in DEGREES)
        differs = one.shape != shape or one.chip != chip
        return (differs, 2 * shape.distance(one.shape) + degrees, one.chip != chip, one.id)

    return sorted((one for one in measured_plans() if one.shape.frozen == shape.frozen), key=distance)


def _within(a: float, b: float, factor: float) -> bool:
    return b / factor <= a <= b * factor


def _doublings(n: int, least: int, most: int) -> float:
    return max(log2(n / most), log2(least / n), 0.0)
