"""The simulated systolic array computes the matmul in the cycles that the formulas state."""

import itertools
import random
from dataclasses import replace

import pytest

from scalingbook_lib.machines import chips, systolic
from scalingbook_lib.machines.systolic import feed as feeds
from scalingbook_lib.machines.systolic.array import ArrayCell, run
from scalingbook_lib.units import BF16, FP32, INT4, INT8

SIZES = list(itertools.product((1, 2, 3, 5), (1, 2, 3, 8), (1, 3, 7), (1, 4, 6), (True, False)))


def matrix(rows, columns, seed=0):
    draw = random.Random(seed)
    return [[draw.randint(-9, 9) for _ in range(columns)] for _ in range(rows)]


def product(X, W):
    return tuple(
        tuple(sum(x * w for x, w in zip(row, column, strict=True)) for column in zip(*W, strict=True))
        for row in X
    )


@pytest.mark.parametrize(("t", "M", "K", "N", "double"), SIZES)
def test_cell_by_cell_the_array_makes_the_product_in_as_many_cycles_as_the_formulas_say(t, M, K, N, double):
    X, W = matrix(M, K), matrix(K, N, 1)
    run = systolic.simulate(X, W, side=t, double_buffered=double)
    assert run.Y == product(X, W)  # noqa: SIM300
    assert (run.load_cycles, run.cycles) == (t, systolic.cycles(M, t, run.tiles, double))
    assert run.utilization == pytest.approx(systolic.utilization(M, t, run.tiles, double))
    pad = systolic.padding(M, K, N, t)
    assert run.tiles == pad.tiles
    assert run.useful == pytest.approx(run.utilization * pad.useful)
    if double:
        assert (pad.cycles, pad.utilization) == (run.cycles, pytest.approx(run.useful))


