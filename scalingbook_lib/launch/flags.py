"""The flags of every launcher: one CSV table for each, which the readers and the emitters use alike.

A row says what a flag means here. `key` is the name by which a reader asks for it, and is empty for a flag
that is known but not used. `effect` lists what the flag changes: time, memory, results, or none of them.
`agrees` are values with which the prediction agrees although it does not use the flag. A name that begins
with $ is an environment variable, and one that begins with / is an HTTP endpoint of the server.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

from scalingbook_lib.launch.settings import Setting
from scalingbook_lib.units import DType, dtype

EFFECTS = ("time", "memory", "results", "none")
TYPES = ("flag", "bool", "int", "float", "str", "dtype", "list", "json")
LAUNCHERS = {
    "maxtext": "MaxText",
    "megatron": "Megatron-LM",
    "megatron_bridge": "Megatron-Bridge",
    "torchtitan": "torchtitan",
    "accelerate": "Accelerate",
    "deepspeed": "DeepSpeed",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt_llm": "TensorRT-LLM",
}
"""The launchers by the name of their table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A row of a table; `as_of` is the day of the version, or the day on which its source was read."""

    flag: str
    also: tuple[str, ...]  # other spellings
    key: str
    concept: str
    type: str
    default: str
    effect: tuple[str, ...]
    agrees: tuple[str, ...]
    source: str
    version: str
    as_of: str
    note: str

    @property
    def counts(self) -> bool:
        """Whether it changes time or memory."""
        return "time" in self.effect or "memory" in self.effect

    def read(self, setting: Setting) -> object:
        """The value of a setting in the type of this flag; a LaunchError where it has another."""
        value = setting.value
        if value is None:
            return None
        if self.type in ("flag", "bool"):
            return _truth(setting)
        if self.type == "int":
            return _whole(setting)
        if self.type == "float":
            return _number(setting)
        if self.type == "dtype":
            return _dtype(setting)
        if self.type == "list":
            text = " ".join(map(str, value)) if isinstance(value, list) else str(value).strip("[]()")
            return tuple(text.replace(",", " ").split())
        if isinstance(value, list):
            return ",".join(map(str, value))
        return value if isinstance(value, dict) else str(setting.text if isinstance(value, bool) else value)


_ABBREVIATE = ("vllm", "sglang")


class Table:
    """The flags of one launcher, by any spelling."""

    def __init__(self, launcher: str, rows: Iterable[Flag]) -> None:
        self.launcher, self.rows = launcher, tuple(rows)

    @property
    def name(self) -> str:
        """The launcher's own name."""
        return LAUNCHERS[self.launcher]

    @cached_property
    def _by_name(self) -> dict[str, Flag]:
        found: dict[str, Flag] = {}
        for row in self.rows:
            for name in (row.flag, *row.also):
                found.setdefault(canonical(name), row)
        if self.launcher == "megatron_bridge":  # its scripts name options by the last part of a field
            for row in self.rows:
                found.setdefault(canonical(row.flag.rpartition(".")[2]), row)
        return found

    @cached_property
    def _by_key(self) -> dict[str, Flag]:
        return {row.key: row for row in reversed(self.rows) if row.key}

    def find(self, name: str) -> Flag | None:
        """The flag with that name, however dashes and underscores are written; by its last part if dotted.

        A row such as `checkpoint.*` stands for all names of a group that have no row of their own.
        """
        known, group = self._by_name, canonical(name.partition(".")[0])
        return (
            known.get(canonical(name))
            or known.get(f"{group}.*")
            or known.get(canonical(name.rpartition(".")[2]))
            or self._abbreviated(name)
        )

    def _abbreviated(self, name: str) -> Flag | None:
        """The only flag that begins with the name, for launchers whose parsers (argparse) accept prefixes."""
        if self.launcher not in _ABBREVIATE or not name.startswith("--") or "." in name:
            return None
        start = canonical(name)
        found = {row.flag: row for each, row in self._by_name.items() if each.startswith(start)}
        return next(iter(found.values())) if len(found) == 1 else None

    def of(self, key: str) -> Flag:
        """The first flag with that key."""
        return self._by_key[key]

    def has(self, key: str) -> bool:
        """Whether a flag has that key."""
        return key in self._by_key

    @property
    def version(self) -> str:
        """The version that the defaults are from."""
        return self.rows[0].version


@cache
def table(launcher: str) -> Table:
    """The table of a launcher.

    >>> table("vllm").of("memory_fraction").default
    '0.92'
    """
    return Table(launcher, map(_row, csv_rows(launcher)))


def csv_rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of a file in `flags`."""
    text = resources.files(__name__.rpartition(".")[0]).joinpath(f"flags/{name}.csv").read_text("utf-8")
    return csv.DictReader(text.splitlines())


def _row(row: dict[str, str]) -> Flag:
    return Flag(
        flag=row["flag"],
        also=tuple(row["also"].split()),
        key=row["key"],
        concept=row["concept"],
        type=row["type"],
        default=row["default"],
        effect=tuple(row["effect"].split()),
        agrees=tuple(row["agrees"].split("|")) if row["agrees"] else (),
        source=row["source"],
        version=row["version"],
        as_of=row["as_of"],
        note=row["note"],
    )


@cache
def meanings(launcher: str, key: str) -> dict[str, str]:
    """What the values of a flag mean here, such as the policies of rematerialization, from values.csv."""
    rows = csv_rows("values")
    return {row["value"]: row["means"] for row in rows if (row["launcher"], row["key"]) == (launcher, key)}


def canonical(name: str) -> str:
    """A name without leading dashes, in lower case, with underscores."""
    return name.lstrip("-").replace("-", "_").lower()


def _truth(setting: Setting) -> bool:
    words = {
        "true": True,
        "yes": True,
        "1": True,
        "on": True,
        "false": False,
        "no": False,
        "0": False,
        "off": False,
    }
    found = (
        setting.value if isinstance(setting.value, bool) else words.get(str(setting.value).strip().lower())
    )
    if found is None:
        raise setting.refuse("is neither true nor false", "write true or false")
    return found


def _number(setting: Setting, example: str = "0.9") -> float:
    text = str(setting.value).replace("_", "")
    try:
        found = float(text)
    except ValueError:
        raise setting.refuse("is not a number", f"write one as in {example}") from None
    if isinstance(setting.value, bool) or not abs(found) <= 1e18:
        raise setting.refuse("is not a number in a sensible range", f"write one as in {example}")
    return found


def _whole(setting: Setting) -> int:
    text = str(setting.value)
    if text[-1:].lower() in "km" and text[:-1].replace(".", "").isdigit():  # vLLM's 8k is 8,000 and 8K 8,192
        scale = {"k": 1000, "K": 1024, "m": 10**6, "M": 2**20}[text[-1]]
        found = float(text[:-1]) * scale
    else:
        found = _number(setting, "8")
    if found != int(found):
        raise setting.refuse("is not a whole number", "write one as in 8")
    return int(found)


def _dtype(setting: Setting) -> DType | None:
    text = str(setting.value).strip()
    if text.lower() in ("", "none", "auto"):
        return None
    try:
        return dtype(text)
    except ValueError as error:
        raise setting.refuse(
            "is not a data type", str(error).partition("; ")[2] or "write bfloat16"
        ) from error
