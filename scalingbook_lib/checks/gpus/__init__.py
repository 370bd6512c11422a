"""Can a reader say what a GPU, a node and a cluster of them can do? Checks of the GPU chapter."""

from scalingbook_lib.checks.gpus.chip import CHIP
from scalingbook_lib.checks.gpus.fabric import FABRIC
from scalingbook_lib.checks.gpus.layers import LAYERS
from scalingbook_lib.checks.gpus.plans import PLANS
from scalingbook_lib.checks.gpus.sums import SUMS

CHECKS = CHIP + FABRIC + SUMS + LAYERS + PLANS