@pytest.mark.parametrize(("t", "M"), list(itertools.product((1, 2, 3, 4, 8), (1, 2, 4, 16))))
def test_one_tile_takes_m_plus_2t_minus_2_cycles(t, M):
    run = systolic.simulate(matrix(M, t), matrix(t, t))
    assert run.cycles == systolic.cycles(M, t) == M + 2 * t - 2
    assert sum(run.busy) == M * t * t
    assert run.busy[t : t + min(M, t)] == tuple(k * (k + 1) // 2 for k in range(1, min(M, t) + 1))


def test_with_enough_rows_filling_and_draining_take_as_long():
    run = systolic.simulate(matrix(12, 4), matrix(4, 4))
    filled = run.busy.index(max(run.busy)) - run.load_cycles
    assert (filled, run.drain_cycles, max(run.busy)) == (6, 6, 16)


def test_every_product_meets_its_sum_one_cell_after_another():
    """Row m reaches cell (k, n) m + k + n cycles after the first multiplication, with the sum so far."""
    X, W, t = matrix(4, 3), matrix(3, 3, 1), 3
    run = systolic.simulate(X, W)
    for m, k, n in itertools.product(range(4), range(t), range(t)):
        cell = run.frames[t + m + k + n].cells[k][n]
        partial = sum(X[m][j] * W[j][n] for j in range(k + 1))
        assert (cell.row, cell.weight, cell.activation, cell.partial) == (m, W[k][n], X[m][k], partial)
        assert cell.busy
        assert cell.useful


def test_two_by_two_by_hand():
    run = systolic.simulate([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    assert run.Y == ((19, 22), (43, 50))
    assert (run.cycles, run.busy) == (4, (0, 0, 1, 3, 3, 1))
    assert str(run) == "2 rows past 1 tile of 2 x 2 cells: cycles 4, load cycles 2, utilization 50%"
    assert str(run.frames[3]) == "cycle 3, 4 cells: busy 3, useful 3, loading 0"
    assert run.frames[1].loading == 3


@pytest.mark.parametrize(
    ("M", "double", "load", "start"),
    [(1, True, 0, 1), (3, True, 0, 1), (2, True, 1, 1), (2, False, 0, 1), (2, False, 1, 1), (7, False, 1, 1)],
)
def test_tiles_arrive_as_early_as_the_registers_allow(M, double, load, start):
    """The timetable is as tight as the registers allow: else a weight is missing or overwritten."""
    X, W = matrix(M, 4), matrix(4, 12, 1)
    work = feeds.feed(X, W, 4, double)
    assert run(work).Y == product(X, W)  # noqa: SIM300
    loads = (*work.loads[:-1], work.loads[-1] - load)
    starts = (*work.starts[:-1], work.starts[-1] - start)
    try:
        wrong = run(replace(work, loads=loads, starts=starts)).Y
    except AssertionError:
        return
    assert wrong != product(X, W)


@pytest.mark.parametrize(
    ("M", "double", "period"), [(2, True, 8), (8, True, 8), (20, True, 20), (20, False, 28)]
)
def test_a_tile_costs_its_rows_or_its_weights(M, double, period):
    assert systolic.tile_period(M, 8, double) == period


def test_only_many_rows_keep_the_array_busy():
    assert systolic.utilization(8, 128) == pytest.approx(8 / 262)
    assert systolic.utilization(128, 128) == pytest.approx(1 / 3, rel=0.01)
    assert systolic.utilization(2286, 128) == pytest.approx(0.9, abs=1e-4)
    assert systolic.rows_for(0.9, 128) == pytest.approx(2286)
    assert systolic.utilization(64, 128, tiles=10**6) == pytest.approx(0.5, abs=1e-4)
    assert systolic.utilization(128, 128, tiles=10**6) == pytest.approx(1, abs=1e-5)
    assert systolic.utilization(128, 128, tiles=10**6, double_buffered=False) == pytest.approx(0.5, abs=1e-4)


def test_the_documented_step_of_a_v5e_unit():
    """bf16[8, 128] x bf16[128, 128] every 8 cycles: 262,144 FLOPs, 4.9e13 FLOPs/s at 1.5 GHz."""
    one = systolic.peak(1, 1, 128, 1.5e9)
    assert 8 * one.flops_per_cycle == 262_144 == 2 * 8 * 128 * 128
    assert one.flops_per_s == pytest.approx(4.9e13, rel=0.01)


@pytest.mark.parametrize(
    ("chip", "cores", "units", "side", "clock", "factor"),
    [
        (chips.V3, 2, 2, 128, 0.94e9, 1),
        (chips.V4, 2, 4, 128, 1.05e9, 1),
        (chips.V5E, 1, 4, 128, 1.5e9, 1),
        (chips.V5P, 2, 4, 128, 1.75e9, 1),
        (chips.V6E, 1, 2, 256, 1.75e9, 2),
        (chips.TPU7X, 2, 2, 256, 2.2e9, 2),
    ],
)
def test_datasheets_are_cells_times_clock(chip, cores, units, side, clock, factor):
    counted = systolic.peak(cores, units, side, clock)
    assert counted.datasheet_ratio(chip.bf16_flops_per_s) == pytest.approx(factor, rel=5e-3)
    twice = systolic.peak(cores, units, side, clock, arrays_per_unit=factor)
    assert twice.flops_per_s == pytest.approx(chip.bf16_flops_per_s, rel=5e-3)


@pytest.mark.parametrize("chip", [chips.V3, chips.V4, chips.V5E, chips.V5P], ids=lambda chip: chip.name)
def test_up_to_v5p_the_catalog_s_own_figures_explain_its_peak(chip):
    assert systolic.peak_of(chip).datasheet_ratio(chip.bf16_flops_per_s) == pytest.approx(1, rel=5e-3)


def test_from_v6e_on_they_explain_half_of_it():
    units = systolic.peak_of(chips.V6E, clock_hz=1.75e9)
    assert units.datasheet_ratio(chips.V6E.bf16_flops_per_s) == pytest.approx(2, rel=1e-3)
    arrays = systolic.peak_of(chips.V6E, clock_hz=1.75e9, arrays_per_unit=2)
    assert arrays.flops_per_s == pytest.approx(918e12, rel=1e-3)


def test_a_chip_without_documented_units_has_no_counted_peak():
    with pytest.raises(ValueError, match="H100 has no documented number of cores, matrix units or side"):
        systolic.peak_of(chips.H100)
    with pytest.raises(ValueError, match="TPU v6e has no documented clock"):
        systolic.peak_of(chips.V6E)


def test_a_peak_prints_as_one_line():
    assert str(systolic.peak(1, 4, 128, 1.5e9)) == (
        "1 core x 4 units of 128 x 128 cells at 1.5 GHz: 197 TFLOPs/s"
    )
    assert "(2 arrays each)" in str(systolic.peak(1, 2, 256, 1.75e9, arrays_per_unit=2))


@pytest.mark.parametrize(
    ("K", "N", "side", "useful"),
    [
        (128, 128, 128, 1),
        (128, 129, 128, 129 / 256),
        (128, 128, 256, 1 / 4),
        (128, 4096, 256, 1 / 2),  # queries times keys with a head dimension of 128 on a 256-wide unit
        (1, 1, 128, 1 / 16384),
    ],
)
def test_padding_wastes_the_unused_part_of_tiles(K, N, side, useful):
    assert systolic.padding(64, K, N, side).useful == pytest.approx(useful)


def test_either_operand_can_be_stationary():
    pad = systolic.padding(128, 128, 129, 128)
    assert (pad.useful, pad.activation_stationary.useful) == (pytest.approx(129 / 256), 1)
    assert (pad.activation_stationary.M, pad.activation_stationary.N) == (129, 128)
    assert pad.activation_stationary.activation_stationary == pad
    assert str(systolic.padding(64, 128, 129, 128)) == (
        "[64, 128] · [128, 129] in 2 tiles of side 128: 50.4% of the weight cells are used, "
        "14.5% of the cell-cycles do useful work"
    )
    assert "in 1 tile of side 128" in str(systolic.padding(64, 128, 128, 128))


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "nbytes"),
    [(20, 200, BF16, 12_288), (20, 200, INT8, 6_144), (8, 128, FP32, 4_096), (128, 129, BF16, 65_536)],
)
def test_padded_storage_matches_compiled_programs(rows, columns, dtype, nbytes):
    """XLA's sizes of bf16[20, 200] and int8[20, 200] on v5e, v5p, v6e and TPU7x; a register is 4 KiB."""
    assert systolic.storage(rows, columns, dtype).bytes == nbytes


def test_storage_prints_as_one_line():
    stored = systolic.storage(20, 200)
    assert str(stored) == "bf16[20, 200] is stored as [24, 256]: 12.3 kB, 65.1% of it used"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: systolic.simulate([[1, 2]], [[1]]), "X has 2 columns but W has 1 rows"),
        (lambda: systolic.simulate([[1, 2], [3]], [[1]]), "rows of equal length"),
        (lambda: systolic.simulate([], [[1]]), "rows of equal length"),
        (lambda: systolic.simulate([[]], []), "rows of equal length"),
        (lambda: systolic.simulate([[1]], [[1]], side=0), "side=0: write a number of at least 1"),
        (lambda: systolic.cycles(0, 4), "M=0: write a number of at least 1"),
        (lambda: systolic.rows_for(1, 4), "between 0 and 1"),
        (lambda: systolic.padding(1, 0, 1, 128), "K=0: write a number of at least 1"),
        (lambda: systolic.storage(0, 1), "rows=0: write a number of at least 1"),
        (lambda: systolic.storage(1, 1, INT4), "int4 packs several"),
        (lambda: systolic.peak(0, 4, 128, 1e9), "write positive numbers"),
    ],
)  # fmt: skip
def test_impossible_sizes_are_refused_with_a_sentence(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_an_empty_cell_is_not_busy():
    assert (ArrayCell().useful, ArrayCell().loading, ArrayCell().busy) == (False, False, False)
