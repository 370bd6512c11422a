"""One operation on one chip: published numbers, worked problems, and what a result says."""

import math
from dataclasses import replace

import pytest

from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import H100, TPU7X, V4, V5E, V5P, V6E
from scalingbook_lib.units import BF16, FP8, FP32, GB, INT4, INT8, MiB


def with_hbm(chip, bytes_per_s):
    return replace(chip, name=f"{chip.name}, HBM as printed elsewhere", hbm_bytes_per_s=bytes_per_s)


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
    assert small.upper_s == small.math_s + small.memory_s + 1e-6
    assert roofline.elementwise(2**30, V5E, latency_s=1e-6).bound == "memory-bound"


@pytest.mark.parametrize("hidden", [0, 0.25, 1])
def test_partial_overlap_runs_from_the_sum_to_the_max(hidden):
    result = roofline.matmul(64, 8192, 8192, V5E)
    expected = result.upper_s - hidden * min(result.math_s, result.memory_s)
    assert roofline.overlapped(result.math_s, result.memory_s, hidden) == pytest.approx(expected)


@pytest.mark.parametrize("hidden", [-0.1, 1.1, math.nan])
def test_no_more_than_all_can_hide(hidden):
    with pytest.raises(ValueError, match="is no share"):
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


def test_exact_dot_product():
    assert roofline.dot(1000, V5E).intensity == 1999 / 4002


def test_nothing_moved_is_infinitely_intense():
    assert roofline.operation(1, 0, V5E).intensity == math.inf
    assert roofline.operation(0, 0, V5E).attained_fraction == 0


def test_the_plateau_and_the_slope():
    ridge = roofline.ridge(V5E)
    assert roofline.attainable(ridge / 2, V5E) == pytest.approx(V5E.bf16_flops_per_s / 2)
    assert roofline.attainable(ridge * 2, V5E) == V5E.bf16_flops_per_s
    assert roofline.attainable(1, V5E, bytes_per_s=5) == 5


# Thresholds


@pytest.mark.parametrize(
    ("chip", "ridge"),
    [
        (chips.V3, 137),
        (V4, 229),
        (V5E, 240.5),
        (V5P, 166),
        (V6E, 560),
        (TPU7X, 313),
        (chips.A100, 153),
        (H100, 295),
        (chips.H200, 206),
        (chips.B200, 281),
    ],
)
def test_ridges(chip, ridge):
    assert roofline.ridge(chip) == pytest.approx(ridge, abs=0.5)


@pytest.mark.parametrize(
    ("chip", "dtype", "ridge"),
    [
        (V4, INT8, 229),
        (V5E, INT8, 481),
        (V5P, INT8, 332),
        (V6E, INT8, 1121),
        (TPU7X, FP8, 626),
        (chips.A100, INT8, 306),
        (H100, FP8, 591),
        (chips.H200, FP8, 412),
        (chips.B200, FP8, 562),
    ],
)
def test_eight_bit_ridges(chip, dtype, ridge):
    assert roofline.ridge(chip, dtype) == pytest.approx(ridge, abs=0.6)


@pytest.mark.parametrize(
    ("D", "F", "bf16", "int8_weights"),
    [
        (512, 512, 3982, 1991),
        (1024, 1024, 453.6, 226.8),
        (2048, 2048, 314.4, 157.2),
        (4096, 4096, 272.5, 136.3),
        (8192, 8192, 255.5, 127.8),
        (8192, 32768, 249.7, 124.9),
    ],
)
def test_240_tokens_is_the_limit_of_wide_layers(D, F, bf16, int8_weights):
    assert roofline.break_even_batch(D, F, V5E) == pytest.approx(bf16, rel=1e-3)
    assert roofline.break_even_batch(D, F, V5E, weights=INT8) == pytest.approx(int8_weights, rel=1e-3)


def test_the_same_with_the_reference_s_bandwidth():
    """Its 8.2e11 bytes/s make it 453, 314, 272 and 255."""
    older = with_hbm(V5E, 8.2e11)
    published = [round(roofline.break_even_batch(D, D, older)) for D in (1024, 2048, 4096, 8192)]
    assert published == [453, 314, 272, 255]


