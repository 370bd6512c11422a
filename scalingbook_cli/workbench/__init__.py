"""The JSON interface between the Workbench page and the command line.

The page loads this package and Click once its Python runs; the first answers are embedded at build time.
"""

import json
from collections.abc import Callable
from typing import Any

from scalingbook_cli.workbench import differences, fit, flips, notebook, panels, shown
from scalingbook_cli.workbench.answers import COMMANDS, UnreadableCommand, answered, read
from scalingbook_cli.workbench.setup import FIELDS, WorkbenchSetup
from scalingbook_cli.workbench.wording import for_page

UNFORESEEN = "The library failed with an internal error"


def workbench_json(question: str) -> str:
    """The answer to a question such as `{"ask": "panel", "panel": "plan", "setups": [...]}`, as JSON.

    A set-up is `{"values": {...}, "config": "..."}`. A refused question gives `{"error": ..., "field": ...}`,
    with HTML for a panel; so does an internal error, because a traceback does not help a reader.
    """
    asked = json.loads(question)
    about = asked.get("panel") or asked.get("command") or ""
    try:
        setups = [WorkbenchSetup.of(one["values"], one.get("config", "")) for one in asked.pop("setups")]
        return json.dumps(ASKED[asked.pop("ask")](*setups, **asked))
    except UnreadableCommand as refused:
        return _refused(str(refused), about, refused.field)
    except (ValueError, ArithmeticError) as refused:
        return _refused(for_page(str(refused)), about)
    except Exception as fault:
        told = (
            f"{UNFORESEEN} ({type(fault).__name__}: {fault}). "
            "The commands at the bottom of the page reproduce it."
        )
        return _refused(told, about)


def _refused(says: str, about: str, field: str = "") -> str:
    shown = panels.problem(says, about)
    return json.dumps({"error": says, "field": field, "html": shown["html"], "bar": shown["bar"]})


def _fit(setup: WorkbenchSetup, command: str) -> dict[str, Any]:
    return fit.fit(setup, command).json(command)


def _flip(setup: WorkbenchSetup, command: str, what: str) -> dict[str, Any]:
    return {"told": str(flips.flip(setup, command, what))}


def _difference(one: WorkbenchSetup, other: WorkbenchSetup) -> dict[str, Any]:
    rows = differences.rows(one, other)
    told = {"inputs": differences.inputs(one, other), "rows": rows, "why": differences.why(one, other)}
    return told | {"html": shown.differences(told)}


def _values(setup: WorkbenchSetup) -> dict[str, Any]:
    return {command: json.loads(json.dumps(answered(setup, command).answer.values)) for command in COMMANDS}


def _lines(setup: WorkbenchSetup) -> dict[str, Any]:
    """The commands, notes on corrected input, and errors."""
    errors = {}
    for command in COMMANDS:
        try:
            read(setup, command)
            if command == "plan":
                fit.asked_of(setup, command)  # reads the batch
        except UnreadableCommand as refused:
            errors[refused.field] = str(refused)
        except ValueError:  # not of a field: its panel says so
            continue
    named = read(setup, "model")["model"].name if setup.config and "model" not in errors else ""
    return {
        "lines": [setup.line(command) for command in COMMANDS],
        "notes": [{"field": note.field, "says": note.says} for note in setup.notes],
        "errors": [{"field": f.name, "error": errors[f.name]} for f in FIELDS if f.name in errors],
        "model": named,
    }


ASKED: dict[str, Callable[..., dict[str, Any]]] = {
    "panel": panels.panel, "fit": _fit, "flip": _flip, "differences": _difference, "values": _values,
    "lines": _lines, "notebook": lambda *setups: {"cells": notebook.cells(setups)},
}  # fmt: skip
