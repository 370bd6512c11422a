"""The collectives by name, the bytes each must move, and its time as a bandwidth and a latency term.

A collective has one name in the book, one in the compiler's HLO and one in code. `bytes_received` is the
lower bound on any network; `bus_bandwidth` is the rate of a measured collective. Chapters: Sharding; GPUs.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from scalingbook_lib.units import Result


@dataclass(frozen=True, slots=True)
class Transfer(Result):
    """The time of a collective in seconds: bytes over bandwidth, plus a latency for every hop in sequence."""

    name: str
    bandwidth_s: float
    latency_s: float
    textbook_s: float
    line = "total_s", "bandwidth_s", "latency_s"

    @property
    def total_s(self) -> float:
        """The time in seconds until the last byte has arrived: the sum of the two terms."""
        return self.bandwidth_s + self.latency_s  # hockney1994communication: α per hop, and bytes/W

    @property
    def bound(self) -> str:
        """The larger of the two terms: 'bandwidth' or 'latency'."""
        return "latency" if self.latency_s > self.bandwidth_s else "bandwidth"

    @property
    def textbook_error(self) -> float:
        """The relative error of the textbook's formula against the exact time; 0 if nothing moves."""
        # negative if the textbook leaves out hops, or assumes two links on a line
        return self.textbook_s / self.total_s - 1 if self.total_s else 0.0

    def __add__(self, other: "Transfer") -> "Transfer":
        """The two transfers one after the other, term by term."""
        return Transfer(
            " + ".join(name for name in (self.name, other.name) if name),
            self.bandwidth_s + other.bandwidth_s,
            self.latency_s + other.latency_s,
            self.textbook_s + other.textbook_s,
        )

    @property
    def heading(self) -> str:
        """The name of the collective and the larger of its terms."""
        return f"{self.name}, {self.bound}-bound" if self.total_s else self.name or "nothing to move"


NOTHING = Transfer("", 0, 0, 0)


class Collective(StrEnum):
    """A collective, equal to its name in the book; `hlo` and `call` are its names in HLO and in Python.

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
        return repr(self.value)  # results that hold a member print the bare name

    def is_called(self, text: str) -> bool:
        """Whether `text` is one of its names, ignoring case, hyphens and underscores."""
        return _plain(text) in (_plain(self.value), _plain(self.call))

    @classmethod
    def named(cls, text: str) -> "Collective":
        """The collective of that name, in any spelling.

        Raises a ValueError that lists all names if none matches.
        """
        if isinstance(text, Collective):
            return text
        for kind in cls:
            if kind.is_called(text):
                return kind
        known = ", ".join(kind.call.replace("_", "-") for kind in cls)
        raise ValueError(f"{text!r} is not a known collective; write one of {known}")


def _plain(text: str) -> str:
    return re.sub(r"[-_\s]", "", text.lower())


def bytes_received(collective: str, nbytes: float, n: int) -> float:
    """The bytes that each of `n` chips must receive on any network: a lower bound for every link."""
    # a chip already has 1/n of the result
    return _received(collective, (n - 1) * nbytes / n, nbytes, n)


def bus_bandwidth(collective: str, nbytes: float, n: int, seconds: float) -> float:
    """NCCL's busbw in bytes/s: size over time (algbw), times the fraction of the size that a link must carry.

    An ideal ring that gathers or reduces reports busbw = W for any `n`, which makes it comparable with a
    datasheet. NCCL counts sizes as this book does, except for an all-to-all, where the size is one chip's
    nbytes / n. Source: nccl-tests, doc/PERFORMANCE.md.
    """
    return _received(collective, (n - 1) / n, 1, n) * nbytes / seconds


def _received(collective: str, missing: float, whole: float, n: int) -> float:
    """The bytes a chip receives: `missing` is all but its own 1/n, `whole` is one shard or array."""
    shares = {
        Collective.ALL_REDUCE: 2 * missing,  # a reduce-scatter, then an all-gather
        Collective.ALL_TO_ALL: missing / n,  # the part of each shard that is for this chip
        Collective.PERMUTE: whole,  # one chip's shard
    }
    return shares.get(Collective.named(collective), missing)


def reach_probability(targets: int, draws: int) -> float:
    """The probability that one of `targets` chips is among `draws` uniform draws: 1 - (1 - 1/N)^k.

    It is the fraction of a full all-to-all that a dispatch of tokens to k experts sends if each token goes to
    a chip at most once. Raises a ValueError for no chip or negative draws.
    """
    if targets < 1 or draws < 0:
        raise ValueError(f"{draws} draws from {targets} chips: write at least 1 chip and no negative draws")
    return 1 - (1 - 1 / targets) ** draws  # each draw misses the chip with probability 1 - 1/N
