"""The slider control: its positions, its values, and how it reads input."""

import math
from dataclasses import dataclass
from typing import Any

from scalingbook_book.reader.explorers import scales

PER_DECADE = 48  # positions of a log slider: steps of about 5%

State = str | float | bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What a control reads from a state: the value, the corrected state, and a note if it was wrong."""

    value: Any
    state: State
    note: str = ""


@dataclass(frozen=True, slots=True)
class Slider:
    """A number from `low` to `high`. Positions are linear in the slider; `value` maps them to values.

    Values are integers if `low`, `high`, `start` (and `step`) are given as integers. The ends and the start
    are represented exactly. On a pow2 scale positions are exponents; on a log scale there are 48 positions
    per decade.
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
                f"slider {self.label!r}: {self.scale!r} is not a scale; write one of "
                f"{', '.join(scales.KINDS)}"
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
        steps = (self.start - self.low) / self.stops[2]
        if self.scale == "linear" and abs(steps - round(steps)) > 1e-6:
            raise ValueError(
                f"slider {self.label!r}: {self.start:g} is not a whole number of steps of {self.stops[2]:g} "
                f"from {self.low:g}, and a page would move it; give step=..."
            )

    @property
    def whole(self) -> bool:
        """Whether every value is an integer."""
        return all(isinstance(v, int) for v in (self.low, self.high, self.start, self.step or 1))

    @property
    def stops(self) -> tuple[float, float, float]:
        """Return the first and last position of the slider, and the step between positions."""
        if self.scale == "pow2":
            return round(math.log2(self.low)), round(math.log2(self.high)), 1
        if self.scale == "log":
            return 0, max(round(PER_DECADE * math.log10(self.high / self.low)), 1), 1
        return self.low, self.high, self.step or (1 if self.whole else (self.high - self.low) / 200)

    @property
    def initial(self) -> float:
        """Return the initial position."""
        return self.position(self.start)

    def position(self, value: float) -> float:
        """Return the position nearest to a value."""
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
        """Return the value at a position: exact at start and ends, else three digits on a log scale."""
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
        """Return the value at a position that arrives as a number or as text.

        A position outside the slider is clamped, with a note.
        """
        try:
            position = float(state)
        except (TypeError, ValueError, OverflowError):
            position = math.nan
        if not math.isfinite(position):
            return Reading(
                self.start,
                self.initial,
                f"{self.label}: {str(state)[:40]!r} is not a position; showing the start",
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
        """Return the value with its unit as text."""
        return scales.written(value, self.unit, kind=self.scale)


def _tidy(number: float) -> float:
    """Return the number as an int if it is whole, so that addresses and attributes read 3 and not 3.0."""
    return int(number) if float(number).is_integer() else float(f"{number:.12g}")
