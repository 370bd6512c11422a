"""What stands on the page Workbench before any script runs? Its fields, a place for each panel, and what the
first set-up answers.

`{workbench}` holds a line `panel | title | page#anchor | what the page teaches` for each panel; the fields
are those of the library's set-up, and their names and addresses those of the command line.
"""

import json
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from scalingbook_lib import models
from scalingbook_lib.cli.workbench import workbench_json
from scalingbook_lib.cli.workbench.flips import inputs
from scalingbook_lib.cli.workbench.setup import FIELDS, Field, Setup
from scalingbook_lib.machines import chips
from web.extension.noted import shows_the_library

MACHINES = ("v5e:4x4", "v5p:4x4x4", "v5p:8x8x8", "v6e:16x16", "tpu7x:4x4x4", "h100:8", "h100:512", "b200:8")
BUTTONS = {
    "compare": "Compare with a second set-up",
    "link": "Copy link",
    "json": "Save JSON",
    "notebook": "Save notebook",
    "reset": "Start again",
}


class Workbench(SphinxDirective):
    """Fields, buttons, panels."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The whole workbench as static HTML, with what the library answers."""
        shows_the_library(self.env)
        parts = [[part.strip() for part in line.split("|")] for line in self.content]
        panels = "".join(self._panel(*told) for told in parts)
        buttons = "".join(
            f'<button type="button" data-do="{do}" disabled>{says}</button>' for do, says in BUTTONS.items()
        )
        html = (
            f'<div class="workbench" role="group" aria-label="Workbench">{_offered()}'
            f'<div class="workbench-setups">{_form()}</div>'
            f'<div class="workbench-buttons">{buttons}</div>'
            '<p class="workbench-status" role="status">With scripts this page computes; without them, '
            "type the commands below into a terminal.</p>"
            '<section class="workbench-differences" hidden><h2>What differs, and why</h2>'
            '<div class="workbench-shown"></div></section>'
            f"{panels}"
            '<section class="workbench-repeat"><h2>The commands that repeat it</h2><pre tabindex="0">'
            f"{escape(_lines())}</pre></section>{_known([name for name, *_ in parts])}</div>"
        )
        return [nodes.raw("", html, format="html")]

    def _panel(self, name: str, title: str, address: str, taught: str) -> str:
        flips = (
            f'<button type="button" data-flip="{name}" data-inputs="{",".join(inputs(name))}" disabled>'
            'What would flip it?</button><ul class="workbench-flips" aria-live="polite"></ul>'
            if name in ("plan", "serve")
            else ""
        )
        page, _, anchor = address.partition("#")
        href = self.env.app.builder.get_relative_uri(self.env.docname, page) + f"#{anchor}" * bool(anchor)
        return (
            f'<section class="workbench-panel" data-panel="{name}" id="workbench-{name}">'
            f'<h2>{escape(title)}</h2><div class="workbench-shown"></div>{flips}'
            f'<p class="workbench-teaches"><a href="{href}">{escape(taught)}</a></p></section>'
        )


def _offered() -> str:
    """What may be typed for a model and for a machine."""
    lists = {"models": [model.name for model in models.CATALOGUE], "machines": [*MACHINES, *_chips()]}
    return "".join(
        f'<datalist id="workbench-{name}">{"".join(map(_option, told))}</datalist>'
        for name, told in lists.items()
    )


def _option(told: str) -> str:
    return f"<option>{escape(told)}</option>"


def _chips() -> list[str]:
    """One domain of each chip under switches."""
    return [chip.name.lower() for chip in chips.KNOWN.values() if not chip.torus]


def _form() -> str:
    fields = "".join(map(_field, FIELDS))
    return (
        '<form class="workbench-setup" autocomplete="off"><fieldset><legend>Set-up</legend>'
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
        options = "".join(map(_option, field.offered))
        entry = f'<select id="{id}" name="{field.name}"{described}>{options}</select>'
    else:
        listed = {"model": "models", "machine": "machines", "server": "machines"}.get(field.name)
        offers = f' list="workbench-{listed}"' if listed else ""
        entry = (
            f'<input id="{id}" name="{field.name}" value="{escape(field.start)}" spellcheck="false" '
            f'autocapitalize="off" maxlength="200"{offers}{described}>'
        )
    label = f'<label for="{id}">{escape(field.label)}</label>'
    return f'<div class="workbench-field">{label}{entry}{hint}<p class="workbench-error" hidden></p></div>'


def _lines() -> str:
    start = Setup.of({})
    return "\n".join(start.line(command) for command in ("model", "plan", "serve"))


def _known(panels: list[str]) -> str:
    """What the page asks first, answered: it is shown before any Python has come."""
    start = {"values": dict(Setup.of({}).values), "config": ""}
    asked = [{"ask": "lines"}, *({"ask": "panel", "panel": name} for name in panels)]
    questions = [one | {"setups": [start]} for one in asked]
    told = [[question, json.loads(workbench_json(json.dumps(question)))] for question in questions]
    return f'<template class="workbench-known">{escape(json.dumps(told), quote=False)}</template>'


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("workbench", Workbench)
