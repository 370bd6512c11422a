"""Which lines of real programs are kept? One of every sort that a reader of a profile meets.

Compiled for v5e, the settings for the compiler's own use (`backend_config`) left out. Chapter: Profiling.
"""

from scalingbook_lib.evidence.compiled.line import Line
from scalingbook_lib.evidence.compiled.lines_recorded import KEPT

LINES: dict[str, Line] = {kept["title"]: Line(**kept) for kept in KEPT}
"""By what they are."""
