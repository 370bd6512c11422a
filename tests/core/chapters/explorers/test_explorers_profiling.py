"""The explorers of Profiling: what they show follows from the library and its records, at every state."""

import itertools
from dataclasses import replace

import pytest
from looked import curve, panel, readout

from scalingbook_book.chapters.profiling.explorers.bundles import BUNDLES
from scalingbook_book.chapters.profiling.explorers.cycles import CYCLES
from scalingbook_book.chapters.profiling.explorers.dissector import DISSECTOR, WRITTEN
from scalingbook_book.chapters.profiling.explorers.tiles import BY_COMPILER, TILES, TILES_EXPLORER, lay
from scalingbook_book.chapters.profiling.explorers.timeline import SCHEDULES, TIMELINE
from scalingbook_book.chapters.profiling.explorers.words import PARTS
from scalingbook_book.reader.explorers.view import Bars, Grid, Timeline
from scalingbook_lib import collectives
from scalingbook_lib.evidence.compiled.bundles import KERNELS, STRIPS
from scalingbook_lib.evidence.compiled.cycles import ESTIMATES
from scalingbook_lib.evidence.compiled.lines import LINES
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul.overlap import RingMatmul
from scalingbook_lib.units import dtype

# The dissector


@pytest.mark.parametrize("line", LINES)
def test_every_part_of_every_line_has_a_meaning(line):
    said = [DISSECTOR.evaluate(line=line, part=part).verdict for part in PARTS]
    assert all(sentence.endswith(".") for sentence in said)
    assert len(set(said)) == len(PARTS) == len(WRITTEN)


def test_the_chosen_part_stands_out_and_says_what_the_line_says():
    view = DISSECTOR.evaluate(line="int8 argument of 20 rows", part="tiles")
    table = panel(view, Grid)
    (chosen,) = [row[0].text for row in table.cells if row[0].color is not None]
    assert chosen == "T(8,128)(4,1)"
    assert "stored as 24 × 256, 1.54 times" in view.verdict
    assert [c.part for c in panel(view, Grid, 1).cells[0]] == [(0, 1, 0, 1), (0, 1, 0, 72 / 128)]
    assert readout(view, "bytes as stored") == 24 * 256


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("all-gather over Y", "2 groups of 4 (written with the names of the mesh axes): chips 0, 1, 2, 3"),
        ("all-gather over Y, groups as an iota", "0, 1, 2 ... written as 8, then divided into rows of 4"),
        (
            "all-reduce over X",
            "written as 2 × 4, transposed, then divided into rows of 2): chips 0, 4 communicate",
        ),
        ("reduce-scatter in disguise", "groups are in the computation that it calls, not here"),
        (
            "permute of a ring, started",
            "chip 0 to chip 1. They form rings of 4, and every chip sends 16.8 MB",
        ),
        ("copy to another order", "on each of 8 chips by itself"),
    ],
)
def test_who_talks_to_whom_in_every_form(line, says):
    assert says in DISSECTOR.evaluate(line=line, part="groups").verdict


@pytest.mark.parametrize(
    ("line", "received"),
    [("all-gather over Y", "50.3 MB"), ("all-reduce over X", "1.05 MB"),
     ("reduce-scatter in disguise", "25.2 MB"), ("all-to-all over Y", "12.6 MB")],
)  # fmt: skip
def test_what_a_chip_takes_in(line, received):
    assert f"each receives {received}" in DISSECTOR.evaluate(line=line, part="groups").verdict


def test_devices_of_a_group_share_a_color():
    mesh = panel(DISSECTOR.evaluate(line="all-reduce over X", part="groups"), Grid, 1)
    assert [[c.color for c in row] for row in mesh.cells] == [[0, 1, 2, 3]] * 2


def test_the_compiler_turns_an_argument_to_save_padding():
    said = DISSECTOR.evaluate(line="argument in transposed layout", part="order").verdict
    assert said.endswith("as written, it would take 500 KiB.")


