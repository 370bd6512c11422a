"""Explorer of the uncertainty of a step when each efficiency is known to a few percentage points."""

from dataclasses import replace
from typing import Any

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Readout,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib import calibrated, models, training
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.units import percent, si

CASES = {  # model, machine, plan, sequences, tokens of each
    "Falcon 40B, 256 v6e": (
        "Falcon 40B",
        chips.Slice.of(chips.V6E, "16x16"),
        training.Plan(fsdp=256, remat="selective"),
        512,
        2048,
    ),
    "Llama 3 70B, 4,096 v5p": (
        "Llama 3 70B",
        chips.Slice.of(chips.V5P, "16x16x16"),
        training.Plan(fsdp=1024, cp=4),
        1024,
        4096,
    ),
    "Llama 3 70B, 512 H100": (
        "Llama 3 70B",
        Cluster.of(chips.H100, 512),
        training.Plan(fsdp=64, tp=8, zero=1, remat="selective"),
        512,
        4096,
    ),
}
SHARES: tuple[str, ...] = ("matmuls", "memory", "links", "overlap")
_FIELDS = {
    "matmuls": ("matmul", "head"),
    "memory": ("memory",),
    "links": ("torus", "domain", "network"),
    "overlap": ("overlap",),
}
_PARTS = ("compute", "memory", "exposed communication", "the rest")


def step(case: str, given: tuple[float, ...] | None) -> training.TrainingStep:
    """The step at these efficiencies, in percent and in the order of `SHARES`; None: all at the peak."""
    name, machine, plan, batch, T = CASES[case]
    efficiency = training.PEAK if given is None else _efficiency(machine.chip, given)
    return training.step(models.find(name), machine, plan, batch=batch, T=T, efficiency=efficiency)


def _efficiency(chip: chips.Chip, given: tuple[float, ...]) -> training.TrainingEfficiency:
    shares = dict(zip(SHARES, given, strict=True))
    fields: dict[str, Any] = {field: shares[name] / 100 for name, found in _FIELDS.items() for field in found}
    return replace(calibrated.training(chip), **fields)


def _moved(given: tuple[float, ...], points: float, only: str = "") -> tuple[float, ...]:
    """All efficiencies, or only one, changed by so many points and kept between 5% and 100%."""
    return tuple(
        min(max(value + points * (only in ("", name)), 5.0), 100.0)
        for name, value in zip(SHARES, given, strict=True)
    )


def parts(found: training.TrainingStep) -> tuple[float, ...]:
    """Seconds by `_PARTS`; they add up to the step."""
    waits = sum(found.exposed.values())
    arithmetic, memory = found.terms["compute"], found.terms.get("HBM traffic", 0.0)
    return arithmetic, memory, waits, max(found.total_s - arithmetic - memory - waits, 0.0)


def _errors(
    *, case: str, products: float, memory: float, links: float, overlap: float, points: float
) -> View:
    given = (products, memory, links, overlap)
    rows = {
        "at peak rates": step(case, None),
        "all higher": step(case, _moved(given, points)),
        "as set": step(case, given),
        "all lower": step(case, _moved(given, -points)),
    }
    low, mid, high = (found.total_s for found in list(rows.values())[1:])
    return View(
        f"{case}: {si(mid, 's')} per step, which is {percent(rows['as set'].mfu)} MFU. If every "
        f"efficiency is known to within {points:.0f} percentage points, the step takes between "
        f"{si(low, 's')} and {si(high, 's')}.",
        (_steps(rows), _each(case, given, points)),
        (
            Readout("step", mid, "s"),
            Readout("shortest step", low, "s"),
            Readout("longest step", high, "s"),
            Readout("step at peak rates", rows["at peak rates"].total_s, "s"),
            Readout("longest over shortest", high / low),
        ),
        columns=2,
    )


def _steps(rows: dict[str, training.TrainingStep]) -> Bars:
    found = [parts(one) for one in rows.values()]
    series = [Series(name, [row[i] for row in found], i) for i, name in enumerate(_PARTS)]
    return Bars(
        Scale("time of a step", "s"), list(rows), series, stacked=True, title="The step and its interval"
    )


def spans(case: str, given: tuple[float, ...], points: float) -> dict[str, float]:
    """Seconds between the shortest and the longest step if a single efficiency is uncertain."""
    return {
        name: step(case, _moved(given, -points, name)).total_s
        - step(case, _moved(given, points, name)).total_s
        for name in SHARES
    }


def _each(case: str, given: tuple[float, ...], points: float) -> Bars:
    wide = spans(case, given, points)
    series = [Series("range from shortest to longest", [max(s, 0.0) for s in wide.values()], 5)]
    return Bars(
        Scale("width of the interval", "s"), list(wide), series, title="If only one efficiency is uncertain"
    )


ERRORS = Explorer(
    key="conclusion.errors",
    title="How uncertain is a predicted step?",
    question="Which efficiency do you have to know most accurately?",
    controls={
        "case": Choice("train", tuple(CASES), "Falcon 40B, 256 v6e"),
        "products": Slider("matmuls reach", 20.0, 100.0, 67.0, unit="%", step=1.0),
        "memory": Slider("memory reaches", 20.0, 100.0, 91.0, unit="%", step=1.0),
        "links": Slider("links reach", 20.0, 100.0, 95.0, unit="%", step=1.0),
        "overlap": Slider("communication hidden", 5.0, 100.0, 88.0, unit="%", step=1.0),
        "points": Slider("each is known to within", 0.0, 20.0, 10.0, unit="points", step=1.0),
    },
    view=_errors,
)
