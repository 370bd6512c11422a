"""How do controls and a view become something that a reader can move?

An `Explorer` is a question, some controls and a pure view. It paints itself for any state that arrives and
turns whatever it cannot read into a sentence; the page, the notebook and the tests all ask it the same way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scalingbook_lib.explorers import draw, draw_form
from scalingbook_lib.explorers.controls import Control, Reading, Slider, State, Steps
from scalingbook_lib.explorers.view import View
from scalingbook_lib.told import Told


@dataclass(frozen=True, slots=True)
class Painted:
    """One state, painted: HTML of the figure and the readouts, the verdict, and each control as text.

    With an `error` there is no figure: the one before it stays.
    """

    figure: str = ""
    readouts: str = ""
    verdict: str = ""
    frames: int = 1
    values: Mapping[str, Any] | None = None  # what the view was given
    state: Mapping[str, State] | None = None  # the state as corrected
    outputs: Mapping[str, str] | None = None  # what stands beside each control
    error: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explorer(Told):
    """A question, the controls by the view's parameter names, and the view."""

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
        """The state at the start: positions, options and texts; an address stores only what differs from it."""
        return {name: control.initial for name, control in self.controls.items()}

    def starting(self, **values: Any) -> "Explorer":
        """The same explorer with other values at the start."""
        unknown = set(values) - set(self.controls)
        if unknown:
            raise ValueError(
                f"{self.key} has no {', '.join(sorted(unknown))}; it has {', '.join(self.controls)}"
            )
        controls = {n: _start(c, values[n]) if n in values else c for n, c in self.controls.items()}
        return replace(self, controls=controls)

    def read(self, state: Mapping[str, State]) -> dict[str, Reading]:
        """What every control makes of a state; a control that the state leaves out is at its start."""
        return {name: c.read(state.get(name, c.initial)) for name, c in self.controls.items()}

    def see(self, **values: Any) -> View:
        """The view at these values; the others are at their start."""
        return self.view(**{n: r.value for n, r in self.read({}).items()} | values)

    def paint(self, state: Mapping[str, State], *, wide: bool = True) -> Painted:
        """Paint a state; what the view refuses with a ValueError comes back as the error."""
        readings = self.read(state)
        notes = tuple(r.note for r in readings.values() if r.note) + self._strangers(state)
        values = {name: r.value for name, r in readings.items()}
        given = {name: r.state for name, r in readings.items()}
        try:
            view = self.view(**values)
            figure = draw.figure(view, wide=wide)
        except (ValueError, ArithmeticError) as problem:
            outputs = self._outputs(values, None)
            return Painted(values=values, state=given, outputs=outputs, error=str(problem), notes=notes)
        return Painted(
            figure, draw.readouts(view), view.verdict, view.frames, values, given,
            self._outputs(values, view.frames), "", notes,
        )  # fmt: skip

    def html(self, suffix: str = "") -> str:
        """The page's static HTML: controls and the first view; `suffix` keeps ids apart where it is shown twice."""
        return draw_form.explorer(self, self.see(), suffix)

    def text(self) -> str:
        """One sentence: the title and the verdict of the first view."""
        return f"{self.title}: {self.see().verdict}"

    def _outputs(self, values: Mapping[str, Any], frames: int | None) -> dict[str, str]:
        return {
            name: c.text(min(values[name], (frames or 10**6) - 1), frames)
            if isinstance(c, Steps)
            else c.text(values[name])
            for name, c in self.controls.items()
        }

    def _strangers(self, state: Mapping[str, State]) -> tuple[str, ...]:
        return tuple(f"{self.key} has no control {str(n)[:40]!r}" for n in state if n not in self.controls)


def _start(control: Control, value: Any) -> Control:
    """The control with another start: the nearest value that it can hold."""
    return replace(control, start=value if isinstance(control, Slider) else control.position(value))
