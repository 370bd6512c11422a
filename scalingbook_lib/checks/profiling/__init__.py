"""Can a reader read a compiled program and a profile, and mend what they show? Checks of the chapter."""

from scalingbook_lib.checks.profiling.compiled import COMPILED
from scalingbook_lib.checks.profiling.predicted import PREDICTED
from scalingbook_lib.checks.profiling.traces import TRACES
from scalingbook_lib.checks.profiling.written import WRITTEN

_ALL = PREDICTED + TRACES + COMPILED + WRITTEN

CHECKS = tuple(sorted(_ALL, key=lambda check: int(check.key.partition(".")[2])))
