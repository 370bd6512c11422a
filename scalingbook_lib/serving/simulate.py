"""Runs requests through a simulated server under one of four scheduling policies. Chapter: Inference."""

import gc
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.disaggregated import DisaggregatedServers
from scalingbook_lib.serving.frontend import SimulationSetup
from scalingbook_lib.serving.policies import Chunked, Continuous, Disaggregated, PagedCache, Policy, Static
from scalingbook_lib.serving.requests import Request, ServingError
from scalingbook_lib.serving.results import RequestResult
from scalingbook_lib.serving.run import ServingRun
from scalingbook_lib.serving.sequence import DecodeSteps, LiveSequence
from scalingbook_lib.serving.server import Server

MAX_FUSED_STEPS = 2**20


def simulate(
    requests: Sequence[Request],
    costs: Costs,
    policy: Policy,
    *,
    blocks: PagedCache | None = None,
    prefix_cache: bool = False,
    clients: int | None = None,
    prefill_costs: Costs | None = None,
    max_fused_steps: int = MAX_FUSED_STEPS,
) -> ServingRun:
    """A `ServingRun` of these requests on a server whose steps take `costs.step_s` seconds.

    Requests arrive at their own times, or, with `clients`, each when an earlier one is done, so that the
    concurrency is constant as with a closed-loop load generator. Without `blocks` the cache is unlimited.
    `prefill_costs` are those of disaggregated prefill servers, `costs` by default. Up to `max_fused_steps`
    consecutive steps without an event are computed at once while their times are linear in `kv_tokens`; 1
    calls `step_s` for every step, for costs that are not piecewise affine. Raises a ServingError for invalid
    arguments.
    """
    if clients is not None and clients < 1:
        raise ServingError(
            f"clients = {clients}: write at least 1, or None for requests with their own arrival times"
        )
    sequences = [LiveSequence(request, i) for i, request in enumerate(requests)]
    arrivals = sorted(sequences[:clients], key=lambda sequence: sequence.request.arrival_s)
    setup = SimulationSetup(
        arrivals=arrivals,
        backlog=deque(sequences[len(arrivals) :]),
        costs=costs,
        prefill_costs=prefill_costs or costs,
        blocks=blocks,
        prefix_cache=prefix_cache,
        max_fused_steps=max_fused_steps,
    )
    with gc_paused():
        return _build_result(setup, policy, sequences)


def _build_result(setup: SimulationSetup, policy: Policy, sequences: list[LiveSequence]) -> ServingRun:
    """The result of running the policy, collected from the records of its servers."""
    return recorded_run(_run_policy(setup, policy), setup, policy, sequences)


def recorded_run(
    servers: Server | DisaggregatedServers,
    setup: SimulationSetup,
    policy: Policy,
    sequences: Sequence[LiveSequence],
) -> ServingRun:
    """What the servers recorded of these sequences."""
    return ServingRun(
        policy=policy,
        blocks=setup.blocks,
        requests=tuple(request_result(sequence) for sequence in sequences),
        step_runs=tuple(batch.step_runs for batch in servers.batches),
        chunks=servers.chunks,
        queue=servers.queue,
        evictions=sum(sequence.evictions for sequence in sequences),
        evicted_blocks=servers.pool.evicted,
    )


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector: a simulation creates no cycles, and pausing saves 10% of a long one."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _run_policy(setup: SimulationSetup, policy: Policy) -> Server | DisaggregatedServers:
    """The servers of a policy after all requests are done."""
    if isinstance(policy, Disaggregated):
        servers = DisaggregatedServers(setup, policy)
        servers.run()
        return servers
    server, advance = start_server(setup, policy)
    while server.has_work():
        advance()
    return server


def start_server(setup: SimulationSetup, policy: Policy) -> tuple[Server, Callable[[], None]]:
    """A server, and what advances it by one prefill or by some decode steps while it has work."""
    match policy:
        case Static(batch=rows):
            server = Server(setup, slots=rows, padded=True)
            return server, _static(server, rows)
        case Continuous(slots=slots, prompts=prompts):
            server = Server(setup, slots=slots)
            return server, _continuous(server, prompts)
        case Chunked(slots=slots, budget=budget):
            server = Server(setup, slots=slots)
            return server, _chunked(server, budget)
        case _:
            raise ServingError(
                f"{policy!r} is not a policy; write Static, Continuous, Chunked or Disaggregated"
            )


