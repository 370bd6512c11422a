"""One operation on one chip: published numbers, worked problems, and what a result says."""

import math

import pytest

from scalingbook_lib import roofline, rules
from scalingbook_lib.machines.chips import H100, V5E, V5P, V6E
from scalingbook_lib.units import BF16, FP32, INT4, INT8

# Terms


@pytest.mark.parametrize(("chip", "milliseconds"), [(H100, 1.011), (V6E, 1.089)])
def test_a_trillion_flops(chip, milliseconds):
    assert roofline.operation(1e12, 0, chip).math_s == pytest.approx(milliseconds / 1e3, rel=1e-3)


def test_a_matmul_by_hand():
    by_hand = 2 * 64 * 8192 * 8192 / 1.97e14, 2 * (2 * 64 * 8192 + 8192**2) / 8.19e11
    result = roofline.matmul(64, 8192, 8192, V5E)
    assert (result.math_s, result.memory_s) == by_hand
    assert (result.lower_s, result.upper_s) == (max(by_hand), sum(by_hand))


def test_counts_are_exact_integers():
    result = roofline.matmul(3, 5, 7, V5E)
    assert (result.flops, result.bytes) == (210, 2 * (15 + 35 + 21))
    assert isinstance(result.flops, int)


def test_every_storage_has_its_own_bytes():
    result = roofline.matmul(3, 5, 7, V5E, BF16, weights=INT4, out=FP32)
    assert result.bytes == 2 * 15 + 0.5 * 35 + 4 * 21


def test_the_matrix_unit_computes_in_the_type_of_the_activations_unless_told():
    assert roofline.matmul(8, 8, 8, V5E, weights=INT8).flops_per_s == V5E.bf16_flops_per_s
    assert roofline.matmul(8, 8, 8, V5E, INT8).flops_per_s == V5E.int8_ops_per_s
    assert roofline.matmul(8, 8, 8, V5E, FP32, maths=BF16).flops_per_s == V5E.bf16_flops_per_s


def test_another_unit_and_another_memory():
    on_vpu = roofline.elementwise(
        2**20, V5E, flops_per_s=V5E.vector_flops_per_s, bytes_per_s=V5E.vmem_bytes_per_s
    )
    assert on_vpu.ridge == pytest.approx(6.1e12 / 1.8e13, rel=0.01)


@pytest.mark.parametrize(("chip", "intensity"), [(V5P, 5.2), (V5E, 7.5)])
def test_the_vector_unit_has_a_ridge_of_its_own(chip, intensity):
    """The reference's 3 for v5p divides one core's FLOPs by the whole chip's bytes."""
    ridge = roofline.dot(2**20, chip, flops_per_s=chip.vector_flops_per_s).ridge
    assert ridge == pytest.approx(intensity, abs=0.05)


def test_latency_is_a_third_term():
    small = roofline.elementwise(1024, V5E, latency_s=1e-6)
    assert (small.bound, small.lower_s) == ("latency-bound", 1e-6)
    between = roofline.operation(1e-6 * V5E.bf16_flops_per_s, 1e-5 * V5E.hbm_bytes_per_s, V5E, latency_s=5e-6)
    assert between.bound == "memory-bound"
    assert small.upper_s == small.math_s + small.memory_s + 1e-6
    assert roofline.elementwise(2**30, V5E, latency_s=1e-6).bound == "memory-bound"


@pytest.mark.parametrize("hidden", [0, 0.25, 1])
def test_partial_overlap_runs_from_the_sum_to_the_max(hidden):
    result = roofline.matmul(64, 8192, 8192, V5E)
    expected = result.upper_s - hidden * min(result.math_s, result.memory_s)
    assert roofline.overlapped(result.math_s, result.memory_s, hidden) == pytest.approx(expected)


@pytest.mark.parametrize("hidden", [-0.1, 1.1, math.nan])
def test_no_more_than_all_can_hide(hidden):
    with pytest.raises(ValueError, match="is not a fraction"):
        roofline.overlapped(1, 2, hidden)


def test_chunks_run_from_the_sum_to_the_max():
    assert [roofline.pipelined(4, 6, chunks) for chunks in (1, 2, 4, 64)] == [10, 8, 7, 6 + 4 / 64]


def pipelined_step_by_step(math_s, comms_s, chunks):
    """Chunk i is copied after chunk i - 1, and computed after its own copy and the chunk before it."""
    copied = computed = 0.0
    for _ in range(chunks):
        copied += comms_s / chunks
        computed = max(computed, copied) + math_s / chunks
    return computed


@pytest.mark.parametrize("chunks", [1, 2, 5, 16])
@pytest.mark.parametrize(("math_s", "comms_s"), [(4, 6), (6, 4), (5, 5), (0, 3)])
def test_chunks_by_simulation(math_s, comms_s, chunks):
    stepped = pipelined_step_by_step(math_s, comms_s, chunks)
    assert roofline.pipelined(math_s, comms_s, chunks) == pytest.approx(stepped)


# Intensities


