"""The limits of parallelism: published numbers, cases derived by hand, and laws."""

import re
from dataclasses import replace

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.steps import limits
from scalingbook_lib.units import BF16, FP8

approx = pytest.approx
C = 989e12  # H100 in bf16
POD = Cluster.of(chips.H100, 4096)


# --- machine by machine, in round numbers -----------------------------------------------------------------

CRITICAL = [  # data parallel in the domain, across; tensor-parallel ways for F = 28,672; experts far
    ("A100", 1040, 1560, 27.6, 12_480),
    ("H100", 2200, 2475, 13.0, 19_800),
    ("H200", 2200, 2475, 13.0, 19_800),
    ("B200", 2500, 5625, 11.5, 45_000),
    ("B300", 2500, 2813, 11.5, 22_500),
    ("GB200", 2778, 694, 10.3, 50_000),
    ("GB300", 2778, 347, 10.3, 25_000),
    ("MI300X", 2917, 3268, 9.8, 26_140),
]


@pytest.mark.parametrize(("name", "inside", "across", "ways", "far"), CRITICAL, ids=[c[0] for c in CRITICAL])
def test_the_critical_numbers_of_every_machine(name, inside, across, ways, far):
    row = limits.rules(chips.find(name))
    assert (row.domain_tokens, row.network_tokens) == (approx(inside, rel=2e-3), approx(across, rel=2e-3))
    assert row.tensor_degree == approx(ways, rel=5e-3)
    assert (row.expert_F, row.far_expert_F) == (row.domain_tokens, approx(far, rel=2e-3))


@pytest.mark.parametrize("row", limits.table(), ids=lambda row: row.chip)
def test_the_rules_are_what_the_exact_limits_near(row):
    chip = chips.find(row.chip)
    machine = Cluster.of(chip, 288 * row.domain if row.domain <= 32 else 8 * row.domain)
    nodes, g = machine.nodes, row.domain
    across = limits.data_parallel(machine, model_parallel=g)
    assert across.least == approx(row.network_tokens * (1 - 1 / nodes))
    inside = limits.data_parallel(Cluster.of(chip, g))
    assert inside.least == approx(row.domain_tokens * (1 - 1 / g))
    assert limits.tensor_parallel(machine, g).least == approx((g - 1) * row.expert_F)
    assert limits.expert_parallel(machine, g, k=2).least == approx((1 - 1 / g) * row.expert_F)
    far = limits.expert_parallel(machine, machine.chips, k=1)
    assert far.least == approx(row.far_expert_F * (1 - 1 / nodes))


def test_the_table_has_every_machine_of_the_chapter_and_refuses_a_torus():
    assert [row.chip for row in limits.table()] == list(limits.MACHINES)
    with pytest.raises(ValueError, match="use `data_parallel` on a Slice"):
        limits.rules(chips.V5P)


# --- data parallelism -------------------------------------------------------------------------------------


def test_two_domains_are_held_by_nvlink_and_not_by_the_network():
    """The scaling book says 1,237 tokens; its own quiz 4.5 shows that NVLink sets the pace: 1,923."""
    found = limits.data_parallel(Cluster.of(chips.H100, 16))
    assert (found.bound, found.least) == ("NVLink", approx(C / 450e9 * 7 / 8))
    assert found.term("leaf") == approx(C / 400e9 / 2)
    filled = limits.data_parallel(Cluster.of(chips.H100, 16), model_parallel=8)
    assert (filled.bound, filled.least) == ("leaf", approx(C / 400e9 / 2))


