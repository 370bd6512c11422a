"""Can a reader say what a GPU, a node and a cluster of them can do? Checks of the GPU chapter."""

from scalingbook_book.chapters.gpus.checks.chip import CHIP, LAYERS
from scalingbook_book.chapters.gpus.checks.fabric import FABRIC
from scalingbook_book.chapters.gpus.checks.plans import PLANS
from scalingbook_book.chapters.gpus.checks.sums import SUMS

CHECKS = CHIP + FABRIC + SUMS + LAYERS + PLANS
