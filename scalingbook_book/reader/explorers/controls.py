"""The controls of an explorer: choices, switches, text in the notation, steps.

A control has states (what an input of a page holds: a slider's position, an option, a text) and values (what
the view is given). `read` accepts anything that arrives from a page, an address or a widget and never raises:
what is out of range is clamped, with a note.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_book.reader.explorers.slider import Reading, Slider, State

__all__ = ["Choice", "Control", "Notation", "Reading", "Slider", "State", "Steps", "Switch"]

LONGEST = 200  # characters of a text in the notation


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
            raise ValueError(f"choice {self.label!r}: {self.start!r} is not one of {', '.join(self.options)}")

    @property
    def initial(self) -> str:
        """The option at the start: the first unless another is named."""
        return self.start or self.options[0]

    def position(self, value: str) -> str:
        """The option itself; ValueError, listing the options, where it is none."""
        if value not in self.options:
            raise ValueError(f"choice {self.label!r}: {value!r} is not one of {', '.join(self.options)}")
        return value

    def read(self, state: State) -> Reading:
        """The option; the start, with a note, where it is none."""
        if state in self.options:
            return Reading(state, state)
        note = f"{self.label}: {str(state)[:40]!r} is not one of {', '.join(self.options)}"
        return Reading(self.initial, self.initial, note)

    def text(self, value: str) -> str:
        """The option, as a list shows it."""
        return value

    def group(self, option: str) -> str:
        """The heading under which a list shows the option; empty here."""
        return ""


@dataclass(frozen=True, slots=True)
class Switch:
    """An on-off control; the view is given a bool."""

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
        """'on' or 'off'."""
        return "on" if value else "off"


@dataclass(frozen=True, slots=True)
class Notation:
    """A text that the view parses, such as `A[I_X, J]`; a parse error becomes the explorer's error."""

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
        """Empty: the input shows the text already."""
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
        """The step as a whole number of 0 or more."""
        try:
            step = min(max(int(float(state)), 0), 10**6)
        except (TypeError, ValueError, OverflowError):
            return Reading(
                self.start, self.start, f"{self.label}: {str(state)[:40]!r} is not a step; showing the start"
            )
        return Reading(step, step)

    def text(self, value: int, frames: int | None = None) -> str:
        """The step and the number of frames."""
        return str(value) if frames is None else f"{value} of {frames - 1}"


Control = Slider | Choice | Switch | Notation | Steps
