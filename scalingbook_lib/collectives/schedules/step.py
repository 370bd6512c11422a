"""The parts of a collective's schedule (pieces, links, messages, steps), and the total load of each link.

The array is split into equal pieces; in one step every link carries at most one message, which may hold
several pieces. The schedules are built in `plan`. The link totals also have closed forms here, so that a
torus of 4,096 chips takes no longer than one of four; both directions of an axis carry the same load,
mirrored. Chapter: Sharding.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.units import Result


class Piece(NamedTuple):
    """A piece of the array, from chip `origin` (None: a sum over all) to chip `goal` (None: all chips)."""

    origin: int | None
    goal: int | None
    part: int

    @property
    def block(self) -> int:
        """The index of the shard to which the piece belongs, if there is one shard per chip."""
        return self.origin if self.origin is not None else self.goal or 0


class DirectedLink(NamedTuple):
    """The directed link that leaves chip `source` along `axis`, up (+1) or down (-1)."""

    source: int
    axis: int
    direction: int


class Send(NamedTuple):
    """One message over one link in one step."""

    link: DirectedLink
    target: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """The messages of one step, and whether pieces are copied, moved or added on arrival."""

    kind: str  # "copy", "move" or "add"
    sends: tuple[Send, ...]

    @property
    def loads(self) -> dict[DirectedLink, int]:
        """The number of pieces on every busy link in this step."""
        return {send.link: len(send.pieces) for send in self.sends}


@dataclass(frozen=True, slots=True)
class Schedule(Result):
    """A collective as a list of steps on a torus of `sizes`, for an array of `pieces` equal pieces."""

    name: str
    sizes: tuple[int, ...]
    wrapped: tuple[bool, ...]
    pieces: int
    steps: tuple[ScheduleStep, ...]

    @property
    def chips(self) -> int:
        """The number of chips that take part."""
        return math.prod(self.sizes)

    @property
    def loads(self) -> dict[DirectedLink, int]:
        """The number of pieces that every link carries over the whole schedule."""
        return dict(Counter(send.link for step in self.steps for send in step.sends for _ in send.pieces))

    def step_seconds(self, nbytes: float, *axes: Axis) -> tuple[float, ...]:
        """The seconds of each step if all links wait for the slowest: a hop, and the bytes over the link.

        `nbytes` is the whole array, all its pieces together; for a permute it is every chip's shard.
        """
        return tuple(
            max(
                # α, and the bytes over W_1
                axes[link.axis].hop_s + load * nbytes / (self.pieces * axes[link.axis].link_bytes_per_s)
                for link, load in step.loads.items()
            )
            for step in self.steps
        )

    def __str__(self) -> str:
        shape = "x".join(map(str, self.sizes))
        busiest = max(self.loads.values(), default=0)
        return (
            f"{self.name} on {shape}: {len(self.steps)} steps; the busiest link carries "
            f"{busiest} of {self.pieces} pieces"
        )


def holdings(schedule: Schedule, after: int) -> tuple[dict[Piece, int], ...]:
    """The pieces that every chip holds after `after` steps, and how many chips' values are summed in each.

    Pieces of an AllReduce are named by their block, as the AllGather names them.
    """
    adds = any(step.kind == "add" for step in schedule.steps)
    sent = [
        [(s, Piece(p.block, None, p.part) if adds else p) for s in step.sends for p in s.pieces]
        for step in schedule.steps
    ]
    held: list[Counter[Piece]] = [Counter() for _ in range(schedule.chips)]
    for _, piece in itertools.chain.from_iterable(sent):
        for chip in range(schedule.chips) if adds else [piece.origin or 0]:
            held[chip][piece] = 1
    for step, moved in zip(schedule.steps[:after], sent, strict=False):
        # all links work at once: sent pieces are read before anything arrives
        amounts = [held[send.link.source][piece] for send, piece in moved]
        for send, piece in moved if step.kind != "copy" else ():
            held[send.link.source].pop(piece, None)
        for (send, piece), amount in zip(moved, amounts, strict=True):
            held[send.target][piece] = amount + (held[send.target][piece] if step.kind == "add" else 0)
    return tuple(dict(chip) for chip in held)


def neighbor(link: DirectedLink, sizes: Sequence[int]) -> int:
    """The chip at the other end of a link in a torus of `sizes`."""
    stride, size = math.prod(sizes[link.axis + 1 :]), sizes[link.axis]
    here = link.source // stride % size
    return link.source + ((here + link.direction) % size - here) * stride


type Shares = tuple[tuple[float, ...], ...]  # by axis, then by position on the axis


def all_gather_shares(*axes: Axis) -> Shares:
    """The share of the gathered array on the upward link at every position of every axis.

    A part of the array passes the axes in sequence, and each axis multiplies the data that travels together.
    """
    real = [k for k, axis in enumerate(axes) if axis.size > 1]
    n, totals = math.prod(axis.size for axis in axes), [0.0] * len(axes)
    for first in range(len(real)):
        together = 1
        for turn in range(len(real)):
            k = real[(first + turn) % len(real)]
            # a shard of one d-th of the array is 1/(n d) of it
            totals[k] += together / (n * len(real))
            together *= axes[k].size
    pairs = zip(totals, axes, strict=True)
    return tuple(tuple(total * shards for shards in _gathered(axis)) for total, axis in pairs)


def all_to_all_shares(*axes: Axis) -> Shares:
    """The share of the whole array on the upward link at every position of every axis."""
    n = math.prod(axis.size for axis in axes)
    return tuple(tuple(1 / (axis.size * n) * chunks for chunks in _exchanged(axis)) for axis in axes)


def _gathered(axis: Axis) -> list[float]:
    """Shards over each link: on a ring half of the other shards, on a line all from below."""
    if axis.wrapped:
        # n - 1 shards reach each chip, half of them from each direction
        return [(axis.size - 1) / 2] * axis.size
    return [float(i + 1) for i in range(axis.size - 1)]  # everything below the link crosses it upward


def _exchanged(axis: Axis) -> list[float]:
    """Chunks over each link: on a ring Σ distances / n, on a line all pairs that the link connects."""
    n = axis.size
    if axis.wrapped:
        return [(n * n - n % 2) / 8] * n  # n chunks of each distance d up to n/2 use d of n links
    return [float((i + 1) * (n - 1 - i)) for i in range(n - 1)]  # from all chips below to all chips above
