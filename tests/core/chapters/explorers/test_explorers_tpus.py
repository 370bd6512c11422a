"""The TPU chapter's explorers obey the laws of what they show."""

import itertools

import pytest
from looked import curve, panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Grid, Timeline
from scalingbook_lib import roofline
from scalingbook_lib.machines import chips, systolic

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("tpus")}
ARRAY, PIPELINE, PADDING = (ALL[name] for name in ("systolic", "pipeline", "padding"))


# The array


@pytest.mark.parametrize(("t", "M", "tiles", "double"), [(3, 4, 1, True), (2, 16, 3, False), (8, 5, 2, True)])
def test_the_curve_counts_the_colored_cells_of_every_frame(t, M, tiles, double):
    settings = {"t": t, "M": M, "tiles": tiles, "double": double}
    busy = curve(ARRAY.evaluate(**settings), "multiplying").ys
    assert len(busy) == t + systolic.cycles(M, t, tiles, double) == ARRAY.evaluate(**settings).frames
    assert sum(busy) == tiles * M * t * t
    for step, expected in enumerate(busy):
        view = ARRAY.evaluate(**settings, step=step)
        cells = [c for row in panel(view, Grid).cells for c in row]
        assert sum("sum so far" in c.note for c in cells) == expected == readout(view, "busy cells now")


def test_one_row_of_x_is_a_diagonal_wave():
    """Cells with the same k + n work on the same row of X, so they have one color."""
    cells = panel(ARRAY.evaluate(t=5, M=16, tiles=1, step=13), Grid).cells
    for k, n in itertools.product(range(4), range(1, 5)):
        assert cells[k][n].color == cells[k + 1][n - 1].color


def test_what_is_there_to_discover_in_the_array():
    assert "every cell is busy" in ARRAY.evaluate(t=3, M=16, tiles=1, step=10).verdict
    assert "still filling" in ARRAY.evaluate(t=3, M=16, tiles=1, step=4).verdict
    assert "draining" in ARRAY.evaluate(t=3, M=16, tiles=1, step=10**6).verdict
    assert "no cell multiplies yet" in ARRAY.evaluate(step=0).verdict
    assert "too few" in ARRAY.evaluate(t=8, M=2, tiles=1, step=15).verdict
    assert "a tile costs 8 cycles" in ARRAY.evaluate(t=8, M=2, tiles=4, step=25).verdict
    many, few = (readout(ARRAY.evaluate(t=4, M=M, tiles=1), "utilization") for M in (16, 1))
    assert (many, few) == (pytest.approx(16 / 22), pytest.approx(1 / 7))


@pytest.mark.parametrize("step", range(12))
def test_double_buffering_is_never_slower(step):
    for M, t in itertools.product((1, 4, 16), (2, 5)):
        two, one = (
            readout(ARRAY.evaluate(t=t, M=M, tiles=3, double=d, step=step), "cycles after loading")
            for d in (True, False)
        )
        assert two < one


# Chunks


@pytest.mark.parametrize("chunks", [1, 7, 64])
@pytest.mark.parametrize("ops", [1, 16, 256])
def test_the_lanes_end_when_the_formula_says(chunks, ops):
    view = PIPELINE.evaluate(chunks=chunks, ops=ops)
    spans = panel(view, Timeline).spans
    assert len(spans) == 3 * chunks
    assert max(s.end for s in spans) == pytest.approx(readout(view, "time"))
    first = sum(s.end - s.start for s in spans) / chunks
    slowest = max(s.end - s.start for s in spans)
    assert readout(view, "time") == pytest.approx(first + (chunks - 1) * slowest)


def test_the_slowest_lane_changes_at_break_even():
    assert readout(PIPELINE.evaluate(), "break-even") == pytest.approx(30, rel=0.01)
    assert "The vector unit waits for HBM" in PIPELINE.evaluate(ops=16).verdict
    assert "HBM waits for the vector unit" in PIPELINE.evaluate(ops=32).verdict
    dot = roofline.dot(64 * 2**20 // 2, chips.V5E)
    assert readout(PIPELINE.evaluate(ops=2), "slowest stage alone") == pytest.approx(dot.memory_s, rel=1e-3)


def test_chunks_must_fit_in_vmem():
    assert "use more chunks" in PIPELINE.evaluate(chunks=2, array=256).verdict
    assert readout(PIPELINE.evaluate(chunks=8, array=64), "VMEM needed") == 32 * 2**20


# Padding


@pytest.mark.parametrize(
    ("K", "N", "side"), [(128, 129, "128"), (1, 1, "256"), (512, 512, "256"), (300, 700, "128")]
)
def test_the_blue_part_of_the_tiles_is_what_is_used(K, N, side):
    view = PADDING.evaluate(K=K, N=N, side=side)
    parts = [c.part for row in panel(view, Grid).cells for c in row]
    held = sum((bottom - top) * (right - left) for top, bottom, left, right in parts)
    assert held / len(parts) == pytest.approx(readout(view, "cells that hold weights"))


def test_of_many_tiles_the_last_are_shown():
    cells = panel(PADDING.evaluate(K=2048, N=2000), Grid).cells
    assert (len(cells), len(cells[0])) == (8, 8)
    assert cells[0][-1].part == (0, 1, 0, pytest.approx(80 / 128))


def test_one_column_too_many_costs_a_tile():
    full, over = PADDING.evaluate(M=2048, N=128), PADDING.evaluate(M=2048, N=129)
    assert (readout(full, "cells that hold weights"), readout(over, "cells that hold weights")) == (
        1,
        pytest.approx(129 / 256),
    )
    assert readout(over, "W as stored, with padding") == 2 * readout(full, "W as stored, with padding")
    assert "X were stationary" in over.verdict
    assert "still takes 128 cycles" in PADDING.evaluate(M=8).verdict
    assert "useful" in full.verdict
