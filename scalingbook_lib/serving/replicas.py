"""Runs agent sessions on one or several replicas of a server, with a router. Chapter: Inference.

>>> from scalingbook_lib.serving import Affine, Continuous, PagedCache, Session, Turn
>>> agents = [Session(i / 10, (Turn(4000, 50, 2.0), Turn(200, 50, 2.0), Turn(200, 50))) for i in range(8)]
>>> run = serve_sessions(agents, Affine(), Continuous(8), blocks=PagedCache(4000))
>>> round(run.hit_rate, 3)
0.654
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise

from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.frontend import SimulationSetup
from scalingbook_lib.serving.policies import Chunked, Continuous, HostMemory, PagedCache
from scalingbook_lib.serving.requests import ServingError
from scalingbook_lib.serving.sequence import LiveSequence
from scalingbook_lib.serving.server import Server
from scalingbook_lib.serving.session_run import SessionRun
from scalingbook_lib.serving.sessions import Session
from scalingbook_lib.serving.simulate import (
    MAX_FUSED_STEPS,
    gc_paused,
    recorded_run,
    request_result,
    start_server,
)

ROUTING = ("affinity", "least loaded")


def serve_sessions(
    sessions: Sequence[Session],
    costs: Costs,
    policy: Continuous | Chunked,
    *,
    blocks: PagedCache | None = None,
    prefix_cache: bool = True,
    host: HostMemory | None = None,
    replicas: int = 1,
    routing: str = "affinity",
) -> SessionRun:
    """A `SessionRun` of agent sessions on `replicas` equal servers, each with `blocks` and `host` of its own.

    A turn is sent `tool_s` seconds after the end of the one before, and its prompt is the whole history. With
    "affinity" routing, all turns of a session go to the replica that had the fewest requests when the session
    started; with "least loaded", each turn goes to the replica that has the fewest then. Without `blocks` the
    cache is unlimited. Raises a ServingError for invalid arguments.
    """
    if replicas < 1 or routing not in ROUTING:
        raise ServingError(
            f"replicas = {replicas}, routing = {routing!r}: write at least 1, and one of {', '.join(ROUTING)}"
        )
    if not isinstance(policy, Continuous | Chunked):
        raise ServingError(f"{policy!r} cannot serve sessions; write Continuous or Chunked")
    turns = _live_turns(sessions)
    setups = [
        SimulationSetup(
            arrivals=[],
            backlog=deque(),
            costs=costs,
            prefill_costs=costs,
            blocks=blocks,
            prefix_cache=prefix_cache,
            max_fused_steps=MAX_FUSED_STEPS,
            host=host,
        )
        for _ in range(replicas)
    ]
    with gc_paused():
        router = _Router([_Replica(*start_server(setup, policy)) for setup in setups], routing, turns)
        router.run()
        return SessionRun(
            sessions=tuple(sessions),
            turns=tuple(tuple(request_result(turn) for turn in row) for row in turns),
            runs=tuple(
                recorded_run(replica.server, setup, policy, replica.sent)
                for replica, setup in zip(router.replicas, setups, strict=True)
            ),
        )


def _live_turns(sessions: Sequence[Session]) -> list[list[LiveSequence]]:
    """The turns of each session, linked to the next ones."""
    rows, index = [], 0
    for number, session in enumerate(sessions):
        row = [
            LiveSequence(request, index + i, tool_s=turn.tool_s)
            for i, (request, turn) in enumerate(
                zip(session.requests(family=number + 1), session.turns, strict=True)
            )
        ]
        for turn, following in pairwise(row):
            turn.next_turn = following
        rows.append(row)
        index += len(row)
    return rows


@dataclass(slots=True)
class _Replica:
    """A server, and what advances it."""

    server: Server
    advance: Callable[[], None]
    sent: list[LiveSequence] = field(default_factory=list)

    @property
    def now(self) -> float:
        return self.server.batch.now

    @property
    def requests(self) -> int:
        """Its requests that are not done."""
        server = self.server
        return len(server.running) + len(server.waiting) + len(server.arrivals) - server.next_index


class _Router:
    """Advances the replica whose clock is the earliest, and sends it the turns that arrive."""

    def __init__(self, replicas: list[_Replica], routing: str, turns: list[list[LiveSequence]]) -> None:
        self.replicas, self.routing = replicas, routing
        self.arrivals = [(row[0].request.arrival_s, row[0].index, row[0]) for row in turns]
        heapify(self.arrivals)
        self.home: dict[int, _Replica] = {}  # with affinity, the replica of a session
        self.sessions: Counter[int] = Counter()
        # A turn that ends now can send the next one to another replica after the shortest tool call.
        calls = [turn.tool_s for row in turns for turn in row if turn.next_turn]
        self.lookahead_s = math.inf if routing == "affinity" else min(calls, default=math.inf)
        for replica in replicas:
            replica.server.send_turn = self._arrive

    def _arrive(self, turn: LiveSequence) -> None:
        heappush(self.arrivals, (turn.request.arrival_s, turn.index, turn))

    def run(self) -> None:
        """Serve all turns."""
        while True:
            busy = [replica for replica in self.replicas if replica.server.has_work()]
            next_s = self.arrivals[0][0] if self.arrivals else math.inf
            slowest = min(busy, key=lambda replica: replica.now, default=None)
            if slowest is None or slowest.now >= next_s:
                if not self.arrivals:
                    return
                self._send(heappop(self.arrivals)[2])
                continue
            others_s = min((replica.now for replica in busy if replica is not slowest), default=math.inf)
            slowest.server.horizon_s = min(next_s, others_s + self.lookahead_s)
            slowest.advance()

    def _send(self, turn: LiveSequence) -> None:
        """Send a turn to the replica that the routing chooses."""
        family = turn.request.family
        replica = self.home.get(family) or min(self.replicas, key=lambda each: each.requests)
        if self.routing == "affinity":
            self.home[family] = replica
        replica.sent.append(turn)
        replica.server.add_arrival(turn)
