"""The TPU chapter's explorers of memories, networks and units obey the laws of what they show."""

import itertools
import math

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.tpus.explorers import slices
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, Grid, Network
from scalingbook_lib import collectives, roofline, rules
from scalingbook_lib.machines import chips, systolic
from scalingbook_lib.machines.chips import Slice
from scalingbook_lib.units import INT8

LADDER, SLICES, PEAK = (explorers.find(f"tpus.{name}") for name in ("ladder", "slices", "peak"))


def table(view):
    grid = panel(view, Grid)
    return {name: [c.text for c in row] for name, row in zip(grid.rows, grid.cells, strict=True)}


# The ladder


@pytest.mark.parametrize("chip", ["TPU v4", "TPU v5e", "TPU v6e"])
@pytest.mark.parametrize("numbers", ["bf16", "int8"])
def test_each_level_reaches_the_peak_from_the_rows_that_its_rung_names(chip, numbers):
    rungs = table(LADDER.evaluate(chip=chip, numbers=numbers))
    for level, (_, _, rows, _) in rungs.items():
        if rows != "none":
            enough = int(rows.replace(",", ""))
            for B, reached in ((enough, True), (enough - 1, False)):
                view = LADDER.evaluate(chip=chip, numbers=numbers, B=B)
                grid = panel(view, Grid)
                assert (grid.cells[grid.rows.index(level)][0].color is not None) is reached, (level, B)


def test_the_rungs_are_the_library_s():
    rungs = table(LADDER.evaluate(D=4096, F=16384, numbers="int8", chip="TPU v5e"))
    exact = {
        level: rules.matmul_critical_batch(4096, 16384, chips.V5E, INT8, bytes_per_s=rate)
        for level, rate in roofline.levels(chips.V5E).items()
    }
    assert list(rungs) == ["VMEM", "HBM", "ICI", "PCIe", "DCN"]
    assert rungs["HBM"][2] == str(math.ceil(exact["HBM"]))
    assert math.isinf(exact["PCIe"])
    assert (rungs["PCIe"][2], rungs["VMEM"][2]) == ("none", str(math.ceil(exact["VMEM"])))


def test_over_pcie_only_resident_activations_help():
    """X and Y alone keep PCIe busy, so no batch is enough; with W alone, the rule of thumb is exact."""
    stuck = LADDER.evaluate(D=8192, F=32768, chip="TPU v6e", B=2**20)
    assert table(stuck)["PCIe"][2] == "none"
    assert "no number of rows is enough" in stuck.verdict
    alone = LADDER.evaluate(D=8192, F=32768, chip="TPU v6e", B=2**15, crosses="W alone")
    assert table(alone)["PCIe"][2] == f"{918e12 / 32e9:,.0f}" == "28,688"


def test_a_faster_level_never_leaves_less_of_the_peak():
    for crosses in ("X, W and Y", "W alone"):
        curves = [m for m in panel(LADDER.evaluate(crosses=crosses), Chart).marks if isinstance(m, Curve)]
        for fast, slow in itertools.pairwise(curves):
            assert all(a >= b for a, b in zip(fast.ys, slow.ys, strict=True))
        assert all(list(c.ys) == sorted(c.ys) for c in curves)


# Slices


def test_a_picture_has_the_chips_and_the_links_of_the_slice():
    """On two axes every link is drawn: neighbors as lines, wraps as stubs."""
    for shape in ("2x2", "4x8", "8x16"):
        here = Slice.of(chips.V5E, shape)
        drawn = panel(SLICES.evaluate(chip="TPU v5e", shape=shape), Network)
        quiet = [link for link in drawn.links if link.color is None]
        assert (len(drawn.nodes), len(quiet)) == (here.chips, here.links)
        assert sum(link.wrap for link in quiet) == (8 if shape == "8x16" else 0)


@pytest.mark.parametrize(
    ("chip", "shape"), [("TPU v5p", "4x4x4"), ("TPU7x", "16x16x36"), ("TPU v4", "2x2x4")]
)
def test_of_three_axes_the_surface_is_drawn_and_one_wrap_of_each(chip, shape):
    drawn = panel(SLICES.evaluate(chip=chip, shape=shape), Network)
    assert sum(link.wrap for link in drawn.links) == (0 if shape == "2x2x4" else 3)
    spots = {(round(n.x, 6), round(n.y, 6)) for n in drawn.nodes}
    assert len(spots) == len(drawn.nodes) <= 128


