"""Who holds which part of a paged cache? Blocks handed out, shared prefixes cached, the oldest evicted.

A family's prefix is a chain of blocks. Who uses its beginning pins it; what nobody pins stays until blocks
run out, and then goes from the far end of the family that was used least recently. Chapter: Inference.
"""

import math
from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from scalingbook_lib.serving.policies import Blocks
from scalingbook_lib.serving.sequence import LiveSequence


@dataclass(slots=True)
class Chain:
    """The blocks of one family's prefix that are cached, and how many sequences pin them how deep."""

    blocks: int = 0
    pins: Counter[int] = field(default_factory=Counter)

    @property
    def pinned(self) -> int:
        """As deep as anybody pins it."""
        return max((depth for depth, users in self.pins.items() if users), default=0)


class BlockPool:
    """The blocks of one server: free, owned by a sequence, or in a chain. Their sum never changes."""

    def __init__(self, blocks: Blocks | None, *, prefix_cache: bool) -> None:
        self.size = blocks.size if blocks else 16
        self.free: float = blocks.count if blocks else math.inf
        self.spare: float = int(blocks.spare * blocks.count) if blocks else 0
        self.total = self.free
        self.prefix_cache = prefix_cache  # whether prefixes are cached at all
        self.chains: OrderedDict[int, Chain] = OrderedDict()  # the least recently used first
        self.idle = 0  # blocks of chains that nobody pins
        self.evicted = 0

    @property
    def available(self) -> float:
        """Blocks that can be had, those of idle prefixes included."""
        return self.free + self.idle

    @property
    def held(self) -> float:
        """Blocks that somebody uses, where there is an end of them."""
        return self.total - self.free - self.idle

    def hit(self, sequence: LiveSequence) -> int:
        """Blocks of it that the prefix cache has; one token at least is left to compute."""
        request = sequence.request
        if not self.prefix_cache or request.family not in self.chains:
            return 0
        blocks = self.chains[request.family].blocks
        return min(blocks, request.prefix // self.size, (sequence.tokens - 1) // self.size)

    def admits(self, sequence: LiveSequence, hit: int, tokens: int, beside: float) -> bool:
        """Whether there is room for its `tokens`, `hit` blocks of them cached, and `beside` blocks more."""
        chain = self.chains[sequence.request.family] if hit else None
        freed = max(hit - chain.pinned, 0) if chain else 0  # idle now, pinned then
        return -(-tokens // self.size) - hit + freed + beside <= self.available

    def seat(self, sequence: LiveSequence, hit: int) -> None:
        """Blocks for all that it has to put into the cache; what is there of its prefix is pinned."""
        if hit:
            self.pin(sequence.request.family, hit)
        own = -(-sequence.tokens // self.size) - hit
        self.take(own)
        sequence.own, sequence.shared = own, hit
        sequence.filled = hit * self.size

    def share(self, sequence: LiveSequence, tokens: int) -> None:
        """What it has computed of its family's prefix is there for the others from now on."""
        prefix = sequence.request.prefix
        if not self.prefix_cache or not prefix:
            return
        blocks = min(prefix, tokens) // self.size
        if blocks > sequence.shared:
            self.extend(sequence.request.family, sequence.shared, blocks)
            sequence.own -= blocks - sequence.shared
            sequence.shared = blocks

    def release(self, sequence: LiveSequence) -> None:
        """It needs its blocks no longer."""
        self.free += sequence.own
        if sequence.shared:
            self.pin(sequence.request.family, sequence.shared, -1)
        sequence.own = sequence.shared = 0

    def take(self, blocks: int) -> None:
        """Blocks for a sequence, from idle prefixes where none is free."""
        if blocks > self.free:
            self._evict(blocks - int(self.free))
        self.free -= blocks

    def pin(self, family: int, blocks: int, users: int = 1) -> None:
        """So many more use the chain's first blocks (-1: one fewer); it is the most recently used now."""
        chain = self.chains[family]
        self.chains.move_to_end(family)
        before = chain.pinned
        chain.pins[blocks] += users
        self.idle += before - chain.pinned

    def extend(self, family: int, held: int, blocks: int) -> None:
        """A sequence that pins `held` blocks has computed the prefix to `blocks`: they are the chain's now.

        What the chain had already is given back: no prefix is there twice.
        """
        # As in a prefix tree of which every branch is one family: blocks are found by how deep they lie.
        chain = self.chains.setdefault(family, Chain())
        self.free += max(min(chain.blocks, blocks) - held, 0)
        grown = max(blocks - chain.blocks, 0)
        chain.blocks += grown
        self.idle += grown
        self.pin(family, blocks)
        if held:
            self.pin(family, held, -1)

    def _evict(self, blocks: int) -> None:
        """Idle blocks to free ones, from the least recently used family on."""
        # From the far end: a prefix without its first blocks is of use to nobody.
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
