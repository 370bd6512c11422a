"""Run an explorer in a kernel with ipywidgets, version 7 or 8.

The picture is the page's SVG, in the notebook's own text color and on its background.
"""

from typing import Any

import ipywidgets as w

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw.palette import DARK
from scalingbook_book.reader.draw.svg import escape
from scalingbook_book.reader.explorers.controls import Choice, Control, Notation, Slider, State, Steps, Switch
from scalingbook_book.reader.explorers.explorer import Explorer
from scalingbook_book.reader.explorers.view import View
from scalingbook_lib.words import joined_units

FRAME_MS = 700
WIDE, ROW = "46rem", "17rem"  # maximum width of the explorer, and width of a control
_INKS = "".join(f"--ex-c{i}:{color};" for i, color in enumerate(DARK))
STYLE = f"""<style>
:is([data-jp-theme-light="false"], html[theme="dark"], .vscode-dark) .ex-live {{ {_INKS} --ex-bg: #121212; }}
.ex-live {{ container: ex-live / inline-size; line-height: 1.45; max-width: {WIDE}; }}
.ex-input {{ flex-direction: column; align-items: stretch; height: auto !important; min-width: 0; }}
.ex-input > .widget-label {{ width: auto !important; height: 24px; text-align: left; margin: 0; }}
.ex-input > :is(select, input) {{ flex: none; height: 28px; margin: 0 2px; }}
.ex-input > .slider-container {{ flex: none; margin: 12px 8px; }}
.ex-live p {{ margin: 0 0 .6rem; }}
.ex-live .ex-panel {{ display: block; width: 100%; height: auto; max-width: 680px; margin: 0 0 .6rem; }}
.ex-live .ex-panel {{ overflow: visible; }}
.ex-live .ex-columns {{ display: grid; grid-template-columns: 1fr 1fr; gap: 1.2rem; align-items: start; }}
.ex-live .ex-columns .ex-panel {{ max-width: 340px; }}
.ex-live .ex-narrow {{ display: none; }}
.ex-live .ex-readouts {{ display: flex; flex-wrap: wrap; gap: .5rem 1.9rem; margin: 0 0 .6rem; }}
.ex-live .ex-readouts :is(dt, dd) {{ margin: 0; padding: 0; float: none; width: auto; }}
.ex-live .ex-readouts dt {{ font-weight: 400; font-size: .9em; opacity: .8; }}
.ex-live .ex-readouts dd {{ font-weight: 600; }}
.ex-live .ex-verdict {{ padding-left: .75rem; border-left: 3px solid var(--ex-c0, #1a68e0); }}
.ex-live .ex-error {{ padding-left: .75rem; border-left: 3px solid var(--ex-c1, #c24600); }}
@container ex-live (max-width: 600px) {{
  .ex-live .ex-wide {{ display: none; }}
  .ex-live .ex-narrow {{ display: block; }}
}}
</style>"""


class Live:
    """An explorer in a kernel: inputs that hold its state, and the picture, numbers and verdict."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.inputs = {name: _input(control) for name, control in explorer.controls.items()}
        self.texts = {
            name: w.Label() for name, c in explorer.controls.items() if isinstance(c, Slider | Steps)
        }
        self.picture, self.said = w.HTML(), w.HTML()
        for box in self.inputs.values():
            box.observe(self.paint, "value")
        self.paint()

    def state(self) -> dict[str, State]:
        """Return the state that the inputs hold."""
        return {name: box.value for name, box in self.inputs.items()}

    def paint(self, _: Any = None) -> None:
        """Show the view of the inputs' state; if it cannot be read, show the error and keep the picture."""
        seen = self.explorer.evaluate_state(self.state())
        for name, text in self.texts.items():
            text.value = joined_units(seen.outputs[name])
        if seen.view is None:
            self.said.value = _block(
                f"<p class='ex-error' role='alert'>{escape(joined_units(seen.error))}</p>"
            )
            return
        for name, control in self.explorer.controls.items():
            if isinstance(control, Steps):
                self.inputs[name].max = max(seen.view.frames - 1, 1)
        self.picture.value = picture(seen.view)
        self.said.value = _words(seen.view)

    def reset(self, _: Any = None) -> None:
        """Reset every input to its initial value."""
        for name, state in self.explorer.state().items():
            self.inputs[name].value = state

    def box(self) -> Any:
        """Return everything in one column, with the controls in as many columns as fit."""
        again = w.Button(description="Reset")
        again.on_click(self.reset)
        head = w.HTML(f"{STYLE}<b>{escape(self.explorer.title)}</b><br>{escape(self.explorer.question)}")
        columns = f"repeat(auto-fill, minmax(min(100%, {ROW}), 1fr))"
        grid = w.Layout(
            display="grid", grid_template_columns=columns, grid_gap="0 1.5rem", width="100%", max_width=WIDE
        )
        rows = w.Box([self._row(name, c) for name, c in self.explorer.controls.items()], layout=grid)
        return w.VBox([head, rows, again, self.picture, self.said])

    def _row(self, name: str, control: Control) -> Any:
        beside = [self.texts[name]] if name in self.texts else []
        low = w.Layout(align_items="flex-end")
        return w.HBox([*_player(self.inputs[name], control), self.inputs[name], *beside], layout=low)


def picture(view: View) -> str:
    """Return the page's picture of a view, wide and narrow; the stylesheet shows the one that fits."""
    drawn = ((name, draw.figure(view, wide=name == "wide")) for name in ("wide", "narrow"))
    return _block("".join(f'<div class="ex-{name}">{figure}</div>' for name, figure in drawn))


def _words(view: View) -> str:
    verdict = f'<p class="ex-verdict">{escape(view.verdict)}</p>'
    return _block(joined_units(f'<dl class="ex-readouts">{draw.readouts(view)}</dl>{verdict}'))


def _block(inside: str) -> str:
    return f'<div class="ex-live">{inside}</div>'


def _input(control: Control) -> Any:
    """Return the input of a control, below its label; its value is the control's state."""
    if isinstance(control, Switch):
        return w.Checkbox(
            control.initial, description=control.label, indent=False, layout=w.Layout(width="auto")
        )
    box = _bare(control, description=control.label, layout=w.Layout(width="auto", flex="1 1 8rem"))
    box.add_class("ex-input")
    return box


def _bare(control: Slider | Choice | Notation | Steps, **how: Any) -> Any:
    match control:
        case Slider():
            low, high, step = control.stops
            return w.FloatSlider(control.initial, min=low, max=high, step=step, readout=False, **how)
        case Choice():
            options = tuple((control.text(option), option) for option in control.options)
            return w.Dropdown(options=options, value=control.initial, **how)
        case Notation():
            return w.Text(control.initial, placeholder=control.hint, **how)
        case Steps():
            return w.IntSlider(control.initial, min=0, max=max(control.initial, 1), readout=False, **how)


def _player(box: Any, control: Control) -> list[Any]:
    """Return a play button beside the slider of the steps."""
    if not isinstance(control, Steps):
        return []
    player = w.Play(value=box.value, min=0, max=box.max, interval=FRAME_MS)
    w.jslink((player, "value"), (box, "value"))
    w.jslink((box, "max"), (player, "max"))
    return [player]
