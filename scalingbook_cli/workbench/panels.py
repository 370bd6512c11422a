"""The content of each Workbench panel: whether it fits, a picture, the command's answer, the derivation."""

from collections.abc import Callable
from typing import Any

from scalingbook_cli.workbench import pictures, shown
from scalingbook_cli.workbench.answers import UnreadableCommand, answered, derived, read
from scalingbook_cli.workbench.fit import WHAT, settled
from scalingbook_cli.workbench.setup import WorkbenchSetup
from scalingbook_cli.workbench.wording import for_page
from scalingbook_lib.calibrated.overhead import chip_hour_overhead
from scalingbook_lib.machines import Machine, Slice
from scalingbook_lib.units import count, count_in_words, price, rounded, si

type Panel = dict[str, Any]
RUN = "The whole run"  # the table of a training run, which only the cost panel shows
LONG_DAYS, SHORTER_DAYS = 365, 90  # of a run that is too long for most projects, and of one that is not
_EMPTY: Panel = {"told": [], "searched": [], "tables": [], "lines": [], "refused": False}


def panel(setup: WorkbenchSetup, panel: str) -> Panel:
    """A panel's content, and its HTML."""
    found = PANELS[panel](setup)
    return found | {"html": shown.column(found)}


def problem(says: str, command: str = "") -> Panel:
    """A panel without an answer, with the reason in a sentence."""
    found = _EMPTY | {"refused": True, "error": says}
    bar = shown.bar(f"{WHAT[command]} is not possible", fits=None) if command in WHAT else ""
    return found | {"html": shown.column(found), "bar": bar}


def _command(setup: WorkbenchSetup, command: str) -> Panel:
    """The command's answer, with the picture of the best plan or layout if there is one."""
    found: Panel = {**answered(setup, command).json(), "fit": settled(setup, command).json(command)}
    if found["refused"]:  # the first line has the reason
        return found | {"told": []}
    found["tables"] = [table for table in found["tables"] if table["title"] != RUN]
    if command == "plan":
        found["told"] += _too_long(setup)
    found["fit"]["bar"] = shown.bar(found["fit"]["short"], found["fit"]["fits"], NUMBERS[command](setup))
    return found | {"picture": pictures.drawn(setup, command)}


def _model(setup: WorkbenchSetup) -> Panel:
    """The memory that the model needs, and whether both machines have enough in total."""
    values: Any = answered(setup, "model").answer.values
    state, params = values["training_state"]["total_bytes"], values["parameters"]["total"]
    told = []
    for command in WHAT:
        try:
            typed = read(setup, command)
        except UnreadableCommand:  # the field says why
            continue
        what, nbytes = (
            ("training state", state) if command == "plan" else ("weights", params * typed["weights"].bytes)
        )
        machine = typed["machine"]
        room = machine.chips * machine.chip.hbm_bytes
        share = "less than 1% of" if nbytes < room / 100 else f"{nbytes / room:.0%} of"
        share = share if nbytes <= room else f"{nbytes / room:.2g} times"
        fills, rest = ("fills", ", before activations") if command == "plan" else ("fill", "")
        if nbytes > room:
            fills = "needs" if command == "plan" else "need"
        told.append(f"The {what} {fills} {share} the memory (HBM) of {_called(machine)}{rest}")
    fit = {"fits": None, "told": ". ".join(told) + ".", "short": "", "apply": None}
    return {**answered(setup, "model").json(), "fit": fit, "picture": pictures.drawn(setup, "model")}


def _roofline(setup: WorkbenchSetup) -> Panel:
    """The matmul of each phase, and the phases that do not fit."""
    found = pictures.products(setup)
    lines = [line for name, one in found.items() for line in derived(one.derivation(name))]
    return _EMPTY | {"fit": _misses(setup), "lines": lines, "picture": pictures.drawn(setup, "roofline")}


