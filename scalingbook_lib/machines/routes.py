"""Shortest routes between two chips of a torus, and the time that a message takes over them.

A chip is named by its coordinates. Messages take shortest paths; edge-disjoint paths carry parts of one
message in parallel. Chapter: TPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_lib.machines.torus import Axis, SliceError
from scalingbook_lib.units import Result, require_min, si
from scalingbook_lib.words import pluralize

type Place = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message(Result):
    """The time of one message: the hops of its first byte, then all its bytes without a gap."""

    nbytes: float
    hops_s: float
    bytes_s: float

    @property
    def total_s(self) -> float:
        """The time in seconds until the last byte has arrived: hops, then bytes."""
        return self.hops_s + self.bytes_s  # the bytes follow the first one without a gap

    def __str__(self) -> str:
        return (
            f"{si(self.nbytes, 'B')} in {si(self.total_s, 's', 4)}: hops {si(self.hops_s, 's')}, "
            f"bytes {si(self.bytes_s, 's', 4)}"
        )


@dataclass(frozen=True, slots=True)
class Route(Result):
    """The shortest paths between two chips of a torus."""

    axes: tuple[Axis, ...]
    source: Place
    target: Place

    @classmethod
    def between(cls, axes: Sequence[Axis], source: Sequence[int], target: Sequence[int]) -> "Route":
        """The route between two chips, by their coordinates. Raises a SliceError if a chip does not exist."""
        for place in (source, target):
            if len(place) != len(axes) or not all(
                0 <= at < axis.size for at, axis in zip(place, axes, strict=True)
            ):
                corner = tuple(axis.size - 1 for axis in axes)
                raise SliceError(
                    f"there is no chip at {tuple(place)}; chips go from {(0,) * len(axes)} to {corner}"
                )
        return cls(tuple(axes), tuple(source), tuple(target))

    @property
    def steps(self) -> tuple[int, ...]:
        """The hops along each axis in the shorter direction, negative if that direction is down."""
        # dimension by dimension, as in a grid
        return tuple(map(_shorter, self.axes, self.source, self.target))

    @property
    def hops(self) -> int:
        """The number of links on a shortest path."""
        return sum(map(abs, self.steps))

    @property
    def paths(self) -> int:
        """The number of edge-disjoint shortest paths: one per axis to cross, two if both directions tie.

        There cannot be more, because each needs its own first link. (No slice has a ring of two chips.)
        """
        return sum(
            # both directions of an even ring are equally short
            (axis.wrapped and 2 * abs(step) == axis.size) + 1
            for axis, step in zip(self.axes, self.steps, strict=True)
            if step
        )

    @property
    def shortest(self) -> tuple[Place, ...]:
        """The chips on the path that crosses the axes in their order, both ends included."""
        at, way = list(self.source), [self.source]
        for k, (axis, step) in enumerate(zip(self.axes, self.steps, strict=True)):
            for _ in range(abs(step)):
                at[k] = (at[k] + (1 if step > 0 else -1)) % axis.size  # around the ring if it wraps
                way.append(tuple(at))
        return tuple(way)

    @property
    def first_byte_s(self) -> float:
        """The seconds until the first byte arrives: the hops of the path, one after the other."""
        # α per hop
        return sum(abs(step) * axis.hop_s for step, axis in zip(self.steps, self.axes, strict=True))

    @property
    def bytes_per_s(self) -> float:
        """The bandwidth of all edge-disjoint shortest paths together, in bytes/s, unidirectional."""
        # parts are equal, so the slowest link finishes last
        return self.paths * min((axis.link_bytes_per_s for axis in self.axes), default=0.0)

    def message(self, nbytes: float, *, paths: int | None = None) -> Message:
        """The time of `nbytes` on `paths` disjoint paths (by default all): hops · α + nbytes / (paths · W₁).

        Each hop forwards a byte as soon as it arrives (cut-through), so the bytes are paid once and not per
        hop. Raises a ValueError if there are not that many paths.
        """
        require_min(0, nbytes=nbytes)
        if paths is not None and not 1 <= paths <= max(self.paths, 1):
            raise ValueError(f"paths={paths}: write a number from 1 to {max(self.paths, 1)}")
        if not self.paths:
            return Message(nbytes, 0.0, 0.0)
        rate = self.bytes_per_s * (paths or self.paths) / self.paths
        # cut-through: dally2004principles
        return Message(nbytes, self.first_byte_s, nbytes / rate)

    def __str__(self) -> str:
        if not self.hops:
            return f"{self.source} to itself: no hops"
        hops = pluralize(self.hops, "hop")
        paths = f"{self.paths} disjoint shortest paths" if self.paths > 1 else "1 path"
        return (
            f"{self.source} to {self.target}: {hops}, {paths}, first byte after "
            f"{si(self.first_byte_s, 's')}, then {si(self.bytes_per_s, 'B/s')}"
        )


def _shorter(axis: Axis, source: int, target: int) -> int:
    if not axis.wrapped:
        return target - source
    up = (target - source) % axis.size  # hops upward; downward it is the rest of the ring
    return up if 2 * up <= axis.size else up - axis.size
