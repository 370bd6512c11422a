"""Random operations on a pool lose no block, and share only blocks that may be shared."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scalingbook_lab.serve.paging import OutOfBlocks, Pool
from tests.core import repeatable

SIZE = 2


class Sequences(RuleBasedStateMachine):
    """Sequences over an alphabet of two arrive, grow and leave, as in the engine."""

    @initialize(count=st.integers(1, 8), prefixes=st.booleans())
    def start(self, count, prefixes):
        self.pool = Pool(count, SIZE, prefixes)
        self.inside = []  # [tokens, blocks, known]
        self.content = {}  # what each block has, by what is written: the memory itself

    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=9))
    def come(self, tokens):
        known = self.pool.match(tokens)
        before = self.pool.available
        assert len(known) * SIZE < len(tokens)
        for i, block in enumerate(known):
            assert self.content[block] == tuple(tokens[: (i + 1) * SIZE])
        self.pool.acquire(known)
        try:
            fresh = self.pool.allocate(self.pool.needed(len(tokens)) - len(known))
        except OutOfBlocks:
            self.pool.release(known)
            assert self.pool.available == before
            return
        self.write(tokens, known + fresh, len(known))
        self.inside.append([tokens, known + fresh])

    def write(self, tokens, blocks, first):
        """Write all blocks but the cached ones, and register the full ones."""
        for i in range(first, len(blocks)):
            assert self.pool.references[blocks[i]] == 1, "somebody else reads what is written"
            self.content[blocks[i]] = tuple(tokens[: (i + 1) * SIZE])
            if len(tokens) >= (i + 1) * SIZE:
                self.pool.register(tokens[: (i + 1) * SIZE], blocks[i])

    @precondition(lambda self: self.inside)
    @rule(data=st.data(), token=st.integers(0, 1))
    def grow(self, data, token):
        one = data.draw(st.sampled_from(self.inside))
        tokens, blocks = one
        if len(tokens) % SIZE == 0:
            try:
                blocks = blocks + self.pool.allocate(1)
            except OutOfBlocks:
                assert not self.pool.free
                assert not self.pool.idle
                return
        one[:] = [*tokens, token], blocks
        self.write(one[0], blocks, len(blocks) - 1)

    @precondition(lambda self: self.inside)
    @rule(data=st.data())
    def go(self, data):
        one = data.draw(st.sampled_from(self.inside))
        self.inside = [other for other in self.inside if other is not one]
        self.pool.release(one[1])

    @invariant()
    def every_block_is_free_or_idle_or_held_as_often_as_it_is_in_sequences(self):
        pool = self.pool
        held = [sum(blocks.count(b) for _, blocks in self.inside) for b in range(pool.count)]
        assert pool.references == held
        assert sorted([*pool.free, *pool.idle, *(b for b, n in enumerate(held) if n)]) == list(
            range(pool.count)
        )

    @invariant()
    def a_block_has_what_every_holder_believes(self):
        for tokens, blocks in self.inside:
            for i, block in enumerate(blocks):
                assert self.content[block] == tuple(tokens[: (i + 1) * SIZE])

    @invariant()
    def only_full_blocks_are_shared_and_only_where_prefixes_are_kept(self):
        shared = [b for b, n in enumerate(self.pool.references) if n > 1]
        assert all(b in self.pool.prefix_of for b in shared)
        assert self.pool.share_prefixes or not self.pool.cached
        assert set(self.pool.idle) <= set(self.pool.prefix_of)
        assert {block: key for key, block in self.pool.cached.items()} == self.pool.prefix_of


TestSequences = Sequences.TestCase
TestSequences.settings = repeatable.examples(200, stateful_step_count=40, deadline=None)


def read(pool, tokens):
    """A sequence that caches these tokens and leaves; returns the number of cached blocks that it found."""
    known = pool.match(tokens)
    pool.acquire(known)
    blocks = known + pool.allocate(pool.needed(len(tokens)) - len(known))
    for n in range(1, len(tokens) // pool.size + 1):
        pool.register(tokens[: n * pool.size], blocks[n - 1])
    pool.release(blocks)
    return len(known)


def test_the_least_recently_used_block_is_evicted_first():
    pool = Pool(3, 1)
    for token in (1, 2, 3):
        read(pool, [token])
    assert read(pool, [1, 9]) == 1  # 1 is used again, and 2 makes room for 9
    assert [bool(pool.match([token, 0])) for token in (1, 2, 3)] == [True, False, True]
    assert pool.evictions == 1


def test_the_end_of_a_sequence_is_evicted_before_its_beginning():
    pool = Pool(3, 1)
    read(pool, [1, 2, 3])
    read(pool, [7])
    assert len(pool.match([1, 2, 3, 4])) == 2


def test_a_prefix_match_leaves_out_the_last_token():
    pool = Pool(4, 2)
    read(pool, [1, 2, 3, 4])
    assert [len(pool.match([1, 2, 3, 4][:n])) for n in range(1, 5)] == [0, 0, 1, 1]


def test_a_pool_never_allocates_more_blocks_than_it_has():
    pool = Pool(2, 4)
    pool.allocate(1)
    with pytest.raises(OutOfBlocks, match="2 blocks are needed, 1 of 2"):
        pool.allocate(2)
    assert pool.available == 1
