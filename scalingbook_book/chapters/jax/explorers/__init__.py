"""How are many devices programmed? The explorers of the chapter on JAX, in its order."""

from scalingbook_book.chapters.jax.explorers import buckets, calculator, ring, types

EXPLORERS = (calculator.CALCULATOR, types.TYPES, ring.RING, buckets.BUCKETS)
