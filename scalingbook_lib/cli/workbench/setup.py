"""What does a reader of the workbench set, and which commands does it become?

Each field is an argument or an option of the command line, so a set-up is the commands that repeat it.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

CONFIG = "config.json"  # what a pasted model is called, in the commands too
ARGUMENT = ""
_PLAN, _SERVE = "plan", "serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a reader sets: what stands there at first, what is offered, and the option of each command."""

    name: str
    label: str
    options: Mapping[str, str]
    start: str = ""
    hint: str = ""
    offered: tuple[str, ...] = ()


def _alike(option: str, *commands: str) -> dict[str, str]:
    return dict.fromkeys(commands, option)


_TYPES = ("bf16", "fp8", "int8", "int4", "fp4")
FIELDS = (
    Field(
        name="model",
        label="Model",
        start="llama-3-70b",
        hint="a name of the catalogue, or paste a config.json below",
        options=_alike(ARGUMENT, "model", _PLAN, _SERVE),
    ),
    Field(
        name="machine",
        label="Machine to train on",
        start="v5p:8x8x8",
        hint="a slice as v5p:8x8x8, or chips under switches as h100:512",
        options={_PLAN: ARGUMENT},
    ),
    Field(
        name="sequence",
        label="Tokens of a sequence",
        start="8192",
        options=_alike("--sequence", "model", _PLAN),
    ),
    Field(
        name="batch",
        label="Batch of a training step",
        start="4Mi",
        hint="tokens as 4Mi, or sequences as 512",
        options={_PLAN: "--batch"},
    ),
    Field(name="tokens", label="Tokens of the whole run", start="15T", options={_PLAN: "--tokens"}),
    Field(name="server", label="Machine to serve on", start="h100:8", options={_SERVE: ARGUMENT}),
    Field(name="prompt", label="Tokens of a prompt", start="1024", options={_SERVE: "--prompt"}),
    Field(name="output", label="Tokens of an answer", start="512", options={_SERVE: "--output"}),
    Field(
        name="itl",
        label="Deadline for a token",
        start="50ms",
        hint="leave it empty for none",
        options={_SERVE: "--itl"},
    ),
    Field(
        name="weights",
        label="Served weights",
        start="bf16",
        offered=_TYPES,
        options={_SERVE: "--weights"},
    ),
    Field(
        name="kv",
        label="KV cache",
        start="bf16",
        offered=_TYPES,
        options={"model": "--cache", _SERVE: "--kv"},
    ),
    Field(
        name="compute",
        label="Products in",
        start="bf16",
        offered=("bf16", "fp8", "int8"),
        options=_alike("--compute", _PLAN, _SERVE),
    ),
    Field(
        name="price",
        label="USD for an hour of a chip",
        hint="of both machines; empty: as the catalogue has it",
        options=_alike("--usd-per-hour", _PLAN, _SERVE),
    ),
    Field(
        name="efficiency",
        label="Efficiency",
        start="calibrated",
        offered=("calibrated", "peak"),
        hint="calibrated: as published runs have reached",
        options=_alike("--efficiency", _PLAN, _SERVE),
    ),
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a reader has set, by the fields' names, and the text of a config.json, if one was pasted."""

    values: tuple[tuple[str, str], ...]
    config: str = ""

    @classmethod
    def of(cls, values: Mapping[str, str], config: str = "") -> "Setup":
        """What is not said is as it starts; a field that there is not is refused."""
        if unknown := set(values) - {field.name for field in FIELDS}:
            raise ValueError(f"the workbench has no field {sorted(unknown)[0][:40]!r}")
        known = {field.name: field.start for field in FIELDS} | dict(values)
        if config.strip():
            known["model"] = CONFIG
        return cls(tuple((name, value.strip()) for name, value in known.items()), config.strip())

    def words(self, command: str) -> list[str]:
        """The command as a shell splits it."""
        values = dict(self.values)
        told = [(field.options.get(command), values[field.name]) for field in FIELDS]
        arguments = [value for option, value in told if option == ARGUMENT]
        causal = ["--causal"] * (command == "model")  # as plans count
        options = [*causal, *(word for option, value in told if option and value for word in (option, value))]
        odd = any(value.startswith("-") for value in arguments)  # else one would be read as an option
        return [command, *options, "--", *arguments] if odd else [command, *arguments, *options]

    def line(self, command: str) -> str:
        """The command as one types it."""
        return shlex.join(["scalingbook", *self.words(command)])


def field_of(command: str, option: str) -> str:
    """The field whose option, or argument, a command refused; '' where it was none."""
    for field in FIELDS:
        known = field.options.get(command)
        argument = known == ARGUMENT and option == ("model" if field.name == "model" else "machine")
        if argument or (known and known == option):
            return field.name
    return ""
