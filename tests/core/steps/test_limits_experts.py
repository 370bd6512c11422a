"""How far experts can be spread: widths, and copies of tokens counted one by one."""

import random

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.steps import limits
from scalingbook_lib.units import FP8

approx = pytest.approx

C = 989e12  # H100 in bf16

POD = Cluster.of(chips.H100, 4096)


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("Z", [2, 8, 36, 72])
def test_in_a_domain_the_width_depends_neither_on_k_nor_much_on_z(Z, k):
    found = limits.expert_parallel(Cluster.of(chips.GB200, 72), Z, k=k)
    assert found.least == approx((1 - 1 / Z) * 2500e12 / 900e9)


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("nodes", [2, 8, 32])
def test_over_domains_one_copy_goes_to_each(nodes, k):
    found = limits.expert_parallel(POD, 8 * nodes, k=k, once=True)
    copies = (nodes - 1) * (1 - (1 - 1 / nodes) ** k)
    assert found.term("leaf") == approx(C / 50e9 * copies / k)
    rule = C / 400e9 * (8 * nodes - 8) * min(k / nodes, 1) / k  # the scaling book's
    assert found.term("leaf") <= rule * (1 + 1e-12)


def test_many_domains_near_g_c_over_w():
    far = limits.expert_parallel(POD, 4096, k=2, once=True)
    assert far.least == approx(8 * C / 400e9, rel=5e-3)


DEEP = {"k": 8, "shared": 1, "gated": True, "once": True, "dispatch": FP8}


def test_deepseek_v3_moves_tokens_for_longer_than_it_multiplies_them():
    """F = 2,048, EP 64 over 8 nodes: 2.5 times as long; 1.7 with experts on 4 nodes."""
    free = limits.expert_parallel(POD, 64, **DEEP)
    assert free.least / 2048 == approx(2.47, rel=5e-3)
    limited = limits.expert_parallel(POD, 64, most_domains=4, **DEEP)
    reached = 4 * (1 - (3 / 4) ** 8)
    assert limited.least / 2048 == approx(1.88 * reached / 4, rel=5e-3)
    fp8 = limits.expert_parallel(POD, 64, dtype=FP8, **DEEP)
    assert fp8.least / free.least == approx(2, rel=1e-3)


def test_a_rack_of_72_gives_deepseek_what_eight_nodes_do_not():
    """Case N5: with a gated MLP, F > 2,778 · 2/3 · 63/64, which 2,048 satisfies."""
    rack = limits.expert_parallel(Cluster.of(chips.GB200, 72), 64, k=8, gated=True)
    assert rack.least == approx(2500e12 / 900e9 * 2 / 3 * 63 / 64)
    assert rack.holds(2048)
    naive = C / 400e9 * (64 - 8) / 8
    assert naive == approx(17_307, rel=1e-3)
    assert limits.expert_parallel(POD, 64, k=8, once=True).least == approx(naive * (1 - (7 / 8) ** 8))


def test_copies_of_a_token_are_counted():
    found = limits.exchange(POD, 64, tokens=4096, D=7168, k=8)
    copies = dict(found.copies)
    assert copies["leaf"] == approx(7 * (1 - (7 / 8) ** 8))
    assert copies["NVLink"] == approx(64 * (1 - (63 / 64) ** 8) * 7 / 8)
    assert dict(found.seconds)["leaf"] == approx(copies["leaf"] * 2 * 4096 * 7168 / 50e9)
    every = limits.exchange(POD, 64, tokens=4096, D=7168, k=8, once=False)
    assert dict(every.copies)["leaf"] == approx(8 * 7 / 8)
    assert found.total_s < every.total_s


@pytest.mark.parametrize(("nodes", "E", "k"), [(2, 16, 2), (8, 64, 8), (8, 256, 8), (4, 32, 6)])
def test_copies_are_those_of_tokens_routed_at_random(nodes, E, k):
    draw, Z, tokens = random.Random(7), 8 * nodes, 4000
    sent = {"NVLink": 0, "leaf": 0}
    for _ in range(tokens):
        places = {e * Z // E for e in draw.sample(range(E), k)}  # chips; the token is on chip 0
        sent["leaf"] += len({p // 8 for p in places} - {0})
        sent["NVLink"] += sum(p % 8 > 0 for p in places)  # from the token's rail to the expert's
    found = dict(limits.exchange(POD, Z, tokens=1, D=1, k=k, E=E).copies)
    for level, copies in sent.items():
        assert copies / tokens == approx(found[level], rel=0.03)


def test_one_expert_a_chip_and_all_of_them_asked_reach_every_chip():
    assert limits.exchange(POD, 8, tokens=1, D=1, k=8, E=8).copies == (("NVLink", approx(7)),)
    many = [limits.exchange(POD, 8, tokens=1, D=1, k=8, E=8 * n).total_s for n in (1, 4, 1000)]
    assert many == sorted(many, reverse=True)
    assert many[-1] == approx(limits.exchange(POD, 8, tokens=1, D=1, k=8).total_s, rel=1e-3)


@pytest.mark.parametrize("once", [True, False])
def test_one_expert_is_one_copy(once):
    found = limits.exchange(POD, 64, tokens=1, D=1, k=1, once=once)
    assert dict(found.copies)["leaf"] == approx(7 / 8)
