"""The schedule of each collective: which chunk crosses which link in which step.

On a torus the array is split into as many equal parts as there are axes, each part starting on another axis,
so that the links of all axes are busy in every phase. Chapter: Sharding.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from scalingbook_lib.collectives.schedules.step import (
    DirectedLink,
    Piece,
    Schedule,
    ScheduleStep,
    Send,
    neighbor,
)
from scalingbook_lib.collectives.transfer import Collective

type Lanes = Iterator[list[Send]]  # the messages of one part, for every step of a phase
# for every step, a function from a position on the line to the messages it sends
type Moves = Iterator[Callable[[int], list]]
# a function of an axis: its chips, whether it wraps, whether both directions are used
type Line = Callable[[int, bool, bool], Moves]


def all_gather(
    sizes: int | Sequence[int], wrapped: bool | Sequence[bool] = True, bidirectional: bool = True
) -> Schedule:
    """The AllGather's schedule: in every step each chip forwards what it received last."""
    torus = _Torus.of(sizes, wrapped, bidirectional)
    return _in_parts(Collective.ALL_GATHER, "copy", torus, len(torus.places), _gather_line)


def reduce_scatter(
    sizes: int | Sequence[int], wrapped: bool | Sequence[bool] = True, bidirectional: bool = True
) -> Schedule:
    """The ReduceScatter's schedule: an AllGather run backwards, in which partial sums flow together."""
    return _reversed(all_gather(sizes, wrapped, bidirectional))


def all_reduce(
    sizes: int | Sequence[int], wrapped: bool | Sequence[bool] = True, bidirectional: bool = True
) -> Schedule:
    """The AllReduce's schedule: a reduce-scatter, then an all-gather."""
    gather = all_gather(sizes, wrapped, bidirectional)
    return replace(gather, name=Collective.ALL_REDUCE, steps=_reversed(gather).steps + gather.steps)


def all_to_all(
    sizes: int | Sequence[int], wrapped: bool | Sequence[bool] = True, bidirectional: bool = True
) -> Schedule:
    """The AllToAll's schedule: every piece takes the shorter direction, axis after axis.

    Half of the piece for an antipode goes in each direction.
    """
    torus = _Torus.of(sizes, wrapped, bidirectional)
    return _in_parts(Collective.ALL_TO_ALL, "move", torus, len(torus.places) ** 2, _exchange_line)


def permute(n: int, shift: int = 1, wrapped: bool = True) -> Schedule:
    """The permute's schedule: every chip sends its shard `shift` positions on in the shorter direction.

    On a line, pieces that would wrap around are dropped.
    """
    # negative if the shorter direction is downward
    far = (shift % n if 2 * (shift % n) <= n else shift % n - n) if wrapped else shift
    # to the antipode, half goes in each direction
    distances = (far, -far) if wrapped and 2 * far == n else (far,)
    routes = [(i, i + d, half) for i in range(n) for half, d in enumerate(distances)]
    routes = [(i, j, half) for i, j, half in routes if wrapped or 0 <= j < n]
    steps = []
    for t in range(max((abs(j - i) for i, j, _ in routes), default=0)):
        sends = []
        for i, j, half in routes:
            way = 1 if j > i else -1
            link = DirectedLink((i + way * t) % n, 0, way)
            sends.append(Send(link, (link.source + way) % n, (Piece(i, j % n, half),)))
        steps.append(ScheduleStep("move", tuple(sends)))
    return Schedule(Collective.PERMUTE, (n,), (wrapped,), n * len(distances), tuple(steps))


@dataclass(frozen=True)
class _Torus:
    sizes: tuple[int, ...]
    wrapped: tuple[bool, ...]
    bidirectional: bool

    @classmethod
    def of(cls, sizes: int | Sequence[int], wrapped: bool | Sequence[bool], bidirectional: bool) -> "_Torus":
        shape = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        wraps = (wrapped,) * len(shape) if isinstance(wrapped, bool) else tuple(wrapped)
        if len(wraps) != len(shape) or min(shape, default=0) < 1:
            raise ValueError(
                f"sizes {sizes} with wrapped {wrapped}: give each axis one size of at least 1 and one wrap"
            )
        if not bidirectional and not all(w or n == 1 for n, w in zip(shape, wraps, strict=True)):
            raise ValueError(
                "a line cannot be used in one direction only: nothing would reach its first chip; wrap it"
            )
        return cls(shape, wraps, bidirectional)

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """The coordinates of every chip, with the last axis fastest: a chip's number is its index here."""
        return tuple(itertools.product(*map(range, self.sizes)))

    @property
    def halves(self) -> int:
        """The number of parts of a piece: 2 if some chips are antipodes on an even ring, otherwise 1."""
        even = any(w and n % 2 == 0 for n, w in zip(self.sizes, self.wrapped, strict=True))
        return 2 if even and self.bidirectional else 1

    def where(self, free: Iterable[int], fixed: dict[int, int], place: Sequence[int]) -> list[int]:
        """Every chip that agrees with `place` and `fixed`, except along the free axes."""
        wanted = {a: fixed.get(a, at) for a, at in enumerate(place) if a in fixed or a not in free}
        return [
            chip for chip, spot in enumerate(self.places) if all(spot[a] == at for a, at in wanted.items())
        ]


