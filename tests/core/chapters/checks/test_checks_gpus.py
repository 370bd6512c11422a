"""The GPU exercises: answers worked out by hand, and message by message through the switches."""

from fractions import Fraction

import pytest
import switch_schedules as schedules
import switch_simulator as simulator
from judged import right, wrong

from scalingbook_lib.chapters import checks
from scalingbook_lib.machines.clusters import Level

CHECKS = checks.catalogue("gpus")
H100, B200, GB200, MI300X = 989e12, 2250e12, 2500e12, 1307e12  # FLOPs/s in bf16


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("gpus.1", 132 * 4 * 1024 * 1.4e9),
        ("gpus.2", "66 MiB"),
        ("gpus.3", 16),
        ("gpus.4", "235 ns"),
        ("gpus.5", 314),
        ("gpus.6", "3.6 TB/s"),
        ("gpus.7", 7 / 8 * 2**29 / 450e9),
        ("gpus.8", 128 + 128 + 64),
        ("gpus.9", 7 * (1 - (7 / 8) ** 4) * 4096 * 7168 * 2 / 450e9),
        ("gpus.10", (1 / 1.6e12) / (7 / 64 / 450e9)),
        ("gpus.11", 21 / 8),
        ("gpus.12", 2 * 3 / 4 * 2**32 / 400e9),
        ("gpus.13", 400e9 * 128 / 127),
        ("gpus.14", 3 / 4 * 2 * 8192 * 512 / 50e9),
        ("gpus.15", "14.8 MB"),
        ("gpus.16", MI300X / 64e9),
        ("gpus.17", "15 %"),
        ("gpus.18", 7 / 8 * H100 / 450e9),
        ("gpus.19", 14 * H100 / 450e9),
        ("gpus.20", 4),
        ("gpus.21", 5 * 256),
        ("gpus.22", 4 * (1 - 0.75**8) * 7 / 8 * 3 / 50e9 / (54 * 2048 / H100)),
        ("gpus.23", 63 * (1 - (63 / 64) ** 8) * 3 / 900e9 / (54 * 2048 / GB200)),
        ("gpus.24", 7 / 8 * GB200 / 3.6e12),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("gpus.5", 281, "ridge"),  # the figure of the reference's table
        ("gpus.7", "149 µs", "links of all GPUs"),
        ("gpus.9", "457 µs", "4/8"),
        ("gpus.10", 4.5, "half of the bytes stay"),
        ("gpus.13", "413 GB/s", "through the same cards"),
        ("gpus.14", "168 µs", "Y = 256"),
        ("gpus.18", 1237, "NVLink takes longer"),
        ("gpus.19", 2475 * 8, "NVLink lasts longer"),
        ("gpus.20", 8, "not the least"),
        ("gpus.24", 694, "in each rack already"),
    ],
)
def test_what_the_reference_prints_is_named(key, given, says):
    wrong(key, given, says)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("gpus.1", "1513 TFLOPs/s", "sparse"),
        ("gpus.2", "33 MiB", "one of the two"),
        ("gpus.3", 21, "blocks come whole"),
        ("gpus.4", "157 ns", "written as well"),
        ("gpus.6", "6.4 TB/s", "Who sends it"),
        ("gpus.8", 192, "Two tiers"),
        ("gpus.9", "432 µs", "its own GPU"),
        ("gpus.11", 1.5, "two passes"),
        ("gpus.12", "166 ms", "a single card"),
        ("gpus.12", "24.5 ms", "waits for NVLink"),
        ("gpus.15", "4 MB", "smallest message"),
        ("gpus.16", 2917, "all seven links"),
        ("gpus.17", "2.1 %", "NVLink-C2C"),
        ("gpus.21", 512, "second stage"),
        ("gpus.22", 2.47, "limit of four nodes"),
        ("gpus.24", 2739, "without tensor parallelism"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def nodes(n, nvlink=450, card=50, eight=8):
    """n nodes under one tier of switches, rates in GB/s, no hops."""
    levels = [Level("NVLink", eight, Fraction(nvlink * 10**9)), Level("leaf", n, Fraction(card * 10**9))]
    return [level for level in levels if level.size > 1]


def routed(name, plan, levels, nbytes=1):
    """Seconds of the busiest wire, every message routed."""
    n = 1
    for level in levels:
        n *= level.size
    pieces = n * n if name == "AllToAll" else n
    return simulator.execute(name, plan(levels), levels, nbytes, pieces).busiest_s


def gathered(levels):
    return routed("AllGather", schedules.gather, levels)


def test_ratios_and_times_are_those_of_every_message_routed():
    one, two = (routed("AllToAll", schedules.exchange, nodes(n)) for n in (1, 2))
    summed = routed("AllReduce", schedules.reduce, nodes(4, nvlink=900), 2**32)
    in_switch = [Level("NVLink", 8, Fraction(450 * 10**9), reduces=True)]
    once = routed("AllReduce", schedules.sum_in_switches, in_switch)
    found = {
        "gpus.7": gathered(nodes(1)) * 2**29,
        "gpus.10": two / one,
        "gpus.11": 3 * gathered(nodes(1)) / once,
        "gpus.12": summed,
        "gpus.14": gathered([Level("leaf", 4, Fraction(50 * 10**9))]) * 2**29 / 64,
        "gpus.16": 2 * MI300X * gathered([Level.full_mesh("mesh", 2, Fraction(64 * 10**9))]),
        "gpus.18": H100 * gathered(nodes(2)),
        "gpus.19": 16 * H100 * gathered(nodes(2)),
        "gpus.24": GB200 / 8 * gathered(nodes(8, nvlink=900, eight=9)),
    }
    for key, seconds in found.items():
        assert CHECKS[key].answer() == pytest.approx(float(seconds), rel=1e-9), key


def test_twenty_four_in_three_difficulties():
    assert len(CHECKS) == 24
    assert {check.difficulty for check in CHECKS.values()} == {1, 2, 3}
