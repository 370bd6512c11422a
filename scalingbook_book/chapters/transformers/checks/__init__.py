"""Can a reader count a model: FLOPs, parameters, caches, what is kept? Checks of the Transformer chapter."""

from scalingbook_book.chapters.transformers.checks.attention import ATTENTION
from scalingbook_book.chapters.transformers.checks.costs import COSTS
from scalingbook_book.chapters.transformers.checks.counts import COUNTS

CHECKS = COUNTS + COSTS + ATTENTION
