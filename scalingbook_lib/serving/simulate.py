"""Requests in, a run out. Chapter: Inference."""

import gc
import math
from collections import deque
from collections.abc import Iterator
from collections.abc import Sequence as Rows
from contextlib import contextmanager
from functools import partial

from scalingbook_lib.serving import loops
from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.disaggregated import Apart
from scalingbook_lib.serving.policies import Blocks, Chunked, Continuous, Disaggregated, Policy, Static
from scalingbook_lib.serving.requests import Request, ServingError
from scalingbook_lib.serving.run import Run
from scalingbook_lib.serving.sequence import Sequence
from scalingbook_lib.serving.served import Moment, Served
from scalingbook_lib.serving.server import Server

AT_ONCE = 2**20  # the most steps told at once


def simulate(
    requests: Rows[Request],
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
    are those of prefill servers, where they are apart and not like the others. Steps that follow one another
    without an event are told at once, as long as their times lie on a line; `at_once=1` asks for each, for
    costs that are not piecewise affine in `kv_tokens`.
    """
    if clients is not None and clients < 1:
        raise ServingError(
            f"clients = {clients}: write at least 1, or None for requests that come when they say"
        )
    todo, later = _in_order(requests, clients)
    everybody = [*todo, *later]
    with _all_kept():
        if isinstance(policy, Disaggregated):
            both = (prefill_costs or costs, costs)
            made = Apart(todo, later, both, policy, blocks, prefix_cache, at_once)
            made.play()
            rows = tuple(decoder.batch.stretches for decoder in made.decoders)
        else:
            made = _served_by_one(todo, later, costs, policy, blocks, prefix_cache, at_once)
            rows = (made.batch.stretches,)
        served = tuple(_served(s) for s in sorted(everybody, key=lambda s: s.index))
        queue = [Moment._make(row) for row in made.queue]
    evictions = sum(s.evictions for s in everybody)
    return Run(policy, blocks, served, rows, made.chunks, queue, evictions, made.pool.evicted)


def _in_order(requests: Rows[Request], clients: int | None) -> tuple[list[Sequence], deque[Sequence]]:
    """Who comes when it says, by arrival, and who comes when another is done, as given."""
    first = requests[:clients]
    order = sorted(range(len(first)), key=lambda i: first[i].arrival_s)
    todo = [Sequence(first[i], i) for i in order]
    return todo, deque(Sequence(requests[i], i) for i in range(len(first), len(requests)))


@contextmanager
def _all_kept() -> Iterator[None]:
    """A run keeps all it makes: to look for garbage meanwhile takes time, more in longer runs, in vain."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _served_by_one(todo, later, costs, policy: Policy, blocks, keep: bool, at_once: int) -> Server:
    start = partial(Server, todo, later, costs, blocks=blocks, keep=keep, most=at_once)
    match policy:
        case Static(batch=rows):
            loops.static(server := start(slots=rows, padded=True), rows)
        case Continuous(slots=slots, prompts=prompts):
            loops.continuous(server := start(slots=slots), prompts)
        case Chunked(slots=slots, budget=budget):
            loops.chunked(server := start(slots=slots), budget)
        case _:
            raise ServingError(f"{policy!r} is no policy; write Static, Continuous, Chunked or Disaggregated")
    return server


def _served(s: Sequence) -> Served:
    """Its latencies, from its stays."""
    stays = [stay for stay in s.stays if stay.first_s == stay.first_s]
    first_s, last_s = (stays[0].first_s, stays[-1].last_s) if stays else (math.nan, math.nan)
    return Served(s.request, s.outcome, s.emitted, first_s, last_s, s.end_s, s.evictions, tuple(s.stays))
