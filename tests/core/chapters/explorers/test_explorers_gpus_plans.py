"""The GPU chapter's explorers of collectives, plans and warps obey the laws of what they show."""

import itertools
import math

import pytest
from looked import curve, panels, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.gpus.explorers import alltoall, inner_axis, moe
from scalingbook_book.chapters.gpus.explorers import plan as gpus_plan
from scalingbook_book.reader.explorers.view import Bars, Chart, Points
from scalingbook_book.reader.options import gpus
from scalingbook_lib import collectives, models
from scalingbook_lib.machines import chips, occupancy
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.steps import limits

MINE = ("inner_axis", "alltoall", "plan", "moe", "occupancy")
ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("gpus") if e.key.partition(".")[2] in MINE}
approx = pytest.approx


# An inner axis


@pytest.mark.parametrize(
    ("Y", "ms"), [(1, 1.30), (8, 1.30), (16, 0.629), (32, 0.294), (64, 0.126), (128, 0.042), (256, 0)]
)
def test_the_time_of_the_reference_quiz_exact(Y, ms):
    view = ALL["inner_axis"].evaluate(Y=Y)
    assert readout(view, "time") == approx(ms / 1e3, rel=6e-3)
    over = Cluster.of(chips.H100, 256).mesh(Y=Y, X=256 // Y).axes("X")
    assert readout(view, "time") == approx(collectives.all_gather(2**29 / Y, *over).bandwidth_s)


@pytest.mark.parametrize(
    ("Y", "ms"), [(8, 1.34), (16, 0.67), (32, 0.34), (64, 0.17), (128, 0.084), (256, 0.042)]
)
def test_the_rule_keeps_charging_for_what_is_there_already(Y, ms):
    assert readout(ALL["inner_axis"].evaluate(Y=Y), "time by the rule") == approx(ms / 1e3, rel=2e-2)


@pytest.mark.parametrize("machine", gpus.CLUSTERS)
@pytest.mark.parametrize("op", ["AllGather", "AllReduce", "in-network AllReduce"])
def test_the_rule_is_never_below_the_exact_time_and_both_fall_with_y(machine, op):
    """In the switch, the rule counts M on each link and leaves out the part that its owner sends: M/n."""
    slack = 4 / 3 if op == "in-network AllReduce" else 1.0  # three GPUs; two reduce without the switch
    for n in (16, 64, 256, 2048):
        sizes = [2**e for e in range(n.bit_length())]
        exact = [inner_axis.stages(machine, n, Y, op)[2] for Y in sizes]
        rules = [inner_axis.rule(machine, n, Y, op) for Y in sizes]
        assert all(r * slack >= e * (1 - 1e-9) for r, e in zip(rules, exact, strict=True))
        assert all(a >= b * (1 - 1e-9) for a, b in itertools.pairwise(exact))
        assert exact[-1] == 0


def test_within_a_domain_an_inner_axis_saves_nothing_where_the_network_binds():
    assert "Y does not save any time" in ALL["inner_axis"].evaluate(Y=8).verdict
    assert "Without Y, the collective takes 4.43 times" in ALL["inner_axis"].evaluate(Y=32).verdict
    assert "nothing is left to gather" in ALL["inner_axis"].evaluate(Y=256).verdict
    assert "times as long" in ALL["inner_axis"].evaluate(machine=gpus.RACKS, Y=8).verdict


# Tokens to experts


def test_the_rule_of_the_reference_fails_where_k_is_the_number_of_chips():
    """8 of 8: 0.875 by the rule and 0.574 for many experts, in units of all tokens to all chips."""
    here = alltoall.times("H100", 8, 8, 2**20)
    dense = here["to every GPU"] * 8 / 7
    assert here["rule"] / dense == approx(0.875)
    assert here["deduplicated"] / dense == approx(7 / 8 * (1 - (7 / 8) ** 8), rel=1e-4)
    assert here["deduplicated"] / dense == approx(0.574, abs=5e-4)
    few = alltoall.times("H100", 8, 8, 8)  # one expert a chip: there the rule is exact
    assert few["rule"] == approx(few["deduplicated"])


@pytest.mark.parametrize("machine", gpus.CLUSTERS)
@pytest.mark.parametrize("k", [1, 2, 8, 16])
def test_no_way_of_copying_beats_sending_none_twice(machine, k):
    for Z in (2, 8, 32, 64, 128, 512):
        here = alltoall.times(machine, Z, k, 512)
        assert here["deduplicated"] <= min(here["one copy per expert"], here["to every GPU"]) * (1 + 1e-9)
        assert here["deduplicated"] <= here["rule"] * (1 + 1e-9)
        if k == 1:
            assert here["deduplicated"] == approx(here["one copy per expert"])


def test_the_points_stand_on_their_curves():
    view = ALL["alltoall"].evaluate(Z=64, k=4, E=64)
    (chart,) = panels(view, Chart)
    (point,) = (m for m in chart.marks if isinstance(m, Points))
    line = curve(view, "deduplicated")
    assert point.ys[0] == line.ys[line.xs.index(64)]
    copies = panels(view, Bars)[0].series
    none_there = (56 * 55 * 54 * 53) / (64 * 63 * 62 * 61)  # of a domain's eight experts
    assert copies[1].values[1] == approx(7 * (1 - none_there))
    assert line.xs[-1] == 64


# A plan


def test_the_plan_is_audited_by_the_library():
    found = limits.audit(
        Cluster.of(chips.H100, 4096), models.find("Llama 3 70B"), tokens=2**22, tp=8, pp=8, m=32
    )
    view = ALL["plan"].evaluate(pp=8)
    assert panels(view, Bars)[0].series[0].values == list(found.terms.values())
    assert readout(view, "utilization (upper bound)") == found.utilization
    assert "compute-bound, with a pipeline bubble of 18%" in view.verdict


@pytest.mark.parametrize(("tp", "pp"), [(8, 1), (8, 2), (16, 1), (1, 1), (8, 8)])
def test_data_parallelism_needs_what_its_limit_says(tp, pp):
    view = ALL["plan"].evaluate(tp=tp, pp=pp)
    needed = limits.data_parallel(Cluster.of(chips.H100, 4096), model_parallel=tp * pp)
    assert readout(view, "tokens needed for DP") == approx(needed.least)


def test_the_terms_cross_where_the_chart_says():
    view = ALL["plan"].evaluate(pp=1)
    (point,) = (m for m in panels(view, Chart)[0].marks if isinstance(m, Points))
    again = gpus_plan.plan("H100", "Llama 3 70B", n=4096, tokens=point.xs[0], tp=8, pp=1, ep=1, m=32)
    assert again.data_s == approx(again.math_s)


def test_experts_over_nodes_wait_for_the_network_and_in_a_rack_they_do_not():
    plan = {"model": "DeepSeek-V3", "n": 2048, "tokens": 2**26, "tp": 1, "pp": 1, "ep": 64}
    assert "the AllToAll of tokens (EP) takes 3.31 times as long" in ALL["plan"].evaluate(**plan).verdict
    assert "compute-bound" in ALL["plan"].evaluate(**plan, machine=gpus.RACKS).verdict


def test_a_plan_that_does_not_exist_says_what_to_change():
    assert (
        ALL["plan"].evaluate_state({"ep": 1}).error
        == "Llama 3 70B has 1 expert per layer; set EP to at most 1"
    )
    assert "lower a degree or use more GPUs" in ALL["plan"].evaluate_state({"n": 6, "tp": 6}).error
    assert "do not fit" in ALL["plan"].evaluate(model="Llama 3.1 405B", n=64, tp=8).verdict


# Small and large domains


def test_the_widths_are_those_of_the_library():
    view = ALL["moe"].evaluate()
    remote = 7 * (1 - math.comb(224, 8) / math.comb(256, 8))  # domains beyond the token's own
    for name, C in (("H100", 989e12), ("B200", 2250e12)):
        F = C / 50e9 * 3 * remote / (6 * 9)  # 1 byte out, 2 back; 6 D F FLOPs for each of 9 experts
        assert readout(view, f"{name}: minimum F") == approx(F)
    chips_of_a_rack = 64 * (1 - math.comb(252, 8) / math.comb(256, 8)) * 63 / 64
    assert readout(view, f"{gpus.RACKS}: minimum F") == approx(
        2500e12 / 900e9 * 3 * chips_of_a_rack / (6 * 9)
    )
    assert panels(view, Bars)[0].series[0].values[0] == approx(5091 / 2048, rel=1e-3)


def test_within_a_domain_copies_for_each_expert_need_one_width():
    layer = moe.Layer(k=8, E=256, shared=0, gated=False, out="bf16, bf16", once=False)
    found = [moe.width(gpus.RACKS, Z, layer).least / (1 - 1 / Z) for Z in (2, 8, 64)]
    assert found == [approx(2500e12 / 900e9)] * 3


def test_who_hides_the_exchange():
    assert "H100s in domains of 8, B200s in domains of 8 and GB200s" in ALL["moe"].evaluate(Z=8).verdict
    assert "no machine can" in ALL["moe"].evaluate(F=512).verdict
    assert "5.66 times as wide, because of their NICs" in ALL["moe"].evaluate().verdict


# Warps


def test_the_point_is_what_the_library_says():
    held = occupancy.occupancy(chips.H100, threads=256, registers=64, smem_bytes=2**16)
    view = ALL["occupancy"].evaluate()
    (point,) = (m for m in panels(view, Chart)[0].marks if isinstance(m, Points))
    assert (point.xs[0], point.ys[0]) == (held.warps, held.bytes_per_s(16, 6e-7))
    assert readout(view, "HBM bandwidth reached") == approx(0.807 * 3.35e12, rel=1e-3)
    assert "limited by shared memory: 24 of 64 warps" in view.verdict


def test_255_registers_leave_eight_warps():
    view = ALL["occupancy"].evaluate(registers=255, smem=0)
    assert readout(view, "warps per SM") == 8
    assert view.verdict.startswith("1 block of 8 warps fits on an SM, limited by registers")


def test_a_curve_bends_where_all_of_hbm_is_drawn():
    view = ALL["occupancy"].evaluate(each=64)
    knee = curve(view, "64 B per thread").xs[1]
    assert knee == approx(3.35e12 * 6e-7 / (132 * 32 * 64))
    assert "saturate HBM" in view.verdict
