"""The fields of the Workbench, and the commands that a set-up corresponds to.

Each field is an argument or an option of the command line, so a set-up can be repeated in a terminal.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from scalingbook_cli.workbench import notation

CONFIG = "config.json"  # what a pasted model is called, in the commands too
ARGUMENT = ""
_PLAN, _SERVE = "plan", "serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field: its initial value, its suggestions, and the option of each command.

    `example` says what to write in a field that has a number, and an `optional` field may be empty.
    """

    name: str
    label: str
    options: Mapping[str, str]
    start: str = ""
    hint: str = ""
    offered: tuple[str, ...] = ()
    example: str = ""
    optional: bool = False


def _alike(option: str, *commands: str) -> dict[str, str]:
    return dict.fromkeys(commands, option)


_TYPES = ("bf16", "fp8", "int8", "int4", "fp4")
FIELDS = (
    Field(
        name="model",
        label="Model",
        start="llama-3-70b",
        hint="from the catalog, or paste a config.json below",
        options=_alike(ARGUMENT, "model", _PLAN, _SERVE),
    ),
    Field(
        name="machine",
        label="Training machine",
        start="v5p:8x8x8",
        hint="a TPU slice, as in v5p:8x8x8, or a GPU count, as in h100:512",
        options={_PLAN: ARGUMENT},
    ),
    Field(
        name="sequence",
        label="Sequence length",
        start="8192",
        hint="tokens",
        example="8192 or 8Ki",
        options=_alike("--sequence", "model", _PLAN),
    ),
    Field(
        name="batch",
        label="Global batch size",
        start="4Mi",
        hint="tokens, as in 4Mi (4 × 2²⁰), or sequences, as in 512",
        example="4Mi for tokens or 512 for sequences",
        options={_PLAN: "--batch"},
    ),
    Field(
        name="tokens",
        label="Training tokens",
        start="15T",
        hint="of the whole run",
        example="15T",
        optional=True,
        options={_PLAN: "--tokens"},
    ),
    Field(
        name="server",
        label="Serving machine",
        start="h100:8",
        hint="same format as the training machine",
        options={_SERVE: ARGUMENT},
    ),
    Field(
        name="prompt",
        label="Prompt length",
        start="1024",
        hint="tokens",
        example="1024 or 1Ki",
        options={_SERVE: "--prompt"},
    ),
    Field(
        name="output",
        label="Output length",
        start="512",
        hint="tokens",
        example="512",
        options={_SERVE: "--output"},
    ),
    Field(
        name="itl",
        label="ITL target",
        start="50ms",
        hint="inter-token latency; leave empty for no limit",
        example="50ms",
        optional=True,
        options={_SERVE: "--itl"},
    ),
    Field(
        name="weights",
        label="Weight dtype",
        start="bf16",
        hint="serving only",
        offered=_TYPES,
        options={_SERVE: "--weights"},
    ),
    Field(
        name="kv",
        label="KV-cache dtype",
        start="bf16",
        offered=_TYPES,
        options={"model": "--cache", _SERVE: "--kv"},
    ),
    Field(
        name="compute",
        label="Compute dtype",
        start="bf16",
        hint="training and serving",
        offered=("bf16", "fp16", "fp8", "int8", "fp4"),
        options=_alike("--compute", _PLAN, _SERVE),
    ),
    Field(
        name="price",
        label="Price per chip-hour",
        hint="USD, for both machines; leave empty for list prices",
        example="3.85",
        optional=True,
        options=_alike("--usd-per-hour", _PLAN, _SERVE),
    ),
    Field(
        name="efficiency",
        label="Efficiency",
        start="calibrated",
        offered=("calibrated", "peak"),
        hint="calibrated: what published runs achieve",
        options=_alike("--efficiency", _PLAN, _SERVE),
    ),
)


@dataclass(frozen=True, slots=True)
class WorkbenchSetup:
    """The values of all fields as commands parse them, and a pasted config.json, if any."""

    values: tuple[tuple[str, str], ...]
    config: str = ""
    notes: tuple[notation.Note, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, str], config: str = "") -> "WorkbenchSetup":
        """A set-up with the initial values for missing fields; raises a ValueError for an unknown field."""
        if unknown := set(values) - {field.name for field in FIELDS}:
            raise ValueError(f"the Workbench has no field {sorted(unknown)[0][:40]!r}")
        typed = {field.name: field.start for field in FIELDS} | dict(values)
        known, notes = notation.corrected({name: value.strip() for name, value in typed.items()})
        if config.strip():
            known["model"] = CONFIG
        return cls(tuple(known.items()), config.strip(), notes)

    def words(self, command: str) -> list[str]:
        """The words of a command."""
        values = dict(self.values)
        told = [(field.options.get(command), values[field.name]) for field in FIELDS]
        arguments = [value for option, value in told if option == ARGUMENT]
        causal = ["--causal"] * (command == "model")  # as plans count
        options = [*causal, *(word for option, value in told if option and value for word in (option, value))]
        odd = any(value.startswith("-") for value in arguments)  # else one would be read as an option
        return [command, *options, "--", *arguments] if odd else [command, *arguments, *options]

    def empty(self, command: str) -> Field | None:
        """The first field of a command that is empty and may not be; a pasted config is a model."""
        values = dict(self.values)
        needed = (field for field in FIELDS if command in field.options and not field.optional)
        return next((field for field in needed if not values[field.name]), None)

    def line(self, command: str) -> str:
        """The command as typed in a shell."""
        return shlex.join(["scalingbook", *self.words(command)])


def field_of(command: str, option: str) -> str:
    """The field for an option or argument of a command, or ""."""
    for field in FIELDS:
        known = field.options.get(command)
        argument = known == ARGUMENT and option == ("model" if field.name == "model" else "machine")
        if argument or (known and known == option):
            return field.name
    return ""
