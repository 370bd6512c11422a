"""The cheapest sequence of collectives that takes an array from one sharding to another.

`reshard("A[I_X, J]", "A[I, J_X]", mesh, {"I": 4096, "J": 8192})` returns the fastest sequence of local
slices, all-gathers, all-to-alls, permutes and reductions, and the next-best ones. Chapter: Sharding.

>>> from scalingbook_lib.machines import chips
>>> reshard("A[I_X, J]", "A[I, J_X]", Rings(chips.V5P, X=4), {"I": 4096, "J": 8192}).best.description
'all-to-all A over X'
"""

from scalingbook_lib.collectives.resharding.moves import Moves, ReshardingStep, Subscripts, axes_of, layout
from scalingbook_lib.collectives.resharding.routing import DeviceMesh, Rings
from scalingbook_lib.collectives.resharding.search import (
    Path,
    Resharding,
    Sequence,
    cheapest_from,
    cheapest_to,
    check_even,
    reshard,
    split_only,
)

__all__ = [
    "DeviceMesh",
    "Moves",
    "Path",
    "Resharding",
    "ReshardingStep",
    "Rings",
    "Sequence",
    "Subscripts",
    "axes_of",
    "cheapest_from",
    "cheapest_to",
    "check_even",
    "layout",
    "reshard",
    "split_only",
]
