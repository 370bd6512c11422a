"""Figure of hyperparameter transfer: the loss by learning rate at several widths, with and without muP."""

from scalingbook_book.reader.explorers.view import Chart, Curve, Points, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_lib.evidence.measured.widths import Sweep, sweeps


def widths() -> Figure:
    """The best learning rate moves with the width, except under muP."""
    standard, mup = sweeps(mup=False), sweeps(mup=True)
    return Figure(
        key="training.widths",
        alt="Two charts of the loss against the learning rate, for widths "
        f"{', '.join(str(sweep.D) for sweep in mup)}. Under the standard parametrization the minimum is at "
        f"{_best(standard)}; under muP at {_best(mup)}.",
        caption="Loss of small Transformers by learning rate, measured on our own CPU (100 steps, mean of two "
        "seeds). The dots mark the lowest loss of each width. Under the standard parametrization, the best "
        "learning rate falls as the model becomes wider, and a rate that is best for the narrow model is "
        "too high for the wide one. Under µP, the curves have their minimum at nearly the same learning rate.",
        parts=lambda wide: [
            _chart("Standard parametrization", standard),
            _chart("µP with a base width of 64", mup),
        ],
    )


def _best(found: tuple[Sweep, ...]) -> str:
    return ", ".join(f"{sweep.best_rate:.2g}" for sweep in found)


def _chart(title: str, found: tuple[Sweep, ...]) -> Chart:
    scaled = [rate * 1024 for sweep in found for rate in sweep.rates]
    curves = [
        Curve(f"width {sweep.D}", [1024 * rate for rate in sweep.rates], list(sweep.losses), color=k)
        for k, sweep in enumerate(found)
    ]
    dots = [
        Points("", [1024 * sweep.lowest_rate], [sweep.loss_at(sweep.lowest_rate)], [""], k)
        for k, sweep in enumerate(found)
    ]
    return Chart(
        Scale("learning rate, in units of 1/1,024", "", "pow2", min(scaled), max(scaled)),
        Scale("loss, nats per byte", "", "linear", 2.2, 3.3),
        (*curves, *dots),
        title=title,
    )