@pytest.mark.parametrize(
    ("result", "intensity"),
    [
        (roofline.dot(2**20, V5E), 1 / 2),
        (roofline.dot(2**20, V5E, FP32, maths=BF16), 1 / 4),
        (roofline.dot(2**20, V5E, INT8), 1),
        (roofline.elementwise(2**20, V5E), 1 / 6),
        (roofline.elementwise(2**20, V5E, flops=2), 1 / 3),
        (roofline.reduction(2**20, V5E), 1 / 2),
        (roofline.softmax(2**20, V5E), 5 / 4),
        (roofline.matvec(2**14, 2**14, V5E), 1),
        (roofline.batched_matvec(1, 4096, 4096, V5E, INT8), 2),
        (roofline.batched_matvec(4096, 4096, 4096, V5E, INT8), 2),
        (roofline.matmul(2**30, 4096, 16384, V5E), 4096 * 16384 / (4096 + 16384)),
        (roofline.matmul(1, 2**20, 2**20, V5E, weights=INT8), 2),
    ],
)
def test_intensities(result, intensity):
    assert result.intensity == pytest.approx(intensity, rel=1e-3)


@pytest.mark.parametrize(
    ("result", "flops", "nbytes"),
    [
        (roofline.dot(3, V5E), 3 + 2, 2 * (3 + 3 + 1)),
        (roofline.elementwise(3, V5E), 3, 2 * 3 * 3),
        (roofline.elementwise(3, V5E, inputs=1, flops=4), 4 * 3, 2 * 2 * 3),
        (roofline.reduction(3, V5E), 2, 2 * (3 + 1)),
        (roofline.softmax(3, V5E), 5 * 3, 2 * 2 * 3),
        (roofline.matvec(2, 3, V5E), 2 * 2 * 3, 2 * (2 + 6 + 3)),
        (roofline.batched_matvec(2, 3, 4, V5E), 2 * (2 * 3 * 4), 2 * 2 * (3 + 12 + 4)),
        (roofline.matmul(2, 3, 4, V5E, weights=INT8), 2 * 2 * 3 * 4, 2 * 6 + 12 + 2 * 8),
    ],
)
def test_small_operations_are_counted_to_the_last_flop_and_byte(result, flops, nbytes):
    assert (result.flops, result.bytes) == (flops, nbytes)


def test_nothing_moved_is_infinitely_intense():
    assert roofline.operation(1, 0, V5E).intensity == math.inf
    idle = roofline.operation(0, 0, V5E)
    assert (idle.attained_fraction, idle.bound) == (0, "nothing to do")


def test_the_plateau_and_the_slope():
    ridge = rules.ridge(V5E)
    assert roofline.attainable(ridge / 2, V5E) == pytest.approx(V5E.bf16_flops_per_s / 2)
    assert roofline.attainable(ridge * 2, V5E) == V5E.bf16_flops_per_s
    assert roofline.attainable(1, V5E, bytes_per_s=5) == 5


# Telling


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (
            roofline.matmul(64, 8192, 8192, V5E),
            "memory-bound: math 43.6 µs, memory 166 µs, so at best 26% of the peak",
        ),
        (
            roofline.matmul(512, 8192, 8192, V5E),
            "compute-bound: math 349 µs, memory 184 µs, so at best 100% of the peak",
        ),
        (
            roofline.elementwise(1024, V5E, latency_s=1e-6),
            "latency-bound: math 5.2 ps, memory 7.5 ns, latency 1 µs, so at best 0.00052% of the peak",
        ),
        (
            roofline.split_matmul(512, 4096, 4096, V5E, V5E.axis(2), split="D"),
            "network-bound: math 43.6 µs, network 83.9 µs, so at best 52% of the peak",
        ),
    ],
)
def test_a_result_says_which_term_wins(result, sentence):
    assert str(result) == sentence


@pytest.mark.parametrize(
    "call",
    [
        lambda: roofline.matmul(0, 8, 8, V5E),
        lambda: roofline.matmul(8, math.nan, 8, V5E),
        lambda: roofline.dot(-1, V5E),
        lambda: rules.matmul_critical_batch(0, 8, V5E),
        lambda: roofline.tiled_matmul(8, 8, 8, V5E, rows=0, columns=8, depth=8),
        lambda: roofline.split_matmul(8, 8, 0, V5E, V5E.axis(2), split="D"),
        lambda: roofline.pipelined(1, 1, 0),
    ],
)
def test_a_size_below_one_is_refused(call):
    with pytest.raises(ValueError, match="write a number of at least 1"):
        call()


@pytest.mark.parametrize(
    "figures", [{"flops": -1}, {"bytes": math.nan}, {"bytes_per_s": 0}, {"latency_s": -1}]
)
def test_impossible_figures_are_refused(figures):
    given = {"flops": 1, "bytes": 1, "flops_per_s": 1, "bytes_per_s": 1} | figures
    with pytest.raises(ValueError, match=r"negative|positive"):
        roofline.Roofline(**given)
