"""Requests in, a run out. Chapter: Inference."""

import gc
import math
from collections.abc import Iterator
from collections.abc import Sequence as Rows
from contextlib import contextmanager

from scalingbook_lib.serving import loops
from scalingbook_lib.serving.apart import Apart
from scalingbook_lib.serving.costs import Costs
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
    prefill_costs: Costs | None = None,
    at_once: int = AT_ONCE,
) -> Run:
    """What becomes of these requests on a server that takes `costs.step_s` for a step.

    Without `blocks` the cache has no end. `prefill_costs` are those of prefill servers, where they are apart
    and not like the others. Steps that follow one another without an event are told at once, as long as their
    times lie on a line; `at_once=1` asks for each, for costs that are not piecewise affine in `kv_tokens`.
    """
    with _all_kept():
        return _simulate(requests, costs, policy, blocks, prefix_cache, prefill_costs or costs, at_once)


def _simulate(requests, costs, policy, blocks, prefix_cache, prefill_costs, at_once) -> Run:
    order = sorted(range(len(requests)), key=lambda i: requests[i].arrival_s)
    todo = [Sequence(requests[i], i, rank) for rank, i in enumerate(order)]
    if isinstance(policy, Disaggregated):
        made = Apart(todo, (prefill_costs, costs), policy, blocks, prefix_cache, at_once)
        made.play()
        rows = tuple(decoder.batch.stretches for decoder in made.decoders)
    else:
        made = _served_by_one(todo, costs, policy, blocks, prefix_cache, at_once)
        rows = (made.batch.stretches,)
    served = tuple(_served(s) for s in sorted(todo, key=lambda s: s.index))
    queue, evictions = [Moment(*row) for row in made.queue], sum(s.evictions for s in todo)
    return Run(policy, blocks, served, rows, made.chunks, queue, evictions, made.pool.evicted)


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


def _served_by_one(todo, costs, policy: Policy, blocks, keep: bool, at_once: int) -> Server:
    match policy:
        case Static(batch=rows):
            loops.static(server := Server(todo, costs, rows, blocks, keep, at_once, padded=True), rows)
        case Continuous(slots=slots, prompts=prompts):
            loops.continuous(server := Server(todo, costs, slots, blocks, keep, at_once), prompts)
        case Chunked(slots=slots, budget=budget):
            loops.chunked(server := Server(todo, costs, slots, blocks, keep, at_once), budget)
        case _:
            raise ServingError(f"{policy!r} is no policy; write Static, Continuous, Chunked or Disaggregated")
    return server


def _served(s: Sequence) -> Served:
    """Its latencies, from its stays."""
    stays = [stay for stay in s.stays if stay.first_s == stay.first_s]
    first_s, last_s = (stays[0].first_s, stays[-1].last_s) if stays else (math.nan, math.nan)
    return Served(s.request, s.outcome, s.emitted, first_s, last_s, s.end_s, s.evictions, tuple(s.stays))
