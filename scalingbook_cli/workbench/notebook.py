"""The cells of the notebook that the Workbench saves, which compute the results of a set-up."""

import json
from collections.abc import Iterable
from typing import Any

from scalingbook_cli.workbench.answers import answered, read
from scalingbook_cli.workbench.fit import WHAT, asked_of, short
from scalingbook_cli.workbench.setup import CONFIG, WorkbenchSetup
from scalingbook_lib.machines import Machine, Slice
from scalingbook_lib.machines.torus import write_shape
from scalingbook_lib.units import BF16, DType

type Cell = dict[str, str]


def cells(setups: Iterable[WorkbenchSetup]) -> list[Cell]:
    """Cells for training and serving of each set-up; cells that two set-ups share appear once."""
    told: list[Cell] = []
    for setup in setups:
        if setup.config:
            written = f"from pathlib import Path\n\nPath({CONFIG!r}).write_text({setup.config!r})"
            told.append({"kind": "code", "source": written})
        for command, lines in (("plan", _training), ("serve", _serving)):
            said = f"## {WHAT[command]}\n\nThe same from a terminal:\n\n```\n{setup.line(command)}\n```"
            told += [{"kind": "markdown", "source": said}, {"kind": "code", "source": lines(setup)}]
    return [cell for at, cell in enumerate(told) if cell not in told[:at]]


def _training(setup: WorkbenchSetup) -> str:
    asked, fixed = asked_of(setup, "plan")
    values = read(setup, "plan")
    kind, machine = _machine(asked.machine)
    efficiency, _ = _efficiency(setup, "training", f'"{fixed.get("compute", BF16)}"')
    efficiency = efficiency or ["pessimistic=False"]
    settings = ["model", "machine", f"batch={asked.batch}", f"T={asked.T}", *efficiency, *_fixed(fixed)]
    ends = ["print(found)"]
    if values["tokens"] and not answered(setup, "plan").answer.refused:
        price = f", usd_per_hour={values['usd_per_hour']:g}" if values["usd_per_hour"] else ""
        run = f"training.run(found.winner.step, tokens={values['tokens']:_}{price})"
        ends.append(f"print({run})")
    return "\n".join(
        (
            "from scalingbook_lib import calibrated, models, training",
            f"from scalingbook_lib.machines import {kind}, chips",
            *_units(fixed),
            "",
            f"model = {_model(setup)}",
            f"machine = {machine}",
            _call("found = calibrated.recommend", [*settings, "keep=5"]),
            *ends,
        )
    )


def _serving(setup: WorkbenchSetup) -> str:
    asked, fixed = asked_of(setup, "serve")
    values = read(setup, "serve")
    kind, machine = _machine(asked.machine)
    efficiency, lines = _efficiency(setup, "serving", str(fixed.get("compute", BF16)).upper())
    compute = [] if not efficiency or "calibrated" not in efficiency[0] else [fixed.get("compute", BF16)]
    limits = [f"itl_s={values['itl_s']:g}"] if values["itl_s"] else []
    price = [f"usd_per_hour={values['usd_per_hour']:g}"] if values["usd_per_hour"] else []
    load = [f"P={asked.P}", f"G={asked.G}", *limits, f"reserve={asked.free_share:g}", *price]
    load += [f"chunk={asked.step_tokens}"]
    settings = [
        "model",
        "server",
        *load,
        *(one.replace("machine", "server") for one in efficiency),
        *_fixed(fixed),
    ]
    return "\n".join(
        (
            "from scalingbook_lib import models, planner",
            *lines,
            f"from scalingbook_lib.machines import {kind}, chips",
            *_units(fixed, *compute),
            "",
            f"model = {_model(setup)}",
            f"server = {machine}",
            _call("front = planner.serve", settings),
            "print(front)",
            "print(front.best)",
        )
    )


def _call(function: str, arguments: list[str]) -> str:
    """A call with its short arguments on one line and each longer one on its own line."""
    short = ", ".join(one for one in arguments if "(" not in one)
    long = [one for one in arguments if "(" in one]
    return "\n".join((f"{function}(", *(f"    {line}," for line in (short, *long)), ")"))


def _model(setup: WorkbenchSetup) -> str:
    name = json.dumps(CONFIG if setup.config else dict(setup.values)["model"])
    return f"models.from_hf({name})" if setup.config else f"models.find({name})"


def _machine(machine: Machine) -> tuple[str, str]:
    """The class of a machine, and the expression that creates it."""
    chip = f'chips.find("{short(machine.chip)}")'
    if isinstance(machine, Slice):
        return "Slice", f'Slice.of({chip}, "{write_shape(machine.shape)}")'
    return "Cluster", f"Cluster.of({chip}, {machine.chips})"


def _efficiency(setup: WorkbenchSetup, phase: str, compute: str) -> tuple[list[str], list[str]]:
    """The argument for the efficiency, and its import; the planner's own default is the documented peak."""
    if dict(setup.values)["efficiency"] != "calibrated":
        return [], []
    return [f"efficiency=calibrated.{phase}(machine.chip, {compute})"], [
        "from scalingbook_lib import calibrated"
    ]


def _fixed(fixed: dict[str, Any]) -> list[str]:
    """The argument for the dtypes that are not bf16."""
    told = ", ".join(f"{n}={t.name.upper()}" for n, t in fixed.items() if isinstance(t, DType) and t != BF16)
    return [f"fixed=dict({told})"] if told else []


def _units(fixed: dict[str, Any], *more: DType) -> list[str]:
    """The import of the dtypes that the cell uses."""
    named = {t.name.upper() for t in (*fixed.values(),) if isinstance(t, DType) and t != BF16}
    named |= {t.name.upper() for t in more}
    return [f"from scalingbook_lib.units import {', '.join(sorted(named))}"] if named else []
