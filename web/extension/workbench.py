"""The static content of the Workbench page: its fields, and every panel's answer for the initial set-up.

`{workbench}` has a line `panel | title | page#anchor | what the page teaches` per panel. The fields are those
of the library's set-up, with the names and addresses of the command line.
"""

import json
from functools import cache
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from scalingbook_cli.workbench import workbench_json
from scalingbook_cli.workbench.fit import MACHINES as MACHINE_FIELDS
from scalingbook_cli.workbench.fit import offered, refusal
from scalingbook_cli.workbench.flips import inputs
from scalingbook_cli.workbench.setup import FIELDS, Field, WorkbenchSetup
from scalingbook_lib import models
from web.extension.page_data import shows_the_library

BUILT = "Computed when the book was built. Change a field, and your browser computes the answer."
BUTTONS = {
    "compare": "Compare with a second setup",
    "link": "Copy link",
    "json": "Save JSON",
    "notebook": "Save notebook",
    "reset": "Reset",
}


class Workbench(SphinxDirective):
    """The directive that writes fields, buttons and panels."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the whole workbench as static HTML, with the library's answers."""
        shows_the_library(self.env)
        parts = [[part.strip() for part in line.split("|")] for line in self.content]
        answers = [_answered({"ask": "panel", "panel": name}) for name, *_ in parts]
        panels = "".join(self._panel(told, one["html"]) for told, one in zip(parts, answers, strict=True))
        bars = "".join(one["fit"]["bar"] for one in answers if one["fit"].get("bar"))
        buttons = "".join(
            f'<button type="button" data-do="{do}" disabled>{says}</button>' for do, says in BUTTONS.items()
        )
        html = (
            f'<div class="workbench" role="group" aria-label="Workbench">{_offered()}'
            f'<div class="workbench-bar"><div class="workbench-sums">{bars}</div>'
            f'<p class="workbench-status" role="status">{BUILT}</p></div>'
            '<div class="workbench-body"><div class="workbench-side">'
            f'<div class="workbench-setups">{_form()}</div>'
            f'<div class="workbench-buttons">{buttons}</div></div><div class="workbench-results">'
            '<section class="workbench-differences" hidden><h2>What differs, and why</h2>'
            '<div class="workbench-shown"></div></section>'
            f"{panels}"
            '<section class="workbench-repeat"><h2>Commands for a terminal</h2><pre tabindex="0">'
            f"{escape(_lines())}</pre></section></div></div>{_known([name for name, *_ in parts])}</div>"
        )
        return [nodes.raw("", html, format="html")]

    def _panel(self, told: list[str], shown: str) -> str:
        name, title, address, taught = told
        flips = (
            f'<button type="button" data-flip="{name}" data-inputs="{",".join(inputs(name))}" disabled>'
            'What would change this choice?</button><ul class="workbench-flips" aria-live="polite"></ul>'
            if name in ("plan", "serve")
            else ""
        )
        page, _, anchor = address.partition("#")
        href = self.env.app.builder.get_relative_uri(self.env.docname, page) + f"#{anchor}" * bool(anchor)
        return (
            f'<section class="workbench-panel" data-panel="{name}" id="workbench-{name}">'
            f'<h2>{escape(title)}</h2><div class="workbench-shown">{shown}</div>{flips}'
            f'<p class="workbench-teaches"><a href="{href}">{escape(taught)}</a></p></section>'
        )


def _offered() -> str:
    """Return the suggestions for models and machines."""
    lists = {
        "model": "".join(_option(model.name) for model in models.CATALOG),
        **{field: _machines(command) for command, field in MACHINE_FIELDS.items()},
    }
    return "".join(f'<datalist id="workbench-{name}">{told}</datalist>' for name, told in lists.items())


def _option(told: str, why: str = "") -> str:
    """Return a suggestion, with the reason if it would be refused."""
    label = f' label="{escape(told)}: {escape(why)}"' if why else ""
    return f'<option value="{escape(told)}"{label}></option>'


def _machines(command: str) -> str:
    """Return the suggestions for a machine; unusable ones come last, with the reason."""
    names = offered()
    told = {name: refusal(name, command) for name in names}
    return "".join(_option(name, told[name]) for name in sorted(names, key=lambda name: bool(told[name])))


def _form() -> str:
    fields = "".join(map(_field, FIELDS))
    return (
        '<form class="workbench-setup" autocomplete="off"><fieldset><legend>Setup</legend>'
        f"{fields}<details><summary>Paste a config.json</summary>"
        '<div class="workbench-field"><label for="wb-config">config.json</label><textarea id="wb-config" '
        'name="config" rows="6" spellcheck="false"></textarea><p class="workbench-error" hidden></p></div>'
        "</details></fieldset></form>"
    )


def _field(field: Field) -> str:
    id = f"wb-{field.name}"
    hint = f'<span class="workbench-hint" id="{id}-hint">{escape(field.hint)}</span>' if field.hint else ""
    described = f' aria-describedby="{id}-hint"' if hint else ""
    if field.offered:
        options = "".join(f"<option>{escape(one)}</option>" for one in field.offered)
        entry = f'<select id="{id}" name="{field.name}"{described}>{options}</select>'
    else:
        offers = (
            f' list="workbench-{field.name}"' if field.name in ("model", *MACHINE_FIELDS.values()) else ""
        )
        entry = (
            f'<input id="{id}" name="{field.name}" value="{escape(field.start)}" spellcheck="false" '
            f'autocapitalize="off" maxlength="200"{offers}{described}>'
        )
    label = f'<label for="{id}">{escape(field.label)}</label>'
    says = '<p class="workbench-note" hidden></p><p class="workbench-error" hidden></p>'
    return f'<div class="workbench-field">{label}{entry}{hint}{says}</div>'


def _lines() -> str:
    start = WorkbenchSetup.of({})
    return "\n".join(start.line(command) for command in ("model", "plan", "serve"))


def _known(panels: list[str]) -> str:
    """Return the answers to the page's first queries, without the panels' HTML, which the page has."""
    asked: list[dict[str, str]] = [{"ask": "lines"}]
    asked += [{"ask": "fit", "command": command} for command in MACHINE_FIELDS]
    asked += [{"ask": "panel", "panel": name} for name in panels]
    told = []
    for one in asked:
        answer = _answered(one)
        kept = answer if one["ask"] != "panel" else {"fit": answer["fit"]}
        told.append([_question(one), kept])
    return f'<template class="workbench-known">{escape(json.dumps(told), quote=False)}</template>'


def _question(asked: dict[str, str]) -> dict[str, Any]:
    return asked | {"setups": [{"values": dict(WorkbenchSetup.of({}).values), "config": ""}]}


@cache
def _json(question: str) -> str:
    return workbench_json(question)


def _answered(asked: dict[str, str]) -> dict[str, Any]:
    return json.loads(_json(json.dumps(_question(asked))))


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("workbench", Workbench)
