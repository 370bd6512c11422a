"""The explorers on comparing accelerators obey the laws of what they show."""

from itertools import pairwise

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Grid, Timeline
from scalingbook_lib.machines import chips

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("machines")}
approx = pytest.approx


def test_factors_of_two_and_the_rack_drop_out_of_the_ratio_in_pairs():
    plain, both = ALL["unmask"].evaluate(), ALL["unmask"].evaluate(sparse=True, both=True, rack=True)
    assert readout(plain, "FLOPs per byte sent") == approx(readout(both, "FLOPs per byte sent"))
    assert readout(ALL["unmask"].evaluate(sparse=True), "dense compute") == approx(
        readout(plain, "dense compute") / 2
    )
    assert readout(ALL["unmask"].evaluate(gib=True), "memory") == 288 * 2**30


@pytest.mark.parametrize("bits", ["4 bits", "8 bits", "16 bits"])
def test_every_chip_can_stand_beside_every_other(bits):
    for name in chips.KNOWN:
        view = ALL["six"].evaluate(one=name, other="M3 Ultra", bits=bits)
        grid = panel(view, Grid)
        assert ("compute" in grid.rows) == ("ridge point of" in view.verdict)
        assert "compute" not in grid.rows or grid.cells[0][1].text == "not published"
    assert "Rubin (announced) has a ridge point" in ALL["six"].evaluate(bits=bits).verdict
    assert "no published rate in 8 bits or wider" in ALL["six"].evaluate(one="TPU 8t").verdict


def test_wider_experts_hide_on_more_machines():
    counts = [
        readout(ALL["balance"].evaluate(width=w), "machines that hide it") for w in (1024, 2048, 3072, 5120)
    ]
    assert counts == [1, 2, 5, 8]
    assert "exposed on all" in ALL["balance"].evaluate(width=512).verdict


def test_cores_and_network_do_one_thing_at_a_time():
    view = ALL["turns"].evaluate(taken=0)
    for lane in ("cores", "network"):
        spans = [s for s in panel(view, Timeline).spans if s.lane == lane]
        assert all(a.end <= b.start + 1e-12 for a, b in pairwise(spans))
    assert readout(view, "layer, both microbatches") == approx(readout(view, "time if no SM were occupied"))
    assert "slower than without" in ALL["turns"].evaluate(dispatch=20, combine=20, taken=40).verdict


def test_without_an_exchange_dualpipe_saves_one_forward_at_most():
    view = ALL["bubble"].evaluate(exchange=0.0)
    assert "bubble takes 14, and that of zero-bubble takes 15" in view.verdict


def test_sram_is_hops_and_a_desk_is_reading():
    view = ALL["pinned"].evaluate()
    assert readout(view, "DGX Spark") == approx(70e9 / 273e9)
    assert readout(view, "Groq 3 LPU") == approx(80 * 2e-6, rel=0.03)
