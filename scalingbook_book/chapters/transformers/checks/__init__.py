"""Checks of the Transformer chapter: FLOPs, parameters, KV caches, activations, attention."""

from scalingbook_book.chapters.transformers.checks.attention import ATTENTION
from scalingbook_book.chapters.transformers.checks.costs import COSTS
from scalingbook_book.chapters.transformers.checks.counts import COUNTS

CHECKS = COUNTS + COSTS + ATTENTION
