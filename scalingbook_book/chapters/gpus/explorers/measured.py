"""Explorer of the error of the model "α₀ plus bytes over bandwidth" beside published NCCL times."""

import math
from collections.abc import Sequence
from dataclasses import replace

from scalingbook_book.reader.explorers.parts import (
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
from scalingbook_lib import collectives
from scalingbook_lib.calibrated import fabrics
from scalingbook_lib.collectives.attained import AttainedRate as Attained
from scalingbook_lib.collectives.attained import Fabric
from scalingbook_lib.evidence.measured import RUNS, CollectiveRun, MeasuredTime
from scalingbook_lib.evidence.measured.collectives import FORMS, LARGE
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.units import binary, percent, si

_SWEPT = tuple(run for run in RUNS if len(run.sizes) > 1)
_SYSTEMS = tuple(dict.fromkeys(run.system for run in _SWEPT))


def _measured(
    *, system: str, collective: str, n: str, nbytes: int, alpha: float, efficiency: float, late: float
) -> View:
    run = _nearest(system, collective, int(n))
    points = run.points(_changed(fabrics.fabric(run.chip), alpha, efficiency, late))
    now = min(points, key=lambda p: abs(math.log(p.size / nbytes)))
    model = now.model
    half = model.alpha_s * model.share * now.size / model.ideal_s
    every = Summary.of("all", [p.error for p in points])
    large = Summary.of("large", [p.error for p in points if p.size >= LARGE])
    return View(
        _verdict(run, collective, now, nbytes),
        (_times(points, now, half), _rates(points, now, half), _errors(points, now, half)),
        (
            Readout("measured", now.seconds, "s"),
            Readout("model", now.model_s, "s"),
            Readout("error", now.error, "", _signed(now.error)),
            Readout("α₀", model.alpha_s, "s"),
            Readout.percent("fraction of the peak", model.share),
            Readout("protocol delay", model.late_s, "s"),
            Readout("half-bandwidth size", half, "B", binary(half, digits=3)),
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


def _changed(one: Fabric, alpha: float, efficiency: float, late: float) -> Fabric:
    """With so many times each of its figures; late 0 is a straight line."""

    def curve(of: Attained) -> Attained:
        return replace(of, share=efficiency * of.share, late_s=late * of.late_s)

    return replace(
        one,
        launch_s=alpha * one.launch_s,
        step_s=alpha * one.step_s,
        ring=curve(one.ring),
        in_switch=curve(one.in_switch),
        exchange=curve(one.exchange),
    )


# Charts over the size


def _times(points: Sequence[MeasuredTime], now: MeasuredTime, half: float) -> Chart:
    sizes = [p.size for p in points]
    first, *_, last = points
    return Chart(
        _axis(points),
        Scale("time", "s", "log", min(p.seconds for p in points) / 4),
        (
            RefLine("half bandwidth", half),
            Curve(
                "bytes at the peak",
                [first.size, last.size],
                [first.model.ideal_s, last.model.ideal_s],
                5,
                dashed=True,
            ),
            Curve("model", sizes, [p.model_s for p in points], 0),
            *_dots(points, now, [p.seconds for p in points], si(now.seconds, "s")),
        ),
    )


def _rates(points: Sequence[MeasuredTime], now: MeasuredTime, half: float) -> Chart:
    seen = [_bus(p, p.seconds) for p in points]
    return Chart(
        _axis(points),
        Scale("bus bandwidth", "B/s"),
        (
            RefLine("half bandwidth", half),
            RefLine("at the peak", _bus(now, now.model.ideal_s), axis="y"),
            Curve("model", [p.size for p in points], [_bus(p, p.model_s) for p in points], 0),
            *_dots(points, now, seen, si(_bus(now, now.seconds), "B/s")),
        ),
    )


def _errors(points: Sequence[MeasuredTime], now: MeasuredTime, half: float) -> Chart:
    return Chart(
        _axis(points),
        Scale("error of the model", "%"),
        (
            RefLine("half bandwidth", half),
            RefLine("above: prediction too high", 0, axis="y"),
            Curve("", [p.size for p in points], [100 * p.error for p in points], 0),
            *_dots(points, now, [100 * p.error for p in points], _signed(now.error)),
        ),
    )


def _axis(points: Sequence[MeasuredTime]) -> Scale:
    return Scale("size", "B", "pow2", points[0].size, points[-1].size)


def _dots(
    points: Sequence[MeasuredTime], now: MeasuredTime, ys: Sequence[float], label: str
) -> tuple[Points, Points]:
    """All that was measured, and the one of this size in its own color."""
    others = [(p.size, y) for p, y in zip(points, ys, strict=True) if p is not now]
    here = ys[points.index(now)]
    return (
        Points("", [x for x, _ in others], [y for _, y in others], color=1),
        Points("", [now.size], [here], [label], 2),
    )


def _bus(point: MeasuredTime, seconds: float) -> float:
    """NCCL's bus bandwidth; of an all-to-all the source counts one chip's part."""
    nbytes = point.size * point.n if point.collective == "all-to-all" else point.size
    return collectives.bus_bandwidth(point.collective, nbytes, point.n, seconds)


def _signed(error: float) -> str:
    return f"{'+' if error > 0 else ''}{percent(error)}"


def _verdict(run: CollectiveRun, collective: str, now: MeasuredTime, nbytes: int) -> str:
    only = (
        "" if run.collective == collective else f"{run.system} was measured only with an {run.collective}. "
    )
    size = f"At {binary(now.size)}"
    size += "" if now.size == nbytes else ", the nearest measured size"
    terms = {
        "the fixed cost α₀": now.model.alpha_s,
        "the time of the bytes": now.model.ideal_s / now.model.share,
        "the protocol delay": now.model.late_s,
    }
    took = f"the {now.collective} over {run.chip.counted(run.n)} took {si(now.seconds, 's')}"
    return (
        f"{only}{size}, {took}. The model predicts {si(now.model_s, 's')}, "
        f"{percent(abs(now.error))} too {'high' if now.error > 0 else 'low'}. "
        f"Its largest term is {max(terms, key=terms.__getitem__)}."
    )


MEASURED = Explorer(
    key="gpus.measured",
    title="Measured collectives and a model",
    question="Above what size does bandwidth dominate, and how accurate is a straight line?",
    controls={
        "system": Choice("system", _SYSTEMS, "H100 80GB HBM3"),
        "collective": Choice("collective", FORMS),
        "n": Choice("GPUs", ("2", "4", "8"), "8"),
        "nbytes": Slider("message size", 2**9, 2**34, 2**22, "pow2", "B"),
        "alpha": Slider("α₀", 0.25, 4.0, 1.0, "log", "×"),
        "efficiency": Slider("fraction of the peak", 0.5, 1.5, 1.0, step=0.05, unit="×"),
        "late": Slider("protocol delay", 0.0, 2.0, 0.0, step=0.1, unit="×"),
    },
    view=_measured,
)
