"""Exercises on programming in JAX: answers worked out by hand or by brute force; usual slips are named."""

import random

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks

CHECKS = checks.catalog("jax")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("jax.bytes-of-copies", "128 MiB"),
        ("jax.bytes-of-copies", "134 MB"),
        ("jax.bytes-of-copies", 2 * 4096 * 8192 * 2),
        ("jax.type-to-notation", "A[I_YX, J]{U_Z}"),
        ("jax.refused-line", "b"),
        ("jax.hidden-depth", 459e12 * 4 / (2 * 100e9)),
        ("jax.dropped-tokens", "2.24%"),
        ("jax.waits-for-credit", 5),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("jax.bytes-of-copies", "64 MiB", "does its type not name"),
        ("jax.bytes-of-copies", "16 MiB", "one device's block"),
        ("jax.bytes-of-copies", "512 MiB", "sharded over Y"),
        ("jax.bytes-of-copies", "256 MiB", "two bytes"),
        ("jax.type-to-notation", "A[I_XY, J]{U_Z}", "varies slowest"),
        ("jax.type-to-notation", "A[I_YX, J_Z]", "does not shard any dimension"),
        ("jax.type-to-notation", "A[I_YX, J]", "still pending"),
        ("jax.refused-line", "a", "gathers x over Y without asking"),
        ("jax.refused-line", "d", "nothing has to be decided"),
        ("jax.hidden-depth", 4590, "in fp32"),
        ("jax.hidden-depth", 18360, "two FLOPs"),
        ("jax.hidden-depth", 36720, "all of D"),
        ("jax.dropped-tokens", 0.13, "buckets that overflow"),
        ("jax.dropped-tokens", 0.0984, "a capacity factor of 1"),
        ("jax.dropped-tokens", 0.359, "one bucket"),
        ("jax.waits-for-credit", 7, "not been used yet"),
        ("jax.waits-for-credit", 4, "from the start"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_tokens_that_find_no_place_are_as_many_as_drawn():
    chance, dropped, devices = random.Random(1), 0, 1500
    for _ in range(devices):
        bucket = [0] * 64
        for expert in chance.choices(range(64), k=1024):
            bucket[expert] += 1
        dropped += sum(max(0, n - 20) for n in bucket)
    assert dropped / devices / 1024 == pytest.approx(CHECKS["jax.dropped-tokens"].answer(), rel=0.03)


def test_a_chip_waits_where_a_ring_that_is_played_meets_a_used_buffer():
    used, waits = {0}, 0
    for hop in range(7):
        waits += (hop + 1) % 3 in used
        used.add((hop + 1) % 3)
    right("jax.waits-for-credit", waits)


@pytest.mark.parametrize("key", [key for key, check in CHECKS.items() if check.kind == "program"])
def test_a_function_is_asked_for_and_its_text_is_not_taken(key):
    for given in ("lambda x: x", 3, {"all-gather X": 1}):
        assert CHECKS[key](given).status == "unread"


def test_sixteen_exercises_are_programs():
    assert sum(check.kind == "program" for check in CHECKS.values()) >= 16
