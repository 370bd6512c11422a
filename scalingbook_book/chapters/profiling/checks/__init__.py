"""Checks of the chapter: reading compiled programs and profiles, and fixing what they show."""

from scalingbook_book.chapters.profiling.checks.compiled import COMPILED
from scalingbook_book.chapters.profiling.checks.mysteries import MYSTERIES
from scalingbook_book.chapters.profiling.checks.predicted import PREDICTED
from scalingbook_book.chapters.profiling.checks.traces import TRACES
from scalingbook_book.chapters.profiling.checks.written import WRITTEN

CHECKS = PREDICTED + TRACES + COMPILED + WRITTEN + MYSTERIES
