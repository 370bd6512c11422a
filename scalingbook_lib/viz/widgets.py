"""What do the controls of an explorer look like in a kernel? ipywidgets, version 7 or 8."""

import io
from typing import Any

import ipywidgets as w

from scalingbook_lib.explorers.controls import Choice, Control, Notation, Slider, State, Steps, Switch
from scalingbook_lib.explorers.explorer import Explorer
from scalingbook_lib.explorers.svg import escape
from scalingbook_lib.explorers.view import View
from scalingbook_lib.viz import figures

DPI, FRAME_MS = 110, 700


class Live:
    """An explorer in a kernel: inputs that hold its state, the picture, numbers and verdict of its view."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.inputs = {name: _input(control) for name, control in explorer.controls.items()}
        self.texts = {name: w.Label() for name in self.inputs}
        self.picture, self.said = w.Image(format="png"), w.HTML()
        for box in self.inputs.values():
            box.observe(self.paint, "value")
        self.paint()

    def state(self) -> dict[str, State]:
        """What the inputs hold."""
        return {name: box.value for name, box in self.inputs.items()}

    def paint(self, _: Any = None) -> None:
        """Show the view of the inputs' state; what cannot be read is said, and the picture stays."""
        seen = self.explorer.look(self.state())
        for name, words in seen.outputs.items():
            self.texts[name].value = words
        if seen.view is None:
            self.said.value = f"<p role='alert'>{escape(seen.error)}</p>"
            return
        for name, control in self.explorer.controls.items():
            if isinstance(control, Steps):
                self.inputs[name].max = max(seen.view.frames - 1, 1)
        self.picture.value = png(seen.view)
        self.said.value = _words(seen.view)

    def reset(self, _: Any = None) -> None:
        """Every input back to its start."""
        for name, state in self.explorer.state().items():
            self.inputs[name].value = state

    def box(self) -> Any:
        """All of it, one below the other."""
        again = w.Button(description="Reset")
        again.on_click(self.reset)
        head = w.HTML(f"<b>{escape(self.explorer.title)}</b><br>{escape(self.explorer.question)}")
        rows = [
            w.HBox([*_player(self.inputs[n], c), self.inputs[n], self.texts[n]])
            for n, c in self.explorer.controls.items()
        ]
        return w.VBox([head, *rows, again, self.picture, self.said])


def explorer(explorer: Explorer) -> Any:
    """The widget of an explorer."""
    return Live(explorer).box()


def png(view: View) -> bytes:
    """The view as a picture."""
    buffer = io.BytesIO()
    figures.draw(view).savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def _words(view: View) -> str:
    numbers = "".join(f"<li>{escape(r.label)}: <b>{escape(str(r))}</b></li>" for r in view.readouts)
    return f"<ul>{numbers}</ul><p>{escape(view.verdict)}</p>"


def _input(control: Control) -> Any:
    """The input of a control; its value is the control's state."""
    name = {"description": control.label, "style": {"description_width": "initial"}}
    match control:
        case Slider():
            low, high, step = control.stops
            return w.FloatSlider(control.initial, min=low, max=high, step=step, readout=False, **name)
        case Choice():
            return w.Dropdown(options=tuple(control.options), value=control.initial, **name)
        case Switch():
            return w.Checkbox(control.initial, **name)
        case Notation():
            return w.Text(control.initial, **name)
        case Steps():
            return w.IntSlider(control.initial, min=0, max=max(control.initial, 1), readout=False, **name)


def _player(box: Any, control: Control) -> list[Any]:
    """A play button beside the slider of the steps."""
    if not isinstance(control, Steps):
        return []
    player = w.Play(min=0, max=box.max, interval=FRAME_MS)
    w.jslink((player, "value"), (box, "value"))
    w.jslink((box, "max"), (player, "max"))
    return [player]
