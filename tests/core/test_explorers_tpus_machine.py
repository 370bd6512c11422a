"""The TPU chapter's explorers of memories, networks, units and routes obey the laws of what they show."""

import itertools
import math

import pytest

from scalingbook_lib import chips, collectives, explorers, roofline, systolic
from scalingbook_lib.chips import Slice
from scalingbook_lib.explorers import tpus_chain, tpus_slices
from scalingbook_lib.explorers.tpus_chain import Chain
from scalingbook_lib.explorers.view import Bars, Chart, Curve, Grid, Network, Timeline
from scalingbook_lib.units import INT8

LADDER, SLICES, PEAK, CHAIN, ROUTE, GENERATIONS = (
    explorers.find(f"tpus.{name}") for name in ("ladder", "slices", "peak", "chain", "route", "generations")
)


def panel(view, kind):
    return next(p for p in view.panels if isinstance(p, kind))


def readout(view, label):
    return next(r.value for r in view.readouts if r.label == label)


def table(view):
    grid = panel(view, Grid)
    return {name: [c.text for c in row] for name, row in zip(grid.rows, grid.cells, strict=True)}


# The ladder


@pytest.mark.parametrize("chip", ["TPU v4", "TPU v5e", "TPU v6e"])
@pytest.mark.parametrize("numbers", ["bf16", "int8"])
def test_each_level_reaches_the_peak_from_the_rows_that_its_rung_names(chip, numbers):
    rungs = table(LADDER.see(chip=chip, numbers=numbers))
    for level, (_, _, rows, _) in rungs.items():
        if rows != "none":
            enough = int(rows.replace(",", ""))
            for B, reached in ((enough, True), (enough - 1, False)):
                view = LADDER.see(chip=chip, numbers=numbers, B=B)
                grid = panel(view, Grid)
                assert (grid.cells[grid.rows.index(level)][0].color is not None) is reached, (level, B)


def test_the_rungs_are_the_library_s():
    rungs = table(LADDER.see(D=4096, F=16384, numbers="int8", chip="TPU v5e"))
    exact = {
        level: roofline.break_even_batch(4096, 16384, chips.V5E, INT8, bytes_per_s=rate)
        for level, rate in roofline.levels(chips.V5E).items()
    }
    assert list(rungs) == ["VMEM", "HBM", "ICI", "PCIe", "DCN"]
    assert rungs["HBM"][2] == str(math.ceil(exact["HBM"]))
    assert math.isinf(exact["PCIe"])
    assert (rungs["PCIe"][2], rungs["VMEM"][2]) == ("none", str(math.ceil(exact["VMEM"])))


def test_over_pcie_only_resident_activations_help():
    """X and Y alone keep PCIe busy, so no batch is enough; with W alone, the rule of thumb is exact."""
    stuck = LADDER.see(D=8192, F=32768, chip="TPU v6e", B=2**20)
    assert table(stuck)["PCIe"][2] == "none"
    assert "no number of rows is enough" in stuck.verdict
    alone = LADDER.see(D=8192, F=32768, chip="TPU v6e", B=2**15, crosses="W alone")
    assert table(alone)["PCIe"][2] == f"{918e12 / 32e9:,.0f}" == "28,688"


def test_a_faster_level_never_leaves_less_of_the_peak():
    for crosses in ("X, W and Y", "W alone"):
        curves = [m for m in panel(LADDER.see(crosses=crosses), Chart).marks if isinstance(m, Curve)]
        for fast, slow in itertools.pairwise(curves):
            assert all(a >= b for a, b in zip(fast.ys, slow.ys, strict=True))
        assert all(list(c.ys) == sorted(c.ys) for c in curves)


# Slices


def test_a_picture_has_the_chips_and_the_links_of_the_slice():
    """On two axes every link is drawn: neighbors as lines, wraps as stubs."""
    for shape in ("2x2", "4x8", "8x16"):
        here = Slice.of(chips.V5E, shape)
        drawn = panel(SLICES.see(chip="TPU v5e", shape=shape), Network)
        quiet = [link for link in drawn.links if link.color is None]
        assert (len(drawn.nodes), len(quiet)) == (here.chips, here.links)
        assert sum(link.wrap for link in quiet) == (8 if shape == "8x16" else 0)


@pytest.mark.parametrize(
    ("chip", "shape"), [("TPU v5p", "4x4x4"), ("TPU7x", "16x16x36"), ("TPU v4", "2x2x4")]
)
def test_of_three_axes_the_surface_is_drawn_and_one_wrap_of_each(chip, shape):
    drawn = panel(SLICES.see(chip=chip, shape=shape), Network)
    assert sum(link.wrap for link in drawn.links) == (0 if shape == "2x2x4" else 3)
    spots = {(round(n.x, 6), round(n.y, 6)) for n in drawn.nodes}
    assert len(spots) == len(drawn.nodes) <= 128


