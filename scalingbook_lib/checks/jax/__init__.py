"""Can a reader program many devices in JAX? Checks of the chapter on it; JAX itself is not needed."""

from scalingbook_lib.checks.jax.blocks import BLOCKS, TYPES
from scalingbook_lib.checks.jax.rings import RINGS
from scalingbook_lib.checks.jax.schemes import SCHEMES
from scalingbook_lib.checks.jax.sums import SUMS

CHECKS = TYPES + BLOCKS + RINGS + SUMS + SCHEMES
