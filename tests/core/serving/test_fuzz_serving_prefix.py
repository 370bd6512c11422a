"""Property tests of the prefix cache against a reference that tracks every block."""

import pytest

from scalingbook_lib.serving import (
    PagedCache,
    Request,
)
from scalingbook_lib.serving.paging import BlockPool
from scalingbook_lib.serving.sequence import LiveSequence
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")

st = hypothesis.strategies

SETTINGS = repeatable.examples(100)


class ReferenceCache:
    """A prefix cache that stores the number of users of each block, and the last use of each family."""

    def __init__(self, blocks):
        self.free, self.size, self.evicted = blocks.count, blocks.size, 0
        self.kept = {}  # family: users of each block
        self.used = {}  # family: when
        self.clock = 0

    def touch(self, family):
        self.clock += 1
        self.used[family] = self.clock

    def take(self, blocks):
        while self.free < blocks:
            idle = [f for f, users in self.kept.items() if users and not users[-1]]
            family = min(idle, key=self.used.__getitem__)
            self.kept[family].pop()
            self.free += 1
            self.evicted += 1
        self.free -= blocks

    def idle(self):
        return sum(not n for users in self.kept.values() for n in users)

    def enter(self, family, prefix, tokens):
        hit = min(len(self.kept.get(family, [])), prefix // self.size, (tokens - 1) // self.size)
        need = -(-tokens // self.size) - hit
        self.kept.setdefault(family, [])
        for i in range(hit):
            self.kept[family][i] += 1
        if need > self.free + self.idle():
            for i in range(hit):
                self.kept[family][i] -= 1
            return None
        if hit:
            self.touch(family)
        self.take(need)
        return hit, need

    def computed(self, family, held, blocks):
        users = self.kept[family]
        for i in range(held, blocks):
            if i < len(users):
                users[i] += 1
                self.free += 1  # there was one already
            else:
                users.append(1)
        self.touch(family)

    def exit(self, family, held, own):
        self.free += own
        for i in range(held):
            self.kept[family][i] -= 1
        if held:
            self.touch(family)


visits = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 40), st.integers(1, 60)),
    min_size=1,
    max_size=60,
)


@SETTINGS
@hypothesis.given(visits, st.builds(PagedCache, st.integers(4, 20), st.integers(1, 8)))
def test_the_prefix_cache_equals_the_reference_block_by_block(events, blocks):
    pool, reference, sequences = BlockPool(blocks, prefix_cache=True), ReferenceCache(blocks), []
    for enters, family, prefix, tokens in events:
        if enters:
            sequence = LiveSequence(Request(0.0, tokens, 40, prefix, family), 0)
            assert (
                sequence.filled,
                sequence.own_blocks,
                sequence.shared_blocks,
                sequence.reserved_blocks,
            ) == (
                0,
                0,
                0,
                0,
            )
            hit = pool.cached_blocks(sequence)
            entered = reference.enter(family, prefix, tokens)
            assert pool.admits(sequence, hit, tokens, 0) == (entered is not None)
            if entered is not None:
                assert (hit, -(-tokens // blocks.size) - hit) == entered
                pool.allocate(sequence, hit)
                pool.publish_prefix(sequence, tokens)
                if sequence.shared_blocks > hit:
                    reference.computed(family, hit, sequence.shared_blocks)
                sequences.append(sequence)
        elif sequences:
            sequence = sequences.pop(tokens % len(sequences))
            reference.exit(sequence.request.family, sequence.shared_blocks, sequence.own_blocks)
            pool.release(sequence)
        assert (pool.free, pool.idle, pool.evicted) == (reference.free, reference.idle(), reference.evicted)
        assert pool.used_blocks == sum(sequence.own_blocks for sequence in sequences) + _shared(sequences)


def _shared(sequences):
    """Pinned blocks of chains: for each family the depth of its deepest user."""
    deepest = {}
    for sequence in sequences:
        deepest[sequence.request.family] = max(
            deepest.get(sequence.request.family, 0), sequence.shared_blocks
        )
    return sum(deepest.values())