# Bundles


@pytest.mark.parametrize("program", KERNELS)
def test_the_heat_map_has_a_row_for_every_unit_and_the_bars_no_idle_one(program):
    view, kernel = BUNDLES.evaluate(program=program), KERNELS[program]
    assert [len(row) for row in panel(view, Grid).cells] == [STRIPS] * len(kernel.used)
    assert len(panel(view, Bars).labels) == sum(kernel.utilization(unit) > 0 for unit in kernel.used)


def test_the_matrix_units_idle_at_both_ends_of_a_product():
    said = {strip: BUNDLES.evaluate(strip=strip).verdict for strip in (1, 12, STRIPS)}
    assert said[1].startswith("The start: weights are loaded (MATPUSH 79%) before rows follow (MATMUL 24%)")
    assert said[12].startswith("100% of the MATMUL slots are used, and EUP, VALU and VSTORE work in")
    assert said[STRIPS].startswith("The end")


def test_few_rows_and_a_softmax_leave_the_matrix_units_idle():
    few, softmax = (BUNDLES.evaluate(program=p).verdict for p in list(KERNELS)[2:])
    assert "51% of MATPUSH against 13% of MATMUL" in few
    assert "idle from the first bundle to the last" in softmax


# Tiles


@pytest.mark.parametrize("rows", [1, 3, 20, 33, 64])
@pytest.mark.parametrize("tile", [BY_COMPILER, *TILES])
def test_what_a_column_more_costs_is_the_next_states_size(rows, tile):
    for columns in (1, 5, 8, 127, 128, 129):
        now, then = (TILES_EXPLORER.evaluate(rows=rows, columns=n, tile=tile) for n in (columns, columns + 1))
        added = readout(then, "as stored") - readout(now, "as stored")
        assert readout(now, "one more column") == added


def test_one_column_more_than_a_tile_doubles_what_is_stored():
    view = TILES_EXPLORER.evaluate()
    assert "One more column has 40 B of elements but adds 6 KiB and raises the ratio to 2.38" in view.verdict
    assert readout(TILES_EXPLORER.evaluate(columns=129), "as stored") == 2 * readout(view, "as stored")


def test_the_words_of_the_last_tile_hold_what_is_left():
    words = panel(TILES_EXPLORER.evaluate(columns=129), Grid, 1)
    assert [[c.color for c in row] for row in words.cells] == [[0, *[None] * 4]] * 2 + [[None] * 5] * 2
    assert words.cells[0][0].text == "16, 17"
    assert panel(TILES_EXPLORER.evaluate(stored="int8"), Grid, 1).cells[0][0].text == "16 to 19"
    assert len(panel(TILES_EXPLORER.evaluate(stored="fp32"), Grid, 1).cells) == 8


def test_the_curve_steps_wherever_the_size_does():
    for stored, rows in (("fp32", 20), ("bf16", 64), ("int8", 33)):
        drawn = curve(TILES_EXPLORER.evaluate(rows=rows, stored=stored), "as stored")
        sizes = dict(zip(drawn.xs, drawn.ys, strict=True))
        for n in range(1, 512):
            below = max(x for x in sizes if x <= n)
            assert sizes[below] == lay(rows, n, dtype(stored), BY_COMPILER).stored_bytes


def test_a_tall_matrix_is_turned():
    said = TILES_EXPLORER.evaluate(rows=64, columns=20).verdict
    assert "{0,1:T(8,128)(2,1)} is stored as 24 × 128, transposed" in said


# The compiler's cycles


@pytest.mark.parametrize("machine", ESTIMATES)
def test_the_curves_are_the_record_and_the_roofline(machine):
    kept, view = ESTIMATES[machine], CYCLES.evaluate(machine=machine, M=64)
    assert list(curve(view, "compiler").ys) == [kept.seconds(rows) for rows in kept.cycles]
    assert list(curve(view, "roofline").ys) == [kept.bound(rows).lower_s for rows in kept.cycles]
    assert readout(view, "estimated cycles") == kept.cycles[64]


