"""Tests of the parsers of HLO layouts and lines, and of invariants of the recorded compiler output."""

import pytest

from scalingbook_lib.evidence.compiled import bundles, layout
from scalingbook_lib.evidence.compiled.cycles import ESTIMATES, ROWS
from scalingbook_lib.evidence.compiled.line import ProgramRecord
from scalingbook_lib.evidence.compiled.lines import LINES
from scalingbook_lib.units import BF16, FP4, FP32, INT8


@pytest.mark.parametrize(
    ("text", "stored", "ratio", "rows"),
    [
        ("f32[3,5]{1,0:T(2,2)}", (4, 6), 1.6, 1),
        ("bf16[4,8]{1,0:T(2,4)(2,1)}", (4, 8), 1, 2),
        ("f32[9,129]{1,0:T(8,128)}", (16, 256), 4096 / 1161, 1),
        ("s8[20,200]{1,0:T(8,128)(4,1)}", (24, 256), 1.536, 4),
        ("bf16[1000,200]{0,1:T(8,128)(2,1)}", (200, 1024), 1.024, 2),
        ("bf16[4096,1,2048]{2,0,1:T(8,128)(2,1)S(1)}", (1, 4096, 2048), 1, 2),
        ("bf16[1000]{0:T(1024)(128)(2,1)S(1)}", (1024,), 1.024, 2),
        ("f32[1000]{0:T(1024)(128)}", (1024,), 1.024, 1),
        ("s32[]{:T(128)}", (128,), 128, 1),
        ("f32[3,5]{1,0}", (3, 5), 1, 1),
    ],
)
def test_stored_sizes_are_padded_to_whole_tiles(text, stored, ratio, rows):
    read = layout.parse(text)
    assert (read.text, read.stored, read.rows_per_word) == (text, stored, rows)
    assert read.ratio == pytest.approx(ratio)


def test_a_layout_prints_its_size_and_padding():
    told = str(layout.parse("s8[20,200]{1,0:T(8,128)(4,1)S(1)}"))
    assert told.endswith("3.906 KiB, stored in 6 KiB of VMEM, 54% of padding")


@pytest.mark.parametrize("text", ["bf16", "bf16[4,8]{0}", "bf16[4,8]{0,0}", "a(b)"])
def test_text_that_is_no_array_type_raises_an_error(text):
    with pytest.raises(ValueError, match=r"no array type|name each of 2 dimensions"):
        layout.parse(text)


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "text"),
    [
        (3, 5, FP32, "f32[3,5]{1,0:T(4,128)}"),
        (9, 5, FP32, "f32[9,5]{0,1:T(8,128)}"),
        (1, 512, BF16, "bf16[1,512]{1,0:T(2,128)(2,1)}"),
        (64, 1, BF16, "bf16[64,1]{0,1:T(2,128)(2,1)}"),
        (32, 64, INT8, "s8[32,64]{1,0:T(32,128)(4,1)}"),
        (33, 64, INT8, "s8[33,64]{1,0:T(8,128)(4,1)}"),
    ],
)
def test_the_default_layout_is_the_one_with_less_padding(rows, columns, dtype, text):
    assert layout.default_layout(rows, columns, dtype).text == text


def test_leading_sizes_need_no_padding():
    assert layout.parse("f32[7,8,128]{2,1,0:T(8,128)}").ratio == 1


def test_empty_and_four_bit_matrices_raise_an_error():
    with pytest.raises(ValueError, match="at least 1"):
        layout.tiled(0, 5, FP32, (8, 128))
    with pytest.raises(ValueError, match="has no tiles here"):
        layout.tiled(4, 5, FP4, (8, 128))


def test_a_line_is_parsed_into_its_parts():
    line = LINES["matmul and tanh in one fusion"]
    assert (line.name, line.root, line.operation) == ("convolution_tanh_fusion", True, "fusion")
    assert line.operands == ("x.1", "copy-done")
    assert line.calls == ("kind=kOutput", "calls=%fused_computation")
    assert (line.participants, line.source) == ("", "jit(up)/up/dot_general")


