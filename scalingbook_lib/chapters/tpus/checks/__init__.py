"""Can a reader say what a TPU does, and how its chips reach each other? Checks of the TPU chapter."""

from scalingbook_lib.chapters.tpus.checks.chip import CHIP, INSIDE
from scalingbook_lib.chapters.tpus.checks.pods import PODS

CHECKS = CHIP + INSIDE + PODS