@pytest.mark.parametrize(("chip", "shape"), [("TPU v5p", "4x4x8"), ("TPU v5e", "4x4"), ("TPU v5e", "8x16")])
def test_the_arrows_are_a_shortest_way_to_a_farthest_chip(chip, shape):
    here = Slice.of(chips.find(chip), shape)
    for order in itertools.permutations(range(len(here.shape))):
        places = tpus_slices.way(here, order)
        assert len(places) - 1 == here.route(places[0], places[-1]).hops == here.diameter_hops
    drawn = panel(SLICES.see(chip=chip, shape=shape), Network)
    first = [link for link in drawn.links if link.color == 1]
    assert len(first) == here.diameter_hops
    assert all(a.end == b.start for a, b in itertools.pairwise(first))


def test_corner_to_corner_is_the_chapter_s_problem():
    """16 MiB over a 4x4 of v5e: 6 hops, two ways, 167.8 µs of bytes at 50 GB/s and 6 µs of hops."""
    view = SLICES.see(chip="TPU v5e", shape="4x4", nbytes=2**24)
    assert readout(view, "array to that chip") == pytest.approx(2**24 / 100e9 + 6e-6)
    assert (readout(view, "farthest chip"), readout(view, "disjoint ways to it")) == (6, 2)


def test_the_bars_are_all_gathers():
    here, nbytes = Slice.of(chips.V5P, "4x4x8"), 2**30
    view = SLICES.see(nbytes=nbytes)
    expected = [collectives.all_gather(nbytes, a).total_s for a in here.axes]
    expected.append(collectives.all_gather(nbytes, *here.axes).total_s)
    assert panel(view, Bars).lengths() == pytest.approx(expected)


