"""How does the page Workbench ask the command line? With a set-up, as JSON; the answer is JSON, too.

The page loads this wing and Click as soon as its Python is live; the first answers lie in it from the build.
"""

import json
from collections.abc import Callable
from typing import Any

from scalingbook_lib.cli.workbench import differences, flips, pictures
from scalingbook_lib.cli.workbench.answers import COMMANDS, Refused, answered, derived
from scalingbook_lib.cli.workbench.setup import Setup

COSTS = {"plan": "The whole run", "serve": "One copy of the model"}  # tables with prices and energy
PRICED = (  # of their derivations
    "T, the whole run", "chip-hours", "USD",
    "output tokens each second of a copy", "USD for a million output tokens",
)  # fmt: skip


def workbench_json(question: str) -> str:
    """What one panel shows: `{"ask": "panel", "panel": "plan", "setups": [...]}`, and so on.

    A set-up is `{"values": {...}, "config": "..."}`. What is refused is `{"error": ..., "field": ...}`.
    """
    asked = json.loads(question)
    try:
        setups = [Setup.of(one["values"], one.get("config", "")) for one in asked.pop("setups")]
        return json.dumps(ASKED[asked.pop("ask")](*setups, **asked))
    except Refused as refused:
        return json.dumps({"error": str(refused), "field": refused.field})
    except (ValueError, ArithmeticError) as refused:
        return json.dumps({"error": str(refused), "field": ""})


def _panel(setup: Setup, panel: str) -> dict[str, Any]:
    """A command's answer and its picture; of the roofline, and of costs, what the commands say of them."""
    if panel == "cost":
        return _cost(setup)
    if panel == "roofline":
        found = pictures.products(setup)
        lines = [line for name, one in found.items() for line in derived(one.derivation(name))]
        picture = pictures.drawn(setup, panel)
        return {"told": [], "tables": [], "lines": lines, "refused": False, "picture": picture}
    found = answered(setup, panel).json()
    return found if found["refused"] else found | {"picture": pictures.drawn(setup, panel)}


def _cost(setup: Setup) -> dict[str, Any]:
    """The run and a million tokens in money and in energy, and how far such figures are off."""
    answers = [answered(setup, command).json() for command in COSTS]
    tables = [
        table
        for answer in answers
        for table in answer["tables"]  # type: ignore[attr-defined]
        if table["title"] in COSTS.values()
    ]
    said = [
        f"{title}: {line}"
        for title, answer in zip(COSTS.values(), answers, strict=True)
        for line in answer["told"]  # type: ignore[attr-defined]
        if "factor of" in line or "billed" in line
    ]
    lines = [line for answer in answers for line in answer["lines"] if line["name"] in PRICED]  # type: ignore[attr-defined]
    return {"told": said, "tables": tables, "lines": lines, "refused": not tables}


def _flip(setup: Setup, command: str, what: str) -> dict[str, Any]:
    return {"told": str(flips.flip(setup, command, what))}


def _difference(one: Setup, other: Setup) -> dict[str, Any]:
    rows = differences.rows(one, other)
    return {"inputs": differences.inputs(one, other), "rows": rows, "why": differences.why(one, other)}


def _values(setup: Setup) -> dict[str, Any]:
    return {command: json.loads(json.dumps(answered(setup, command).answer.values)) for command in COMMANDS}


ASKED: dict[str, Callable[..., dict[str, Any]]] = {
    "panel": _panel, "flip": _flip, "differences": _difference, "values": _values,
    "lines": lambda setup: {"lines": [setup.line(command) for command in COMMANDS]},
}  # fmt: skip
