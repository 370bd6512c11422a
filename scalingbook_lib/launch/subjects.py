"""Which flag does each launcher have for the same thing? One comparison table per subject.

`flags/subjects.csv` says which flag answers to which of the book's terms, and how its value is written.
Everything else about a flag is looked up in the table of its launcher, the one that reads launch commands.
Chapters: Training; Inference; Low precision; Profiling.

>>> print(comparison("profiling", "training").of("steps recorded").switches["maxtext"][0])
profiler_steps=steps
"""

from dataclasses import dataclass
from functools import cache

from scalingbook_lib.launch.flags import LAUNCHERS, Flag, csv_rows, table
from scalingbook_lib.units import Result

SUBJECTS = ("training", "inference", "lowprecision", "profiling")
KINDS = ("training", "serving")
_COLUMNS = {
    "training": ("maxtext", "megatron", "torchtitan", "deepspeed"),
    "serving": ("vllm", "sglang", "tensorrt_llm"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A flag and the form of its value; without a flag, the remark says what the launcher does instead."""

    launcher: str
    flag: Flag | None
    value: str
    remark: str

    @property
    def setting(self) -> str:
        """The flag as one writes it: `--flag value`, `key=value`, `key: value` or `POST /path`."""
        if self.flag is None:
            return ""
        name = self.flag.flag
        if name.startswith("/"):
            return f"POST {name}"
        if not self.value:
            return name
        if name.startswith("-"):
            return f"{name} {self.value}"
        if name.startswith("$"):
            return f"{name[1:]}={self.value}"
        return (
            f"{name}={self.value}" if self.launcher in ("maxtext", "torchtitan") else f"{name}: {self.value}"
        )

    @property
    def note(self) -> str:
        """The remark, in parentheses behind a flag."""
        return f"({self.remark})" if self.setting and self.remark else self.remark

    def __str__(self) -> str:
        return f"{self.setting} {self.note}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Result):
    """One of the book's terms, and the flags for it by launcher; a launcher without any has none."""

    term: str
    switches: dict[str, tuple[Switch, ...]]

    def __str__(self) -> str:
        cells = (
            f"{LAUNCHERS[launcher]} {' '.join(map(str, some)) if some else '—'}"
            for launcher, some in self.switches.items()
        )
        return f"{self.term}: {'; '.join(cells)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagComparison(Result):
    """The flags of several launchers for the terms of one subject."""

    subject: str
    kind: str
    launchers: tuple[str, ...]
    lines: tuple[Line, ...]

    def of(self, term: str) -> Line:
        """The line of a term."""
        return next(line for line in self.lines if line.term == term)

    def sources(self, launcher: str) -> tuple[tuple[str, str], ...]:
        """The versions and dates of that launcher's flags, each once, in the order of the lines."""
        flags = [one.flag for line in self.lines for one in line.switches[launcher] if one.flag]
        return tuple(dict.fromkeys((flag.version, flag.as_of) for flag in flags))

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))


@cache
def comparison(subject: str, kind: str) -> FlagComparison:
    """The table of a subject for the launchers of training or of serving.

    A launcher without a single flag for the subject has no column.
    """
    rows = [row for row in csv_rows("subjects") if (row["subject"], row["kind"]) == (subject, kind)]
    if not rows:
        raise ValueError(
            f"there is no table of flags for {subject!r} and {kind!r}; write one of {', '.join(SUBJECTS)}, "
            f"and one of {', '.join(KINDS)}"
        )
    launchers = tuple(name for name in _COLUMNS[kind] if any(row["launcher"] == name for row in rows))
    found: dict[str, dict[str, list[Switch]]] = {}
    for row in rows:
        cells = found.setdefault(row["term"], {name: [] for name in launchers})
        cells[row["launcher"]].append(_switch(row))
    lines = tuple(
        Line(term=term, switches={name: tuple(some) for name, some in cells.items()})
        for term, cells in found.items()
    )
    return FlagComparison(subject=subject, kind=kind, launchers=launchers, lines=lines)


def _switch(row: dict[str, str]) -> Switch:
    flag = next((one for one in table(row["launcher"]).rows if one.flag == row["flag"]), None)
    if row["flag"] and flag is None:
        raise ValueError(
            f"subjects.csv: {row['flag']!r} is not in {row['launcher']}.csv; add it there, with its source"
        )
    return Switch(launcher=row["launcher"], flag=flag, value=row["value"], remark=row["remark"])
