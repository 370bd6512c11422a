"""Times of collectives between chips.

The same functions take the axes of a torus (`rings`) or the levels of a cluster of switches (`switched`).
Chapters: Sharding; GPUs.

>>> from scalingbook_lib.machines import chips
>>> print(all_gather(2 * 2048 * 8192, chips.V5E.axis(4)))
AllGather, bandwidth-bound: total 506 µs, bandwidth 503 µs, latency 3 µs
"""

from scalingbook_lib.collectives.networks import (
    FORMULAS,
    Network,
    all_gather,
    all_reduce,
    all_to_all,
    latency_bound_below,
    permute,
    reduce_scatter,
)
from scalingbook_lib.collectives.rings import (
    busiest_link_chunks,
    chips,
    hierarchical_all_reduce,
    hop_crossover_bytes,
    hops,
)
from scalingbook_lib.collectives.transfer import (
    NOTHING,
    Collective,
    Transfer,
    bus_bandwidth,
    bytes_received,
    reach_probability,
)

__all__ = [
    "FORMULAS",
    "NOTHING",
    "Collective",
    "Network",
    "Transfer",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "bus_bandwidth",
    "busiest_link_chunks",
    "bytes_received",
    "chips",
    "hierarchical_all_reduce",
    "hop_crossover_bytes",
    "hops",
    "latency_bound_below",
    "permute",
    "reach_probability",
    "reduce_scatter",
]
