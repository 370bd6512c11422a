"""Can a reader say what a TPU does, and how its chips reach each other? Checks of the TPU chapter."""

from scalingbook_book.chapters.tpus.checks.chip import CHIP, INSIDE
from scalingbook_book.chapters.tpus.checks.pods import PODS

CHECKS = CHIP + INSIDE + PODS
