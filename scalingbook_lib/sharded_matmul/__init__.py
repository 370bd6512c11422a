"""Strategies for multiplying two sharded arrays, and the time of each.

`solve("A[I, J_X] · B[J_X, K] -> C[I, K]", mesh, sizes)` returns which of the four cases it is and every
strategy that works, with its moves and its time by term, the fastest first. Chapter: Sharding.

>>> from scalingbook_lib.machines import chips
>>> mesh = chips.Slice(chips.V5P, (4, 4, 4)).mesh(X=4, Y=16)
>>> solve("A[I, J_X] · B[J_X, K] -> C[I, K]", mesh, {"I": 8192, "J": 8192, "K": 8192}).best.name
'all-reduce C over X'
"""

from scalingbook_lib.sharded_matmul.solve import cases, solve
from scalingbook_lib.sharded_matmul.split_weight import SplitWeight, SplitWeightStrategy
from scalingbook_lib.sharded_matmul.strategy import CASES, RejectedStrategy, Solution, Strategy

__all__ = [
    "CASES",
    "RejectedStrategy",
    "Solution",
    "SplitWeight",
    "SplitWeightStrategy",
    "Strategy",
    "cases",
    "solve",
]
