"""Can a reader program many devices in JAX? Checks of the chapter on it; JAX itself is not needed."""

from scalingbook_book.chapters.jax.checks.blocks import BLOCKS, TYPES
from scalingbook_book.chapters.jax.checks.explicit import EXPLICIT
from scalingbook_book.chapters.jax.checks.rings import RINGS
from scalingbook_book.chapters.jax.checks.schemes import SCHEMES
from scalingbook_book.chapters.jax.checks.sums import SUMS

CHECKS = TYPES + BLOCKS + EXPLICIT + RINGS + SUMS + SCHEMES
