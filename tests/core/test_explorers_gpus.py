"""The GPU chapter's explorers obey the laws of what they show."""

import itertools

import pytest

from scalingbook_lib import chips, explorers, roofline
from scalingbook_lib.explorers.view import Chart, Curve, Grid
from scalingbook_lib.units import MiB

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("gpus")}
ATLAS = ALL["atlas"]


def panel(view, kind, title=""):
    return next(p for p in view.panels if isinstance(p, kind) and title in p.title)


def curve(view, label, title=""):
    return next(m for m in panel(view, Chart, title).marks if isinstance(m, Curve) and m.label == label)


def readout(view, label):
    return next(r.value for r in view.readouts if r.label == label)


def values(control):
    ends = getattr(control, "options", None) or (
        getattr(control, "low", False),
        getattr(control, "high", True),
    )
    return list(dict.fromkeys([control.start or ends[0], *ends]))


# Laws of all of them


@pytest.mark.parametrize("name", ALL)
def test_every_pair_of_settings_paints(name):
    explorer = ALL[name]
    for (a, first), (b, second) in itertools.combinations(explorer.controls.items(), 2):
        for one, other in itertools.product(values(first), values(second)):
            painted = explorer.paint({a: first.position(one), b: second.position(other)})
            assert painted.verdict, (a, one, b, other, painted.error)
            assert not painted.error


@pytest.mark.parametrize("name", ALL)
def test_every_control_changes_something(name):
    explorer = ALL[name]
    start = explorer.paint({})
    for control_name, control in explorer.controls.items():
        others = [explorer.paint({control_name: control.position(v)}) for v in values(control)[1:]]
        assert any((p.figure, p.readouts) != (start.figure, start.readouts) for p in others), control_name


# Two chips


def table(view, title):
    grid = panel(view, Grid, title)
    return {name: [cell.text for cell in row] for name, row in zip(grid.rows, grid.cells, strict=True)}


def test_the_tables_hold_the_figures_of_the_catalogue():
    memories = table(ATLAS.see(one="H100", other="TPU v5p"), "Memories")
    assert memories["registers"] == ["33 MiB\n132 × 256 KiB", "512 KiB\n2 × 256 KiB", "66 ×"]
    assert memories["SMEM/VMEM"] == ["33 MiB\n132 × 256 KiB", "128 MiB\n2 × 64 MiB", "1/3.88"]
    assert memories["L2"] == ["50 MiB", "none", ""]
    units = table(ATLAS.see(one="H100", other="TPU v5p"), "Units")
    assert units["cores"] == ["132\nSMs", "2\nTensorCores", "66 ×"]
    assert units["one of these"][2] == "1/30.6"
    assert chips.V5P.flops_per_s() / 8 / (chips.H100.flops_per_s() / 528) == pytest.approx(30.6, rel=2e-3)


def test_tmem_came_with_blackwell():
    for name, chip in chips.CATALOGUE.items():
        text = table(ATLAS.see(one=name), "Memories")["TMEM"][0]
        assert (text != "none") == (name in ("B200", "B300", "GB200", "GB300")), name
        if chip.tmem_bytes_per_core and chip.cores:
            assert text.startswith(f"{chip.tmem_bytes_per_core * chip.cores / MiB:.0f} MiB")


@pytest.mark.parametrize("one", chips.CATALOGUE)
@pytest.mark.parametrize("bits", ["16 bits", "8 bits", "4 bits"])
def test_roofs_bend_at_their_ridges(one, bits):
    chip, view = chips.find(one), ATLAS.see(one=one, bits=bits, other="TPU v2", intensity=2048)
    label = f"{one} (1)" if one == "TPU v2" else one
    low, bend, _ = curve(view, f"{label}, HBM").xs
    assert bend == readout(view, f"{label}: ridge")
    assert curve(view, f"{label}, HBM").ys[0] == pytest.approx(chip.hbm_bytes_per_s * low)
    assert curve(view, f"{label}, links").xs[1] > bend  # HBM is faster than any link
    peak = curve(view, f"{label}, HBM").ys[-1]
    assert peak == pytest.approx(curve(view, f"{label}, links").ys[-1])
    assert peak in chip.rates().values()
    assert readout(view, f"{label}: reached") == min(peak, 2048 * chip.hbm_bytes_per_s)


def test_a_chip_without_narrow_units_computes_in_wider_ones():
    assert table(ATLAS.see(one="H100", bits="4 bits"), "Units")["all of these"][0].endswith("fp8")
    assert table(ATLAS.see(one="V100", bits="4 bits"), "Units")["all of these"][0].endswith("fp16")
    assert table(ATLAS.see(one="TPU v5e", bits="8 bits"), "Units")["all of these"][0].endswith("int8")


def test_what_is_there_to_discover_in_the_atlas():
    assert "both wait for HBM, and H100 does 1.21 times" in ATLAS.see(intensity=128).verdict
    assert "only H100 waits" in ATLAS.see(intensity=256).verdict
    assert "neither waits" in ATLAS.see(intensity=512).verdict
    assert "both do" in ATLAS.see(one="H100", other="H100").verdict
    bf16 = [roofline.ridge(c) for c in (chips.A100, chips.H100, chips.H200, chips.B200, chips.GB200)]
    assert 150 < min(bf16) < max(bf16) < 315  # five years, FLOPs up eightfold
