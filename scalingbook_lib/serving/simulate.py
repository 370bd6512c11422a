"""Requests in, a run out: what comes next, by the order of work of each policy. Chapter: Inference."""

import gc
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.disaggregated import DisaggregatedServers
from scalingbook_lib.serving.frontend import Setup
from scalingbook_lib.serving.policies import Blocks, Chunked, Continuous, Disaggregated, Policy, Static
from scalingbook_lib.serving.requests import Request, ServingError
from scalingbook_lib.serving.run import ServingRun
from scalingbook_lib.serving.sequence import LiveSequence, Steps
from scalingbook_lib.serving.served import Served
from scalingbook_lib.serving.server import Server

AT_ONCE = 2**20  # the most steps told at once


def simulate(
    requests: Sequence[Request],
    costs: Costs,
    policy: Policy,
    *,
    blocks: Blocks | None = None,
    prefix_cache: bool = False,
    clients: int | None = None,
    prefill_costs: Costs | None = None,
    at_once: int = AT_ONCE,
) -> ServingRun:
    """What becomes of these requests on a server that takes `costs.step_s` for a step.

    They come when they say, or, with `clients`, each when one before it is done: so many are under way at any
    time, as with a load generator of that concurrency. Without `blocks` the cache has no end. `prefill_costs`
    are those of disaggregated prefill servers, where they are not like the others. Steps that follow one
    another without an event are told at once, as long as their times lie on a line; `at_once=1` asks for
    each, for costs that are not piecewise affine in `kv_tokens`.
    """
    if clients is not None and clients < 1:
        raise ServingError(
            f"clients = {clients}: write at least 1, or None for requests that come when they say"
        )
    everybody = [LiveSequence(request, i) for i, request in enumerate(requests)]
    todo = sorted(everybody[:clients], key=lambda sequence: sequence.request.arrival_s)
    setup = Setup(
        todo=todo,
        later=deque(everybody[len(todo) :]),
        costs=costs,
        prefill_costs=prefill_costs or costs,
        blocks=blocks,
        prefix_cache=prefix_cache,
        at_once=at_once,
    )
    with gc_paused():
        return _told(setup, policy, everybody)


def _told(setup: Setup, policy: Policy, everybody: list[LiveSequence]) -> ServingRun:
    """What the servers of the policy noted when all requests are done."""
    played = _played(setup, policy)
    return ServingRun(
        policy=policy,
        blocks=setup.blocks,
        requests=tuple(_served(sequence) for sequence in everybody),
        stretches=tuple(batch.stretches for batch in played.batches),
        chunks=played.chunks,
        queue=played.queue,
        evictions=sum(sequence.evictions for sequence in everybody),
        evicted_blocks=played.pool.evicted,
    )


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector: a simulation makes no cycles, and a long one saves a tenth of its time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _played(setup: Setup, policy: Policy) -> Server | DisaggregatedServers:
    """The servers of a policy, when all requests are done."""
    match policy:
        case Disaggregated():
            servers = DisaggregatedServers(setup, policy)
            servers.play()
            return servers
        case Static(batch=rows):
            static(server := Server(setup, slots=rows, padded=True), rows)
        case Continuous(slots=slots, prompts=prompts):
            continuous(server := Server(setup, slots=slots), prompts)
        case Chunked(slots=slots, budget=budget):
            chunked(server := Server(setup, slots=slots), budget)
        case _:
            raise ServingError(f"{policy!r} is no policy; write Static, Continuous, Chunked or Disaggregated")
    return server


def _served(s: LiveSequence) -> Served:
    """Its latencies, from its stays."""
    told = [stay for stay in s.stays if not math.isnan(stay.first_s)]
    return Served(
        request=s.request,
        outcome=s.outcome,
        tokens=s.emitted,
        first_s=told[0].first_s if told else math.nan,
        last_s=told[-1].last_s if told else math.nan,
        end_s=s.end_s,
        evictions=s.evictions,
        stays=tuple(s.stays),
    )


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
        # who has begun goes on before anybody new is let in
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
