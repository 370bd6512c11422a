"""Sequence packing: how full the rows of a batch are, and how much attention is within documents.

Best fit decreasing (BFD): documents are sorted by length, and each goes into the fullest row with enough
room. Documents that are longer than a row are split. Chapter: Training.

>>> print(pack([600, 500, 400, 300, 200], row=1024))
2 rows of 1,024 tokens, 2.3% empty; within documents 43% of attention's pairs, 50% in the slowest row
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass

from scalingbook_lib.units import Result, percent


@dataclass(frozen=True, slots=True)
class Packing(Result):
    """Rows of `row` tokens; each row is the tuple of the lengths of its documents."""

    row: int
    rows: tuple[tuple[int, ...], ...]

    @property
    def empty(self) -> float:
        """The share of positions that hold padding."""
        return 1 - sum(map(sum, self.rows)) / (self.row * len(self.rows))

    @property
    def attention(self) -> tuple[float, ...]:
        """For each row, the share of query-key pairs within documents: the sum of T² over row²."""
        # the causal mask halves both, so the factor cancels
        return tuple(sum(T * T for T in documents) / self.row**2 for documents in self.rows)

    @property
    def mean_attention(self) -> float:
        """The share of query-key pairs within documents, over all rows."""
        return sum(self.attention) / len(self.rows)  # all rows have the same length

    def __str__(self) -> str:
        return (
            f"{len(self.rows):,} rows of {self.row:,} tokens, {percent(self.empty)} empty; within documents "
            f"{percent(self.mean_attention)} of attention's pairs, "
            f"{percent(max(self.attention))} in the slowest row"
        )


def pack(documents: Iterable[int], row: int) -> Packing:
    """Pack documents, given by their lengths in tokens, into as few rows as best fit decreasing needs."""
    rows: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # the free tokens of each row and its index, sorted
    # long documents first, so that short ones fill the gaps
    for T in sorted(_pieces(documents, row), reverse=True):
        place = bisect_left(rooms, (T, 0))  # the fullest row with at least T free
        room, index = rooms.pop(place) if place < len(rooms) else (row, len(rows))
        if index == len(rows):
            rows.append([])
        rows[index].append(T)
        insort(rooms, (room - T, index))
    return Packing(row, tuple(map(tuple, rows)))


def _pieces(documents: Iterable[int], row: int) -> list[int]:
    """Return the lengths with long documents split into whole rows and a remainder."""
    if row < 1:
        raise ValueError(f"row={row}: write a positive number of tokens, as in 8192")
    lengths = list(documents)
    if bad := [T for T in lengths if T < 1]:
        raise ValueError(f"a document has {bad[0]} tokens: write lengths of at least 1")
    if not lengths:
        raise ValueError("no documents: write their lengths in tokens, as in [600, 500]")
    return [piece for T in lengths for piece in (*[row] * (T // row), T % row) if piece]
