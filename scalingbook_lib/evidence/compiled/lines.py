"""Which lines of real programs are recorded? One of every sort that a reader of a profile meets.

Compiled for v5e, the settings for the compiler's own use (`backend_config`) left out. Chapter: Profiling.
"""

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.compiled.line import Line

LINES: dict[str, Line]
"""By what they are."""


def _lines() -> dict[str, Line]:
    """JSON has lists where a line has tuples."""
    found = {}
    for row in resources.record("compiled_lines"):
        pairs = {name: tuple(map(tuple, row[name])) for name in ("groups", "moves")}
        found[row["title"]] = Line(**row | pairs)
    return found


__getattr__ = resources.lazily(__name__, {"LINES": _lines})
