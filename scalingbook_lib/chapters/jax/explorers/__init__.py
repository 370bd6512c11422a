"""How are many devices programmed? The explorers of the chapter on JAX, in its order."""

from scalingbook_lib.chapters.jax.explorers.buckets import BUCKETS
from scalingbook_lib.chapters.jax.explorers.calculator import CALCULATOR
from scalingbook_lib.chapters.jax.explorers.ring import RING
from scalingbook_lib.chapters.jax.explorers.types import TYPES

EXPLORERS = (CALCULATOR, TYPES, RING, BUCKETS)
