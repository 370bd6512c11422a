"""Can a reader read a compiled program and a profile, and mend what they show? Checks of the chapter."""

from scalingbook_book.chapters.profiling.checks.compiled import COMPILED
from scalingbook_book.chapters.profiling.checks.predicted import PREDICTED
from scalingbook_book.chapters.profiling.checks.traces import TRACES
from scalingbook_book.chapters.profiling.checks.written import WRITTEN

CHECKS = PREDICTED + TRACES + COMPILED + WRITTEN
