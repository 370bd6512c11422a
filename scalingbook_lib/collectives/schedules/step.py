"""What does a collective do, step by step, and who holds what in between?

The nouns of a plan: a piece of the array, a link, a message, a step, a schedule. The plans themselves are in
`plan`. The array is cut into equal pieces; in one step every link carries at most one message, which may
hold several pieces. Chapter: Sharding.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.units import Told


class Piece(NamedTuple):
    """A piece of the array: from one chip (or all, None: a sum), for one chip (or all, None: a copy)."""

    origin: int | None
    goal: int | None
    part: int

    @property
    def block(self) -> int:
        """The shard that the piece belongs to, where there is one shard a chip."""
        return self.origin if self.origin is not None else self.goal or 0


class Link(NamedTuple):
    """The wire that leaves chip `source` along `axis`, up (+1) or down (-1)."""

    source: int
    axis: int
    way: int


class Send(NamedTuple):
    """One message over one link in one step."""

    link: Link
    target: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What all links carry at the same time, and whether pieces are copied, moved, or added on arrival."""

    kind: str  # "copy", "move" or "add"
    sends: tuple[Send, ...]

    @property
    def loads(self) -> dict[Link, int]:
        """Pieces on every link that is busy in this step."""
        return {send.link: len(send.pieces) for send in self.sends}


@dataclass(frozen=True, slots=True)
class Schedule(Told):
    """A collective as a list of steps on a torus of `sizes`; the array is `pieces` equal pieces in all."""

    name: str
    sizes: tuple[int, ...]
    wrapped: tuple[bool, ...]
    pieces: int
    steps: tuple[Step, ...]

    @property
    def chips(self) -> int:
        """How many chips take part."""
        return math.prod(self.sizes)

    @property
    def loads(self) -> dict[Link, int]:
        """Pieces that every link in use carries from start to end."""
        return dict(Counter(send.link for step in self.steps for send in step.sends for _ in send.pieces))

    def step_seconds(self, nbytes: float, *axes: Axis) -> tuple[float, ...]:
        """How long each step takes if all links wait for the slowest: a hop, and the bytes over the link.

        `nbytes` is the whole array, all its pieces together: for a permute, every chip's shard.
        """
        return tuple(
            max(
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
    """What every chip holds after so many steps: each piece, and how many chips' values are summed in it.

    Pieces of an AllReduce are named by their block, as the AllGather names them.
    """
    adds = any(step.kind == "add" for step in schedule.steps)
    sent = [[(s, _name(p, adds)) for s in step.sends for p in s.pieces] for step in schedule.steps]
    held: list[Counter[Piece]] = [Counter() for _ in range(schedule.chips)]
    for _, piece in itertools.chain.from_iterable(sent):
        for chip in range(schedule.chips) if adds else [piece.origin or 0]:
            held[chip][piece] = 1
    for step, moved in zip(schedule.steps[:after], sent, strict=False):
        # all links work at once: what leaves is read before anything arrives
        amounts = [held[send.link.source][piece] for send, piece in moved]
        for send, piece in moved if step.kind != "copy" else ():
            held[send.link.source].pop(piece, None)
        for (send, piece), amount in zip(moved, amounts, strict=True):
            held[send.target][piece] = amount + (held[send.target][piece] if step.kind == "add" else 0)
    return tuple(dict(chip) for chip in held)


def _name(piece: Piece, adds: bool) -> Piece:
    return Piece(piece.block, None, piece.part) if adds else piece


def neighbour(link: Link, sizes: Sequence[int]) -> int:
    """The chip at the other end of a link in a torus of `sizes`."""
    stride, size = math.prod(sizes[link.axis + 1 :]), sizes[link.axis]
    here = link.source // stride % size
    return link.source + ((here + link.way) % size - here) * stride
