"""What comes next? The order of work of each policy on one server. Chapter: Inference."""

import math
from collections.abc import Callable
from itertools import islice

from scalingbook_lib.serving.policies import Blocks
from scalingbook_lib.serving.requests import Request
from scalingbook_lib.serving.sequence import LiveSequence, Steps
from scalingbook_lib.serving.server import Server


def continuous(server: Server, prompts: int) -> None:
    """Who can be let in is prefilled at once, up to so many together; else everybody decodes."""
    # Prompts first, as vLLM did at first: the shortest wait for a first token, at the others' expense.
    _in_groups(server, lambda: list(islice(iter(server.admit, None), prompts)), arrivals=True)


def static(server: Server, rows: int) -> None:
    """A batch, to the end of its longest; then the next."""
    _in_groups(server, lambda: [] if server.inside else _group(server, rows), arrivals=False)


def _in_groups(server: Server, group: Callable[[], list[LiveSequence]], *, arrivals: bool) -> None:
    """Whole prompts, as many together as `group` lets in; while that is nobody, everybody decodes."""
    while server.goes_on():
        if together := group():
            server.prefill(together)
        else:
            server.go_on(arrivals)


def chunked(server: Server, budget: int) -> None:
    """Each step decodes, and takes what is left of the budget from prompts, the first to come first."""
    filling: list[LiveSequence] = []
    while server.goes_on():
        filling = [s for s in filling if s.order in server.inside and math.isnan(s.stay.first_s)]
        # Decodes first, then what is left of the budget: "stall-free" (Sarathi-Serve, arXiv 2403.02310).
        pieces = _pieces(server, filling, budget - server.batch.rows)
        if pieces:
            _mixed(server, pieces)
        else:
            server.go_on()


def _pieces(server: Server, filling: list[LiveSequence], room: int) -> list[tuple[LiveSequence, int]]:
    """Who gets how much of the budget in this step."""
    pieces, at = [], 0
    while room > 0:
        if at == len(filling):
            sequence = server.admit()
            if sequence is None:
                break
            filling.append(sequence)
        sequence = filling[at]
        part = min(sequence.tokens - sequence.filled, room)
        pieces.append((sequence, part))
        room -= part
        at += 1
    return pieces


def _mixed(server: Server, pieces: list[tuple[LiveSequence, int]]) -> None:
    """One step of decodes and pieces of prompts."""
    batch = server.batch
    if batch.rows and not batch.room(1):
        server.evict()
        return
    step_s = server.chunk_s(pieces, batch.rows, batch.kv)
    if batch.rows:
        batch.advance(Steps(1, step_s, 0.0), server.chunks[-1].tokens)
    else:
        batch.now += step_s
    server.step_over()
    for sequence, part in pieces:
        sequence.filled += part
        if sequence.filled == sequence.tokens:
            server.ready(sequence)


def _group(server: Server, rows: int) -> list[LiveSequence]:
    """Who waits, up to so many, as long as each has blocks for as many tokens as the longest may need."""
    group: list[LiveSequence] = []
    while server.waiting and len(group) < rows:
        requests = [sequence.request for sequence in (*group, server.waiting[0])]
        if group and server.blocks and not _fit(requests, server.blocks):
            break
        sequence = server.admit()
        if sequence is None:
            break
        group.append(sequence)
    return group


def _fit(requests: list[Request], blocks: Blocks) -> bool:
    """Whether all can go on to the end of the longest answer, its last token not in the cache."""
    longest = max([request.output for request in requests])
    return sum([blocks.of(request.prompt + longest - 1) for request in requests]) <= blocks.count
