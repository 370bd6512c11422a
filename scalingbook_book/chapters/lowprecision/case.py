"""The values, recipes and names that the chapter's explorers, figures and checks share."""

from functools import cache
from random import Random

from scalingbook_lib import models
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.machines.formats import Element, Format, relative_rms_error
from scalingbook_lib.steps.limits.recipe import Recipe
from scalingbook_lib.units import FP8

LLAMA, K2 = models.find("Llama 3 70B"), models.find("Kimi K2")
NODES = Cluster.of(chips.H100, 4096)
RECIPES = {
    "bf16": Recipe(),
    "fp8 matmuls": Recipe(product=FP8, weights=FP8),
    "+ fp8 gathers": Recipe(product=FP8, weights=FP8, gather=FP8, dispatch=FP8),
    "+ fp8 reductions": Recipe(product=FP8, weights=FP8, gather=FP8, sums=FP8, dispatch=FP8, combine=FP8),
}
HEAVY = 3  # degrees of freedom of the heavy tails
PARTS = {  # of a training state, as the library names them: what readers see, and the color
    "weights": ("weights", 0),
    "gradients": ("gradients", 1),
    "master": ("fp32 master copy", 3),
    "moments": ("moments", 4),
    "rows and columns": ("row and column averages", 5),
    "sides": ("Kronecker factors", 2),
}
LAYOUTS = {  # of Muon's iteration, as the library names them: what readers see
    "short side cut": "short side sharded",
    "long side cut": "long side sharded",
    "gathered by all": "replicated on all chips",
    "owned by one": "one owner per matrix",
}


@cache
def drawn(n: int, heavy: bool = False, seed: int = 0) -> tuple[float, ...]:
    """Normally distributed values, or values of Student's t, whose tails are heavy."""
    chance = Random(seed)
    values = [chance.gauss(0, 1) for _ in range(n)]
    if not heavy:
        return tuple(values)
    return tuple(x / (chance.gammavariate(HEAVY / 2, 2) / HEAVY) ** 0.5 for x in values)


def whole(element: Element) -> Format:
    """The element with one scale for the tensor."""
    return Format(name=f"{element.name}, one scale", element=element)


def spoiled(form: Format, outlier: float, n: int = 4096, heavy: bool = False) -> float:
    """The relative RMS error of the other values if one value is an outlier of that size."""
    values = list(drawn(n, heavy))
    return relative_rms_error(values, form.quantized([outlier, *values])[1:])
