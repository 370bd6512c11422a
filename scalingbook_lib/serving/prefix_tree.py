"""A prefix cache as a tree of blocks: what a new prompt finds of earlier ones, and what is evicted.

A block is identified by its tokens *and* by its parent, so equal tokens after different beginnings are
different blocks. The least recently used leaf is evicted first: an inner block is needed by all blocks below
it. This is the radix tree of SGLang and the hash chain of vLLM. Chapter: Inference.

>>> tree = PrefixTree(capacity=8, block=2)
>>> tree.serve([1, 2, 3, 4]), tree.serve([1, 2, 9, 9]), tree.serve([3, 4])
(0, 2, 0)
"""

from collections.abc import Hashable, Sequence
from heapq import heappop, heappush

from scalingbook_lib.units import require_min

type Key = tuple[int, tuple[Hashable, ...]]  # the parent, and the tokens of the block


class PrefixTree:
    """A prefix cache of at most `capacity` blocks of `block` tokens each."""

    def __init__(self, capacity: int, block: int = 16) -> None:
        require_min(1, capacity=capacity, block=block)
        self.capacity, self.block = capacity, block
        self.evicted = 0
        self._numbers: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}
        self._children: dict[int, int] = {0: 0}
        self._used: dict[int, int] = {}  # by which request each block was last used
        self._leaves: list[tuple[int, int]] = []  # a heap of (last use, block), with outdated entries
        self._requests, self._next = 0, 1  # block 0 is the root

    def __len__(self) -> int:
        """The blocks in the cache."""
        return len(self._keys)

    def _path(self, tokens: Sequence[Hashable]) -> list[tuple[Hashable, ...]]:
        """The full blocks of a prompt; an incomplete last block is never shared."""
        whole = len(tokens) - len(tokens) % self.block
        return [tuple(tokens[i : i + self.block]) for i in range(0, whole, self.block)]

    def match(self, tokens: Sequence[Hashable]) -> int:
        """The number of tokens at the beginning of the prompt that are in the cache."""
        at, found = 0, 0
        for part in self._path(tokens):
            number = self._numbers.get((at, part))
            if number is None:
                break
            at, found = number, found + 1
        return found * self.block

    def serve(self, tokens: Sequence[Hashable], answer: Sequence[Hashable] = ()) -> int:
        """Serve a prompt and keep it with its answer; returns the prompt tokens found, at most all but one.

        One token always has to be computed, because the next one is predicted from it.
        """
        found = min(self.match(tokens), (len(tokens) - 1) // self.block * self.block if tokens else 0)
        self._insert([*tokens, *answer])
        return found

    def _insert(self, tokens: Sequence[Hashable]) -> None:
        at, path, self._requests = 0, set[int](), self._requests + 1
        for part in self._path(tokens):
            number = self._numbers.get((at, part))
            if number is None:
                if len(self) >= self.capacity and not self._evict(path):
                    break  # nothing but this prompt is left
                number, self._next = self._next, self._next + 1
                self._numbers[at, part], self._keys[number] = number, (at, part)
                self._children[number] = 0
                self._children[at] += 1
            self._used[number] = self._requests
            path.add(number)
            at = number
        self._note(at)

    def _note(self, number: int) -> None:
        """Put a block on the heap of leaves if it is one."""
        if number and not self._children[number]:
            heappush(self._leaves, (self._used[number], number))

    def _evict(self, kept: set[int]) -> bool:
        """Evict the least recently used leaf that is not `kept`; False where there is none."""
        while self._leaves:
            used, number = heappop(self._leaves)
            if self._used.get(number) != used or self._children[number] or number in kept:
                continue  # used again, no leaf anymore, or part of this prompt, which is noted at its end
            parent, _ = key = self._keys.pop(number)
            del self._numbers[key], self._used[number], self._children[number]
            self._children[parent] -= 1
            self.evicted += 1
            self._note(parent)
            return True
        return False
