"""The sharding exercises: answers worked out by hand, and chunk by chunk over every link."""

from fractions import Fraction

import pytest
from judged import right, wrong
from link_simulator import execute

from scalingbook_lib.chapters import checks
from scalingbook_lib.collectives import schedules
from scalingbook_lib.machines.torus import Axis

CHECKS = checks.catalogue("sharding")
V4 = V5E = 50e9  # one link, one direction


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("sharding.1", "c"),
        ("sharding.2", "64 KiB"),
        ("sharding.3", "379 ns"),
        ("sharding.4", 16),
        ("sharding.5", 63 * 4096 * 2),
        ("sharding.6", "C[I_X, K_Z]{U_Y}"),
        ("sharding.7", "A[I_X, J_Y]"),
        ("sharding.8", "2 µs"),
        ("sharding.9", 3 * 8.388608e6 / V5E + 3e-6),
        ("sharding.10", 3 * 32768 / V5E + 3e-6),
        ("sharding.11", 0.75 * 2097152 / (2 * V4) + 2e-6),
        ("sharding.12", 15 / 16 * 8388608 / (4 * V4) + 4e-6),
        ("sharding.13", 2 * 0.75 * 524288 / (2 * V4) + 4e-6),
        ("sharding.14", "70 MB"),
        ("sharding.15", 16 / 5),
        ("sharding.16", 15 / 4),
        ("sharding.17", 2**25 * 16 / (4 * 200e9)),
        ("sharding.18", "350 GB/s"),
        ("sharding.19", 2 * 511 / 512 * 16e9 / 600e9 + 16e9 / 512 / 6.25e9),
        ("sharding.20", "ReduceScatter"),
        ("sharding.21", 4),
        ("sharding.22", 2048),
        ("sharding.23", 2 * 15 / 16 * 918e12 / 200e9),
        ("sharding.24", 23_640 / 8192),
        ("sharding.25", 15 * 1970),
        ("sharding.26", 31.24e-6 + 110.1e-6 + 6e-6),
        ("sharding.27", 2 * 2 * 8192 * 32768 / 4 / 1638e9),
        ("sharding.27", "169 µs"),  # with the activations
        ("sharding.28", 7),
        ("sharding.29", 3.5 * 2**20 * (1 + 2 + 1 + 1 / 8)),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("sharding.2", 16384, "the sharding of the text"),
        ("sharding.4", 64, "How many times does each shard"),
        ("sharding.4", 4, "number of pieces"),
        ("sharding.8", "3 µs", "line of four"),
        ("sharding.9", "562 µs", "45 GB/s"),
        ("sharding.9", "254 µs", "two ends"),
        ("sharding.10", "3 µs", "hops alone"),
        ("sharding.11", "65 µs", "Y still cuts D"),
        ("sharding.11", "34.5 µs", "both sides"),
        ("sharding.13", "130 µs", "X and Y still cut"),
        ("sharding.15", 4, "(1 - 1/n)"),
        ("sharding.16", 2, "one direction only"),
        ("sharding.18", "200 GB/s", "algbw"),
        ("sharding.22", 9180, "2 C/W"),
        ("sharding.24", 1.443, "line"),
        ("sharding.24", 26_267 / 8192, "45 GB/s"),
        ("sharding.27", "37.4 µs", "arithmetic"),
        ("sharding.29", 2 * 7569408 * 8, "number of chips"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def links(n, wrapped, hop_s=Fraction(1, 10**6)):
    """An axis with links of 50 GB/s, in exact fractions."""
    return Axis(n, wrapped, Fraction(50 * 10**9), hop_s)


@pytest.mark.parametrize(
    ("key", "schedule", "axes", "nbytes"),
    [
        ("sharding.8", schedules.all_gather(4), [links(4, True)], 256),
        ("sharding.9", schedules.all_gather(4, wrapped=False), [links(4, False)], 2 * 2048 * 8192),
        ("sharding.10", schedules.all_gather(4, wrapped=False), [links(4, False)], 2 * 256 * 256),
        ("sharding.11", schedules.all_gather(4), [links(4, True)], 2 * 1024 * 4096 // 4),
        ("sharding.12", schedules.all_gather((4, 4)), [links(4, True)] * 2, 2 * 1024 * 4096),
        ("sharding.13", schedules.all_reduce(4), [links(4, True)], 2 * 1024 * 4096 // 16),
    ],
)
def test_times_are_those_of_every_chunk_moved_over_every_link(key, schedule, axes, nbytes):
    simulated = float(execute(schedule, axes, nbytes).seconds)
    assert CHECKS[key].answer() == pytest.approx(simulated, rel=1e-9)


def free(n, wrapped=True):
    return links(n, wrapped, Fraction(0))


def test_the_ratios_are_those_of_the_simulator():
    def seconds(schedule, axes):
        return execute(schedule, axes, 1).seconds

    jointly = seconds(schedules.all_reduce((4, 4)), [free(4)] * 2)
    one = seconds(schedules.all_reduce(4), [free(4)])
    assert CHECKS["sharding.15"].answer() == pytest.approx(float(2 * one / jointly))
    gather, exchange = (
        seconds(plan(16), [free(16)]) for plan in (schedules.all_gather, schedules.all_to_all)
    )
    assert CHECKS["sharding.16"].answer() == pytest.approx(float(gather / exchange))


def test_the_end_of_a_line_waits_for_all_that_it_lacks():
    run = execute(schedules.all_gather(8, wrapped=False), [free(8, wrapped=False)], 80_000_000)
    towards_chip_0 = next(v for k, v in run.link_bytes.items() if 1 in k and -1 in k)
    assert CHECKS["sharding.14"].answer() == towards_chip_0


def test_an_exchange_takes_twice_as_long_where_the_longest_axis_is_twice_as_long():
    """4 × 4 × 16 against 4 × 8 × 8, in small: 2 × 2 × 8 against 2 × 4 × 4."""
    long, even = (
        execute(schedules.all_to_all(shape), [free(n) for n in shape], 1).seconds
        for shape in ((2, 2, 8), (2, 4, 4))
    )
    assert long == 2 * even


def test_twenty_nine_in_three_difficulties():
    assert {check.difficulty for check in CHECKS.values()} == {1, 2, 3}
    assert len(CHECKS) == 29
