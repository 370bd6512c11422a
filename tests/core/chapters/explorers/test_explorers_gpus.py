"""The GPU chapter's explorers obey the laws of what they show."""

import itertools

import pytest
from looked import readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, Grid, Network, Points
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.units import MiB

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("gpus")}
ATLAS, FABRIC, MEASURED, SHARP = (ALL[name] for name in ("atlas", "fabric", "measured", "sharp"))


def panel(view, kind, title=""):
    return next(p for p in view.panels if isinstance(p, kind) and title in p.title)


def curve(view, label, title=""):
    return next(m for m in panel(view, Chart, title).marks if isinstance(m, Curve) and m.label == label)


# Two chips


def table(view, title):
    grid = panel(view, Grid, title)
    return {name: [cell.text for cell in row] for name, row in zip(grid.rows, grid.cells, strict=True)}


def test_the_tables_hold_the_figures_of_the_catalog():
    memories = table(ATLAS.evaluate(one="H100", other="TPU v5p"), "Memories")
    assert memories["registers"] == ["33 MiB\n132 × 256 KiB", "512 KiB\n2 × 256 KiB", "66 ×"]
    assert memories["SMEM/VMEM"] == ["33 MiB\n132 × 256 KiB", "128 MiB\n2 × 64 MiB", "1/3.88"]
    assert memories["L2"] == ["50 MiB", "none", ""]
    units = table(ATLAS.evaluate(one="H100", other="TPU v5p"), "Units")
    assert units["cores"] == ["132\nSMs", "2\nTensorCores", "66 ×"]
    assert units["per unit"][2] == "1/30.6"
    assert chips.V5P.flops_per_s() / 8 / (chips.H100.flops_per_s() / 528) == pytest.approx(30.6, rel=2e-3)


def test_tmem_came_with_blackwell():
    for name, chip in chips.CATALOG.items():
        text = table(ATLAS.evaluate(one=name), "Memories")["TMEM"][0]
        assert (text != "none") == (name in ("B200", "B300", "GB200", "GB300")), name
        if chip.tmem_bytes_per_core and chip.cores:
            assert text.startswith(f"{chip.tmem_bytes_per_core * chip.cores / MiB:.0f} MiB")


@pytest.mark.parametrize("one", chips.CATALOG)
@pytest.mark.parametrize("bits", ["16 bits", "8 bits", "4 bits"])
def test_roofs_bend_at_their_ridges(one, bits):
    chip, view = chips.find(one), ATLAS.evaluate(one=one, bits=bits, other="TPU v2", intensity=2048)
    label = f"{one} (1)" if one == "TPU v2" else one
    low, bend, _ = curve(view, f"{label}, HBM").xs
    assert bend == readout(view, f"{label}: ridge")
    assert curve(view, f"{label}, HBM").ys[0] == pytest.approx(chip.hbm_bytes_per_s * low)
    assert curve(view, f"{label}, links").xs[1] > bend  # HBM is faster than any link
    peak = curve(view, f"{label}, HBM").ys[-1]
    assert peak == pytest.approx(curve(view, f"{label}, links").ys[-1])
    assert peak in chip.rates().values()
    assert readout(view, f"{label}: attainable") == min(peak, 2048 * chip.hbm_bytes_per_s)


def test_a_chip_without_narrow_units_computes_in_wider_ones():
    assert table(ATLAS.evaluate(one="H100", bits="4 bits"), "Units")["peak"][0].endswith("fp8")
    assert table(ATLAS.evaluate(one="V100", bits="4 bits"), "Units")["peak"][0].endswith("fp16")
    assert table(ATLAS.evaluate(one="TPU v5e", bits="8 bits"), "Units")["peak"][0].endswith("int8")


