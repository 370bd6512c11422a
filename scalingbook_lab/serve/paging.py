"""Allocate the blocks of a paged KV cache, and share those of common prefixes.

`Pool(blocks, size)` allocates blocks of `size` tokens. A full block can belong to many sequences if its
tokens and all tokens before them are known. Such a block is reference-counted and never written again. When
the last sequence releases it, it stays cached until its memory is needed; eviction is least recently used
first. Chapter: Inference. Source: Kwon et al., arXiv 2309.06180 (PagedAttention).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scalingbook_lib.units import Result


class OutOfBlocks(Exception):
    """Raised when every block is in use."""


@dataclass(slots=True)
class Pool(Result):
    """Blocks 0 to count - 1, each of which is free, referenced, or idle.

    An idle block holds cached tokens but is not referenced by any sequence.
    """

    count: int
    size: int
    share_prefixes: bool = True
    evictions: int = 0
    free: deque[int] = field(init=False)
    references: list[int] = field(init=False)
    idle: dict[int, None] = field(init=False, default_factory=dict)  # least recently used first
    cached: dict[bytes, int] = field(init=False, default_factory=dict)
    prefix_of: dict[int, bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.free = deque(range(self.count))
        self.references = [0] * self.count

    @property
    def available(self) -> int:
        """The number of blocks that can be allocated: free blocks, and idle ones, which would be evicted."""
        return len(self.free) + len(self.idle)

    def needed(self, tokens: int) -> int:
        """Return the number of blocks for this many tokens."""
        return -(-tokens // self.size)

    def allocate(self, n: int) -> list[int]:
        """Return n blocks that no other sequence uses.

        Raises OutOfBlocks, and allocates none, if there are fewer.
        """
        if n > self.available:
            raise OutOfBlocks(f"{n} blocks are needed, {self.available} of {self.count} are available")
        return [self._allocate() for _ in range(n)]

    def _allocate(self) -> int:
        if not self.free:  # as late as possible: a sequence with the same prefix may still come
            self._evict(next(iter(self.idle)))
        block = self.free.popleft()
        self.references[block] = 1
        return block

    def _evict(self, block: int) -> None:
        del self.idle[block], self.cached[self.prefix_of.pop(block)]
        self.free.append(block)
        self.evictions += 1

    def match(self, tokens: Sequence[int]) -> list[int]:
        """Return the blocks of the longest cached prefix of these tokens.

        The last token is excluded, because it has to be computed.
        """
        matched = []
        # a block's key is all tokens up to its end, because keys and values depend on the tokens before them
        for n in range(1, (len(tokens) - 1) // self.size + 1):
            block = self.cached.get(_key(tokens[: n * self.size]))
            if block is None:
                break
            matched.append(block)
        return matched

    def acquire(self, blocks: Iterable[int]) -> None:
        """Add a reference to each of these cached blocks."""
        for block in blocks:
            self.idle.pop(block, None)
            self.references[block] += 1

    def extend(self, cached: list[int], tokens: int) -> list[int] | None:
        """Return the cached blocks plus enough new ones for `tokens` tokens, or None if there are too few."""
        self.acquire(cached)
        try:
            return cached + self.allocate(self.needed(tokens) - len(cached))
        except OutOfBlocks:
            self.release(cached)
            return None

    def register(self, tokens: Sequence[int], block: int) -> None:
        """Cache this block under the prefix that it completes; of equal blocks only the first is cached."""
        if self.share_prefixes and (key := _key(tokens)) not in self.cached:
            self.cached[key] = block
            self.prefix_of[block] = key

    def release(self, blocks: Sequence[int]) -> None:
        """Drop one reference to each of these blocks.

        Later blocks are evicted before earlier ones, which other sequences may share.
        """
        for block in reversed(blocks):
            self.references[block] -= 1
            if self.references[block]:
                continue
            if block in self.prefix_of:
                self.idle[block] = None
            else:
                self.free.append(block)

    def __str__(self) -> str:
        referenced = sum(n > 0 for n in self.references)
        shared = sum(n > 1 for n in self.references)
        return (
            f"{self.count} blocks of {self.size} tokens: {referenced} in use ({shared} of them shared), "
            f"{len(self.idle)} idle with cached tokens, {len(self.free)} free"
        )


def _key(tokens: Sequence[int]) -> bytes:
    """Return all tokens of a prefix as bytes, so that no two prefixes have the same key."""
    return np.asarray(tokens, np.int32).tobytes()
