"""What can a reader change? Sliders, choices, switches, text in the notation, steps.

A control knows its states (what an input of a page holds: a slider's position, an option, a text) and its
values (what the view is given). `read` takes whatever arrived, from a page, an address or a widget, and
never raises: what is out of range is clamped and noted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.explorers import scales

PER_DECADE = 48  # positions of a log slider: steps of about 5 %
LONGEST = 200  # characters of a text in the notation

State = str | float | bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What a control made of a state: the view's value, the state as corrected, what was wrong with it."""

    value: Any
    state: State
    note: str = ""


@dataclass(frozen=True, slots=True)
class Slider:
    """A number from `low` to `high`. Positions are linear in the slider; `value` maps them.

    Values are whole where `low`, `high`, `start` (and `step`) are written as integers. The ends and the
    start are hit exactly. On a pow2 scale positions are exponents, on a log scale 48 positions a decade.
    """

    label: str
    low: float
    high: float
    start: float
    scale: str = "linear"
    unit: str = ""
    step: float | None = None

    def __post_init__(self) -> None:
        if self.scale not in scales.KINDS:
            raise ValueError(
                f"slider {self.label!r}: {self.scale!r} is no scale; write one of {', '.join(scales.KINDS)}"
            )
        if not self.low <= self.start <= self.high or self.low == self.high:
            raise ValueError(
                f"slider {self.label!r}: start {self.start:g} is not within {self.low:g} to {self.high:g}"
            )
        if self.scale != "linear" and self.low <= 0:
            raise ValueError(
                f"slider {self.label!r}: a {self.scale} scale starts above 0, not at {self.low:g}"
            )
        if self.scale == "pow2" and any(math.log2(v) % 1 for v in (self.low, self.high, self.start)):
            raise ValueError(f"slider {self.label!r}: low, high and start of a pow2 scale are powers of two")

    @property
    def whole(self) -> bool:
        """Whether every value is an integer."""
        return all(isinstance(v, int) for v in (self.low, self.high, self.start, self.step or 1))

    @property
    def stops(self) -> tuple[float, float, float]:
        """First and last position of the slider, and the step between positions."""
        if self.scale == "pow2":
            return round(math.log2(self.low)), round(math.log2(self.high)), 1
        if self.scale == "log":
            return 0, max(round(PER_DECADE * math.log10(self.high / self.low)), 1), 1
        return self.low, self.high, self.step or (1 if self.whole else (self.high - self.low) / 200)

    @property
    def initial(self) -> float:
        """The position at the start."""
        return self.position(self.start)

    def position(self, value: float) -> float:
        """The position nearest to a value."""
        value = min(max(value, self.low), self.high)
        first, last, step = self.stops
        if self.scale == "pow2":
            return round(math.log2(value))
        if self.scale == "log":
            return round(last * math.log(value / self.low) / math.log(self.high / self.low))
        return (
            _tidy(min(first + step * round((value - first) / step), last)) if value != self.start else value
        )

    def value(self, position: float) -> float:
        """The value at a position: exact at the start and the ends, else three figures on a log scale."""
        first, last, _ = self.stops
        position = min(max(position, first), last)
        if position == self.initial:
            return self.start
        if self.scale == "linear":
            return round(position) if self.whole else position
        if self.scale == "pow2":
            return 2 ** round(position) if self.whole else 2.0 ** round(position)
        return self._log_value(round(position), last)

    def _log_value(self, position: int, last: float) -> float:
        if position in (0, last):
            return self.high if position else self.low
        value = float(f"{self.low * (self.high / self.low) ** (position / last):.3g}")
        grain = self.step or (1 if self.whole else 0)
        value = grain * round(value / grain) if grain else value
        return min(max(value, self.low), self.high)

    def read(self, state: State) -> Reading:
        """The value at a position that arrived as a number or a text; outside the slider it is clamped."""
        try:
            position = float(state)
        except (TypeError, ValueError, OverflowError):
            position = math.nan
        if not math.isfinite(position):
            return Reading(
                self.start,
                self.initial,
                f"{self.label}: {str(state)[:40]!r} is no position; the start is shown",
            )
        first, last, _ = self.stops
        clamped = min(max(position, first), last)
        note = (
            ""
            if clamped == position
            else f"{self.label}: the slider goes from {self.text(self.low)} to {self.text(self.high)}"
        )
        return Reading(self.value(clamped), _tidy(clamped), note)

    def text(self, value: float) -> str:
        """The value with its unit."""
        return scales.written(value, self.unit, kind=self.scale)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options; the view is given its text."""

    label: str
    options: Sequence[str]
    start: str = ""

    def __post_init__(self) -> None:
        if not self.options or len(set(self.options)) < len(self.options):
            raise ValueError(f"choice {self.label!r}: give at least one option, each once")
        if self.start and self.start not in self.options:
            raise ValueError(f"choice {self.label!r}: {self.start!r} is none of {', '.join(self.options)}")

    @property
    def initial(self) -> str:
        """The option at the start: the first unless another is named."""
        return self.start or self.options[0]

    def position(self, value: str) -> str:
        """The option itself; a ValueError that lists the options where it is none."""
        if value not in self.options:
            raise ValueError(f"choice {self.label!r}: {value!r} is none of {', '.join(self.options)}")
        return value

    def read(self, state: State) -> Reading:
        """The option; the start where it is none."""
        if state in self.options:
            return Reading(state, state)
        note = f"{self.label}: {str(state)[:40]!r} is none of {', '.join(self.options)}"
        return Reading(self.initial, self.initial, note)

    def text(self, value: str) -> str:
        """The option."""
        return value


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off."""

    label: str
    start: bool = False

    @property
    def initial(self) -> bool:
        """Whether it is on at the start."""
        return self.start

    def position(self, value: bool) -> bool:
        """The value itself."""
        return bool(value)

    def read(self, state: State) -> Reading:
        """True for true, 1 and on, as a page or an address writes them."""
        on = str(state).lower() in ("true", "1", "1.0", "on", "yes")
        return Reading(on, on)

    def text(self, value: bool) -> str:
        """on or off."""
        return "on" if value else "off"