def _cost(setup: WorkbenchSetup) -> Panel:
    """The run as planned and as expected, its cost, and that of a million output tokens in a sentence."""
    answers = {}
    for command in WHAT:
        try:
            answers[command] = answered(setup, command)
        except ValueError:  # its own panel says why
            continue
    tables = [table for one in answers.values() for table in one.json()["tables"] if table["title"] == RUN]
    told = []
    if (trained := answers.get("plan")) and not trained.answer.refused:
        told += _run_cost(trained.answer.values)
    if (served := answers.get("serve")) and not served.answer.refused:
        usd = served.answer.values["usd_per_million_output_tokens"]
        told += [] if usd is None else [f"Serving costs ${price(usd)} per million output tokens."]
    fit = _misses(setup)
    return _EMPTY | {"fit": fit, "told": told, "tables": tables, "refused": not (tables or told)}


def _run_cost(values: Any) -> list[str]:
    """The expected cost of a training run and that of its steps, or nothing without a run or a price."""
    planned, expected = (values.get(name) or {} for name in ("run", "billed"))
    if planned.get("usd") is None or expected.get("usd") is None:
        return []
    whole, steps = (count_in_words(rounded(run["usd"])) for run in (expected, planned))
    return [f"Training is expected to cost {whole} USD ({steps} USD for the steps alone)."]


def _too_long(setup: WorkbenchSetup) -> list[str]:
    """A remark on a run that is expected to take more than a year, with the chips that would shorten it."""
    run: Any = answered(setup, "plan").answer.values.get("billed")
    if not run or run["days"] <= LONG_DAYS:
        return []
    chips = rounded(read(setup, "plan")["machine"].chips * run["days"] / SHORTER_DAYS, 2)
    return [
        f"A run of {count(round(run['days']))} days is too long for most projects. At the same efficiency, "
        f"about {count(chips)} chips would finish it in {SHORTER_DAYS} days."
    ]


def _called(machine: Machine) -> str:
    """A machine in a sentence: 'a TPU v5p slice of 8 × 8 × 8 chips', '8 H100s'."""
    name = machine.chip.name
    if isinstance(machine, Slice):
        return f"a {name} slice of {' × '.join(map(str, machine.shape))} chips"
    return f"{machine.chips:,} {name}s" if machine.chips > 1 else f"one {name}"


def _misses(setup: WorkbenchSetup) -> dict[str, Any]:
    """One line on the phases that do not fit, or nothing where both do."""
    told = [said for command in WHAT if (said := _miss(setup, command))]
    return {"fits": None, "told": ". ".join(told) + "." * bool(told), "short": "", "apply": None}


def _miss(setup: WorkbenchSetup, command: str) -> str:
    try:
        found = settled(setup, command)
    except ValueError as refused:
        return f"{WHAT[command]} is not possible: {for_page(str(refused))}"
    return "" if found.fits and not found.late else found.short


def _trained(setup: WorkbenchSetup) -> str:
    values: Any = answered(setup, "plan").answer.values
    run = values.get("run")
    days = f", {_days(run['days'])}" if run else ""
    return f"{si(values['step_time_s'], 's')} per step at {values['mfu']:.0%} MFU{days}"


def _served(setup: WorkbenchSetup) -> str:
    values: Any = answered(setup, "serve").answer.values
    usd = values["usd_per_million_output_tokens"]
    cost = "" if usd is None else f", ${price(usd)} per million output tokens"
    first, each = si(values["ttft_s"], "s"), si(values["itl_s"], "s")
    return f"first token after {first}, inter-token latency {each}{cost}"


def _days(planned: float) -> str:
    """The days that a run is likely to take, and those of its steps alone."""
    expected = planned * chip_hour_overhead().factor
    return f"{count(round(expected) or 1)} days expected ({count(round(planned) or 1)} for the steps alone)"


NUMBERS: dict[str, Callable[[WorkbenchSetup], str]] = {"plan": _trained, "serve": _served}
PANELS: dict[str, Callable[[WorkbenchSetup], Panel]] = {
    "model": _model,
    "roofline": _roofline,
    "plan": lambda setup: _command(setup, "plan"),
    "serve": lambda setup: _command(setup, "serve"),
    "cost": _cost,
}