def test_a_tuple_type_is_parsed():
    started = LINES["permute of a ring, started"]
    assert [a.type for a in started.arrays[:2]] == ["bf16[4096,1,2048]"] * 2
    assert [a.where for a in started.arrays] == ["HBM", "VMEM", *["synchronization flags"] * 2]
    assert started.participants.startswith("source_target_pairs={{0,1}")


def test_every_recorded_line_can_be_parsed():
    for line in LINES.values():
        start, made = f"{'ROOT ' * line.root}%{line.name} = {line.type} ", f"{line.operation}("
        assert line.text.startswith(start + made)
        assert line.text.endswith(line.attributes)
        assert all(line.devices == 8 for _ in line.groups)


def test_all_three_notations_of_replica_groups_are_kept():
    forms = {line.participants.partition("=")[2][:1] for line in LINES.values() if line.participants}
    assert forms == {"m", "[", "{"}
    assert "T(1,0)" in LINES["all-reduce over X"].participants


def test_text_that_is_no_hlo_line_raises_an_error():
    with pytest.raises(ValueError, match="no line of HLO"):
        _ = ProgramRecord("a", "b", "x: 3").name
    with pytest.raises(ValueError, match="not closed"):
        _ = ProgramRecord("a", "b", "%x = (f32[2]{0}, f32[3]{0} copy").type


def test_no_unit_uses_more_slots_than_it_has():
    for kernel in bundles.KERNELS.values():
        assert sum(map(kernel.size, range(bundles.STRIPS))) == kernel.bundles
        shares = [kernel.strip_utilization(unit, k) for unit in kernel.used for k in range(bundles.STRIPS)]
        assert all(0 <= share <= 1 for share in shares)
        assert list(kernel.used) == list(bundles.UNITS)


def test_a_large_matmul_fills_the_matrix_units_and_a_softmax_does_not_use_them():
    product, short, few, softmax = bundles.KERNELS.values()
    assert product.utilization("MATMUL") > short.utilization("MATMUL") > 0.9 > 0.2 > few.utilization("MATMUL")
    assert (few.busiest, softmax.busiest) == ("MATPUSH", "VALU")
    assert softmax.utilization("MATMUL") == 0
    assert str(product).endswith("4,760 bundles, 95% of MATMUL's slots used")


@pytest.mark.parametrize("kept", ESTIMATES.values(), ids=ESTIMATES)
def test_no_estimate_beats_the_roofline_unless_weights_are_prefetched(kept):
    beaten = [rows for rows in kept.cycles if kept.ratio_to_roofline(rows) < 1]
    assert bool(beaten) == kept.prefetched == (kept.dtype == INT8 and kept.chip.name != "TPU v5p")
    assert all(kept.ratio_to_roofline(rows) < 1.8 for rows in kept.cycles)


def test_the_knee_of_the_estimates_is_where_both_of_their_rates_meet():
    for kept in ESTIMATES.values():
        few, many = kept.ratio_to_roofline(min(kept.cycles)), kept.ratio_to_roofline(max(kept.cycles))
        if not kept.prefetched:
            assert kept.knee == pytest.approx(kept.critical_batch * few / many, rel=0.02)
    v5e, v6e = ESTIMATES["TPU v5e, bf16"], ESTIMATES["TPU v6e, bf16"]
    assert (round(v5e.knee), round(v5e.critical_batch)) == (313, 241)
    assert (round(v6e.knee), round(v6e.critical_batch)) == (575, 560)
    assert str(v5e).endswith("knee at 313 rows, at 1.5 GHz few rows read 611 GB/s")


def test_an_undocumented_clock_follows_from_the_peak():
    assert ESTIMATES["TPU v6e, bf16"].clock_hz == pytest.approx(1.75e9, rel=0.01)
    assert ESTIMATES["half a TPU7x, bf16"].clock_hz == pytest.approx(2.2e9, rel=0.01)


def test_the_recorded_rows_ascend():
    assert list(ROWS) == sorted(set(ROWS))