@dataclass(frozen=True, slots=True)
class Notation:
    """A text that the view reads, such as `A[I_X, J]`; what it cannot read becomes the explorer's error."""

    label: str
    start: str
    hint: str = ""
    most: int = LONGEST  # characters; a pasted file needs more than a product does

    @property
    def initial(self) -> str:
        """The text at the start."""
        return self.start

    def position(self, value: str) -> str:
        """The text itself."""
        return value

    def read(self, state: State) -> Reading:
        """The text as typed, cut at `most` characters."""
        typed, most = str(state), self.most
        note = "" if len(typed) <= most else f"{self.label}: only the first {most:,} characters are read"
        return Reading(typed[:most].strip(), typed, note)

    def text(self, value: str) -> str:
        """Nothing: the input shows the text already."""
        return ""


@dataclass(frozen=True, slots=True)
class Steps:
    """Moves through the frames of a view, with a play button.

    The view is given 0, 1, 2 ... and shows its last frame for any step beyond it.
    """

    label: str = "step"
    start: int = 0

    @property
    def initial(self) -> int:
        """The step at the start."""
        return self.start

    def position(self, value: int) -> int:
        """The step itself."""
        return max(int(value), 0)

    def read(self, state: State) -> Reading:
        """A step as a whole number of 0 or more."""
        try:
            step = min(max(int(float(state)), 0), 10**6)
        except (TypeError, ValueError, OverflowError):
            return Reading(
                self.start, self.start, f"{self.label}: {str(state)[:40]!r} is no step; the start is shown"
            )
        return Reading(step, step)

    def text(self, value: int, frames: int | None = None) -> str:
        """The step, and of how many."""
        return str(value) if frames is None else f"{value} of {frames - 1}"


Control = Slider | Choice | Switch | Notation | Steps


def _tidy(number: float) -> float:
    """A whole number as an int, so that addresses and attributes read 3 and not 3.0."""
    return int(number) if float(number).is_integer() else float(f"{number:.12g}")
