"""How far off is alpha plus bytes over a bandwidth? The model beside published times of NCCL."""

import math
from collections.abc import Sequence
from dataclasses import replace

from scalingbook_lib import collectives
from scalingbook_lib.evidence.measured import COLLECTIVES, RUNS, CollectiveFit, CollectiveRun, CollectiveTime
from scalingbook_lib.evidence.measured.collectives import LARGE, bound_s, classed
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.reader.explorers.parts import (
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
)
from scalingbook_lib.units import binary, percent, si

_SWEPT = tuple(run for run in RUNS if len(run.sizes) > 1)
_SYSTEMS = tuple(dict.fromkeys(run.system for run in _SWEPT))
_FORMS = ("all-gather", "reduce-scatter", "all-to-all", "all-reduce")


def _measured(*, system: str, collective: str, n: str, nbytes: int, alpha: float, efficiency: float) -> View:
    run = _nearest(system, collective, int(n))
    fit = COLLECTIVES.fits[run.chip.name, classed(run)]
    fit = replace(fit, alpha_s=alpha * fit.alpha_s, efficiency=efficiency * fit.efficiency)
    points = _points(run, fit)
    now = min(points, key=lambda p: abs(math.log(p.size / nbytes)))
    half = fit.half_speed_s / bound_s(run, 1)
    every = Summary.of("all", [p.error for p in points])
    large = Summary.of("large", [p.error for p in points if p.size >= LARGE])
    return View(
        _verdict(run, collective, now, half, nbytes),
        (_times(points, now, half), _rates(points, now, half), _errors(points, now, half)),
        (
            Readout("measured", now.seconds, "s"),
            Readout("model", now.model_s, "s"),
            Readout("error", now.error, "", _signed(now.error)),
            Readout("alpha", fit.alpha_s, "s"),
            Readout.percent("share of the peak", fit.efficiency),
            Readout("half-speed size", half, "B", binary(half, digits=3)),
            Readout.percent("median error, all sizes", every.median),
            Readout.percent("from 64 MiB", large.median),
        ),
        columns=2,
    )


def _nearest(system: str, collective: str, n: int) -> CollectiveRun:
    """The published run of that system that is nearest to what was asked for."""
    own = [run for run in _SWEPT if run.system == system]
    alike = [run for run in own if run.collective == collective] or own
    return min(alike, key=lambda run: abs(math.log(run.n / n)))


def _points(run: CollectiveRun, fit: CollectiveFit) -> list[CollectiveTime]:
    return [
        CollectiveTime(run, size, us / 1e6, bound_s(run, size), fit)
        for size, us in zip(run.sizes, run.microseconds, strict=True)
    ]


# Charts over the size


def _times(points: Sequence[CollectiveTime], now: CollectiveTime, half: float) -> Chart:
    sizes = [p.size for p in points]
    first, *_, last = points
    return Chart(
        _axis(points),
        Scale("time", "s", "log", min(p.seconds for p in points) / 4),
        (
            RefLine("half speed", half),
            Curve(
                "bytes at the peak", [first.size, last.size], [first.bound_s, last.bound_s], 5, dashed=True
            ),
            Curve("model", sizes, [p.model_s for p in points], 0),
            *_dots(points, now, [p.seconds for p in points], si(now.seconds, "s")),
        ),
    )


def _rates(points: Sequence[CollectiveTime], now: CollectiveTime, half: float) -> Chart:
    seen = [_bus(p, p.seconds) for p in points]
    return Chart(
        _axis(points),
        Scale("bus bandwidth", "B/s"),
        (
            RefLine("half speed", half),
            RefLine("bound at the peak", _bus(now, now.bound_s), axis="y"),
            Curve("model", [p.size for p in points], [_bus(p, p.model_s) for p in points], 0),
            *_dots(points, now, seen, si(_bus(now, now.seconds), "B/s")),
        ),
    )


def _errors(points: Sequence[CollectiveTime], now: CollectiveTime, half: float) -> Chart:
    return Chart(
        _axis(points),
        Scale("error of the model", "%"),
        (
            RefLine("half speed", half),
            RefLine("too slow above, too fast below", 0, axis="y"),
            Curve("", [p.size for p in points], [100 * p.error for p in points], 0),
            *_dots(points, now, [100 * p.error for p in points], _signed(now.error)),
        ),
    )


def _axis(points: Sequence[CollectiveTime]) -> Scale:
    return Scale("size", "B", "pow2", points[0].size, points[-1].size)


def _dots(
    points: Sequence[CollectiveTime], now: CollectiveTime, ys: Sequence[float], label: str
) -> tuple[Points, Points]:
    """All that was measured, and the one of this size in its own color."""
    others = [(p.size, y) for p, y in zip(points, ys, strict=True) if p is not now]
    here = ys[points.index(now)]
    return (
        Points("", [x for x, _ in others], [y for _, y in others], color=1),
        Points("", [now.size], [here], [label], 2),
    )


def _bus(point: CollectiveTime, seconds: float) -> float:
    """NCCL's bus bandwidth; of an all-to-all the source counts one chip's part."""
    run = point.run
    nbytes = point.size * run.n if run.collective == "all-to-all" else point.size
    return collectives.bus_bandwidth(run.collective, nbytes, run.n, seconds)


def _signed(error: float) -> str:
    return f"{'+' if error > 0 else ''}{percent(error)}"


def _verdict(run: CollectiveRun, collective: str, now: CollectiveTime, half: float, nbytes: int) -> str:
    asked = "" if run.collective == collective else f"{run.system} was timed with an {run.collective} only. "
    size = f"At {binary(now.size)}" if now.size == nbytes else f"At {binary(now.size)}, the nearest measured"
    way = "too slow" if now.error > 0 else "too fast"
    most = "alpha" if now.size < half else "for the bytes"
    other = f" Its figures are of another system, {now.fit.system}." if now.held_out else ""
    took = f"the {now.fit.collective} of {run.n} {run.chip.name} took {si(now.seconds, 's')}"
    return (
        f"{asked}{size}, {took}. The model says {si(now.model_s, 's')}, most of it {most}: "
        f"{percent(abs(now.error))} {way}.{other}"
    )


MEASURED = Explorer(
    key="gpus.measured",
    title="Collectives as measured",
    question="From which size on do the bytes decide, and how far off is a model with two figures?",
    controls={
        "system": Choice("system", _SYSTEMS, "H100 80GB HBM3"),
        "collective": Choice("collective", _FORMS),
        "n": Choice("GPUs", ("2", "4", "8"), "8"),
        "nbytes": Slider("size", 2**9, 2**34, 2**22, "pow2", "B"),
        "alpha": Slider("alpha, times", 0.25, 4.0, 1.0, "log", "×"),
        "efficiency": Slider("efficiency, times", 0.5, 1.5, 1.0, step=0.05, unit="×"),
    },
    view=_measured,
)
