"""Explorer that asks a question and shows the factor by which the reader's estimate is off."""

from scalingbook_book.chapters.conclusion.explorers.questions import Question, question
from scalingbook_book.reader.explorers.parts import (
    Bars,
    Explorer,
    Notation,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Switch,
    View,
    scales,
    sig3,
)
from scalingbook_lib.training.run import DAY_S
from scalingbook_lib.units import count, count_in_words, parse, percent, si

QUESTIONS = 120
_FARTHEST = 1000.0  # factor at which the axis ends
_WRITE = {"s": "3 ms or 40 days", "B": "2 GB", "FLOPs": "3e23 FLOPs", "tokens": "500 tokens", "": "20%"}


def said(value: float, unit: str) -> str:
    """An answer as people say it: fractions in percent, long times in days, large FLOPs as a power of ten."""
    if unit == "":
        return percent(value)
    if unit == "tokens":
        return f"{count_in_words(value)} tokens"
    if unit == "s" and value >= DAY_S / 4:
        return f"{count(value / DAY_S)} days"
    return f"{scales.power(value, 3)} {unit}" if value >= 1e18 else si(value, unit)


def estimate(text: str, unit: str) -> float:
    """The reader's number in base units; raises if its unit is wrong or missing."""
    given = parse(text)
    fits = {"": unit in ("", "tokens"), "FLOP": unit == "FLOPs"}.get(given.unit, given.unit == unit)
    if not fits or given.value <= 0 or (not unit and given.value > 1):
        raise ValueError(f"{text!r} does not fit this question; write a value such as {_WRITE[unit]}")
    return given.value


def _estimate(*, number: int, guess: str, show: bool) -> View:
    asked = question(number)
    times = estimate(guess, asked.unit) / asked.value if guess else None
    return View(
        f"{asked.asked} {_judged(asked, times, show)}",
        (_picture(asked, times),),
        _readouts(asked, times, show),
    )


def _near(times: float | None) -> bool:
    return times is not None and 0.5 <= times <= 2


def _judged(asked: Question, times: float | None, show: bool) -> str:
    answer = f"The library says {said(asked.value, asked.unit)}: {asked.way}."
    if times is None:
        return answer if show else f"Write your estimate, such as {_WRITE[asked.unit]}."
    if 0.99 <= times <= 1.01:
        return f"Exactly. {answer}"
    off = f"{sig3(max(times, 1 / times))} times too {'high' if times > 1 else 'low'}"
    if _near(times):
        return f"Good enough: your estimate is {off}. {answer}"
    return f"Your estimate is {off}. {answer if show else 'Try again, or switch on the answer.'}"


def _picture(asked: Question, times: float | None) -> Bars:
    shown = 0.0 if times is None else min(max(times, 1 / _FARTHEST), _FARTHEST)
    return Bars(
        Scale("your estimate over the answer", "×", "log", 1 / _FARTHEST, _FARTHEST),
        ["you"],
        [Series("estimate", [shown], 2 if _near(times) else 1)],
        refs=(RefLine("half", 0.5), RefLine("twice", 2.0)),
        title=asked.title,
    )


def _readouts(asked: Question, times: float | None, show: bool) -> tuple[Readout, ...]:
    answer = said(asked.value, asked.unit) if show or _near(times) else "hidden"
    yours = "not yet written" if times is None else f"{times:.3g} times the answer"
    return Readout("the answer", 0, text=answer), Readout("your estimate", 0, text=yours)


ESTIMATE = Explorer(
    key="conclusion.estimate",
    title="Within a factor of two",
    question="Which quantities can you estimate without paper?",
    controls={
        "number": Slider("question", 1, QUESTIONS, 1, step=1),
        "guess": Notation("your estimate", "", "with its unit, as in 3 ms, 2 GB, 20%"),
        "show": Switch("show the answer"),
    },
    view=_estimate,
)