def request_result(s: LiveSequence) -> RequestResult:
    """The outcome and latencies of one request, from its residencies."""
    told = [residency for residency in s.residencies if not math.isnan(residency.first_s)]
    return RequestResult(
        request=s.request,
        outcome=s.outcome,
        tokens=s.emitted,
        first_s=told[0].first_s if told else math.nan,
        last_s=told[-1].last_s if told else math.nan,
        end_s=s.end_s,
        evictions=s.evictions,
        residencies=tuple(s.residencies),
    )


def _continuous(server: Server, prompts: int) -> Callable[[], None]:
    """Prefill up to `prompts` admissible requests together; if there are none, decode."""
    # Prefill-prioritized, vLLM's old default: the lowest TTFT, at the expense of the ITL of running requests.
    return _whole_prompts(
        server, lambda: list(islice(iter(server.admit, None), prompts)), stop_for_arrivals=True
    )


def _static(server: Server, rows: int) -> Callable[[], None]:
    """Run one static batch to the end of its longest output, then the next."""
    return _whole_prompts(
        server, lambda: [] if server.running else _form_batch(server, rows), stop_for_arrivals=False
    )


def _whole_prompts(
    server: Server, select: Callable[[], list[LiveSequence]], *, stop_for_arrivals: bool
) -> Callable[[], None]:
    """Prefill the whole prompts that `select` admits together; if there are none, decode."""

    def advance() -> None:
        if group := select():
            server.prefill(group)
        else:
            server.step(stop_for_arrivals)

    return advance


def _chunked(server: Server, budget: int) -> Callable[[], None]:
    """Decode in every step and fill the rest of the token budget with prompt chunks, in order of arrival."""
    filling: list[LiveSequence] = []

    def advance() -> None:
        filling[:] = [s for s in filling if s.order in server.running and math.isnan(s.residency.first_s)]
        # Decodes first, then the rest of the budget: stall-free batching (Sarathi-Serve, arXiv 2403.02310).
        pieces = _fill_budget(server, filling, budget - server.batch.rows)
        if pieces:
            _mixed_step(server, pieces)
        else:
            server.step()

    return advance


def _fill_budget(server: Server, filling: list[LiveSequence], budget: int) -> list[tuple[LiveSequence, int]]:
    """The tokens of each prompt to prefill in this step, within the remaining budget."""
    pieces, at = [], 0
    while budget > 0:
        # a started prompt continues before a new one is admitted
        if at == len(filling):
            sequence = server.admit()
            if sequence is None:
                break
            filling.append(sequence)
        sequence = filling[at]
        part = min(sequence.tokens - sequence.filled, budget)
        pieces.append((sequence, part))
        budget -= part
        at += 1
    return pieces


def _mixed_step(server: Server, pieces: list[tuple[LiveSequence, int]]) -> None:
    """One step that decodes and prefills `pieces` of prompts."""
    batch = server.batch
    if batch.rows and not batch.affordable_steps(1):
        server.evict()
        return
    step_s = server.prefill_step_s(pieces, batch.rows, batch.kv_tokens)
    if batch.rows:
        batch.advance(DecodeSteps(1, step_s, 0.0), server.chunks[-1].tokens)
    else:
        batch.now += step_s
    server.end_step()
    for sequence, part in pieces:
        sequence.filled += part
        if sequence.filled == sequence.tokens:
            server.start_decoding(sequence)


def _form_batch(server: Server, rows: int) -> list[LiveSequence]:
    """Up to `rows` waiting sequences that fit the cache together to the end of the longest output."""
    group: list[LiveSequence] = []
    while server.waiting and len(group) < rows:
        requests = [sequence.request for sequence in (*group, server.waiting[0])]
        if group and server.blocks and not _all_fit(requests, server.blocks):
            break
        sequence = server.admit()
        if sequence is None:
            break
        group.append(sequence)
    return group


def _all_fit(requests: list[Request], blocks: PagedCache) -> bool:
    """Whether all requests fit the cache to the end of the longest output, whose last token is not cached."""
    longest = max([request.output for request in requests])
    return sum([blocks.needed_for(request.prompt + longest - 1) for request in requests]) <= blocks.count