def _in_parts(name: str, kind: str, torus: _Torus, blocks: int, line: Line) -> Schedule:
    """The schedule in parts: part k goes along axes k, k + 1, ..., so each axis always serves one part."""
    real = [axis for axis, size in enumerate(torus.sizes) if size > 1] or [0]
    d = len(real)
    steps: list[ScheduleStep] = []
    # after each phase, the data that a chip passes on has grown by the size of an axis
    for turn in range(d):
        lanes = [_phase(torus, k, [real[(k + t) % d] for t in range(turn + 1)], line) for k in range(d)]
        for together in itertools.zip_longest(*lanes, fillvalue=()):
            steps.append(ScheduleStep(kind, tuple(send for sends in together for send in sends)))
    return Schedule(name, torus.sizes, torus.wrapped, blocks * torus.halves * d, tuple(steps))


def _phase(torus: _Torus, part: int, axes: list[int], line: Line) -> Lanes:
    """The messages of one phase along the last of `axes`; pieces gathered in earlier phases travel together.

    The pieces of an AllToAll do not name the coordinates on the axes to come; those of an AllGather are for
    all chips, None.
    """
    *done, axis = axes
    ahead = [a for a in range(len(torus.sizes)) if a not in axes]
    for moves in line(torus.sizes[axis], torus.wrapped[axis], torus.bidirectional):
        sends = []
        for chip, place in enumerate(torus.places):
            bundles: dict[int, list[Piece]] = {}
            for way, start, end, half in moves(place[axis]):
                origins = torus.where(done, {axis: start}, place)
                goals = [None] if end is None else torus.where(ahead, {axis: end}, place)
                halves = range(torus.halves) if half is None else (half,)
                bundles.setdefault(way, []).extend(
                    Piece(origin, goal, part * torus.halves + h)
                    for origin, goal, h in itertools.product(origins, goals, halves)
                )
            for way, pieces in bundles.items():
                link = DirectedLink(chip, axis, way)
                sends.append(Send(link, neighbor(link, torus.sizes), tuple(pieces)))
        yield sends


def _gather_line(n: int, wrapped: bool, bidirectional: bool) -> Moves:
    """For every step, a function from a position to what it sends: (direction, start, None, half or None)."""
    directions = (1, -1) if bidirectional else (1,)
    # in both directions at once, a ring needs half as many steps
    for t in range((n - 1) // 2 if wrapped and bidirectional else n - 1):  # forward what came from behind
        yield lambda i, t=t: [
            (w, (i - w * t) % n, None, None)
            for w in directions
            # at the ends of a line, nothing arrives or leaves
            if wrapped or (0 <= i - w * t < n and 0 <= i + w < n)
        ]
    if (
        wrapped and bidirectional and n % 2 == 0
    ):  # one shard is missing and both neighbors have it: each sends half
        yield lambda i: [(1, (i - n // 2 + 1) % n, None, 0), (-1, (i + n // 2 - 1) % n, None, 1)]


def _exchange_line(n: int, wrapped: bool, bidirectional: bool) -> Moves:
    """For every step, a function from a position to what it sends: (direction, start, end, half or None)."""
    longest = n // 2 if wrapped and bidirectional else n - 1  # hops of the piece that travels farthest
    for t in range(longest):
        if not wrapped:
            yield lambda i, t=t: _line_exchange(n, i, t)
        else:
            yield lambda i, t=t: [
                (w, (i - w * t) % n, (i - w * t + w * d) % n, half)
                for d in range(t + 1, longest + 1)
                for w, half in _directions(n, d, bidirectional)
            ]


def _directions(n: int, distance: int, bidirectional: bool) -> list[tuple[int, int | None]]:
    if not bidirectional:
        return [(1, None)]
    return [(1, 0), (-1, 1)] if 2 * distance == n else [(1, None), (-1, None)]


def _line_exchange(n: int, i: int, t: int) -> list[tuple[int, int, int, None]]:
    """The pieces that position i sends up and down a line at step t: one for each start behind it.

    A piece leaves its start at step n - 1 - end, counted upwards, so the middle link is busy from the first
    step to the last: at i are the pieces whose start and end add up to i + n - 1 - t. The downward direction
    is the mirror image.
    """
    up = [(start, i + n - 1 - t - start) for start in range(i + 1)]
    down = [(start, i + t - start) for start in range(n - 1, i - 1, -1)]
    return [(1, start, end, None) for start, end in up if i < end < n] + [
        (-1, start, end, None) for start, end in down if 0 <= end < i
    ]


def _reversed(schedule: Schedule) -> Schedule:
    """The schedule with links and steps in the opposite order; copies become additions."""

    def reversed_send(send: Send) -> Send:
        back = DirectedLink(send.target, send.link.axis, -send.link.direction)
        return Send(back, send.link.source, tuple(Piece(p.goal, p.origin, p.part) for p in send.pieces))

    steps = tuple(
        ScheduleStep("add", tuple(map(reversed_send, step.sends))) for step in reversed(schedule.steps)
    )
    return replace(schedule, name=Collective.REDUCE_SCATTER, steps=steps)