@pytest.mark.parametrize(("m", "tokens"), [(1, 2475), (4, 2475), (8, 2475), (16, 1238), (64, 309)])
def test_megatron_rows(m, tokens):
    """Narayanan et al. 2021, 16 to 70 B parameters: the thresholds that the scaling book's quiz asks for."""
    groups = max(m // 8, 1)
    found = limits.data_parallel(POD, model_parallel=m)
    assert found.least == approx(tokens * (1 - groups / 512), rel=2e-3)


def test_llama_3_70b_on_4096_h100_needs_pipeline_stages():
    """4 M tokens are 977 a chip: not enough for FSDP with TP 8, enough with eight stages as well."""
    each = 4e6 / 4096
    assert not limits.data_parallel(POD, model_parallel=8).holds(each)
    assert limits.data_parallel(POD, model_parallel=64).holds(each)


@pytest.mark.parametrize("m", [1, 2, 4, 8, 16, 64, 512])
def test_the_closed_form_of_the_docstring(m):
    g, nodes = 8, 512
    mi, mn = min(m, g), max(1, m // g)
    inside, across = (1 - mi / g) / (450e9 * mi), (1 - mn / nodes) / (400e9 * mn)
    assert limits.data_parallel(POD, model_parallel=m).least == approx(C * max(inside, across))


def test_a_rack_of_72_is_held_by_nvlink_and_many_racks_by_less():
    """Within one rack 2,739 tokens, and over racks only 694 (1 - 1/8): the rack stays what binds."""
    rack = limits.data_parallel(Cluster.of(chips.GB200, 72))
    assert rack.least == approx(2500e12 / 900e9 * 71 / 72) == approx(2739, rel=1e-3)
    eight = limits.data_parallel(Cluster.of(chips.GB200, 576))
    assert (eight.bound, eight.least) == ("NVLink", approx(rack.least))
    assert eight.term("leaf") == approx(2500e12 / 3600e9 * 7 / 8)


def test_experts_ask_for_more_tokens_and_fp8_arithmetic_too():
    plain = limits.data_parallel(POD)
    assert limits.data_parallel(POD, sparsity=32).least == approx(32 * plain.least)
    assert limits.data_parallel(POD, dtype=FP8).least == approx(1979 / 989 * plain.least)
    assert limits.data_parallel(POD, dtype=FP8, moved=FP8).least == approx(1979 / 989 / 2 * plain.least)


def test_summing_in_the_switch_halves_what_a_domain_asks_for_at_most():
    one = Cluster.of(chips.H100, 8)
    summed, gathered = limits.data_parallel(one, in_switch=True), limits.data_parallel(one)
    assert gathered.least / summed.least == approx(2 * 7 / 9)


def test_on_a_slice_all_axes_work_at_once():
    cube = Slice.of(chips.V5P, "8x8x8")
    wires = 6 * chips.V5P.link_bytes_per_s
    found = limits.data_parallel(cube)
    assert (found.bound, found.least) == ("torus", approx(459e12 / wires * 511 / 512))
    two = limits.data_parallel(cube, model_parallel=8)  # two axes are left, each chip moves an eighth
    assert two.least == approx(459e12 / (wires * 2 / 3) * 63 / 64 / 8)


# --- tensor parallelism -----------------------------------------------------------------------------------


@pytest.mark.parametrize("Y", range(2, 9))
def test_within_a_domain_the_width_is_y_minus_1_times_c_over_w(Y):
    assert limits.tensor_parallel(POD, Y).least == approx((Y - 1) * C / 450e9)


@pytest.mark.parametrize("q", [2, 4, 16])
def test_over_domains_nvlink_asks_for_more_than_the_network_until_many(q):
    Y, found = 8 * q, limits.tensor_parallel(POD, 8 * q)
    assert found.term("NVLink") == approx((Y - Y / 8) * C / 450e9)
    assert found.term("leaf") == approx((Y - 8) * C / 400e9)


def test_sixteen_ways_over_two_nodes_is_slightly_too_many_for_28672():
    """Case N4: 14 · 2,198 = 30,769; the scaling book's 19-way counts the network alone."""
    found = limits.tensor_parallel(POD, 16)
    assert (found.bound, found.least) == ("NVLink", approx(30_769, rel=1e-4))
    widest = limits.widest_tensor_parallel(POD, 28_672)
    assert (widest.Y, widest.limit.least) == (8, approx(7 * C / 450e9))
    assert str(widest) == (
        "F = 28,672 can be sharded over at most 8 H100s, which need F > 15,384; 16 H100s would need F > "
        "30,769, and the bottleneck would be NVLink"
    )
    assert limits.widest_tensor_parallel(POD, 1000).Y == 1
    assert limits.widest_tensor_parallel(Cluster.of(chips.H100, 8), 10**6).beyond is None


def test_on_a_full_mesh_two_chips_need_as_wide_an_mlp_as_eight():
    """Case N7: with fewer chips a chip uses fewer links, so F > 2 · C / (2 W_link) whatever Y."""
    mesh = Cluster.of(chips.MI300X, 64)
    found = {limits.tensor_parallel(mesh, Y).least for Y in (2, 4, 8)}
    assert [*found] == [approx(1307e12 / 64e9)] * len(found)


def test_a_gated_mlp_needs_two_thirds():
    for Y in (8, 16):
        plain, gated = limits.tensor_parallel(POD, Y), limits.tensor_parallel(POD, Y, gated=True)
        assert gated.least == approx(plain.least * 2 / 3)


def test_one_axis_of_a_slice():
    cube = Slice.of(chips.V5P, "8x8x8")
    assert limits.tensor_parallel(cube, 8).least == approx(7 * 459e12 / (2 * chips.V5P.link_bytes_per_s))
    assert limits.widest_tensor_parallel(cube, 28_672).Y == 8


def test_over_one_chip_nothing_moves():
    for found in (limits.expert_parallel(POD, 1, k=8), limits.tensor_parallel(POD, 1)):
        assert found.least == 0
        assert found.bound == ""
        assert "needs no communication" in str(found)
    assert limits.data_parallel(POD, model_parallel=4096).holds(0)
    assert "on the same chip" in str(limits.exchange(POD, 1, tokens=1, D=1, k=2))


# --- laws -------------------------------------------------------------------------------------------------

FORMS = {
    "data": lambda machine: limits.data_parallel(machine, model_parallel=2),
    "tensor": lambda machine: limits.tensor_parallel(machine, 32),
    "expert": lambda machine: limits.expert_parallel(machine, 64, k=4, once=True),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("factor", [1.5, 4])
class TestLaws:
    def test_faster_links_never_ask_for_more_and_faster_chips_for_as_much_more(self, form, factor):
        faster = replace(chips.H100, name="H", link_bytes_per_s=factor * 25e9)
        assert form(Cluster.of(faster, 1024)).least <= form(Cluster.of(chips.H100, 1024)).least
        wide = form(Cluster.of(chips.H100, 1024, nic_bytes_per_s=factor * 50e9))
        assert wide.least <= form(Cluster.of(chips.H100, 1024)).least
        hot = replace(chips.H100, name="H", bf16_flops_per_s=factor * C)
        assert form(Cluster.of(hot, 1024)).least == approx(factor * form(Cluster.of(chips.H100, 1024)).least)

    def test_a_thinner_tree_never_asks_for_less(self, form, factor):
        thin = Cluster.of(chips.H100, 1024, oversubscription=factor)
        assert form(thin).least >= form(Cluster.of(chips.H100, 1024)).least

    def test_the_limit_is_its_largest_term(self, form, factor):
        found = form(Cluster.of(chips.H100, 1024, nic_bytes_per_s=factor * 50e9))
        assert found.least == approx(max(term.least for term in found.terms))
        assert found.term(found.bound) == approx(found.least)


def test_one_stage_after_the_other_the_terms_add():
    found = limits.data_parallel(Cluster.of(chips.H100, 256), overlap=False)
    assert found.least == approx(sum(term.least for term in found.terms))


def test_more_ways_need_a_wider_mlp_and_more_model_parallelism_fewer_tokens():
    widths = [limits.tensor_parallel(POD, 2**e).least for e in range(10)]
    tokens = [limits.data_parallel(POD, model_parallel=2**e).least for e in range(13)]
    assert widths == sorted(widths)
    assert tokens == sorted(tokens, reverse=True)


def test_limits_tell_themselves():
    assert str(limits.data_parallel(POD, model_parallel=8)) == (
        "data parallelism over 4,096 H100s, 8 chips per replica: compute-bound above 2,468 tokens per chip; "
        "the bottleneck is leaf (alone: spine 72, core 14)"
    )
    assert str(limits.rules(chips.B200)).startswith("B200, domains of 8: DP needs 2,500 tokens per chip")
    for told in (limits.exchange(POD, 64, tokens=1, D=8, k=2), limits.expert_parallel(POD, 64, dtype=BF16)):
        assert re.search("bottleneck (is )?leaf", str(told))
