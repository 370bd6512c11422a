"""Figure of predicted against published times: the size of the errors, and how often each occurs."""

from collections.abc import Iterable

from scalingbook_book.reader.explorers.view import Band, Chart, Curve, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, EXPERTS, IDLE, MATH
from scalingbook_lib.evidence import accuracy
from scalingbook_lib.evidence import inference as served
from scalingbook_lib.evidence import training as published
from scalingbook_lib.units import percent

PERCENTS = range(2, 99, 2)


def ranked(ratios: Iterable[float]) -> list[float]:
    """Percentiles of the ratios, one for each of `PERCENTS`."""
    rising = sorted(ratios)
    return [rising[len(rising) * share // 100] for share in PERCENTS]


def ratios() -> dict[str, list[float]]:
    """Predicted time over reported time of every run, its source left out of the fit."""
    trained, full = published.scores(), accuracy.of("saturated server, dense").ids
    dense = [one for one in served.scores() if one.run.id in full]
    step = {
        experts: [
            one.leave_one_out / one.published
            for one in trained
            if (one.run.model.experts is not None) == experts
        ]
        for experts in (False, True)
    }
    return {
        "training, dense": step[False],
        "training, experts": step[True],
        "serving, dense": [one.published / one.leave_one_out for one in dense],
        "serving, dense, at peak rates": [one.published / one.peak for one in dense],
    }


def predicted_and_published() -> Figure:
    """How far off are predictions, and on which side?"""
    found = ratios()
    band = published.prediction_interval(experts=False)
    peaks = found["serving, dense, at peak rates"]
    early = f"{sum(ratio < 1 for ratio in peaks)} of {len(peaks)}"
    held = percent(
        sum(1 / band <= ratio <= band for ratio in found["training, dense"]) / len(found["training, dense"]),
        2,
    )
    return Figure(
        key="conclusion.predicted_and_published",
        alt="Four rising curves of predicted over reported time on a logarithmic axis, with runs ranked from too fast to too slow. Three of them cross "
        f"1 near the middle and stay close to it; training with experts strays farthest. {held} of dense training steps lie within the shaded factor of {band:.2f}. "
        f"The curve at peak rates is below 1 for {early} runs.",
        caption="Predicted over reported time of published runs, ranked from too fast to too slow. With "
        f"fitted efficiencies, predictions err in both directions, and {held} of the dense training "
        f"steps lie within the band. At peak rates, predictions are too fast for {early} servers. "
        "(The fit leaves out the source of each run.)",
        parts=lambda wide: [_curves(found, band)],
    )


def _curves(found: dict[str, list[float]], band: float) -> Chart:
    ends, colors = (0.0, 100.0), (MATH, EXPERTS, CACHE, IDLE)
    curves = [
        Curve(name, [float(share) for share in PERCENTS], ranked(each), color=color, dashed="peak" in name)
        for (name, each), color in zip(found.items(), colors, strict=True)
    ]
    shaded = Band(f"factor {band:.2f}", ends, (1 / band,) * 2, (band,) * 2, color=MATH)
    return Chart(
        x=Scale("rank of the run, from too fast to too slow", "%"),
        y=Scale("predicted over reported time", "", "log"),
        marks=(shaded, *curves),
    )
