"""Can a reader say what limits an operation, and from when on? Checks of the rooflines chapter."""

from scalingbook_lib.checks.rooflines.batches import BATCHES
from scalingbook_lib.checks.rooflines.machines import MACHINES

CHECKS = BATCHES + MACHINES
