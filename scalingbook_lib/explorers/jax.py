"""How are many devices programmed? The explorers of the chapter on JAX, in its order."""

from scalingbook_lib.explorers.jax_buckets import BUCKETS
from scalingbook_lib.explorers.jax_calculator import CALCULATOR
from scalingbook_lib.explorers.jax_ring import RING
from scalingbook_lib.explorers.jax_types import TYPES

EXPLORERS = (CALCULATOR, TYPES, RING, BUCKETS)
