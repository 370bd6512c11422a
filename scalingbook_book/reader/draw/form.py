"""Render an explorer as static HTML: native inputs with labels, and the first view with its verdict."""

from itertools import groupby
from typing import TYPE_CHECKING

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.explorers.controls import Choice, Control, Notation, Slider, Steps, Switch
from scalingbook_book.reader.explorers.view import View

if TYPE_CHECKING:  # imported for types only, because an explorer renders itself with this module
    from scalingbook_book.reader.explorers.explorer import Explorer

NOTE = "The picture shows the starting values. In a notebook, run this cell to move the controls."


def explorer(explorer: "Explorer", view: View, suffix: str = "") -> str:
    """Return the whole explorer as static HTML, with identical bytes every time."""
    base = "ex-" + explorer.key.replace(".", "-") + (f"-{suffix}" if suffix else "")
    fields = "".join(_field(name, c, f"{base}-{name}", view) for name, c in explorer.controls.items())
    return (
        f'<div class="explorer" data-explorer="{svg.escape(explorer.key)}" id="{base}" role="group" '
        f'aria-labelledby="{base}-title">\n'
        f'<p class="ex-title" id="{base}-title">{svg.escape(explorer.title)}</p>\n'
        f'<p class="ex-question">{svg.escape(explorer.question)}</p>\n'
        f'<form class="ex-controls" autocomplete="off">\n{fields}'
        '<div class="ex-buttons"><button type="button" class="ex-reset" disabled>Reset</button>'
        '<span class="ex-status" role="status"></span></div>\n</form>\n'
        f'<div class="ex-figure"><div class="ex-wide">{draw.figure(view, wide=True)}</div>\n'
        f'<div class="ex-narrow" hidden>{draw.figure(view, wide=False)}</div></div>\n'
        f'<dl class="ex-readouts">{draw.readouts(view)}</dl>\n'
        f'<p class="ex-verdict" aria-live="polite">{svg.escape(view.verdict)}</p>\n'
        '<p class="ex-error" role="alert" hidden></p>\n'
        f'<p class="ex-note">{NOTE}</p>\n</div>'
    )


def _field(name: str, control: Control, id: str, view: View) -> str:
    """Return one control: its label, its value as text, and the input."""
    label = f'<label for="{id}">{svg.escape(control.label)}</label>'
    match control:
        case Slider():
            words = control.text(control.start)
            inside = label + _output(id, words) + _slider(name, id, (*control.stops, control.initial), words)
        case Steps():
            inside = (
                label
                + _output(id, control.text(control.start, view.frames))
                + _steps(name, id, control, view)
            )
        case Choice():
            inside = label + _select(name, id, control)
        case Switch():
            checked = " checked" if control.start else ""
            inside = f'<input type="checkbox" id="{id}" name="{name}"{checked}>{label}'
        case Notation():
            inside = label + _textbox(name, id, control)
    kind = "choice" if isinstance(control, Choice) else type(control).__name__.lower()
    return f'<div class="ex-control ex-{kind}">{inside}</div>\n'


def _output(id: str, words: str) -> str:
    return f'<output for="{id}">{svg.escape(words)}</output>'


def _steps(name: str, id: str, control: Steps, view: View) -> str:
    stops = (0, view.frames - 1, 1, min(control.start, view.frames - 1))
    slider = _slider(name, id, stops, control.text(control.start, view.frames)).replace(">", " data-steps>")
    return f'{slider}<button type="button" class="ex-play" aria-controls="{id}" disabled>Play</button>'


def _slider(name: str, id: str, stops: tuple[float, float, float, float], words: str) -> str:
    first, last, step, at = (f"{v:.12g}" for v in stops)
    return (
        f'<input type="range" id="{id}" name="{name}" min="{first}" max="{last}" step="{step}" value="{at}" '
        f'aria-valuetext="{svg.escape(words)}">'
    )


def _select(name: str, id: str, control: Choice) -> str:
    inside = ""
    for title, options in groupby(control.options, control.group):
        some = "".join(_option(option, control) for option in options)
        inside += f'<optgroup label="{svg.escape(title)}">{some}</optgroup>' if title else some
    return f'<select id="{id}" name="{name}">{inside}</select>'


def _option(option: str, control: Choice) -> str:
    text, selected = control.text(option), " selected" if option == control.initial else ""
    value = "" if text == option else f' value="{svg.escape(option)}"'
    return f"<option{value}{selected}>{svg.escape(text)}</option>"


def _textbox(name: str, id: str, control: Notation) -> str:
    hint = f'<span class="ex-hint" id="{id}-hint">{svg.escape(control.hint)}</span>' if control.hint else ""
    described = f' aria-describedby="{id}-hint"' if hint else ""
    return (
        f'<input type="text" id="{id}" name="{name}" value="{svg.escape(control.start)}" '
        f'maxlength="{control.most}" '
        f'spellcheck="false" autocapitalize="off"{described}>{hint}'
    )
