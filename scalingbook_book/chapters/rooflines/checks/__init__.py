"""Can a reader say what limits an operation, and from when on? Checks of the rooflines chapter."""

from scalingbook_book.chapters.rooflines.checks.batches import BATCHES
from scalingbook_book.chapters.rooflines.checks.machines import MACHINES

CHECKS = BATCHES + MACHINES