@pytest.mark.parametrize(("width", "enough"), [(480, False), (481, False), (482, True), (512, True)])
def test_for_narrow_layers_no_batch_is_enough(width, enough):
    assert math.isfinite(roofline.break_even_batch(width, width, V5E)) is enough
    assert (width > roofline.hopeless_width(V5E)) is enough
    assert (roofline.matmul(10**9, width, width, V5E).bound == "compute-bound") is enough


def test_hopeless_widths_of_v6e():
    assert roofline.hopeless_width(V6E) == pytest.approx(1120.9, abs=0.1)


@pytest.mark.parametrize(
    ("storage", "share"),
    [
        ({}, 1),
        ({"weights": INT8}, 1 / 2),
        ({"weights": INT4}, 1 / 4),
        ({"weights": FP32}, 2),
        ({"dtype": INT8}, 1),  # half the bytes, twice the rate
    ],
)
def test_rules_of_thumb_by_storage(storage, share):
    rule = roofline.rule_of_thumb_batch(2**30, 2**30, V5E, **storage)
    assert rule.batch == pytest.approx(240.54 * share, rel=1e-4)
    assert rule.error == pytest.approx(0, abs=1e-5)


def test_a_rule_of_thumb_carries_its_error():
    rule = roofline.rule_of_thumb_batch(1024, 1024, V5E)
    assert (rule.batch, rule.exact) == (pytest.approx(240.5, abs=0.1), pytest.approx(453.6, abs=0.1))
    assert rule.error == pytest.approx(-0.47, abs=0.001)
    assert str(rule) == "the rule says 241 tokens, exactly it is 454: the rule is 47 % too low"


def test_a_rule_of_thumb_where_no_batch_is_enough():
    rule = roofline.rule_of_thumb_batch(400, 400, V5E)
    assert (rule.exact, rule.error) == (math.inf, -1)
    assert str(rule) == "the rule says 241 tokens, but for this layer no batch is enough"


@pytest.mark.parametrize(("bytes_per_s", "published"), [(8.1e11, 262.7), (8.2e11, 259.3)])
def test_int8_matmul_of_the_tpu_chapter(bytes_per_s, published):
    """int8[B, 4096] · int8[4096, 16384]; the reference prints 271 and 267, which its rounding made."""
    assert roofline.break_even_batch(4096, 16384, with_hbm(V5E, bytes_per_s), INT8) == pytest.approx(
        published, abs=0.05
    )


def test_the_same_matmul_out_of_vmem():
    batch = roofline.break_even_batch(4096, 16384, V5E, INT8, bytes_per_s=22 * 8.1e11)
    assert batch == pytest.approx(11.1, abs=0.05)


def test_weights_and_activations_over_pcie_are_never_worth_the_chip():
    """Worked problem of the TPU chapter, whose published answer of 57,500 assumes B far below D."""
    over_pcie = {"bytes_per_s": V6E.pcie_bytes_per_s}
    assert roofline.ridge(V6E, **over_pcie) == pytest.approx(28_688, abs=1)
    assert roofline.break_even_batch(8192, 4 * 8192, V6E, **over_pcie) == math.inf
    assert roofline.break_even_batch(35_900, 4 * 35_900, V6E, **over_pcie) > 1e7
    assert roofline.break_even_batch(35_800, 4 * 35_800, V6E, **over_pcie) == math.inf


# Tiles


@pytest.mark.parametrize(
    ("chip", "side"), [(V5E, 481), (V5P, 332), (V4, 458), (V6E, 1121), (TPU7X, 626), (H100, 590)]
)
def test_square_tiles_need_twice_the_ridge(chip, side):
    assert roofline.square_tile(chip) == pytest.approx(side, abs=0.6)


def test_a_square_tile_of_that_side_balances():
    side = 480
    balanced = with_hbm(V5E, V5E.bf16_flops_per_s * 2 / side)
    wide = 480 * 2048
    tiled = roofline.tiled_matmul(wide, wide, wide, balanced, rows=side, columns=side, depth=480)
    assert tiled.roofline.intensity == pytest.approx(side / 2, rel=1e-3)