@pytest.mark.parametrize("chip", [chip.name for chip in chips.TPUS])
def test_every_slice_of_every_generation_is_shown_among_its_rivals(chip):
    shapes = list(chips.find(chip).wiring().shapes())
    for shape in shapes[:: max(len(shapes) // 12, 1)]:
        text = "x".join(map(str, shape))
        view = SLICES.see(chip=chip, shape=text)
        marked = [name for name, row in zip(panel(view, Grid).rows, panel(view, Grid).cells, strict=True)
                  if row[0].color is not None]  # fmt: skip
        assert marked == [text]
        assert readout(view, "chips") == math.prod(shape)


def test_what_is_there_to_discover_in_a_slice():
    assert "rings of 16," in SLICES.see(chip="TPU v5e", shape="8x16").verdict
    assert "times as long as on 8x8x8" in SLICES.see(shape="4x8x16").verdict
    assert "times as long" not in SLICES.see(shape="8x8x8").verdict
    assert "no axis wraps" in SLICES.see(shape="2x4x4").verdict
    assert "nobody to talk to" in SLICES.see(chip="TPU v5e", shape="1x1").verdict
    assert "twisted" in SLICES.see(shape="8x4x4").verdict
    assert SLICES.paint({"shape": "5x5x5"}).error.endswith("the nearest slices are 4x4x4, 4x4x8, 4x8x8")
    assert "write one as in 4x8" in SLICES.paint({"shape": "a fox"}).error


# The peak

DOCUMENTED = {"TPU v2": (2, 1), "TPU v3": (2, 2), "TPU v4": (2, 4), "TPU v5e": (1, 4), "TPU v5p": (2, 4)}


@pytest.mark.parametrize("chip", DOCUMENTED)
def test_documented_units_explain_the_datasheet(chip):
    cores, units = DOCUMENTED[chip]
    clock = chips.find(chip).clock_hz
    view = PEAK.see(chip=chip, cores=cores, units=units, side=128, clock=clock)
    assert f"as {chip}'s datasheet prints" in view.verdict
    assert next(str(r) for r in view.readouts if r.label == f"{chip} documents").startswith(
        f"{cores} × {units} of 128²"
    )


def test_from_v6e_on_every_unit_counts_twice():
    asked = {"chip": "TPU v6e", "cores": 1, "units": 2, "side": 256, "clock": 1.75e9}
    assert "prints twice that" in PEAK.see(**asked).verdict
    assert readout(PEAK.see(**asked), "datasheet : yours") == pytest.approx(2, rel=1e-3)
    assert "as TPU v6e's datasheet prints" in PEAK.see(**asked, each="two").verdict


@pytest.mark.parametrize(("K", "side", "used"), [(128, 256, 0.5), (128, 128, 1), (129, 128, 129 / 256)])
def test_padding_leaves_the_used_share_of_the_count(K, side, used):
    view = PEAK.see(K=K, side=side, N=1024)
    yours, left, *_ = panel(view, Bars).lengths()
    assert left / yours == pytest.approx(used) == pytest.approx(readout(view, "cells used"))
    assert panel(view, Chart).marks[2].ys == [left]


def test_the_curve_passes_your_k_and_meets_the_other_side_at_common_multiples():
    other, yours = (m for m in panel(PEAK.see(side=256, N=1024), Chart).marks if isinstance(m, Curve))
    assert other.label.startswith("side 128")
    for K, a, b in zip(yours.xs, yours.ys, other.ys, strict=True):
        assert a <= b * (1 + 1e-12)
        assert K % 256 or a == pytest.approx(b) == pytest.approx(systolic.peak(1, 4, 256, 1.5e9).flops_per_s)


# The chain

PLANS = tuple(itertools.product(CHAIN.controls["lies"].options, CHAIN.controls["plan"].options))


def chain(lies, plan, chunks=1, slice_=None, n=131072, B=8):
    return Chain(slice_ or Slice.of(chips.V5E, "4x4"), n, B, lies, plan, chunks)


def test_the_chapter_s_problem_lane_by_lane():
    """16 GiB of int8 on the hosts of a 4x4 of v5e, gathered at a corner, times 8 vectors."""
    lanes = chain(tpus_chain.HOSTS, tpus_chain.FETCH).pipeline.chunk_s
    nbytes = 2**34
    assert lanes == pytest.approx(
        {
            "PCIe": nbytes / 16 / 16e9,
            "ICI": 15 / 16 * nbytes / 100e9 + 6e-6,  # a corner has two links of 50 GB/s
            "HBM": nbytes / 819e9,
            "VMEM": nbytes / 18e12,
            "MXU": 2 * 8 * 131072**2 / 197e12,
        }
    )


@pytest.mark.parametrize(("lies", "plan"), PLANS)
def test_the_picture_ends_with_the_chain(lies, plan):
    for chunks in (1, 8, 64):
        view = CHAIN.see(lies=lies, plan=plan, chunks=chunks)
        spans = panel(view, Timeline).spans
        total = chain(lies, plan, chunks).total_s
        assert max(s.end for s in spans) == pytest.approx(total) == pytest.approx(readout(view, "in all"))
        assert readout(view, "slowest lane alone") <= total * (1 + 1e-12)
        assert total <= readout(view, "nothing overlapped") * (1 + 1e-12)
        assert len(spans) == chunks * len(chain(lies, plan, chunks).pipeline.chunk_s) + (
            plan == tpus_chain.SEND
        )


@pytest.mark.parametrize(("lies", "plan"), PLANS)
def test_the_bars_add_up_to_the_time_without_overlap(lies, plan):
    view = CHAIN.see(lies=lies, plan=plan)
    values = next(s.values for s in panel(view, Bars).series if s.label == plan)
    assert sum(values) == pytest.approx(readout(view, "nothing overlapped"))


@pytest.mark.parametrize("lies", CHAIN.controls["lies"].options)
def test_a_few_vectors_should_move_and_not_the_matrix(lies):
    few = {plan: chain(lies, plan, 8, B=8).total_s for plan in CHAIN.controls["plan"].options}
    assert few[tpus_chain.SEND] < few[tpus_chain.FETCH]
    assert "times as fast" in CHAIN.see(lies=lies).verdict
    assert "times as long" in CHAIN.see(lies=lies, plan=tpus_chain.SEND).verdict


def test_from_the_farthest_chip_it_is_a_route():
    here = Slice.of(chips.V5E, "4x4")
    lanes = chain(tpus_chain.FAR, tpus_chain.FETCH, slice_=here, n=4096).pipeline.chunk_s
    assert lanes["ICI"] == here.route((3, 3), (0, 0)).message(4096**2).total_s


def test_what_is_there_to_discover_in_a_chain():
    assert "ICI binds" in CHAIN.see().verdict
    assert "PCIe binds" in CHAIN.see(plan="bring x to A").verdict
    assert "DCN binds" in CHAIN.see(lies="another slice").verdict
    assert "must be used up as it comes" in CHAIN.see().verdict
    assert "cannot lie there" in CHAIN.see(lies=tpus_chain.FAR).verdict
    assert "HBM:" not in CHAIN.see(n=65536).verdict
    assert (
        "MXU binds" in CHAIN.see(lies="HBM, split", plan="bring x to A", B=4096, on="TPU v5p 4x4x4").verdict
    )


# The route


@pytest.mark.parametrize("on", ROUTE.controls["on"].options)
def test_the_map_counts_hops_as_the_slice_does(on):
    name, _, shape = on.rpartition(" ")
    here = Slice.of(chips.find(name), shape)
    cells = panel(ROUTE.see(on=on), Grid).cells
    assert (len(cells), len(cells[0])) == here.shape[-2:]
    hops = [int(c.text) for row in cells for c in row]
    plane = [axis.mean_hops for axis in here.axes[-2:]]
    assert sum(hops) / len(hops) <= 2 * sum(plane)
    assert all((c.text == "0") == (i == j == 0) for i, row in enumerate(cells) for j, c in enumerate(row))


def test_on_a_torus_the_map_has_the_mean_distance_whatever_the_source():
    for source in ("0,0", "5,11"):
        view = ROUTE.see(on="TPU v5e 16x16", source=source, target="9,2")
        hops = [int(c.text) for row in panel(view, Grid).cells for c in row]
        assert sum(hops) / 256 == 8 == readout(view, "mean distance here")
        assert max(hops) == 16


def test_the_way_is_marked_hop_by_hop():
    for on, source, target in (("TPU v5e 8x16", "1,1", "6,14"), ("TPU v5e 4x4", "0,0", "3,3")):
        view = ROUTE.see(on=on, source=source, target=target)
        marked = sorted(int(c.text) for row in panel(view, Grid).cells for c in row if c.color == 1)
        assert marked == list(range(int(readout(view, "hops")) + 1))


def test_hops_are_half_of_the_time_at_the_knee():
    for every in (True, False):
        knee = readout(ROUTE.see(every=every), "hops = bytes at")
        view = ROUTE.see(every=every, nbytes=knee)
        assert readout(view, "first byte after") == pytest.approx(readout(view, "bytes take"))


def test_what_is_there_to_discover_on_a_route():
    assert "173.8 µs: 6 µs for the hops, 167.8 µs" in ROUTE.see().verdict
    assert "341.5 µs" in ROUTE.see(every=False).verdict
    assert "crosses its wrap" in ROUTE.see(on="TPU v5e 8x16", target="0,15").verdict
    assert "crosses its wrap" not in ROUTE.see(on="TPU v5e 8x16", target="7,8").verdict
    assert "Below 600 kB the hops take longer" in ROUTE.see(nbytes=1e3).verdict
    assert "no hop" in ROUTE.see(target="0,0").verdict
    assert "chips go from (0, 0) to (3, 3)" in ROUTE.paint({"target": "4, 0"}).error
    assert "write its place along each axis" in ROUTE.paint({"target": "corner"}).error


# The generations


def test_flops_over_hbm_bandwidth_is_the_ridge():
    bars = panel(GENERATIONS.see(), Bars)
    assert dict(zip(bars.labels, bars.lengths(), strict=True)) == pytest.approx(
        {chip.name: roofline.ridge(chip) for chip in chips.TPUS}
    )


@pytest.mark.parametrize("figure", GENERATIONS.controls["figure"].options)
@pytest.mark.parametrize("per", GENERATIONS.controls["per"].options)
def test_who_is_missing_is_named(figure, per):
    view = GENERATIONS.see(figure=figure, per=per)
    shown = panel(view, Bars).labels
    _, _, missing = view.verdict.partition("Nobody documents it for ")
    assert {chip.name for chip in chips.TPUS} - set(shown) == set(
        filter(None, missing.rstrip(".").split(", "))
    )


def test_a_figure_stands_beside_its_source_and_what_others_print():
    told = panel(GENERATIONS.see(chip="TPU v6e", figure="HBM", per="DCN"), Grid).cells
    assert told[0][0].text.startswith("HBM: 34.36 GB")
    assert "GiB" in told[0][0].text
    assert "100 Gbps a chip" in told[1][0].text.replace("\n", " ")
    assert "not documented" in panel(GENERATIONS.see(chip="TPU7x", figure="PCIe"), Grid).cells[0][0].text


def test_what_is_there_to_discover_in_the_generations():
    assert "grew 50.2 times" in GENERATIONS.see(per="nothing: the figure itself").verdict
    assert "grew 4.76 times" in GENERATIONS.see().verdict
    assert "fell" in GENERATIONS.see(figure="one link, one way").verdict
