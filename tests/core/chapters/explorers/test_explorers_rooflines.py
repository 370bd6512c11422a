"""The rooflines explorers show what the library computes and what the text says they show."""

import itertools
import math

import pytest
from looked import curve, marks, panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Curve, Points, RefLine, Regions, Timeline
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP32, INT4, INT8

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("rooflines")}
OVERLAP, ROOFLINE, BATCH, MAP, TOKENS, TILES, SPLIT, LEVELS, MEASURED = (
    ALL[name]
    for name in (
        "overlap", "roofline", "batch", "critical_batch", "tokens", "tiles", "split", "levels", "measured",
    )
)  # fmt: skip
TORI = ("TPU v3", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x")


# The roofline


@pytest.mark.parametrize(("left", "right"), [("TPU v5e", "TPU v6e"), ("H100", "H200"), ("TPU v5p", "B200")])
def test_the_ridges_that_are_read_out_are_the_chips(left, right):
    view = ROOFLINE.evaluate(left=left, right=right)
    for name in (left, right):
        assert readout(view, f"{name}: ridge") == rules.ridge(chips.find(name))


@pytest.mark.parametrize("numbers", ["bf16", "int8"])
def test_a_roof_is_flat_at_the_peak_and_has_slope_one_before_it(numbers):
    roof = curve(ROOFLINE.evaluate(numbers=numbers), "TPU v5e")
    peak = {"bf16": 1.97e14, "int8": 3.94e14}[numbers]
    assert roof.ys[1] == roof.ys[2] == pytest.approx(peak)
    assert roof.ys[1] / roof.ys[0] == pytest.approx(roof.xs[1] / roof.xs[0])


def test_an_operation_never_lies_above_its_roof_and_always_on_it():
    for B in (1, 64, 500, 16384):
        view = ROOFLINE.evaluate(B=B)
        for point, chip in zip(marks(view, Points), (chips.V5E, chips.V6E), strict=True):
            assert point.ys[0] == pytest.approx(roofline.attainable(point.xs[0], chip))


def test_the_intensity_is_the_operations_and_the_share_the_chips():
    view = ROOFLINE.evaluate(B=64, D=8192, F=32768)
    assert readout(view, "intensity") == pytest.approx(1 / (1 / 64 + 1 / 8192 + 1 / 32768))
    assert "26% of the peak on the TPU v5e" in view.verdict
    assert "11% on the TPU v6e" in view.verdict
    assert ROOFLINE.evaluate(left="H100").readouts[0].value == readout(view, "intensity")


def test_a_level_that_a_chip_lacks_is_answered_with_those_it_has():
    painted = ROOFLINE.render({"level": "VMEM", "left": "H100"})
    assert "H100 has no documented VMEM bandwidth" in painted.evaluated.error
    assert "HBM" in painted.evaluated.error


def test_one_chip_twice_is_drawn_once():
    view = ROOFLINE.evaluate(left="TPU v5e", right="TPU v5e")
    assert len(marks(view, Curve)) == 1
    assert "times as fast" not in view.verdict


# Overlap


@pytest.mark.parametrize(("math_us", "memory_us"), [(44, 166), (166, 44), (100, 100), (1, 400)])
@pytest.mark.parametrize("chunks", [1, 2, 3, 8, 64])
def test_overlap_ends_where_the_pipeline_does(math_us, memory_us, chunks):
    view = OVERLAP.evaluate(math_us=math_us, memory_us=memory_us, chunks=chunks, buffered=True)
    end = max(span.end for span in panel(view, Timeline).spans)
    took = roofline.pipelined(math_us * 1e-6, memory_us * 1e-6, chunks)
    assert end == pytest.approx(took)
    assert readout(view, "time") == pytest.approx(took)
    assert readout(view, "hidden fraction") == pytest.approx(1 - 1 / chunks)


@pytest.mark.parametrize("chunks", [1, 7, 64])
def test_one_buffer_hides_nothing(chunks):
    view = OVERLAP.evaluate(math_us=44, memory_us=166, chunks=chunks, buffered=False)
    assert readout(view, "time") == pytest.approx(210e-6)


@pytest.mark.parametrize("buffered", [True, False])
def test_no_chunk_is_computed_before_it_has_arrived_and_no_lane_does_two_things(buffered):
    spans = panel(OVERLAP.evaluate(chunks=9, buffered=buffered), Timeline).spans
    copies, sums = ([s for s in spans if s.lane == lane] for lane in ("copy", "compute"))
    assert all(copy.end <= done.start + 1e-15 for copy, done in zip(copies, sums, strict=True))
    for lane in (copies, sums):
        assert all(a.end <= b.start + 1e-15 for a, b in itertools.pairwise(lane))


# The batch


@pytest.mark.parametrize("chip", ["TPU v5e", "TPU v6e", "H100"])
@pytest.mark.parametrize(("mix", "kinds"), [
    ("bf16 everything", (BF16, BF16, BF16)), ("int8 everything", (INT8, INT8, INT8)),
    ("int8 weights, bf16 compute", (BF16, INT8, BF16)), ("int4 weights, bf16 compute", (BF16, INT4, BF16)),
    ("fp32 weights, bf16 compute", (BF16, FP32, BF16)),
])  # fmt: skip
def test_the_critical_batch_is_the_librarys_and_the_verdict_flips_across_it(chip, mix, kinds):
    at = {"D": 8192, "F": 32768, "mix": mix, "chip": chip}
    exact = rules.matmul_critical_batch(
        8192, 32768, chips.find(chip), kinds[0], weights=kinds[1], maths=kinds[2]
    )
    assert readout(BATCH.evaluate(**at), "critical batch size") == exact
    assert "Memory-bound" in BATCH.evaluate(B=math.floor(exact), **at).verdict
    assert "Compute-bound" in BATCH.evaluate(B=math.ceil(exact) + 1, **at).verdict


def test_the_two_curves_cross_at_the_line():
    view = BATCH.evaluate(D=8192, F=32768)
    memory, arithmetic = curve(view, "memory"), curve(view, "compute")
    (line,) = marks(view, RefLine)
    for batch, m, a in zip(memory.xs, memory.ys, arithmetic.ys, strict=True):
        assert (a > m) == (batch > line.at)


def test_a_layer_without_a_critical_batch_has_no_line_and_the_verdict_says_so():
    view = BATCH.evaluate(B=16384, D=256, F=256)
    assert not marks(view, RefLine)
    assert view.verdict.startswith("Memory-bound: the layer is too narrow")
    assert math.isinf(readout(view, "critical batch size"))


def test_below_the_critical_batch_a_token_is_nearly_free():
    one, many = (readout(BATCH.evaluate(B=B, D=8192, F=8192), "time") for B in (1, 128))
    assert many / one < 1.04


# The map of layers


@pytest.mark.parametrize("ridge", [100, 240, 560, 1200])
def test_the_border_is_the_hyperbola_of_layers_without_a_critical_batch(ridge):
    border = marks(MAP.evaluate(ridge=ridge), Curve)[0]
    assert len(border.xs) > 3
    for D, F in zip(border.xs, border.ys, strict=True):
        narrow = 1 / D + 1 / F
        assert narrow == pytest.approx(1 / ridge)


@pytest.mark.parametrize("ridge", [100, 240, 560])
@pytest.mark.parametrize("weights", ["2 bytes (bf16)", "1 byte (int8)", "half a byte (int4)"])
def test_exactly_the_layers_below_the_border_have_no_batch(ridge, weights):
    cells, never = marks(MAP.evaluate(ridge=ridge, weights=weights), Regions)
    middle = [math.sqrt(a * b) for a, b in itertools.pairwise(cells.xs)]
    for row, marked, F in zip(cells.cells, never.cells, middle, strict=True):
        for level, mark, D in zip(row, marked, middle, strict=True):
            hopeless = ridge * (1 / D + 1 / F) >= 1
            assert (level is None) == (mark == 0) == hopeless


def test_smaller_weights_lower_the_batch_and_leave_the_border():
    wide, narrow = (MAP.evaluate(weights=w) for w in ("2 bytes (bf16)", "1 byte (int8)"))
    assert readout(wide, "very wide layers") == 2 * readout(narrow, "very wide layers") == 240
    assert readout(wide, "widest layer (D = F) that is never compute-bound") == readout(
        narrow, "widest layer (D = F) that is never compute-bound"
    )
    assert marks(wide, Curve) == marks(narrow, Curve)


def test_smaller_activations_move_the_border():
    assert readout(
        MAP.evaluate(activations="1 byte (int8)"), "widest layer (D = F) that is never compute-bound"
    ) == pytest.approx(240)