@pytest.mark.parametrize(("chip", "shape"), [("TPU v5p", "4x4x8"), ("TPU v5e", "4x4"), ("TPU v5e", "8x16")])
def test_the_arrows_are_a_shortest_way_to_a_farthest_chip(chip, shape):
    here = Slice.of(chips.find(chip), shape)
    for order in itertools.permutations(range(len(here.shape))):
        places = slices.way(here, order)
        assert len(places) - 1 == here.route(places[0], places[-1]).hops == here.diameter_hops
    drawn = panel(SLICES.evaluate(chip=chip, shape=shape), Network)
    first = [link for link in drawn.links if link.color == 1]
    assert len(first) == here.diameter_hops
    assert all(a.end == b.start for a, b in itertools.pairwise(first))


def test_corner_to_corner_is_the_chapter_s_problem():
    """16 MiB over a 4x4 of v5e: 6 hops, two ways, 167.8 µs of bytes at 50 GB/s and 6 µs of hops."""
    view = SLICES.evaluate(chip="TPU v5e", shape="4x4", nbytes=2**24)
    assert readout(view, "time to send the array to it") == pytest.approx(2**24 / 100e9 + 6e-6)
    assert (readout(view, "farthest chip"), readout(view, "disjoint paths to the farthest chip")) == (6, 2)


def test_the_bars_are_all_gathers():
    here, nbytes = Slice.of(chips.V5P, "4x4x8"), 2**30
    view = SLICES.evaluate(nbytes=nbytes)
    expected = [collectives.all_gather(nbytes, a).total_s for a in here.axes]
    expected.append(collectives.all_gather(nbytes, *here.axes).total_s)
    assert panel(view, Bars).lengths() == pytest.approx(expected)


@pytest.mark.parametrize("chip", [chip.name for chip in chips.TPUS])
def test_every_slice_of_every_generation_is_shown_among_its_rivals(chip):
    shapes = list(chips.find(chip).topology().shapes())
    for shape in shapes[:: max(len(shapes) // 12, 1)]:
        text = "x".join(map(str, shape))
        view = SLICES.evaluate(chip=chip, shape=text)
        marked = [name for name, row in zip(panel(view, Grid).rows, panel(view, Grid).cells, strict=True)
                  if row[0].color is not None]  # fmt: skip
        assert marked == [text]
        assert readout(view, "chips") == math.prod(shape)


def test_what_is_there_to_discover_in_a_slice():
    assert "; ring of 16;" in SLICES.evaluate(chip="TPU v5e", shape="8x16").verdict
    assert "times as long as on 8x8x8" in SLICES.evaluate(shape="4x8x16").verdict
    assert "times as long" not in SLICES.evaluate(shape="8x8x8").verdict
    assert "no axis wraps" in SLICES.evaluate(shape="2x4x4").verdict
    assert "no neighbors" in SLICES.evaluate(chip="TPU v5e", shape="1x1").verdict
    assert "twisted" in SLICES.evaluate(shape="8x4x4").verdict
    assert SLICES.render({"shape": "5x5x5"}).evaluated.error.endswith(
        "the nearest slices are 4x4x4, 4x4x8, 4x8x8"
    )
    assert "write one as in 4x8" in SLICES.render({"shape": "a fox"}).evaluated.error


# The peak

DOCUMENTED = {"TPU v2": (2, 1), "TPU v3": (2, 2), "TPU v4": (2, 4), "TPU v5e": (1, 4), "TPU v5p": (2, 4)}


@pytest.mark.parametrize("chip", DOCUMENTED)
def test_documented_units_explain_the_datasheet(chip):
    cores, units = DOCUMENTED[chip]
    clock = chips.find(chip).clock_hz
    view = PEAK.evaluate(chip=chip, cores=cores, units=units, side=128, clock=clock)
    assert f"as in {chip}'s datasheet" in view.verdict
    assert next(str(r) for r in view.readouts if r.label == f"{chip}, documented").startswith(
        f"{cores} × {units} of 128²"
    )


def test_from_v6e_on_every_unit_counts_twice():
    asked = {"chip": "TPU v6e", "cores": 1, "units": 2, "side": 256, "clock": 1.75e9}
    assert "says twice that" in PEAK.evaluate(**asked).verdict
    assert readout(PEAK.evaluate(**asked), "datasheet / yours") == pytest.approx(2, rel=1e-3)
    assert "as in TPU v6e's datasheet" in PEAK.evaluate(**asked, each="two").verdict


def test_your_units_stand_beside_the_datasheet_and_the_vector_unit():
    lengths = panel(PEAK.evaluate(), Bars).lengths()
    assert lengths == [systolic.peak_of(chips.V5E).flops_per_s, 1.97e14, chips.V5E.vector_flops_per_s]
    assert "K" not in PEAK.controls  # old links name a depth that moved to the padding explorer
