"""The training exercises: answers worked out by hand, and the slips that people make are named."""

import math

import pytest
from judged import right, wrong
from link_simulator import execute

from scalingbook_book.chapters import checks
from scalingbook_lib.collectives import schedules
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.steps import pipelines

CHECKS = checks.catalog("training")
C, W = 459e12, 200e9  # a v5p: FLOPs/s in bf16, and bytes/s over both links of a torus axis
LAYER_70B = 3 * 8192 * 28_672 + 2 * 8192 * 72 * 128
P_13B = 40 * (3 * 5120 * 13_824 + 4 * 5120 * 5120) + 2 * 32_000 * 5120


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("training.weight-gradient", "W[D, F]{U_X}"),
        ("training.count-parameters", P_13B),
        ("training.zero2-state", (2 + 14 / 32) * P_13B),
        ("training.data-parallel-batch", 8960 * C / 3 / W),
        ("training.tensor-limit", 24_576 / 2295),
        ("training.kept-activations", "41.9 TB"),
        ("training.fsdp-ratio", 765 * 4096 / 3e6),
        ("training.best-split", math.sqrt(2 * 3e6 * 4096 / 13_824)),
        ("training.overlap-needed", (1 - 2295 * 4 / 13_824) / (2295 * 1024 / 6e6)),
        ("training.million-tokens", 2295 * 1024 / 2e6),
        ("training.equivalent-width", (3 * 4096 * 14_336 + 2 * 4096 * 5120) / 16_384),
        ("training.accumulation-bytes", 16 / 3),
        ("training.interleaved-bubble", "5.2%"),
        ("training.zero-bubble", 96),
        ("training.ring-attention", 16 * 985),
        ("training.four-pods", 3 * 2 * C / 6.25e9),
        ("training.two-pod-pipeline", 2 * 8192 / 6.25e9 * C / (80 * LAYER_70B)),
        ("training.expert-width", 4 * C / 6 / W),
        ("training.hybrid-sharding", 31 / 32 * 4 * 70.55e9 / 32),
        ("training.line-not-ring", 1.5 * 4 * 2295 / 13_824),
        ("training.plan-for-pod", "(e)"),
        ("training.collective-matmul", 525 / 297),
        ("training.own-search", 2295 * 512 / 2 / (1 - 2295 * 8 / 26_112 / 4)),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("training.count-parameters", 13.09e9, "0.39"),
        ("training.data-parallel-batch", 850 * 8960, "90%"),
        ("training.tensor-limit", 19.3, "both halves of the gate"),
        ("training.fsdp-ratio", 1.16, "90%"),
        ("training.best-split", 6.14, "upside down"),
        ("training.four-pods", 8 * 71_360, "4.46"),
        ("training.line-not-ring", 1.11, "90%"),
        ("training.plan-for-pod", "FSDP 560, TP 16", "torus"),
    ],
)
def test_what_the_reference_prints_is_named(key, given, says):
    wrong(key, given, says)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("training.weight-gradient", "W[D_X, F]", "ReduceScatter"),
        ("training.weight-gradient", "W[F, D]{U_X}", "W_out"),
        ("training.zero2-state", "6.5 GB", "stage 3"),
        ("training.data-parallel-batch", 2295 * 8960, "one axis"),
        ("training.kept-activations", "19.7 TB", "F wide"),
        ("training.best-split", 3.07, "TP degree"),
        ("training.best-split", 943, "two of the three axes"),
        ("training.overlap-needed", 0.65, "Y = 2"),
        ("training.million-tokens", 0.883, "not a power of two"),
        ("training.equivalent-width", 14_336, "F itself"),
        ("training.accumulation-bytes", 6, "bf16"),
        ("training.accumulation-bytes", 4 / 3, "one microbatch"),
        ("training.interleaved-bubble", "5.47%", "over work"),
        ("training.interleaved-bubble", "18%", "without interleaving"),
        ("training.interleaved-bubble", 1 - (7 / 4) / (32 + 7 / 4), "in which a stage works"),
        ("training.interleaved-bubble", (8 / 4) / (32 + 8 / 4), "the seven before it"),
        ("training.zero-bubble", 64, "not twice"),
        ("training.ring-attention", 7880, "without the mask"),
        ("training.ring-attention", 63_040, "KV heads"),
        ("training.four-pods", 220_320, "bf16"),
        ("training.two-pod-pipeline", "70.3%", "one layer"),
        ("training.expert-width", 6120, "ring of 16"),
        ("training.expert-width", 24_480, "longest axis"),
        ("training.hybrid-sharding", "17.4 GB", "more than half"),
        ("training.line-not-ring", 0.664, "long ring"),
        ("training.line-not-ring", 0.498, "ring of four"),
        ("training.plan-for-pod", "d", "sequences of its own"),
        ("training.collective-matmul", 525 / 397, "search again"),
        ("training.own-search", 645_469, "formula"),
        ("training.own-search", 587_500, "full overlap"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_the_smallest_batch_is_that_of_a_scan_over_every_split():
    """Exercise 23 once more, step by step in place of halving."""

    def bound(B, Y):
        data, tensor = 2295 * 4096 / Y / (2 * B), 2295 * Y / 26_112
        return max(data, tensor) + min(data, tensor) / 4 <= 1

    scanned = next(B for B in range(600_000, 800_000, 100) if any(bound(B, 2**k) for k in range(7)))
    assert scanned - 100 <= CHECKS["training.own-search"].answer() <= scanned


def carried(plan, wrapped, axes=1):
    """Seconds for a byte of the array, every message over links of four chips an axis, without hops."""
    schedule = plan([4] * axes, [wrapped] * axes)
    return float(execute(schedule, [Axis(4, wrapped, 100 * 10**9, 0)] * axes, 1).seconds)


def test_lines_and_cubes_are_those_of_every_message_on_its_link():
    line = carried(schedules.all_gather, False) + carried(schedules.reduce_scatter, False)
    cube = carried(schedules.all_to_all, True, axes=3)  # for a byte of what 64 chips have
    assert CHECKS["training.line-not-ring"].answer() == pytest.approx(2 * line * C / 13_824)
    assert CHECKS["training.expert-width"].answer() == pytest.approx(2 * 2 * 64 * cube * C / 6)


def test_bubbles_are_those_of_schedules_played_out():
    found = pipelines.simulate("interleaved", 8, 32, chunks=4).bubble
    assert CHECKS["training.interleaved-bubble"].answer() == pytest.approx(float(found))
    share = {M: pipelines.simulate("1f1b", 8, M).bubble for M in (95, 96)}
    assert share[96] <= pipelines.simulate("zero-bubble", 8, 32).bubble < share[95]
    assert CHECKS["training.zero-bubble"].answer() == 96
