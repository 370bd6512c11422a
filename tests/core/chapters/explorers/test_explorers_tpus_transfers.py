"""The TPU chapter's explorers of transfers and generations obey the laws of what they show."""

import itertools

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Bars, Grid, Timeline
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Slice
from scalingbook_lib.sharded_matmul import overlap as tpus_chain
from scalingbook_lib.sharded_matmul.overlap import MatvecChain

CHAIN, ROUTE, GENERATIONS = (explorers.find(f"tpus.{name}") for name in ("chain", "route", "generations"))


# The chain

PLANS = tuple(itertools.product(CHAIN.controls["lies"].options, CHAIN.controls["plan"].options))


def chain(lies, plan, chunks=1, slice_=None, n=131072, B=8):
    return MatvecChain(slice_ or Slice.of(chips.V5E, "4x4"), n, B, lies, plan, chunks)


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
        view = CHAIN.evaluate(lies=lies, plan=plan, chunks=chunks)
        spans = panel(view, Timeline).spans
        total = chain(lies, plan, chunks).total_s
        assert max(s.end for s in spans) == pytest.approx(total) == pytest.approx(readout(view, "total time"))
        assert readout(view, "slowest stage alone") <= total * (1 + 1e-12)
        assert total <= readout(view, "without overlap") * (1 + 1e-12)
        assert len(spans) == chunks * len(chain(lies, plan, chunks).pipeline.chunk_s) + (
            plan == tpus_chain.SEND
        )


@pytest.mark.parametrize(("lies", "plan"), PLANS)
def test_the_bars_add_up_to_the_time_without_overlap(lies, plan):
    view = CHAIN.evaluate(lies=lies, plan=plan)
    values = next(s.values for s in panel(view, Bars).series if s.label == plan)
    assert sum(values) == pytest.approx(readout(view, "without overlap"))


@pytest.mark.parametrize("lies", CHAIN.controls["lies"].options)
def test_a_few_vectors_should_move_and_not_the_matrix(lies):
    few = {plan: chain(lies, plan, 8, B=8).total_s for plan in CHAIN.controls["plan"].options}
    assert few[tpus_chain.SEND] < few[tpus_chain.FETCH]
    assert "times as fast" in CHAIN.evaluate(lies=lies).verdict
    assert "times as long" in CHAIN.evaluate(lies=lies, plan=tpus_chain.SEND).verdict


def test_from_the_farthest_chip_it_is_a_route():
    here = Slice.of(chips.V5E, "4x4")
    lanes = chain(tpus_chain.FAR, tpus_chain.FETCH, slice_=here, n=4096).pipeline.chunk_s
    assert lanes["ICI"] == here.route((3, 3), (0, 0)).message(4096**2).total_s


def test_what_is_there_to_discover_in_a_chain():
    assert "bottleneck is ICI" in CHAIN.evaluate().verdict
    assert "bottleneck is PCIe" in CHAIN.evaluate(plan="bring x to A").verdict
    assert "bottleneck is DCN" in CHAIN.evaluate(lies="another slice").verdict
    assert "must be consumed as it arrives" in CHAIN.evaluate().verdict
    assert "cannot be stored there" in CHAIN.evaluate(lies=tpus_chain.FAR).verdict
    assert "HBM:" not in CHAIN.evaluate(n=65536).verdict
    assert (
        "bottleneck is MXU"
        in CHAIN.evaluate(lies="HBM, split", plan="bring x to A", B=4096, on="TPU v5p 4x4x4").verdict
    )


# The route


@pytest.mark.parametrize("on", ROUTE.controls["on"].options)
def test_the_map_counts_hops_as_the_slice_does(on):
    name, _, shape = on.rpartition(" ")
    here = Slice.of(chips.find(name), shape)
    cells = panel(ROUTE.evaluate(on=on), Grid).cells
    assert (len(cells), len(cells[0])) == here.shape[-2:]
    hops = [int(c.text) for row in cells for c in row]
    plane = [axis.mean_hops for axis in here.axes[-2:]]
    assert sum(hops) / len(hops) <= 2 * sum(plane)
    assert all((c.text == "0") == (i == j == 0) for i, row in enumerate(cells) for j, c in enumerate(row))


