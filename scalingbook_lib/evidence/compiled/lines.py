"""Recorded HLO lines, one of every kind that a reader of a profile meets.

Compiled for v5e; the `backend_config` is left out. Chapter: Profiling.
"""

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.compiled.line import ProgramRecord

LINES: dict[str, ProgramRecord]
"""Lines by title."""


def _lines() -> dict[str, ProgramRecord]:
    """The recorded lines, with JSON's lists as tuples."""
    found = {}
    for row in resources.record("compiled_lines"):
        pairs = {name: tuple(map(tuple, row[name])) for name in ("groups", "moves")}
        found[row["title"]] = ProgramRecord(**row | pairs)
    return found


__getattr__ = resources.lazy_attributes(__name__, {"LINES": _lines})
