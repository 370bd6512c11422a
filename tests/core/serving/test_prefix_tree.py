"""Tests of the prefix tree: hit rates by a closed form, eviction of leaves, and a published benchmark."""

from random import Random

import pytest

from scalingbook_lib.serving import PrefixTree

MEASURED = [0, 0.4706, 0.6538, 0.6306, 0.3635, 0.2400, 0.1469, 0.1433, 0.0555, 0.0351]
"""Hit rates by round: sglang pull request 27010, 128 clients, 10 rounds, GPU memory alone."""


def rounds(capacity, *, clients=128, turns=10, question=512, answer=64, block=64):
    """The hit rate of every round of multi-turn conversations; the newest answer is not in the cache."""
    tree, order, found = PrefixTree(capacity, block), Random(0), []
    talks = [(client, []) for client in range(clients)]
    for _ in range(turns):
        order.shuffle(talks)
        hits = total = 0
        for client, talk in talks:
            talk += [(client, len(talk) + i) for i in range(question)]
            hits, total = hits + tree.serve(talk), total + len(talk)
            talk += [(client, len(talk) + i) for i in range(answer)]
        found.append(hits / total)
    return found


def test_without_eviction_the_hit_rate_is_the_share_of_older_tokens():
    for r, hit in enumerate(rounds(10**6)):
        assert hit == pytest.approx(max(512 * r + 64 * (r - 1), 0) / (512 * (r + 1) + 64 * r))


def test_a_pool_of_262144_tokens_falls_off_the_same_cliff_as_the_published_one():
    found = rounds(262_144 // 64)
    assert found[:3] == pytest.approx(MEASURED[:3], abs=1e-4)
    assert found == pytest.approx(MEASURED, abs=0.06)


def test_equal_blocks_after_different_beginnings_are_different():
    tree = PrefixTree(100, 2)
    tree.serve([1, 2, 3, 4])
    assert tree.match([3, 4, 5]) == 0
    assert tree.match([1, 2, 3, 4, 5]) == 4
    assert tree.match([1, 2, 3]) == 2


def test_one_token_is_always_computed():
    tree = PrefixTree(100, 2)
    assert [tree.serve([1, 2, 3, 4]) for _ in range(2)] == [0, 2]
    assert tree.serve([]) == 0


def test_a_shared_beginning_outlives_the_leaves_below_it():
    tree = PrefixTree(3, 1)
    tree.serve("ab")
    tree.serve("ac")
    tree.serve("ad")
    assert len(tree) == 3
    assert tree.evicted == 1
    assert [tree.match(prompt) for prompt in ("ab", "ac", "ad")] == [1, 2, 2]


def test_a_prompt_longer_than_the_cache_keeps_its_beginning():
    tree = PrefixTree(2, 1)
    tree.serve("abcd")
    assert len(tree) == 2
    assert tree.match("abcd") == 2


def test_a_cache_without_room_is_refused():
    with pytest.raises(ValueError, match="capacity"):
        PrefixTree(0)


def test_the_tree_never_exceeds_its_capacity_nor_loses_a_parent():
    draws, tree = Random(3), PrefixTree(20, 2)
    for _ in range(300):
        prompt = [draws.randrange(2) for _ in range(draws.randrange(1, 14))]
        found = tree.match(prompt)
        assert tree.serve(prompt) <= found <= len(prompt)
        assert len(tree) <= 20
        assert tree.match(prompt) >= min(len(prompt) // 2, 20) * 2 - 1
