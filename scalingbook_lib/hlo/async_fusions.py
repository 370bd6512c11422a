"""Recognizes collectives that libtpu writes into fusions and into asynchronous computations.

libtpu repeats a transfer in every fusion that continues it, and writes a fused reduce-scatter as an
all-reduce followed by a slice.
"""

from scalingbook_lib.hlo.walk import Visit


def is_continuation(visit: Visit) -> bool:
    """Whether this is the middle or the end of a collective that another asynchronous fusion has started.

    libtpu writes such a collective into every fusion that continues it; only the one that
    `AsyncCollectiveStart` reads starts it.
    """
    if visit.inside is None or is_started_by_fusion(visit):
        return False
    continues = any("AsyncCollective" in i.attributes for i in visit.computation.instructions.values())
    return continues or visit.computation.name.startswith("async_collective_fusion")


def is_asynchronous(visit: Visit) -> bool:
    """Whether a collective overlaps with other work: it, its fusion or its computation is a start."""
    if visit.instruction.opcode.endswith("-start"):
        return True
    if visit.inside is None:
        return False
    return visit.inside.opcode.endswith("-start") or is_started_by_fusion(visit)


def is_started_by_fusion(visit: Visit) -> bool:
    """Whether an asynchronous fusion starts this transfer."""
    users = visit.computation.users(visit.instruction.name)
    return any('"AsyncCollectiveStart"' in user.attributes for user in users)


def is_reduce_scatter(visit: Visit) -> bool:
    """Whether this all-reduce is in a fusion that keeps one shard of the sum, as a reduce-scatter does."""
    computation, root = visit.computation, visit.computation.root
    if visit.inside is None or not computation.has("dynamic-slice"):
        return False
    # several arrays that are reduced together form a tuple of shards
    shards = computation.operands(root) if root.opcode == "tuple" else (root,)
    return all(shard.opcode in ("dynamic-slice", "bitcast", "copy") for shard in shards)
