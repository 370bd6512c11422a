"""The explorers of the chapter on programming in JAX, in the order of the page."""

from scalingbook_book.chapters.jax.explorers import buckets, calculator, ring, types

EXPLORERS = (calculator.CALCULATOR, types.TYPES, ring.RING, buckets.BUCKETS)