def test_what_is_there_to_discover_in_the_atlas():
    assert "both are memory-bound, and the H100 attains 1.21 times" in ATLAS.evaluate(intensity=128).verdict
    assert "only the H100 is memory-bound" in ATLAS.evaluate(intensity=256).verdict
    assert "both are compute-bound" in ATLAS.evaluate(intensity=512).verdict
    assert "both attain" in ATLAS.evaluate(one="H100", other="H100").verdict
    bf16 = [rules.ridge(c) for c in (chips.A100, chips.H100, chips.H200, chips.B200, chips.GB200)]
    assert 150 < min(bf16) < max(bf16) < 315  # five years, FLOPs up eightfold


# The fabric


SUMS = FABRIC.controls["sums"].options


def bars(view):
    shown = panel(view, Bars)
    return dict(zip(shown.labels, map(sum, zip(*(s.values for s in shown.series), strict=True)), strict=True))


@pytest.mark.parametrize("op", FABRIC.controls["op"].options)
@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize(
    ("chip", "n", "over"),
    [("H100", 8, 1.0), ("H100", 16, 1.0), ("H100", 1024, 4.0), ("H100", 16384, 8.0), ("GB200", 16384, 2.0),
     ("A100", 4096, 1.0), ("MI300X", 512, 2.0)],
)  # fmt: skip
def test_the_slowest_level_is_the_time(op, sums, chip, n, over):
    view = FABRIC.evaluate(op=op, sums=sums, chip=chip, n=n, oversubscription=over)
    levels = bars(view)
    took = readout(view, "time") - readout(view, "latency of hops")
    assert max(levels.values()) == pytest.approx(took, rel=1e-9)
    assert panel(view, Bars).series[1].label == "bottleneck"
    assert sum(v > 0 for v in panel(view, Bars).series[1].values) == 1


def test_the_levels_are_those_of_the_clusters():
    view = FABRIC.evaluate(chip="H100", n=1024)
    cluster = Cluster.of(chips.H100, 1024)
    assert list(bars(view)) == [level.name for level in cluster.levels] == ["NVLink", "leaf", "spine"]
    assert readout(view, "bisection bandwidth") == cluster.bisection_bytes_per_s
    cells = {
        n: [c.text for c in row]
        for n, row in zip(panel(view, Grid).rows, panel(view, Grid).cells, strict=True)
    }
    assert cells["NVLink"] == ["8", "NVSwitch", "1", "450 GB/s", "450 GB/s"]
    assert cells["leaf"] == ["32 × 8", "32", "1", "50 GB/s", "400 GB/s"]
    assert cells["spine"] == ["4 × 256", "16", "3", "50 GB/s", "12.8 TB/s"]


@pytest.mark.parametrize("chip", FABRIC.controls["chip"].options)
@pytest.mark.parametrize("n", [8, 64, 1024, 16384])
def test_a_cluster_has_the_gpus_asked_for_in_full_domains(chip, n):
    view = FABRIC.evaluate(chip=chip, n=n)
    had, domain = readout(view, "GPUs"), readout(view, "GPUs per domain")
    assert had >= n
    assert had % domain == 0
    assert had // 2 < n or had == domain
    growth = panel(view, Chart)
    point = next(m for m in growth.marks if isinstance(m, Points))
    line = next(m for m in growth.marks if isinstance(m, Curve))
    assert line.ys[list(line.xs).index(had)] == point.ys[0] == readout(view, "time")


def test_the_drawing_shows_no_more_than_there_is():
    for chip, n, domain in itertools.product(("H100", "GB300"), (8, 16, 64, 512, 16384), ("as built", "32")):
        view = FABRIC.evaluate(chip=chip, n=n, domain=domain)
        drawn = [node.label for node in panel(view, Network).nodes]
        had = readout(view, "GPUs") // readout(view, "GPUs per domain")
        if had > 1:
            cluster = Cluster.of(
                chips.find(chip), int(readout(view, "GPUs")), domain=int(readout(view, "GPUs per domain"))
            )
            assert drawn.count("") <= had
            for letter, there in (("L", cluster.leaves), ("S", cluster.spines), ("C", cluster.cores)):
                assert drawn.count(letter) <= there
                assert bool(drawn.count(letter)) == bool(there)


