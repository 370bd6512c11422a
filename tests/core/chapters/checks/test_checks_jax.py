"""Exercises on programming in JAX: answers worked out by hand or by brute force; usual slips are named."""

import random

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks

CHECKS = checks.catalogue("jax")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("jax.1", "128 MiB"),
        ("jax.1", "134 MB"),
        ("jax.1", 2 * 4096 * 8192 * 2),
        ("jax.2", "A[I_YX, J]{U_Z}"),
        ("jax.3", "b"),
        ("jax.9", 459e12 * 4 / (2 * 100e9)),
        ("jax.11", "2.24 %"),
        ("jax.17", 5),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("jax.1", "64 MiB", "does its type not name"),
        ("jax.1", "16 MiB", "one device's block"),
        ("jax.1", "512 MiB", "split over Y"),
        ("jax.1", "256 MiB", "two bytes"),
        ("jax.2", "A[I_XY, J]{U_Z}", "varies slowest"),
        ("jax.2", "A[I_YX, J_Z]", "splits no dimension"),
        ("jax.2", "A[I_YX, J]", "still owed"),
        ("jax.3", "a", "gathers x over Y without asking"),
        ("jax.3", "d", "nothing has to be decided"),
        ("jax.9", 4590, "in fp32"),
        ("jax.9", 18360, "two FLOPs"),
        ("jax.9", 36720, "all of D"),
        ("jax.11", 0.13, "buckets that overflow"),
        ("jax.11", 0.0984, "a factor of 1"),
        ("jax.11", 0.359, "one bucket"),
        ("jax.17", 7, "nobody has used yet"),
        ("jax.17", 4, "from the start"),
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
    assert dropped / devices / 1024 == pytest.approx(CHECKS["jax.11"].answer(), rel=0.03)


def test_a_chip_waits_where_a_ring_that_is_played_meets_a_used_buffer():
    used, waits = {0}, 0
    for hop in range(7):
        waits += (hop + 1) % 3 in used
        used.add((hop + 1) % 3)
    right("jax.17", waits)


@pytest.mark.parametrize("key", [key for key, check in CHECKS.items() if check.kind == "program"])
def test_a_function_is_asked_for_and_its_text_is_not_taken(key):
    for given in ("lambda x: x", 3, {"all-gather X": 1}):
        assert CHECKS[key](given).status == "unread"


def test_the_easy_ones_come_first_and_eleven_of_them_are_programs():
    difficulties = [check.difficulty for check in CHECKS.values()]
    assert difficulties == sorted(difficulties)
    assert sum(check.kind == "program" for check in CHECKS.values()) >= 11
