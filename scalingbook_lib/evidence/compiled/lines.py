"""Which lines of real programs are recorded? One of every sort that a reader of a profile meets.

Compiled for v5e, the settings for the compiler's own use (`backend_config`) left out. Chapter: Profiling.
"""

from typing import Any

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.compiled.line import Line

LINES: dict[str, Line]
"""By what they are."""


def _lines() -> dict[str, Line]:
    return {row["title"]: _line(**row) for row in resources.record("compiled_lines")}


def _line(groups: list[list[int]], moves: list[list[int]], **words: Any) -> Line:
    """JSON has lists where a line has tuples."""
    return Line(**words, groups=tuple(map(tuple, groups)), moves=tuple((at, to) for at, to in moves))


__getattr__ = resources.lazily(__name__, {"LINES": _lines})
