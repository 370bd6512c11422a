"""The rooflines explorers of tiles, splits, levels and measurements show what the library computes."""

import itertools

import pytest
from looked import curve, marks, panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Bars, Grid, Points, RefLine
from scalingbook_lib import roofline
from scalingbook_lib.evidence import measured
from scalingbook_lib.machines import chips

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("rooflines")}
OVERLAP, ROOFLINE, BATCH, MAP, TOKENS, TILES, SPLIT, LEVELS, MEASURED = (
    ALL[name]
    for name in (
        "overlap", "roofline", "batch", "critical_batch", "tokens", "tiles", "split", "levels", "measured",
    )
)  # fmt: skip
TORI = ("TPU v3", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x")


# Tiles


@pytest.mark.parametrize(("rows", "columns"), [(256, 256), (512, 512), (128, 2048), (8192, 8192)])
def test_a_tile_has_the_intensity_of_its_two_strips(rows, columns):
    """b_m · b_n / (b_m + b_n) for the inputs; the output, written once, adds 1/8192."""
    seen = readout(TILES.evaluate(rows=rows, columns=columns), "intensity")
    assert 1 / seen == pytest.approx((rows + columns) / (rows * columns) + 1 / 8192)


def test_one_tile_as_large_as_the_result_reads_everything_once():
    view = TILES.evaluate(rows=8192, columns=8192)
    assert readout(view, "bytes read and written") == 3 * 2 * 8192**2
    assert "HBM traffic is 1 times the bytes" in view.verdict


@pytest.mark.parametrize("chip", ["TPU v5e", "TPU v6e"])
def test_the_line_is_where_square_tiles_turn_compute_bound_but_for_the_output(chip):
    view = TILES.evaluate(chip=chip)
    memory, arithmetic = curve(view, "memory"), curve(view, "compute")
    (line,) = marks(view, RefLine)
    assert line.at == roofline.square_tile(chips.find(chip))
    bound = [b for b, m, a in zip(memory.xs, memory.ys, arithmetic.ys, strict=True) if a >= m]
    assert line.at < min(bound) < 1.6 * line.at  # half an octave a point, and the output on top


def test_tiles_that_do_not_fit_are_said_not_to():
    assert "do not fit" in TILES.evaluate(rows=8192, columns=8192, depth=8192).verdict
    assert readout(TILES.evaluate(rows=8192, columns=8192, depth=8192), "fraction of VMEM") > 1
    assert "buffers fit in VMEM" in TILES.evaluate(rows=512, columns=512).verdict


def test_the_map_shows_as_many_tiles_as_there_are_up_to_eight_a_side():
    for rows, columns in ((8192, 8192), (4096, 2048), (8, 8192)):
        cells = panel(TILES.evaluate(rows=rows, columns=columns), Grid).cells
        strips = 1  # of X on the left and of W above
        assert (len(cells), len(cells[0])) == (
            min(8192 // rows, 8) + strips,
            min(8192 // columns, 8) + strips,
        )
        read = [cell.text for row in cells for cell in row if cell.text]
        assert sorted(read) == ["W", "X", "Y"]


# Splits


@pytest.mark.parametrize("chip", [c for c in TORI if c in SPLIT.controls["chip"].options])
@pytest.mark.parametrize("sharded", [True, False])
def test_b_and_f_cancel_in_the_threshold_and_in_the_verdict(chip, sharded):
    thresholds, bounds = set(), set()
    for B, F in itertools.product((1, 512, 65536), (256, 131072)):
        view = SPLIT.evaluate(B=B, D=4096, F=F, n=4, sharded=sharded, chip=chip)
        thresholds.add(readout(view, "threshold of D"))
        bounds.add(view.verdict)
    assert len(thresholds) == len(bounds) == 1
    on = chips.find(chip)
    assert thresholds == {roofline.break_even_contraction(on, on.axis(4), keep_sharded=sharded)}


def test_compute_and_communication_cross_at_the_threshold():
    view = SPLIT.evaluate(n=2)
    arithmetic, exchange = curve(view, "compute"), curve(view, "communication")
    line = next(m for m in marks(view, RefLine) if m.label == "threshold")
    for D, a, e in zip(arithmetic.xs, arithmetic.ys, exchange.ys, strict=True):
        assert (a > e) == (line.at < D)


@pytest.mark.parametrize("split", ["B (rows of X)", "F (columns of W)"])
def test_only_the_contraction_exchanges_anything(split):
    view = SPLIT.evaluate(split=split)
    assert readout(view, "communication") == readout(view, "bytes into each chip") == 0
    assert "needs no communication" in view.verdict
    bars = panel(view, Bars)
    assert [value > 0 for value in bars.series[1].values] == [False, True, False]


def test_a_result_that_remains_sharded_costs_half():
    whole, half = (readout(SPLIT.evaluate(sharded=s), "communication") for s in (False, True))
    assert whole == pytest.approx(2 * half)


def test_two_v5e_need_a_width_of_7880_and_sixteen_on_a_ring_59100():
    assert readout(SPLIT.evaluate(n=2), "threshold of D") == pytest.approx(7880)
    assert readout(SPLIT.evaluate(n=16), "threshold of D") == pytest.approx(59_100)


# The batch, counted


def test_only_the_tokens_of_one_replica_count():
    for m in (1, 8, 64):
        view = TOKENS.evaluate(sequences=512, length=4096, copies=2048, m=m)
        assert readout(view, "tokens per replica: B") == 1024
        assert "above the ridge of 241" in view.verdict


def test_decode_takes_one_token_of_each_sequence():
    phase = TOKENS.controls["phase"].options[1]
    view = TOKENS.evaluate(phase=phase, sequences=64, copies=2)
    assert readout(view, "tokens per replica: B") == 32
    assert "Memory-bound" in view.verdict
    few = TOKENS.evaluate_state({"phase": phase, "sequences": 6, "copies": 7})
    assert "not enough for 128 replicas" in few.error


# Several levels


@pytest.mark.parametrize("chip", ["TPU v4", "TPU v5e", "TPU v6e"])
@pytest.mark.parametrize("n", [1, 2, 16])
def test_the_lowest_dot_is_the_rate_that_is_reached(chip, n):
    view, on = LEVELS.evaluate(chip=chip, n=n), chips.find(chip)
    lowest = min(point.ys[0] for point in marks(view, Points))
    assert readout(view, "fraction of peak") == pytest.approx(lowest / on.bf16_flops_per_s)


def test_the_levels_agree_with_the_split_of_the_contraction():
    for n, D in itertools.product((2, 16), (1024, 32768, 131072)):
        axis = chips.V5E.axis(n)
        split = roofline.split_matmul(512, D, 8192, chips.V5E, axis, split="D")
        bars = panel(LEVELS.evaluate(n=n, D=D), Bars)
        took = dict(zip(bars.labels, bars.series[0].values, strict=True))
        assert took["ICI"] == pytest.approx(split.comms_s)
        assert took["math"] == pytest.approx(split.math_s)


def test_one_chip_exchanges_nothing_and_dcn_is_the_slowest_way():
    assert set(panel(LEVELS.evaluate(n=1), Bars).labels) == {"math", "HBM"}
    assert readout(LEVELS.evaluate(crosses="DCN"), "lower bound") == pytest.approx(
        32 * readout(LEVELS.evaluate(crosses="ICI"), "lower bound")
    )


# Measured


@pytest.mark.parametrize("sweep", measured.SWEEPS)
def test_every_measured_point_is_drawn_above_the_curve(sweep):
    view, rows = MEASURED.evaluate(sweep=sweep), measured.SWEEPS[sweep].rows
    times = view.panels[0]
    points = [p for p in times.marks if isinstance(p, Points)]
    drawn = sorted((x, y) for p in points for x, y in zip(p.xs, p.ys, strict=True))
    assert drawn == [(row.batch, row.seconds) for row in rows]
    bound = curve(view, "lower bound")
    for row in rows:
        nearest = min(range(len(bound.xs)), key=lambda i: abs(bound.xs[i] - row.batch))
        assert bound.xs[nearest] == pytest.approx(row.batch)
        assert row.seconds > bound.ys[nearest]


def test_a_batch_that_was_not_measured_is_answered_with_the_nearest():
    assert MEASURED.evaluate(B=64).verdict.startswith("A batch of 64 was not measured. With ")
    assert MEASURED.evaluate(B=128).verdict.startswith("With 128 tokens, the H100 took 193 µs")