def test_one_tile_reads_everything_once():
    tiled = roofline.tiled_matmul(64, 128, 256, V5E, rows=64, columns=256, depth=128)
    assert (tiled.tiles, tiled.roofline) == (1, roofline.matmul(64, 128, 256, V5E))


def bytes_read_tile_by_tile(B, D, F, rows, columns, depth):
    moved = 2 * B * F
    for _ in range(0, B, rows):
        for _ in range(0, F, columns):
            for _ in range(0, D, depth):
                moved += 2 * rows * depth + 2 * depth * columns
    return moved


@pytest.mark.parametrize(("rows", "columns", "depth"), [(8, 8, 8), (16, 4, 32), (5, 7, 3), (64, 64, 64)])
def test_tiles_re_read_what_a_loop_counts(rows, columns, depth):
    tiled = roofline.tiled_matmul(64, 32, 48, V5E, rows=rows, columns=columns, depth=depth)
    assert tiled.roofline.bytes == bytes_read_tile_by_tile(64, 32, 48, rows, columns, depth)


def test_vmem_of_a_tile():
    """Two buffers of the inputs and an fp32 accumulator: 4.2 MB and 4.2 MB."""
    tiled = roofline.tiled_matmul(8192, 8192, 8192, V5E, rows=1024, columns=1024, depth=512)
    assert tiled.vmem_bytes == 2 * 4 * MiB
    assert tiled.vmem_fraction == 8 / 128
    assert tiled.fits is True


def test_the_tile_that_v6e_needs_fits():
    tiled = roofline.tiled_matmul(2**14, 2**14, 2**14, V6E, rows=1121, columns=1121, depth=512)
    assert tiled.vmem_bytes == pytest.approx(9.6e6, rel=0.01)
    assert tiled.fits


def test_a_tile_that_does_not_fit_and_one_of_which_nobody_knows():
    huge = {"rows": 8192, "columns": 8192, "depth": 8192}
    assert roofline.tiled_matmul(8192, 8192, 8192, V5E, **huge).fits is False
    assert "which does not fit" in str(roofline.tiled_matmul(8192, 8192, 8192, V5E, **huge))
    assert roofline.tiled_matmul(8192, 8192, 8192, H100, **huge).fits is None


# Splits


def test_two_chips_need_a_contraction_of_7880():
    """2 C / W1 with the documented 50 GB/s; the reference's 45 GB/s gives its 8,756."""
    assert roofline.break_even_contraction(V5E, V5E.axis(2)) == pytest.approx(7880)
    assert roofline.break_even_contraction(V5E, V5E.axis(2), keep_sharded=True) == pytest.approx(3940)
    derated = replace(V5E, link_bytes_per_s=45 * GB)
    assert roofline.break_even_contraction(derated, derated.axis(2)) == pytest.approx(8756, abs=1)


@pytest.mark.parametrize(("keep_sharded", "textbook"), [(False, 70_044), (True, 35_022)])
def test_splitting_only_the_contraction_does_not_scale(keep_sharded, textbook):
    """On a ring of 16 with the reference's links; n C / W forgets the 1/16 that each chip holds."""
    derated = replace(V5E, link_bytes_per_s=45 * GB)
    exact = roofline.break_even_contraction(derated, derated.axis(16), keep_sharded=keep_sharded)
    assert exact * 16 / 15 == pytest.approx(textbook, abs=1)


@pytest.mark.parametrize("D", [7800, 7960])
def test_neither_the_batch_nor_the_width_decides(D):
    bounds = {
        roofline.split_matmul(B, D, F, V5E, V5E.axis(2), split="D").bound
        for B in (1, 512)
        for F in (128, 8192)
    }
    assert bounds == {"compute-bound" if D > 7880 else "network-bound"}


@pytest.mark.parametrize("split", ["B", "F"])
def test_splitting_rows_or_columns_is_free(split):
    result = roofline.split_matmul(512, 4096, 4096, V5E, V5E.axis(4), split=split)
    assert (result.comms_s, result.math_s) == (0, 2 * 512 * 4096 * 4096 / 4 / 1.97e14)


