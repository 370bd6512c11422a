"""Paged KV-cache memory: block allocation, a prefix cache, and LRU eviction of idle prefixes.

The cached prefix of a family is a chain of blocks. Sequences that use it pin its beginning; unpinned blocks
stay cached until blocks run out, and are then evicted from the end of the least recently used family. Host
memory, if there is any, holds a copy of every prefix until its own blocks run out. Chapter: Inference.
"""

import math
from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from scalingbook_lib.serving.policies import HostMemory, PagedCache
from scalingbook_lib.serving.sequence import LiveSequence


@dataclass(slots=True)
class CachedPrefix:
    """The cached blocks of one family's prefix, and how many sequences pin it to which depth."""

    blocks: int = 0
    pins: Counter[int] = field(default_factory=Counter)

    @property
    def pinned(self) -> int:
        """The depth in blocks to which the chain is pinned."""
        return max((depth for depth, users in self.pins.items() if users), default=0)


class BlockPool:
    """The blocks of one server. Each is free, owned by a sequence, or in a chain; their total is constant."""

    def __init__(
        self, blocks: PagedCache | None, *, prefix_cache: bool, host: HostMemory | None = None
    ) -> None:
        self.size = blocks.size if blocks else 16
        self.free: float = blocks.count if blocks else math.inf
        self.spare: float = int(blocks.spare * blocks.count) if blocks else 0
        self.total = self.free
        self.prefix_cache = prefix_cache
        self.chains: OrderedDict[int, CachedPrefix] = OrderedDict()  # least recently used first
        self.idle = 0  # unpinned blocks of chains
        self.evicted = 0
        self.host = host
        self.copies: OrderedDict[int, int] = OrderedDict()  # blocks in host memory, least recent first
        self.copied = 0  # their total

    @property
    def available(self) -> float:
        """The blocks that can be allocated, including those of idle prefixes."""
        return self.free + self.idle

    @property
    def used_blocks(self) -> float:
        """The blocks in use (NaN if the cache is unlimited)."""
        return self.total - self.free - self.idle

    def cached_blocks(self, sequence: LiveSequence) -> int:
        """The blocks of a sequence that are in the prefix cache; at least one token is left to compute."""
        request = sequence.request
        if not self.prefix_cache or request.family not in self.chains:
            return 0
        blocks = self.chains[request.family].blocks
        return min(blocks, request.prefix // self.size, (sequence.tokens - 1) // self.size)

    def admits(self, sequence: LiveSequence, hit: int, tokens: int, reserved: float) -> bool:
        """Whether `tokens` tokens fit, `hit` blocks of them cached, with `reserved` more blocks."""
        chain = self.chains[sequence.request.family] if hit else None
        freed = max(hit - chain.pinned, 0) if chain else 0  # idle now, but pinned on admission
        return -(-tokens // self.size) - hit + freed + reserved <= self.available

    def allocate(self, sequence: LiveSequence, hit: int) -> None:
        """Allocate blocks for the prefill of a sequence and pin its `hit` cached blocks."""
        if hit:
            self.pin(sequence.request.family, hit)
        own = -(-sequence.tokens // self.size) - hit
        self.take(own)
        sequence.own_blocks, sequence.shared_blocks = own, hit
        sequence.loaded = self._copied_blocks(sequence, hit) * self.size
        sequence.filled = hit * self.size + sequence.loaded

    def publish_prefix(self, sequence: LiveSequence, tokens: int) -> None:
        """Move its computed full prefix blocks to the prefix cache, where its family can use them."""
        prefix = sequence.request.prefix
        if not self.prefix_cache or not prefix:
            return
        blocks = min(prefix, tokens) // self.size
        if blocks > sequence.shared_blocks:
            self.extend(sequence.request.family, sequence.shared_blocks, blocks)
            sequence.own_blocks -= blocks - sequence.shared_blocks
            sequence.shared_blocks = blocks
            self._copy(sequence.request.family, blocks)

    def release(self, sequence: LiveSequence) -> None:
        """Free the blocks of a sequence and unpin its prefix."""
        self.free += sequence.own_blocks
        if sequence.shared_blocks:
            self.pin(sequence.request.family, sequence.shared_blocks, -1)
        sequence.own_blocks = sequence.shared_blocks = 0

    def take(self, blocks: int) -> None:
        """Allocate blocks for a sequence, evicting idle prefixes if too few are free."""
        if blocks > self.free:
            self._evict(blocks - int(self.free))
        self.free -= blocks

    def pin(self, family: int, blocks: int, users: int = 1) -> None:
        """Let `users` more sequences (-1: one fewer) pin the first `blocks` blocks of a chain."""
        chain = self.chains[family]
        self.chains.move_to_end(family)
        before = chain.pinned
        chain.pins[blocks] += users
        self.idle += before - chain.pinned

    def extend(self, family: int, held: int, blocks: int) -> None:
        """Extend a chain to `blocks` blocks computed by a sequence, of which it has pinned `held` so far.

        Blocks that the chain already has are freed, so that no prefix is stored twice.
        """
        # Like a radix tree with one branch per family, in which a block is identified by its depth.
        chain = self.chains.setdefault(family, CachedPrefix())
        self.free += max(min(chain.blocks, blocks) - held, 0)
        grown = max(blocks - chain.blocks, 0)
        chain.blocks += grown
        self.idle += grown
        self.pin(family, blocks)
        if held:
            self.pin(family, held, -1)

    def _copied_blocks(self, sequence: LiveSequence, hit: int) -> int:
        """The blocks of a sequence beyond its first `hit` that only host memory has."""
        request = sequence.request
        if not self.host or request.family not in self.copies:
            return 0
        self.copies.move_to_end(request.family)
        blocks = min(
            self.copies[request.family], request.prefix // self.size, (sequence.tokens - 1) // self.size
        )
        return max(blocks - hit, 0)

    def _copy(self, family: int, blocks: int) -> None:
        """Copy a prefix to host memory, evicting the ends of the least recently used ones if it is full."""
        if not self.host:
            return
        self.copied += max(blocks - self.copies.get(family, 0), 0)
        self.copies[family] = max(blocks, self.copies.get(family, 0))
        self.copies.move_to_end(family)
        while self.copied > self.host.count:
            oldest, held = next(iter(self.copies.items()))
            gone = min(held, self.copied - self.host.count)
            self.copied -= gone
            if gone == held:
                del self.copies[oldest]
            else:
                self.copies[oldest] = held - gone

    def _evict(self, blocks: int) -> None:
        """Free idle blocks, starting from the least recently used family."""
        # From the end, because a prefix without its first blocks cannot be used.
        for chain in self.chains.values():
            gone = min(chain.blocks - chain.pinned, blocks)
            chain.blocks -= gone
            blocks -= gone
            self.idle -= gone
            self.free += gone
            self.evicted += gone
            if not blocks:
                break
        for family in [family for family, chain in self.chains.items() if not chain.blocks]:
            del self.chains[family]
