"""The controls of an explorer: choices, switches, text in the notation, and steps.

A control has states, which are what an input of a page holds (a slider's position, an option, a text), and
values, which are passed to the view. `read` accepts anything that arrives from a page, an address or a widget
and never raises: a value out of range is clamped, with a note.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_book.reader.explorers.slider import Reading, Slider, State

__all__ = ["Choice", "Control", "Notation", "Reading", "Slider", "State", "Steps", "Switch"]

LONGEST = 200  # characters of a text in the notation


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options; the view receives its text."""

    label: str
    options: Sequence[str]
    start: str = ""

    def __post_init__(self) -> None:
        if not self.options or len(set(self.options)) < len(self.options):
            raise ValueError(f"choice {self.label!r}: give at least one option, each once")
        if self.start and self.start not in self.options:
            raise ValueError(f"choice {self.label!r}: {self.start!r} is not one of {', '.join(self.options)}")

    @property
    def initial(self) -> str:
        """Return the initial option: the first one unless another is named."""
        return self.start or self.options[0]

    def position(self, value: str) -> str:
        """Return the option itself. Raises ValueError, listing the options, if it is none of them."""
        if value not in self.options:
            raise ValueError(f"choice {self.label!r}: {value!r} is not one of {', '.join(self.options)}")
        return value

    def read(self, state: State) -> Reading:
        """Return the option, or the initial one with a note if the state is not an option."""
        if state in self.options:
            return Reading(state, state)
        note = f"{self.label}: {str(state)[:40]!r} is not one of {', '.join(self.options)}"
        return Reading(self.initial, self.initial, note)

    def text(self, value: str) -> str:
        """Return the option as a list shows it."""
        return value

    def group(self, option: str) -> str:
        """Return the heading under which a list shows the option; always empty here."""
        return ""


@dataclass(frozen=True, slots=True)
class Switch:
    """An on-off control; the view receives a bool."""

    label: str
    start: bool = False

    @property
    def initial(self) -> bool:
        """Return whether the switch is on initially."""
        return self.start

    def position(self, value: bool) -> bool:
        """Return the value itself."""
        return bool(value)

    def read(self, state: State) -> Reading:
        """Return True for true, 1 and on, as a page or an address writes them."""
        on = str(state).lower() in ("true", "1", "1.0", "on", "yes")
        return Reading(on, on)

    def text(self, value: bool) -> str:
        """Return 'on' or 'off'."""
        return "on" if value else "off"


@dataclass(frozen=True, slots=True)
class Notation:
    """Text that the view parses, such as `A[I_X, J]`; a parse error becomes the explorer's error."""

    label: str
    start: str
    hint: str = ""
    most: int = LONGEST  # characters; a pasted file needs more than a matmul

    @property
    def initial(self) -> str:
        """Return the initial text."""
        return self.start

    def position(self, value: str) -> str:
        """Return the text itself."""
        return value

    def read(self, state: State) -> Reading:
        """Return the text as typed, truncated at `most` characters."""
        typed, most = str(state), self.most
        note = "" if len(typed) <= most else f"{self.label}: only the first {most:,} characters are read"
        return Reading(typed[:most].strip(), typed, note)

    def text(self, value: str) -> str:
        """Return '', because the input already shows the text."""
        return ""


@dataclass(frozen=True, slots=True)
class Steps:
    """Moves through the frames of a view, with a play button.

    The view receives 0, 1, 2 ... and shows its last frame for any larger step.
    """

    label: str = "step"
    start: int = 0

    @property
    def initial(self) -> int:
        """Return the initial step."""
        return self.start

    def position(self, value: int) -> int:
        """Return the step itself."""
        return max(int(value), 0)

    def read(self, state: State) -> Reading:
        """Return the step as a nonnegative integer."""
        try:
            step = min(max(int(float(state)), 0), 10**6)
        except (TypeError, ValueError, OverflowError):
            return Reading(
                self.start, self.start, f"{self.label}: {str(state)[:40]!r} is not a step; showing the start"
            )
        return Reading(step, step)

    def text(self, value: int, frames: int | None = None) -> str:
        """Return the step and the number of frames as text."""
        return str(value) if frames is None else f"{value} of {frames - 1}"


Control = Slider | Choice | Switch | Notation | Steps
