"""Explorer of the online softmax: a softmax computed chunk by chunk that keeps only three numbers."""

import math

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    Scale,
    Slider,
    Steps,
    View,
)
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import OnlineSoftmax, SoftmaxStep

_SCORES = (0.4, 1.9, -0.7, 1.1, 2.6, -1.5, 0.2, 3.4, 0.9, 2.1, -0.3, 4.2, 1.4, -2.0, 2.9, 0.6)
_PAIRS = tuple((score, float(i % 4)) for i, score in enumerate(_SCORES))  # each score with its value
_ORDERS = {
    "original order": _PAIRS,
    "rising": tuple(sorted(_PAIRS)),
    "falling": tuple(sorted(_PAIRS, reverse=True)),
}


def _softmax(*, order: str, chunk: int, step: int) -> View:
    scores, values = zip(*_ORDERS[order], strict=True)
    run = arithmetic.online_softmax(scores, chunk, values)
    at = min(step, len(run.steps) - 1)
    now = run.steps[at]
    exact = run.final.output[0]
    return View(
        _verdict(run, at),
        (_row(run, at), _kept(run, at), _weights(run, now)),
        (
            Readout("maximum, m", now.seen.m, "", f"{now.seen.m:.4g}"),
            Readout("sum, l", now.seen.l, "", f"{now.seen.l:.4g}"),
            Readout("output so far", now.seen.output[0], "", f"{now.seen.output[0]:.4g}"),
            Readout("output of the full softmax", exact, "", f"{exact:.4g}"),
            Readout(
                "factor on the earlier sums",
                now.rescale,
                "",
                f"{now.rescale:.4g}" if at else "nothing earlier",
            ),
        ),
        frames=len(run.steps),
    )


def _row(run: OnlineSoftmax, at: int) -> Grid:
    """The scores, eight per row: seen, in this chunk, still to come."""
    now = run.steps[at]
    cells = [_score(i, score, now) for i, score in enumerate(run.scores)]
    return Grid("Scores: seen, in this chunk, still to come", (), (), [cells[:8], cells[8:]])


def _score(i: int, score: float, now: SoftmaxStep) -> Cell:
    if i >= now.stop:
        return Cell(f"{score:g}", None, f"score {i}, to come")
    if i < now.start:
        return Cell(f"{score:g}", 0, f"score {i}, seen", level=0.3)
    return Cell(f"{score:g}", 1, f"score {i}, in this chunk", level=0.7)


def _kept(run: OnlineSoftmax, at: int) -> Grid:
    """The last four steps, each with the factor that it applied to the earlier sums."""
    first = max(at - 3, 0)
    shown = run.steps[first : at + 1]
    cells = [
        [
            Cell(text, 1 if s is run.steps[at] else None, str(s), level=0.4)
            for text in (
                f"{s.rescale:.3g}" if s.start else "",
                f"{s.seen.m:.3g}",
                f"{s.seen.l:.4g}",
                f"{s.seen.output[0]:.4g}",
            )
        ]
        for s in shown
    ]
    rows = [f"chunk {first + i}" for i in range(len(shown))]
    return Grid("What is kept after each chunk", rows, ("earlier ×", "m", "l", "output"), cells)


def _weights(run: OnlineSoftmax, now: SoftmaxStep) -> Chart:
    """The weights of the seen scores at this step, and their final values."""
    xs = list(range(len(run.scores)))
    seen = [math.exp(s - now.seen.m) / now.seen.l for s in run.scores[: now.stop]]
    return Chart(
        Scale("score", "", "linear", -0.5, len(xs) - 0.5),
        Scale("weight", "", "linear", 0, 1.05),
        (Points("so far", xs[: now.stop], seen, color=1), Curve("final", xs, run.weights, 0)),
    )


def _verdict(run: OnlineSoftmax, at: int) -> str:
    now = run.steps[at]
    said = f"After {now.stop} of {len(run.scores)} scores, the maximum is {now.seen.m:g}"
    if at and now.rescale < 1:
        said += f", which is new, so the earlier sums are multiplied by {now.rescale:.3g}"
    elif at:
        said += ", as before, so the earlier sums do not change"
    if at < len(run.steps) - 1:
        return f"{said}."
    return f"{said}. The output equals that of the full softmax, {run.final.output[0]:.4g}."


SOFTMAX = Explorer(
    key="transformers.softmax",
    title="Online softmax, chunk by chunk",
    question="What has to be kept so that each score is needed only once?",
    controls={
        "order": Choice("order of the scores", tuple(_ORDERS)),
        "chunk": Slider("scores per chunk", 1, len(_SCORES), 4),
        "step": Steps("chunk", 1),
    },
    view=_softmax,
)