def test_on_a_torus_the_map_has_the_mean_distance_whatever_the_source():
    for source in ("0,0", "5,11"):
        view = ROUTE.evaluate(on="TPU v5e 16x16", source=source, target="9,2")
        hops = [int(c.text) for row in panel(view, Grid).cells for c in row]
        assert sum(hops) / 256 == 8 == readout(view, "average distance in the slice")
        assert max(hops) == 16


def test_the_way_is_marked_hop_by_hop():
    for on, source, target in (("TPU v5e 8x16", "1,1", "6,14"), ("TPU v5e 4x4", "0,0", "3,3")):
        view = ROUTE.evaluate(on=on, source=source, target=target)
        marked = sorted(int(c.text) for row in panel(view, Grid).cells for c in row if c.color == 1)
        assert marked == list(range(int(readout(view, "hops")) + 1))


def test_hops_are_half_of_the_time_at_the_knee():
    for every in (True, False):
        knee = readout(ROUTE.evaluate(every=every), "size at which hops and bytes take equally long")
        view = ROUTE.evaluate(every=every, nbytes=knee)
        assert readout(view, "first byte arrives after") == pytest.approx(readout(view, "time of the bytes"))


def test_what_is_there_to_discover_on_a_route():
    assert "173.8 µs: hops 6 µs, bytes 167.8 µs" in ROUTE.evaluate().verdict
    assert "341.5 µs" in ROUTE.evaluate(every=False).verdict
    assert "uses its wraparound link" in ROUTE.evaluate(on="TPU v5e 8x16", target="0,15").verdict
    assert "uses its wraparound link" not in ROUTE.evaluate(on="TPU v5e 8x16", target="7,8").verdict
    assert "Below 600 kB, the hops take longer" in ROUTE.evaluate(nbytes=1e3).verdict
    assert "no hop" in ROUTE.evaluate(target="0,0").verdict
    assert "chips go from (0, 0) to (3, 3)" in ROUTE.render({"target": "4, 0"}).evaluated.error
    assert "write its coordinates" in ROUTE.render({"target": "corner"}).evaluated.error


# The generations


def test_flops_over_hbm_bandwidth_is_the_ridge():
    bars = panel(GENERATIONS.evaluate(), Bars)
    assert dict(zip(bars.labels, bars.lengths(), strict=True)) == pytest.approx(
        {chip.name: rules.ridge(chip) for chip in chips.TPUS}
    )


@pytest.mark.parametrize("figure", GENERATIONS.controls["figure"].options)
@pytest.mark.parametrize("per", GENERATIONS.controls["per"].options)
def test_who_is_missing_is_named(figure, per):
    view = GENERATIONS.evaluate(figure=figure, per=per)
    shown = panel(view, Bars).labels
    _, _, missing = view.verdict.partition("It is not documented for ")
    assert {chip.name for chip in chips.TPUS} - set(shown) == set(
        filter(None, missing.rstrip(".").split(", "))
    )


def test_a_figure_stands_beside_its_source_and_what_others_print():
    told = panel(GENERATIONS.evaluate(chip="TPU v6e", figure="HBM", per="DCN"), Grid).cells
    assert told[0][0].text.startswith("HBM: 34.36 GB")
    assert "GiB" in told[0][0].text
    assert "100 Gbps a chip" in told[1][0].text.replace("\n", " ")
    assert "not documented" in panel(GENERATIONS.evaluate(chip="TPU7x", figure="PCIe"), Grid).cells[0][0].text


def test_what_is_there_to_discover_in_the_generations():
    assert "grew by a factor of 50.2" in GENERATIONS.evaluate(per="nothing: the number itself").verdict
    assert "grew by a factor of 4.76" in GENERATIONS.evaluate().verdict
    assert "fell" in GENERATIONS.evaluate(figure="one link, one direction").verdict
