"""Which collectives are there, and what is each called? In the book, in the compiler's HLO, and in code.

Chapter: Sharding.
"""

import re
from enum import StrEnum


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
