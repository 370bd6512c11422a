"""What does a collective within a fusion, or within what runs beside the program, stand for?

libtpu writes a transfer into every fusion that carries it on, and a reduce-scatter as an all-reduce with a
slice.
"""

from scalingbook_lib.lab.compiler.walk import Visit


def is_continued(visit: Visit) -> bool:
    """Is this the middle or the end of a collective that an asynchronous fusion has started elsewhere?

    libtpu writes such a collective into every fusion that carries it on; only the one read by
    `AsyncCollectiveStart` begins it.
    """
    if visit.inside is None or starts(visit):
        return False
    carried_on = any("AsyncCollective" in i.attributes for i in visit.computation.instructions.values())
    return carried_on or visit.computation.name.startswith("async_collective_fusion")


def overlapped(visit: Visit) -> bool:
    """Does it run beside other work: by a start of its own, one around it, or one in its fusion?"""
    if visit.instruction.opcode.endswith("-start"):
        return True
    return visit.inside is not None and (visit.inside.opcode.endswith("-start") or starts(visit))


def starts(visit: Visit) -> bool:
    """Does an asynchronous fusion begin this transfer?"""
    users = visit.computation.users(visit.instruction.name)
    return any('"AsyncCollectiveStart"' in user.attributes for user in users)


def is_scattered(visit: Visit) -> bool:
    """Is this all-reduce the inside of a fusion that keeps one shard: a reduce-scatter by another name?"""
    here = visit.computation
    if visit.inside is None or not here.has("dynamic-slice"):
        return False
    # several arrays summed at once leave a tuple, each of them a shard
    roots = here.operands(here.root) if here.root.opcode == "tuple" else (here.root,)
    return all(root.opcode in ("dynamic-slice", "bitcast", "copy") for root in roots)
