"""Can a reader say what a TPU does, and how its chips reach each other? Checks of the TPU chapter."""

from scalingbook_lib.checks.tpus.chip import CHIP
from scalingbook_lib.checks.tpus.inside import INSIDE
from scalingbook_lib.checks.tpus.pods import PODS

CHECKS = CHIP + INSIDE + PODS
