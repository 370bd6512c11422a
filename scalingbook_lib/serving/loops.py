"""What comes next? The order of work of each policy on one server. Chapter: Inference."""

import math

from scalingbook_lib.serving.sequence import Sequence
from scalingbook_lib.serving.server import Server
from scalingbook_lib.serving.timeline import Steps


def continuous(server: Server, prompts: int) -> None:
    """Who can be let in is prefilled at once, up to so many together; else everybody decodes."""
    while server.goes_on():
        group = []
        while len(group) < prompts and (sequence := server.admit()) is not None:
            group.append(sequence)
        if group:
            server.prefill(group)
        elif server.inside:
            server.decode()
        else:
            server.rest()


def chunked(server: Server, budget: int) -> None:
    """Each step decodes, and takes what is left of the budget from prompts, the first to come first."""
    filling: list[Sequence] = []
    while server.goes_on():
        filling = [s for s in filling if s.order in server.inside and math.isnan(s.stay.first_s)]
        pieces = _pieces(server, filling, budget - server.batch.rows)
        if pieces:
            _mixed(server, pieces)
        elif server.inside:
            server.decode()
        else:
            server.rest()


def _pieces(server: Server, filling: list[Sequence], room: int) -> list[tuple[Sequence, int]]:
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


def _mixed(server: Server, pieces: list[tuple[Sequence, int]]) -> None:
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


def static(server: Server, rows: int) -> None:
    """A batch, to the end of its longest; then the next."""
    while server.goes_on():
        if server.inside:
            server.decode(arrivals=False)
        elif group := _group(server, rows):
            server.prefill(group)
        else:
            server.rest()


def _group(server: Server, rows: int) -> list[Sequence]:
    """Who waits, up to so many, as long as each has blocks for as many tokens as the longest may need."""
    group, longest = [], 0
    while server.waiting and len(group) < rows:
        request = server.waiting[0].request
        longest = max(longest, request.output)
        members = [s.request for s in group] + [request]
        if server.blocks and group and not _fits(server, [r.prompt for r in members], longest):
            break
        sequence = server.admit()
        if sequence is None:
            break
        group.append(sequence)
    return group


def _fits(server: Server, prompts: list[int], longest: int) -> bool:
    blocks = server.blocks
    return blocks is None or sum([blocks.of(p + longest - 1) for p in prompts]) <= blocks.count
