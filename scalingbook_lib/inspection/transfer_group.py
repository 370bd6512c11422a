"""Transfers of a program that a report or a finding counts together: runs, bytes, times and places."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from scalingbook_lib.hlo.compiled_collectives import CompiledCollective
from scalingbook_lib.inspection.program import PlacedTransfer
from scalingbook_lib.units import Result, si


@dataclass(frozen=True, slots=True)
class TransferGroup(Result):
    """Transfers of the same kind over the same axes, in the order of the program."""

    transfers: tuple[PlacedTransfer, ...]

    @property
    def first(self) -> PlacedTransfer:
        """The first transfer in the order of the program."""
        return self.transfers[0]

    @property
    def largest(self) -> CompiledCollective:
        """The collective of the largest array."""
        return max((t.collective for t in self.transfers), key=lambda c: c.nbytes)

    @property
    def times(self) -> int | None:
        """How often they run together; None if a trip count is unknown."""
        return None if any(t.times is None for t in self.transfers) else self.runs

    @property
    def runs(self) -> int:
        """How often they run together; a loop of unknown length counts once."""
        return sum(t.runs for t in self.transfers)

    @property
    def trips(self) -> str:
        """The trip counts of the loops around the first: '8 × 4', or '' outside loops."""
        return " × ".join("?" if loop.trips is None else f"{loop.trips:,}" for loop in self.first.loops)

    @property
    def received_bytes(self) -> float:
        """The bytes that one device receives in a run of the program."""
        return sum(t.received_bytes for t in self.transfers)

    @property
    def seconds(self) -> float:
        """The time on the links in a run of the program."""
        return sum(t.seconds for t in self.transfers)

    @property
    def exposed_s(self) -> float:
        """The time of a run in which the device waits for them."""
        return sum(t.exposed_s for t in self.transfers)

    @property
    def places(self) -> tuple[str, ...]:
        """The names of their instructions."""
        return tuple(dict.fromkeys(t.move.name for t in self.transfers))

    @property
    def lines(self) -> tuple[str, ...]:
        """Their lines of Python, as far as the program names them."""
        return tuple(dict.fromkeys(t.line for t in self.transfers if t.line))

    def where(self, keep: Callable[[PlacedTransfer], bool]) -> "TransferGroup":
        """The transfers of the group for which `keep` is true; there may be none."""
        return TransferGroup(tuple(t for t in self.transfers if keep(t)))

    def __bool__(self) -> bool:
        return bool(self.transfers)

    def __str__(self) -> str:
        c = self.first.collective
        return f"{c.kind} over {c.over} of {si(c.nbytes, 'B')}, {self.first.schedule}"


def group(
    transfers: Iterable[PlacedTransfer], key: Callable[[PlacedTransfer], Hashable] | None = None
) -> tuple[TransferGroup, ...]:
    """Transfers of the same kind over the same axes, and with the same `key` if given.

    The groups are in the order of the first transfer of each.
    """
    found: dict[Hashable, list[PlacedTransfer]] = {}
    for t in transfers:
        common = key(t) if key else None
        found.setdefault((t.collective.kind, t.collective.axes, common), []).append(t)
    return tuple(TransferGroup(tuple(one)) for one in found.values())
