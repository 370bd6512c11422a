"""Which collectives are there, what must one move, how long does it take, and which term is the larger?

A collective's names in the book, in the compiler's HLO and in code; the bytes that must be received
whatever the network, and the rate at which a measured one moved them; of its time a bandwidth term, a
latency term, and the textbook's form beside them. Chapters: Sharding, GPUs.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from scalingbook_lib.units import Result, si


@dataclass(frozen=True, slots=True)
class Transfer(Result):
    """The time of a collective: bytes over bandwidth, plus a latency for every hop in a row."""

    name: str
    bandwidth_s: float
    latency_s: float
    textbook_s: float

    @property
    def total_s(self) -> float:
        """The last byte has arrived: the two terms added, as the step-by-step schedule has it."""
        return self.bandwidth_s + self.latency_s  # hockney1994communication: α for each hop, and bytes/W

    @property
    def bound(self) -> str:
        """The larger of the two terms: 'bandwidth' or 'latency'."""
        return "latency" if self.latency_s > self.bandwidth_s else "bandwidth"

    @property
    def textbook_error(self) -> float:
        """How far the textbook's form is off, relative to the exact time (0 where nothing moves)."""
        # below 0 where it leaves out hops, or a line's one link
        return self.textbook_s / self.total_s - 1 if self.total_s else 0.0

    def __add__(self, other: "Transfer") -> "Transfer":
        """One after the other: every term adds."""
        return Transfer(
            " + ".join(name for name in (self.name, other.name) if name),
            self.bandwidth_s + other.bandwidth_s,
            self.latency_s + other.latency_s,
            self.textbook_s + other.textbook_s,
        )

    def __str__(self) -> str:
        if not self.total_s:
            return f"{self.name or 'nothing to move'}: free"
        terms = (
            f"{si(float(self.bandwidth_s), 's')} for the bytes, {si(float(self.latency_s), 's')} for the hops"
        )
        return f"{self.name}: {si(float(self.total_s), 's')} ({terms}), {self.bound}-bound"


NOTHING = Transfer("", 0, 0, 0)


class Collective(StrEnum):
    """A collective is its name in the book, and carries the two others: `hlo`, and `call` of the function.

    >>> Collective.named("all-gather").call
    'all_gather'
    """

    hlo: str
    call: str

    ALL_GATHER = "AllGather", "all-gather", "all_gather"
    REDUCE_SCATTER = "ReduceScatter", "reduce-scatter", "reduce_scatter"
    ALL_REDUCE = "AllReduce", "all-reduce", "all_reduce"
    ALL_TO_ALL = "AllToAll", "all-to-all", "all_to_all"
    PERMUTE = "CollectivePermute", "collective-permute", "permute"

    def __new__(cls, book: str, hlo: str, call: str) -> "Collective":
        """The member that equals its name in the book."""
        member = str.__new__(cls, book)
        member._value_, member.hlo, member.call = book, hlo, call
        return member

    def __repr__(self) -> str:
        return repr(self.value)  # results that hold one are shown as they would be with the bare name

    def is_called(self, text: str) -> bool:
        """Whether that is one of its names, whatever capitals, hyphens and underscores are in it."""
        return _plain(text) in (_plain(self.value), _plain(self.call))

    @classmethod
    def named(cls, text: str) -> "Collective":
        """The collective of that name, in any of the spellings; a ValueError that lists all where none is."""
        if isinstance(text, Collective):
            return text
        for kind in cls:
            if kind.is_called(text):
                return kind
        known = ", ".join(kind.call.replace("_", "-") for kind in cls)
        raise ValueError(f"{text!r} is no collective of this book; write one of {known}")


def _plain(text: str) -> str:
    return re.sub(r"[-_\s]", "", text.lower())


def bytes_received(collective: str, nbytes: float, n: int) -> float:
    """How many bytes each of `n` chips must receive, whatever the network: a lower bound no link can beat."""
    # a chip has 1/n of what it wants
    return _received(collective, (n - 1) * nbytes / n, nbytes, n)


def bus_bandwidth(collective: str, nbytes: float, n: int, seconds: float) -> float:
    """NCCL's busbw: the size over the time (algbw), times the share of the size that a link must carry.

    A perfect ring that gathers or reduces reports busbw = W whatever `n`, which makes it comparable with a
    datasheet. NCCL counts sizes as this book does, except an all-to-all's: there it is one chip's nbytes / n.
    Source: nccl-tests, doc/PERFORMANCE.md.
    """
    return _received(collective, (n - 1) / n, 1, n) * nbytes / seconds


def _received(collective: str, missing: float, whole: float, n: int) -> float:
    """What a chip must receive of an array: of the `whole` it is `missing` all but its own part of n."""
    shares = {
        Collective.ALL_REDUCE: 2 * missing,  # a reduce-scatter, then an all-gather
        Collective.ALL_TO_ALL: missing / n,  # of each shard the part that is for this chip
        Collective.PERMUTE: whole,  # one chip's shard
    }
    return shares.get(Collective.named(collective), missing)


def reached(targets: int, draws: int) -> float:
    """The chance that one of `targets` chips is among `draws` drawn at random: 1 - (1 - 1/N)^k.

    What a dispatch of tokens to k experts sends of a full all-to-all, each token at most once to a chip.
    """
    if targets < 1 or draws < 0:
        raise ValueError(f"{draws} draws from {targets} chips: write at least 1 chip and no negative draws")
    return 1 - (1 - 1 / targets) ** draws  # each draw misses it with the chance 1 - 1/N
