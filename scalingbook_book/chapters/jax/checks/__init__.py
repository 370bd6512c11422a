"""Checks of the chapter on programming many devices in JAX; the checks themselves do not need JAX."""

from scalingbook_book.chapters.jax.checks.blocks import BLOCKS, TYPES
from scalingbook_book.chapters.jax.checks.explicit import EXPLICIT
from scalingbook_book.chapters.jax.checks.rings import RINGS
from scalingbook_book.chapters.jax.checks.schemes import SCHEMES
from scalingbook_book.chapters.jax.checks.sums import SUMS
from scalingbook_book.chapters.jax.checks.train_step import TRAIN_STEP

_ALL = TYPES + BLOCKS + EXPLICIT + RINGS + SUMS + SCHEMES + TRAIN_STEP
CHECKS = tuple(sorted(_ALL, key=lambda check: check.difficulty))  # the easy ones first
