"""Requests in, a run out. Chapter: Inference."""

import gc
import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from scalingbook_lib.serving import loops
from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.disaggregated import DisaggregatedServers
from scalingbook_lib.serving.frontend import Setup
from scalingbook_lib.serving.policies import Blocks, Chunked, Continuous, Disaggregated, Policy, Static
from scalingbook_lib.serving.requests import Request, ServingError
from scalingbook_lib.serving.run import Run
from scalingbook_lib.serving.sequence import LiveSequence
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
) -> Run:
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
    with no_garbage():
        return _told(setup, policy, everybody)


def _told(setup: Setup, policy: Policy, everybody: list[LiveSequence]) -> Run:
    """What the servers of the policy noted when all requests are done."""
    played = _played(setup, policy)
    return Run(
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
def no_garbage() -> Iterator[None]:
    """No search for garbage meanwhile: who makes no cycles waits for it in vain, longer in longer runs."""
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
            loops.static(server := Server(setup, slots=rows, padded=True), rows)
        case Continuous(slots=slots, prompts=prompts):
            loops.continuous(server := Server(setup, slots=slots), prompts)
        case Chunked(slots=slots, budget=budget):
            loops.chunked(server := Server(setup, slots=slots), budget)
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
