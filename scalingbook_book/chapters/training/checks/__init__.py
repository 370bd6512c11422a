"""Checks of the chapter on training: how to shard a training step over chips, and when it pays."""

from scalingbook_book.chapters.training.checks.batch import BATCH
from scalingbook_book.chapters.training.checks.machines import MACHINES
from scalingbook_book.chapters.training.checks.scaling import SCALING
from scalingbook_book.chapters.training.checks.schemes import SCHEMES
from scalingbook_book.chapters.training.checks.splits import SPLITS
from scalingbook_book.chapters.training.checks.state import STATE

CHECKS = STATE + SPLITS + SCHEMES + BATCH + SCALING + MACHINES