def test_the_compiler_sees_the_knee_later_where_it_trusts_the_memory_less():
    said = CYCLES.evaluate().verdict
    assert said.startswith(
        "For 256 rows, the compiler estimates 379,312 cycles, or 253 µs. That is 1.45 times"
    )
    assert "at 611 GB/s of 819 GB/s" in said
    assert said.endswith("its knee is at 313 rows; by the datasheet, it is at 241.")


def test_an_estimate_below_the_bound_is_explained():
    assert "The 64 MiB of W fit in VMEM" in CYCLES.evaluate(machine="TPU v5e, int8").verdict


# The time line


@pytest.mark.parametrize("schedule", ["ring, one direction", "ring, both directions"])
@pytest.mark.parametrize("n", [2, 3, 4, 7, 16])
def test_a_ring_computes_every_chunk_once_and_after_it_came(schedule, n):
    for F in (1024, 8192, 131072):
        spans = panel(TIMELINE.evaluate(schedule=schedule, n=n, F=F), Timeline).spans
        computed = {s.label: s for s in spans if s.lane == "computes"}
        came = {s.label: s.end for s in spans if s.lane != "computes"}
        assert sorted(computed, key=int) == [str(k) for k in range(n)]
        assert all(computed[label].start >= end for label, end in came.items())
        for lane in {s.lane for s in spans}:
            blocks = [s for s in spans if s.lane == lane]
            assert all(a.end <= b.start * (1 + 1e-12) for a, b in itertools.pairwise(blocks))


@pytest.mark.parametrize("schedule", ["ring, one direction", "ring, both directions"])
def test_nothing_is_exposed_past_c_over_w(schedule):
    for n, B, chip in ((4, 8192, "TPU v5e"), (8, 65536, "TPU v5p")):
        narrow, wide = (
            TIMELINE.evaluate(schedule=schedule, n=n, B=B, chip=chip, F=F) for F in (1024 * n, 16384 * n)
        )
        assert narrow.readouts[5].value < 16384
        assert readout(wide, "exposed communication") == pytest.approx(0, abs=1e-12)
        assert readout(narrow, "exposed communication") > 0


def test_gathering_first_takes_as_long_as_the_collective_and_the_product():
    view = TIMELINE.evaluate(schedule="gather, then multiply")
    axis = chips.V5E.axis(4, wrapped=True)
    moved = collectives.all_gather(2 * 8192 * 8192, axis).total_s
    assert readout(view, "exposed communication") == pytest.approx(moved)
    product = 2 * 8192 * 8192 * 2048 / chips.V5E.bf16_flops_per_s
    assert readout(view, "time of a layer") == pytest.approx(moved + product)


def test_the_threshold_in_the_words_is_the_one_in_the_blocks():
    said = TIMELINE.evaluate().verdict
    assert "With 3,946 or more columns per chip, nothing would be exposed" in said
    layer = RingMatmul(B=8192, D=8192, F=3946, axis=chips.V5E.axis(4, wrapped=True), chip=chips.V5E)
    assert layer.on_arrival(1).exposed_s == pytest.approx(0, abs=1e-9)
    assert replace(layer, F=3900).on_arrival(1).exposed_s > 1e-6


def test_both_ways_leave_the_first_hop_alone_to_wait_for():
    waits = {name: readout(TIMELINE.evaluate(schedule=name), "exposed communication") for name in SCHEDULES}
    assert waits["ring, both directions"] == pytest.approx(waits["ring, one direction"] / 3, rel=0.01)
    assert "waits only for the first hop" in TIMELINE.evaluate(schedule="ring, both directions").verdict
    assert "no exposed communication" in TIMELINE.evaluate(F=16384).verdict
