"""Which blocks of the cache has a sequence, and which can it share?

`Pool(blocks, size)` hands out blocks of `size` tokens. A full block whose tokens, and all tokens before them,
are known can belong to many sequences: it counts its holders, nobody writes to it again, and when the last
one lets go it stays until its place is needed, the least recently used first. Chapter: Inference.
Source: Kwon et al., arXiv 2309.06180 (PagedAttention).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scalingbook_lib.units import Result


class OutOfBlocks(Exception):
    """Every block is held by somebody."""


@dataclass(slots=True)
class Pool(Result):
    """Blocks 0 to count - 1: each is free, held by so many, or idle: held by nobody, and its tokens known."""

    count: int
    size: int
    prefixes: bool = True
    evictions: int = 0
    free: deque[int] = field(init=False)
    holders: list[int] = field(init=False)
    idle: dict[int, None] = field(init=False, default_factory=dict)  # least recently used first
    known: dict[bytes, int] = field(init=False, default_factory=dict)
    prefix_of: dict[int, bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.free = deque(range(self.count))
        self.holders = [0] * self.count

    @property
    def available(self) -> int:
        """Blocks that can be handed out: free ones, and idle ones, whose tokens are then forgotten."""
        return len(self.free) + len(self.idle)

    def needed(self, tokens: int) -> int:
        """Blocks of so many tokens."""
        return -(-tokens // self.size)

    def take(self, n: int) -> list[int]:
        """n blocks of nobody else, or none at all: OutOfBlocks."""
        if n > self.available:
            raise OutOfBlocks(f"{n} blocks are needed, {self.available} of {self.count} are to be had")
        return [self._take() for _ in range(n)]

    def _take(self) -> int:
        if not self.free:  # only now: whoever comes with the same prefix would have found it
            self._forget(next(iter(self.idle)))
        block = self.free.popleft()
        self.holders[block] = 1
        return block

    def _forget(self, block: int) -> None:
        del self.idle[block], self.known[self.prefix_of.pop(block)]
        self.free.append(block)
        self.evictions += 1

    def find(self, tokens: Sequence[int]) -> list[int]:
        """The blocks of the longest known prefix of these tokens, the last one left out: it is to be read."""
        found = []
        # a block is known by all tokens up to its end, not by its own: keys depend on what stands before them
        for n in range(1, (len(tokens) - 1) // self.size + 1):
            block = self.known.get(_key(tokens[: n * self.size]))
            if block is None:
                break
            found.append(block)
        return found

    def hold(self, blocks: Iterable[int]) -> None:
        """One more holder for each of these known blocks."""
        for block in blocks:
            self.idle.pop(block, None)
            self.holders[block] += 1

    def extended(self, known: list[int], tokens: int) -> list[int] | None:
        """The known blocks and as many more as so many tokens need; None where there are not enough."""
        self.hold(known)
        try:
            return known + self.take(self.needed(tokens) - len(known))
        except OutOfBlocks:
            self.release(known)
            return None

    def learn(self, tokens: Sequence[int], block: int) -> None:
        """This block now has the last `size` of these tokens; only the first of equal blocks is known."""
        if self.prefixes and (key := _key(tokens)) not in self.known:
            self.known[key] = block
            self.prefix_of[block] = key

    def release(self, blocks: Sequence[int]) -> None:
        """One holder fewer. Ends of sequences are forgotten before beginnings, which others may share."""
        for block in reversed(blocks):
            self.holders[block] -= 1
            if self.holders[block]:
                continue
            if block in self.prefix_of:
                self.idle[block] = None
            else:
                self.free.append(block)

    def __str__(self) -> str:
        held = sum(n > 0 for n in self.holders)
        shared = sum(n > 1 for n in self.holders)
        return (
            f"{self.count} blocks of {self.size} tokens: {held} held ({shared} of them shared), "
            f"{len(self.idle)} idle with known tokens, {len(self.free)} free"
        )


def _key(tokens: Sequence[int]) -> bytes:
    """All the tokens of a prefix: no two prefixes have the same key."""
    return np.asarray(tokens, np.int32).tobytes()
