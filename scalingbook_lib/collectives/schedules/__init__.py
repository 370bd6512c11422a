"""Step-by-step schedules of collectives on a ring, a line or a torus: `all_gather(8)`, `all_to_all((4, 4))`.

The book's player shows these steps; the tests execute them link by link and obtain the times that
`collectives` gives as formulas. Chapter: Sharding.

>>> print(all_gather(8))
AllGather on 8: 4 steps; the busiest link carries 7 of 16 pieces
"""

from scalingbook_lib.collectives.schedules.plan import (
    all_gather,
    all_reduce,
    all_to_all,
    permute,
    reduce_scatter,
)
from scalingbook_lib.collectives.schedules.step import (
    DirectedLink,
    Piece,
    Schedule,
    ScheduleStep,
    Send,
    all_gather_shares,
    all_to_all_shares,
    holdings,
    neighbor,
)

__all__ = [
    "DirectedLink",
    "Piece",
    "Schedule",
    "ScheduleStep",
    "Send",
    "all_gather",
    "all_gather_shares",
    "all_reduce",
    "all_to_all",
    "all_to_all_shares",
    "holdings",
    "neighbor",
    "permute",
    "reduce_scatter",
]
