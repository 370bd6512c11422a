"""Beyond one chip and one memory: tiles in VMEM, products split over chips, and every level of memory."""

from dataclasses import replace

import pytest

from scalingbook_lib import roofline, rules
from scalingbook_lib.machines.chips import H100, TPU7X, V4, V5E, V5P, V6E
from scalingbook_lib.roofline.attained import Attending, Attention
from scalingbook_lib.units import GB, MiB


def with_hbm(chip, bytes_per_s):
    return replace(chip, name=f"{chip.name}, HBM as printed elsewhere", hbm_bytes_per_s=bytes_per_s)


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
    assert rules.ridge(chip, bytes_per_s=roofline.levels(chip)["DCN"]) == pytest.approx(tokens, abs=1)


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


# Attention as kernels attain it


def test_a_small_cache_stays_in_the_l2_and_is_read_three_times_as_fast_but_where_there_is_none():
    ideal = Attention(launch_s=0, flops=1, ramp=0, token_launch_s=0, hbm=1)
    for chip, times in ((H100, 3), (V5E, 1)):
        for T, faster in ((7000, times), (8000, 1)):  # 0.57 and 0.66 of 50 MB
            one = Attending(batch=1, T=T, N=8, K=8, H=128)
            assert one.cache_bytes == 4096 * T
            assert ideal.token_s(one, chip) == pytest.approx(4096 * T / chip.hbm_bytes_per_s / faster)