def test_a_split_along_no_dimension():
    with pytest.raises(ValueError, match="write 'B', 'D' or 'F'"):
        roofline.split_matmul(8, 8, 8, V5E, V5E.axis(4), split="K")  # pyright: ignore


# Levels


def test_the_levels_of_a_chip_are_those_that_are_documented():
    assert list(roofline.levels(V5E)) == ["VMEM", "HBM", "ICI", "PCIe", "DCN"]
    assert list(roofline.levels(H100)) == ["HBM", "NVLink", "PCIe", "DCN"]
    assert roofline.levels(V5E)["ICI"] == V5E.axis(16).bytes_per_s
    assert roofline.levels(H100)["NVLink"] == 450 * GB


@pytest.mark.parametrize(("chip", "tokens"), [(V5P, 73_440), (V5E, 63_040), (V6E, 73_440), (TPU7X, 184_560)])
def test_tokens_that_pay_for_the_data_centre_network(chip, tokens):
    assert roofline.ridge(chip, bytes_per_s=roofline.levels(chip)["DCN"]) == pytest.approx(tokens, abs=1)


def test_the_slowest_level_bounds_the_time():
    result = roofline.ladder(1e9, {"HBM": 819e6, "ICI": 1e9, "DCN": 3.125e6}, V5E)
    assert result.level_s == pytest.approx({"HBM": 1e-3, "ICI": 1e-2, "DCN": 1e-3})
    assert (result.slowest, result.lower_s) == ("ICI", pytest.approx(1e-2))
    assert result.upper_s == pytest.approx(12e-3 + result.math_s)
    assert str(result).startswith("ICI takes longest: ICI 10 ms, ")


def test_a_ladder_of_one_level_is_a_roofline():
    one = roofline.matmul(64, 4096, 4096, V5E)
    several = roofline.ladder(one.flops, {"HBM": one.bytes}, V5E)
    assert (several.math_s, several.lower_s, several.upper_s) == (one.math_s, one.lower_s, one.upper_s)


def test_a_level_that_is_not_documented():
    with pytest.raises(ValueError, match="H100 has no documented VMEM bandwidth; write one of HBM, NVLink"):
        roofline.ladder(1, {"VMEM": 1}, H100)


def test_littles_law():
    assert roofline.bytes_in_flight(8.2e11, 1e-6) == pytest.approx(0.82e6)


# Telling


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (
            roofline.matmul(64, 8192, 8192, V5E),
            "memory-bound: math 43.6 µs, memory 166 µs, so at best 26 % of the peak",
        ),
        (
            roofline.matmul(512, 8192, 8192, V5E),
            "compute-bound: math 349 µs, memory 184 µs, so at best 100 % of the peak",
        ),
        (
            roofline.elementwise(1024, V5E, latency_s=1e-6),
            "latency-bound: math 5.2 ps, memory 7.5 ns, latency 1 µs, so at best 0.00052 % of the peak",
        ),
        (
            roofline.split_matmul(512, 4096, 4096, V5E, V5E.axis(2), split="D"),
            "network-bound: math 43.6 µs, network 83.9 µs, so at best 52 % of the peak",
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
        lambda: roofline.break_even_batch(0, 8, V5E),
        lambda: roofline.tiled_matmul(8, 8, 8, V5E, rows=0, columns=8, depth=8),
        lambda: roofline.split_matmul(8, 8, 0, V5E, V5E.axis(2), split="D"),
        lambda: roofline.pipelined(1, 1, 0),
    ],
)
def test_a_size_below_one_is_refused(call):
    with pytest.raises(ValueError, match="is no size; write a number of at least 1"):
        call()


@pytest.mark.parametrize(
    "figures", [{"flops": -1}, {"bytes": math.nan}, {"bytes_per_s": 0}, {"latency_s": -1}]
)
def test_impossible_figures_are_refused(figures):
    given = {"flops": 1, "bytes": 1, "flops_per_s": 1, "bytes_per_s": 1} | figures
    with pytest.raises(ValueError, match=r"negative|positive"):
        roofline.Roofline(**given)
