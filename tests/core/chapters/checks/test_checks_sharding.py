"""The sharding exercises: answers worked out by hand, and chunk by chunk over every link."""

from fractions import Fraction

import pytest
from judged import right, wrong
from link_simulator import execute

from scalingbook_book.chapters import checks
from scalingbook_lib.collectives import schedules
from scalingbook_lib.machines.torus import Axis

CHECKS = checks.catalog("sharding")
V4 = V5E = 50e9  # one link, one direction


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("sharding.valid-sharding", "c"),
        ("sharding.bytes-per-chip", "64 KiB"),
        ("sharding.read-shard", "379 ns"),
        ("sharding.copies-stored", 16),
        ("sharding.uneven-split", 63 * 4096 * 2),
        ("sharding.before-collectives", "C[I_X, K_Z]{U_Y}"),
        ("sharding.between-shardings", "A[I_X, J_Y]"),
        ("sharding.tiny-allgather", "2 µs"),
        ("sharding.line-allgather", 7 * 4.194304e6 / V5E + 7e-6),
        ("sharding.small-line-allgather", 7 * 16384 / V5E + 7e-6),
        ("sharding.gather-one-axis", 0.75 * 2097152 / (2 * V4) + 2e-6),
        ("sharding.gather-two-axes", 15 / 16 * 8388608 / (4 * V4) + 4e-6),
        ("sharding.allreduce-one-axis", 2 * 0.75 * 524288 / (2 * V4) + 4e-6),
        ("sharding.end-of-line", "70 MB"),
        ("sharding.joint-allreduce", 16 / 5),
        ("sharding.alltoall-ratio", 15 / 4),
        ("sharding.longest-axis", 2**25 * 16 / (4 * 200e9)),
        ("sharding.bus-bandwidth", "350 GB/s"),
        ("sharding.two-slices", 2 * 511 / 512 * 16e9 / 600e9 + 16e9 / 512 / 6.25e9),
        ("sharding.backward-collective", "ReduceScatter"),
        ("sharding.gather-or-scatter", 4),
        ("sharding.reduce-few-tokens", 2048),
        ("sharding.reduce-many-tokens", 2 * 15 / 16 * 918e12 / 200e9),
        ("sharding.slice-without-rings", 23_640 / 8192),
        ("sharding.pod-with-rings", 15 * 1970),
        ("sharding.lowest-latency", 31.24e-6 + 110.1e-6 + 6e-6),
        ("sharding.layer-with-memory", 2 * 2 * 8192 * 32768 / 4 / 1638e9),
        ("sharding.layer-with-memory", "169 µs"),  # with the activations
        ("sharding.chunks-to-overlap", 7),
        ("sharding.write-collectives", 3.5 * 2**20 * (1 + 2 + 1 + 1 / 8)),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("sharding.bytes-per-chip", 16384, "the sharding in the text"),
        ("sharding.copies-stored", 64, "How many times does each shard"),
        ("sharding.copies-stored", 4, "number of different shards"),
        ("sharding.tiny-allgather", "3 µs", "line of four"),
        ("sharding.line-allgather", "659.5 µs", "45 GB/s"),
        ("sharding.line-allgather", "587.2 µs", "hops are missing"),
        ("sharding.line-allgather", "593.2 µs", "off by one"),
        ("sharding.line-allgather", "0.6 ms", "less than 10%"),
        ("sharding.line-allgather", "297.6 µs", "two ends"),
        ("sharding.small-line-allgather", "7 µs", "hops alone"),
        ("sharding.gather-one-axis", "65 µs", "still sharded over Y"),
        ("sharding.gather-one-axis", "34.5 µs", "both sides"),
        ("sharding.allreduce-one-axis", "130 µs", "sharded over X and Y"),
        ("sharding.joint-allreduce", 4, "(1 - 1/n)"),
        ("sharding.alltoall-ratio", 2, "one direction only"),
        ("sharding.bus-bandwidth", "200 GB/s", "algbw"),
        ("sharding.bus-bandwidth", "175 GB/s", "right for an AllGather"),
        ("sharding.bus-bandwidth", "400 GB/s", "already has an eighth"),
        ("sharding.reduce-few-tokens", 9180, "2 C/W"),
        ("sharding.slice-without-rings", 1.443, "line"),
        ("sharding.slice-without-rings", 26_267 / 8192, "45 GB/s"),
        ("sharding.layer-with-memory", "37.4 µs", "That is the compute"),
        ("sharding.write-collectives", 2 * 7569408 * 8, "number of chips"),
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
        ("sharding.tiny-allgather", schedules.all_gather(4), [links(4, True)], 256),
        (
            "sharding.line-allgather",
            schedules.all_gather(8, wrapped=False),
            [links(8, False)],
            2 * 2048 * 8192,
        ),
        (
            "sharding.small-line-allgather",
            schedules.all_gather(8, wrapped=False),
            [links(8, False)],
            2 * 256 * 256,
        ),
        ("sharding.gather-one-axis", schedules.all_gather(4), [links(4, True)], 2 * 1024 * 4096 // 4),
        ("sharding.gather-two-axes", schedules.all_gather((4, 4)), [links(4, True)] * 2, 2 * 1024 * 4096),
        ("sharding.allreduce-one-axis", schedules.all_reduce(4), [links(4, True)], 2 * 1024 * 4096 // 16),
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
    assert CHECKS["sharding.joint-allreduce"].answer() == pytest.approx(float(2 * one / jointly))
    gather, exchange = (
        seconds(plan(16), [free(16)]) for plan in (schedules.all_gather, schedules.all_to_all)
    )
    assert CHECKS["sharding.alltoall-ratio"].answer() == pytest.approx(float(gather / exchange))


def test_the_end_of_a_line_waits_for_all_that_it_lacks():
    run = execute(schedules.all_gather(8, wrapped=False), [free(8, wrapped=False)], 80_000_000)
    towards_chip_0 = next(v for k, v in run.link_bytes.items() if 1 in k and -1 in k)
    assert CHECKS["sharding.end-of-line"].answer() == towards_chip_0


def test_an_exchange_takes_twice_as_long_where_the_longest_axis_is_twice_as_long():
    """4 × 4 × 16 against 4 × 8 × 8, in small: 2 × 2 × 8 against 2 × 4 × 4."""
    long, even = (
        execute(schedules.all_to_all(shape), [free(n) for n in shape], 1).seconds
        for shape in ((2, 2, 8), (2, 4, 4))
    )
    assert long == 2 * even
