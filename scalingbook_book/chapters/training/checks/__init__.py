"""Can a reader spread a training step over chips, and say when it pays? Checks of the training chapter."""

from scalingbook_book.chapters.training.checks.batch import BATCH
from scalingbook_book.chapters.training.checks.machines import MACHINES
from scalingbook_book.chapters.training.checks.schemes import SCHEMES
from scalingbook_book.chapters.training.checks.splits import SPLITS
from scalingbook_book.chapters.training.checks.state import STATE

CHECKS = STATE + SPLITS + SCHEMES + BATCH + MACHINES
