"""The GPU exercises: answers worked out by hand, and message by message through the switches."""

from fractions import Fraction

import pytest
import switch_schedules as schedules
import switch_simulator as simulator
from judged import right, wrong

from scalingbook_book.chapters import checks
from scalingbook_lib.machines.clusters import Level

CHECKS = checks.catalog("gpus")
H100, B200, GB200, MI300X = 989e12, 2250e12, 2500e12, 1307e12  # FLOPs/s in bf16


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("gpus.peak-at-clock", 132 * 4 * 1024 * 1.4e9),
        ("gpus.sm-bytes", "66 MiB"),
        ("gpus.resident-warps", 16),
        ("gpus.vector-add", "235 ns"),
        ("gpus.critical-batch", 314),
        ("gpus.node-egress", "3.6 TB/s"),
        ("gpus.node-allgather", 7 / 8 * 2**29 / 450e9),
        ("gpus.fat-tree-switches", 128 + 128 + 64),
        ("gpus.tokens-to-experts", 7 * (1 - (7 / 8) ** 4) * 4096 * 7168 * 2 / 450e9),
        ("gpus.two-node-alltoall", (1 / 1.6e12) / (7 / 64 / 450e9)),
        ("gpus.sums-in-switch", 7 / 3),
        ("gpus.four-node-allreduce", 2 * 3 / 4 * 2**32 / 400e9),
        ("gpus.rate-into-node", 400e9 * 128 / 127),
        ("gpus.two-axes-gather", 3 / 4 * 2 * 8192 * 512 / 50e9),
        ("gpus.latency-bandwidth-fit", "14.8 MB"),
        ("gpus.mesh-tensor-width", MI300X / 64e9),
        ("gpus.host-offload", "15%"),
        ("gpus.two-node-fsdp", 1 / 2 * B200 / 400e9),
        ("gpus.two-node-tensor", 8 * B200 / 400e9),
        ("gpus.fewest-stages", 8),
        ("gpus.most-gpus", 5 * 256),
        ("gpus.experts-eight-nodes", 4 * (1 - 0.75**8) * 7 / 8 * 3 / 50e9 / (54 * 2048 / B200)),
        ("gpus.experts-one-rack", 63 * (1 - (63 / 64) ** 8) * 3 / 900e9 / (54 * 2048 / GB200)),
        ("gpus.eight-racks", 7 / 8 * GB200 / 3.6e12),
        ("gpus.l2-traffic", 32 * 16 * (128 + 256) * 4096 * 2),
        ("gpus.pair-stages", 6),
        ("gpus.deeper-pipeline", 5),
        ("gpus.static-schedule", 8 / 5),
        ("gpus.narrow-heads", 512 / 768),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("gpus.critical-batch", 281, "ridge"),  # the figure of the reference's table
        ("gpus.node-allgather", "149 µs", "links of all GPUs"),
        ("gpus.tokens-to-experts", "457 µs", "4/8"),
        ("gpus.two-node-alltoall", 4.5, "half of the bytes stay"),
        ("gpus.rate-into-node", "413 GB/s", "through the same NICs"),
        ("gpus.two-axes-gather", "168 µs", "Y = 256"),
        ("gpus.eight-racks", 694, "already has an eighth"),
    ],
)
def test_what_the_reference_prints_is_named(key, given, says):
    wrong(key, given, says)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("gpus.peak-at-clock", "1513 TFLOPs/s", "sparse"),
        ("gpus.sm-bytes", "33 MiB", "one of the two"),
        ("gpus.resident-warps", 21, "completely or not at all"),
        ("gpus.vector-add", "157 ns", "written as well"),
        ("gpus.node-egress", "6.4 TB/s", "GPUs cannot send it"),
        ("gpus.fat-tree-switches", 192, "Two tiers"),
        ("gpus.tokens-to-experts", "432 µs", "own GPU"),
        ("gpus.sums-in-switch", 1.5, "two passes"),
        ("gpus.four-node-allreduce", "166 ms", "a single NIC"),
        ("gpus.four-node-allreduce", "24.5 ms", "waits for NVLink"),
        ("gpus.latency-bandwidth-fit", "4 MB", "smallest message"),
        ("gpus.mesh-tensor-width", 2917, "all seven links"),
        ("gpus.host-offload", "2.1%", "NVLink-C2C"),
        ("gpus.most-gpus", 512, "second stage"),
        ("gpus.two-node-fsdp", 1923, "two nodes of H100"),
        ("gpus.two-node-fsdp", 2188, "NICs take longer"),
        ("gpus.two-node-tensor", 35_000, "stage of the NICs"),
        ("gpus.fewest-stages", 4, "still above"),
        ("gpus.fewest-stages", 16, "not the smallest"),
        ("gpus.experts-eight-nodes", 5.61, "limit of four nodes"),
        ("gpus.experts-eight-nodes", 1.69, "for H100"),
        ("gpus.eight-racks", 2739, "without tensor parallelism"),
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
        "gpus.node-allgather": gathered(nodes(1)) * 2**29,
        "gpus.two-node-alltoall": two / one,
        "gpus.sums-in-switch": 3 * gathered(nodes(1)) / once,
        "gpus.four-node-allreduce": summed,
        "gpus.two-axes-gather": gathered([Level("leaf", 4, Fraction(50 * 10**9))]) * 2**29 / 64,
        "gpus.mesh-tensor-width": 2 * MI300X * gathered([Level.full_mesh("mesh", 2, Fraction(64 * 10**9))]),
        "gpus.two-node-fsdp": B200 * gathered(nodes(2, nvlink=900)),
        "gpus.two-node-tensor": 16 * B200 * gathered(nodes(2, nvlink=900)),
        "gpus.eight-racks": GB200 / 8 * gathered(nodes(8, nvlink=900, eight=9)),
    }
    for key, seconds in found.items():
        assert CHECKS[key].answer() == pytest.approx(float(seconds), rel=1e-9), key
