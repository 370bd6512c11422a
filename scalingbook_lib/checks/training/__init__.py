"""Can a reader spread a training step over chips, and say when it pays? Checks of the training chapter."""

from scalingbook_lib.checks.training.machines import MACHINES
from scalingbook_lib.checks.training.schemes import SCHEMES
from scalingbook_lib.checks.training.splits import SPLITS
from scalingbook_lib.checks.training.state import STATE

CHECKS = STATE + SPLITS + SCHEMES + MACHINES
