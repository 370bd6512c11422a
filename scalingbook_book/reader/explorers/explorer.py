"""An explorer: a question, some controls, and a pure view of their values.

It renders itself for any state, and turns input that it cannot read into a sentence. The page, the notebook
and the tests all call it in the same way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import form
from scalingbook_book.reader.explorers.controls import Control, Reading, Slider, State, Steps
from scalingbook_book.reader.explorers.view import View
from scalingbook_lib.units import Result
from scalingbook_lib.words import joined_units


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The result of a state: the view or an error, and the value and text of each control."""

    values: Mapping[str, Any]  # the values that the view received
    state: Mapping[str, State]  # the state as corrected
    outputs: Mapping[str, str]  # the text beside each control
    notes: tuple[str, ...] = ()  # about values out of range and about unknown controls
    view: View | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A state as HTML: the view's figure, readouts and verdict; empty if there is an error.

    No line of its texts ends between a number and its unit.
    """

    evaluated: Evaluated
    figure: str = ""
    readouts: str = ""
    verdict: str = ""
    frames: int = 1


@dataclass(frozen=True, kw_only=True)
class Explorer(Result):
    """A question, the controls by the view's parameter names, and the view.

    Raises ValueError if `key` does not have the form chapter.name.
    """

    key: str
    title: str
    question: str
    controls: Mapping[str, Control]
    view: Callable[..., View]

    def __post_init__(self) -> None:
        stem, dot, name = self.key.partition(".")
        if not (dot and stem.isidentifier() and name.isidentifier()):
            raise ValueError(f"explorer {self.key!r}: a key is chapter.name, as in rooflines.roofline")

    def __str__(self) -> str:
        return self.text()

    def state(self) -> dict[str, State]:
        """Return the initial state: positions, options, texts; an address stores only differences from it."""
        return {name: control.initial for name, control in self.controls.items()}

    def starting(self, **values: Any) -> "Explorer":
        """Return the same explorer with other initial values. Raises ValueError for an unknown control."""
        unknown = set(values) - set(self.controls)
        if unknown:
            raise ValueError(
                f"{self.key} has no {', '.join(sorted(unknown))}; it has {', '.join(self.controls)}"
            )
        controls = {n: _start(c, values[n]) if n in values else c for n, c in self.controls.items()}
        return replace(self, controls=controls)

    def read(self, state: Mapping[str, State]) -> dict[str, Reading]:
        """Return the reading of every control; a control that the state leaves out has its initial value."""
        return {name: c.read(state.get(name, c.initial)) for name, c in self.controls.items()}

    def evaluate(self, **values: Any) -> View:
        """Return the view at these values; other controls have their initial values."""
        return self.view(**{n: r.value for n, r in self.read({}).items()} | values)

    def evaluate_state(self, state: Mapping[str, State]) -> Evaluated:
        """Return the view of a state; a ValueError of the view becomes the error."""
        readings = self.read(state)
        values = {name: r.value for name, r in readings.items()}
        given = {name: r.state for name, r in readings.items()}
        notes = tuple(r.note for r in readings.values() if r.note) + self._unknown_controls(state)
        try:
            view = self.view(**values)
        except (ValueError, ArithmeticError) as problem:
            return Evaluated(values, given, self._outputs(values, None), notes, error=str(problem))
        return Evaluated(values, given, self._outputs(values, view.frames), notes, view)

    def render(self, state: Mapping[str, State], *, wide: bool = True) -> Rendered:
        """Return the view of a state as HTML, for a wide or a narrow page."""
        evaluated = _with_joined_units(self.evaluate_state(state))
        if (view := evaluated.view) is None:
            return Rendered(evaluated)
        figure, readouts = draw.figure(view, wide=wide), joined_units(draw.readouts(view))
        return Rendered(evaluated, figure, readouts, joined_units(view.verdict), view.frames)

    def html(self, suffix: str = "") -> str:
        """Return the static HTML with controls and first view; a `suffix` keeps ids unique if shown twice."""
        return form.explorer(self, self.evaluate(), suffix)

    def text(self) -> str:
        """Return one sentence: the title and the verdict of the first view."""
        return f"{self.title}: {self.evaluate().verdict}"

    def _outputs(self, values: Mapping[str, Any], frames: int | None) -> dict[str, str]:
        return {
            name: c.text(min(values[name], (frames or 10**6) - 1), frames)
            if isinstance(c, Steps)
            else c.text(values[name])
            for name, c in self.controls.items()
        }

    def _unknown_controls(self, state: Mapping[str, State]) -> tuple[str, ...]:
        return tuple(f"{self.key} has no control {str(n)[:40]!r}" for n in state if n not in self.controls)


def _with_joined_units(evaluated: Evaluated) -> Evaluated:
    """Return the same with texts in which no line ends between a number and its unit."""
    return replace(
        evaluated,
        outputs={name: joined_units(text) for name, text in evaluated.outputs.items()},
        notes=tuple(map(joined_units, evaluated.notes)),
        error=joined_units(evaluated.error),
    )


def _start(control: Control, value: Any) -> Control:
    """Return the control with another initial value: the nearest one that it can hold."""
    return replace(control, start=value if isinstance(control, Slider) else control.position(value))
