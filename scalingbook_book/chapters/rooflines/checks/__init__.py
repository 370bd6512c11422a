"""Checks of the exercises on rooflines."""

from scalingbook_book.chapters.rooflines.checks.batches import BATCHES
from scalingbook_book.chapters.rooflines.checks.machines import MACHINES

CHECKS = BATCHES + MACHINES