def test_the_busiest_level_is_colored():
    def busy(**how):
        view = FABRIC.evaluate(**how)
        network = panel(view, Network)
        return {(network.nodes[k.start].label, network.nodes[k.end].label) for k in network.links if k.color}

    assert busy(n=1024) == {("", "L")}
    assert busy(n=16) == set()  # the NVLinks of two domains
    assert busy(n=1024, op="AllToAll", oversubscription=4.0) == {("L", "S")}
    assert busy(n=16384, op="AllToAll", oversubscription=4.0, chip="GB200") == {("S", "C")}


def test_what_is_there_to_discover_in_the_fabric():
    """Two domains are no slower than one; many near 403 GB/s; oversubscription costs an AllToAll alone."""
    one, two, many = (readout(FABRIC.evaluate(op="AllGather", n=n), "time") for n in (8, 16, 1024))
    assert two == pytest.approx(one, rel=0.01)
    assert 1e9 / (
        many - readout(FABRIC.evaluate(op="AllGather", n=1024), "latency of hops")
    ) == pytest.approx(403e9, rel=1e-3)
    for op, costs in (("AllGather", False), ("AllReduce", False), ("AllToAll", True)):
        full, thin = (readout(FABRIC.evaluate(op=op, oversubscription=o), "time") for o in (1.0, 4.0))
        assert (thin > 1.5 * full) == costs
    everywhere, nowhere = (
        readout(FABRIC.evaluate(op="AllReduce", sums=s), "time") for s in (SUMS[2], SUMS[0])
    )
    assert nowhere / everywhere == pytest.approx(2, rel=0.02)
    assert readout(FABRIC.evaluate(op="AllGather", chip="GB200", n=1024), "time") < many / 2


def test_the_verdict_of_the_fabric_names_what_takes_longest():
    assert "The bottleneck is the leaf level" in FABRIC.evaluate().verdict
    assert "The bottleneck is the NVLink level" in FABRIC.evaluate(n=16).verdict
    assert "within one domain" in FABRIC.evaluate(n=8).verdict
    assert "most of it latency" in FABRIC.evaluate(nbytes=1e5).verdict
    assert "latency" not in FABRIC.evaluate(nbytes=1e9).verdict


def test_a_cluster_that_cannot_be_built_says_why():
    assert "pairwise" in FABRIC.render({"chip": "MI300X", "domain": "72"}).evaluated.error
    position = FABRIC.controls["n"].position(16384)
    assert "at most 8,192 chips" in FABRIC.evaluate_state({"n": position, "ports": "32"}).error


# The tile of a matmul


def test_what_is_there_to_discover_about_tiles():
    tile = ALL["tile"]
    assert "Latency-bound: with 1 stage in flight" in tile.evaluate().verdict
    assert readout(tile.evaluate(), "stages that hide the latency") == 4
    assert tile.evaluate(stages=4).verdict.startswith("L2-bound: each byte from L2 feeds 64 FLOPs")
    pair = tile.evaluate(tile="256 × 256, two SMs", stages=4)
    assert pair.verdict.startswith("Compute-bound")
    assert readout(pair, "ceiling") == 1
    assert "L2-bound" in tile.evaluate(chip="H100", tile="128 × 256", stages=3).verdict
    with pytest.raises(ValueError, match="use fewer stages"):
        tile.evaluate(tile="128 × 256", stages=6)


def test_the_longest_bar_is_the_ceiling():
    for stages in (1, 2, 4):
        view = ALL["tile"].evaluate(stages=stages)
        math, *others = panel(view, Bars).series[0].values
        assert readout(view, "ceiling") == pytest.approx(math / max(math, *others))
        chosen = curve(view, "128 × 128")
        assert chosen.ys[stages - 1] == pytest.approx(100 * readout(view, "ceiling"))
