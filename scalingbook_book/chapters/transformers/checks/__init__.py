"""Checks of the Transformer chapter: FLOPs, parameters, KV caches, activations, attention, experts."""

from scalingbook_book.chapters.transformers.checks.attention import ATTENTION
from scalingbook_book.chapters.transformers.checks.costs import COSTS
from scalingbook_book.chapters.transformers.checks.counts import COUNTS
from scalingbook_book.chapters.transformers.checks.experts import EXPERTS

CHECKS = COUNTS + COSTS + ATTENTION + EXPERTS
