"""Can a reader count a model: FLOPs, parameters, caches, what is kept? Checks of the Transformer chapter."""

from scalingbook_lib.checks.transformers.attention import ATTENTION
from scalingbook_lib.checks.transformers.costs import COSTS
from scalingbook_lib.checks.transformers.counts import COUNTS

CHECKS = COUNTS + COSTS + ATTENTION
