"""One level of switches as a collective sees it: its size, its rate, and whether its switches reduce.

Rates are one chip's share, unidirectional. Chapter: GPUs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from scalingbook_lib.units import Result, si


class ClusterError(ValueError):
    """An error for a cluster or a mesh that does not exist; the message says which do."""


@dataclass(frozen=True, slots=True)
class Level(Result):
    """One level of switches that connects `size` groups, each of which the level below connects.

    `bytes_per_s` is one chip's share, unidirectional. Levels with the same `port` share the wires out of a
    chip. `reduces`: the switches reduce in the network. `peer_bytes_per_s`: there is no switch, but one link
    between any two chips.
    """

    name: str
    size: int
    bytes_per_s: float  # one chip's share, unidirectional
    hop_s: float = 0.0
    reduces: bool = False  # the switches reduce
    port: str = ""
    peer_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if self.size < 1 or self.bytes_per_s <= 0 or self.hop_s < 0:
            raise ValueError(
                f"a level of {self.size} groups, {self.bytes_per_s} B/s per chip, {self.hop_s} s per hop: "
                "write a size of at least 1, a positive rate and no negative time"
            )
        if self.peer_bytes_per_s and self.reduces:
            raise ValueError(f"{self.name} has no switch that can reduce; write reduces=False")
        object.__setattr__(self, "port", self.port or self.name)

    @classmethod
    def full_mesh(cls, name: str, size: int, peer_bytes_per_s: float, hop_s: float = 0.0) -> "Level":
        """The level of chips with one link to each other chip; a smaller group uses fewer links."""
        # one link for each other chip of the group
        return cls(name, size, max(size - 1, 1) * peer_bytes_per_s, hop_s, peer_bytes_per_s=peer_bytes_per_s)

    def part(self, size: int) -> "Level":
        """This level for a collective that spans `size` of its groups."""
        if self.peer_bytes_per_s:
            return Level.full_mesh(self.name, size, self.peer_bytes_per_s, self.hop_s)
        # with switches, any group has all of a chip's links
        return replace(self, size=size) if size != self.size else self

    def __str__(self) -> str:
        how = f", {si(self.peer_bytes_per_s, 'B/s')} to each peer" if self.peer_bytes_per_s else ""
        sums = ", in-network reduction" * self.reduces
        return f"{self.name}: {self.size} at {si(self.bytes_per_s, 'B/s')} per chip{how}{sums}"


def merge_levels[N](parts: Iterable[N]) -> tuple[N | Level, ...]:
    """The parts with neighbors on one level merged: 2 and 4 chips of a domain of 8 are all 8.

    Torus axes are unchanged.
    """
    found: list[N | Level] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, Level) and isinstance(last, Level) and last.name == part.name:
            found[-1] = part.part(last.size * part.size)
        else:
            found.append(part)
    return tuple(found)
