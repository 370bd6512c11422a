"""Laws of the front of latency against cost."""

from itertools import pairwise
from typing import Any

import pytest

from scalingbook_lib import inference, models, planner
from scalingbook_lib.inference.serve import serve as steady
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.planner.ways import sizes
from scalingbook_lib.units import BF16, FP8, INT8

LLAMA = models.find("Llama 3 70B")
V5E_8, V5E_16 = Slice.of(chips.V5E, "2x4"), Slice.of(chips.V5E, "4x4")
INT8_ALL: dict[str, Any] = {"weights": INT8, "kv": INT8}
FEW = {"pp": (1,), "attention_dp": (1,)}


def front(machine: Slice | tuple[Slice, ...] = V5E_8, P=2048, G=512, fixed=INT8_ALL, tried=FEW, **how):
    return planner.serve(LLAMA, machine, P=P, G=G, fixed=fixed, tried=tried, **how)


def every(machine: Slice, found: planner.Front, policies=("interleaved", "chunked")):
    """All legal ways, by brute force over the fields that FEW leaves open."""
    for tp in (1, 2, 4, 8, 16):
        for rows in (1, 2, 4, 8, 16):
            for kv in ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (8, 1), (1, 8), (16, 1), (1, 16)):
                try:
                    layout = inference.Layout(tp=tp, rows=rows, kv_batch=kv[0], kv_sequence=kv[1], **INT8_ALL)
                    layout.check(LLAMA)
                    inference.case(LLAMA, machine, layout)
                except ValueError:
                    continue
                if layout.kv_heads > LLAMA.K:
                    continue
                for policy in policies:
                    most = inference.largest_batch(LLAMA, layout, machine, S=found.P + found.G // 2,
                        step_tokens=512 if policy == "chunked" else None)  # fmt: skip
                    for B in sizes(most):
                        yield steady(LLAMA, machine, layout, P=found.P, G=found.G, batch=B, policy=policy)


def test_nothing_beats_what_is_on_the_front_and_all_else_is_beaten():
    found = front()
    price = chips.V5E.usd_per_hour
    ways = [(s.itl_s, s.usd_per_million(price)) for s in every(V5E_8, found)]
    assert len(ways) == found.ways
    on = [(p.itl_s, p.cost) for p in found]
    for itl_s, cost in ways:
        assert any(a <= itl_s * (1 + 1e-9) and b <= cost * (1 + 1e-9) for a, b in on)
    for a, b in on:
        assert not any(itl_s < a * (1 - 1e-9) and cost < b * (1 - 1e-9) for itl_s, cost in ways)


def test_from_the_fastest_to_the_cheapest():
    points = front(V5E_16).points
    assert len(points) > 3
    for one, next_ in pairwise(points):
        assert one.itl_s < next_.itl_s
        assert one.cost > next_.cost


def test_every_point_fits_and_fills_the_machine():
    for p in front(V5E_16, tried={}):
        held = inference.memory(LLAMA, p.layout, V5E_16, batch=int(p.sequences), S=2048 + 256)
        assert held.fits
        assert p.copies * p.layout.chips == V5E_16.chips


@pytest.mark.parametrize(("price", "P"), [(0.1, 512), (1.2, 2048), (3.85, 8192), (50.0, 2048)])
def test_a_price_moves_costs_and_nothing_else(price, P):
    one, other = front(P=P, usd_per_hour=price), front(P=P, usd_per_hour=2 * price)
    assert [p.layout for p in one] == [p.layout for p in other]
    assert [2 * p.cost for p in one] == pytest.approx([p.cost for p in other])


def test_targets_leave_out_what_is_late_and_count_it():
    free, bound = front(), front(itl_s=0.02)
    assert all(p.itl_s <= 0.02 for p in bound)
    assert free.within(0.02).cost == pytest.approx(bound.best.cost)
    assert all(free.within(p.itl_s) is p for p in free), "a target is met by what takes just as long"
    assert any(r.kind.startswith("latency") for r in bound.rejected)
    with pytest.raises(ValueError, match="the fastest has"):
        free.within(1e-6)


def test_with_nothing_legal_the_reasons_are_told():
    none = front(fixed={"weights": BF16, "kv": BF16}, tried={**FEW, "tp": (1, 2)})
    assert not none.points
    assert "memory" in {r.kind for r in none.rejected}
    with pytest.raises(ValueError, match="does not fit"):
        none.best
    with pytest.raises(ValueError, match="no layout fits"):
        none.fastest


def test_a_wider_choice_is_never_worse():
    narrow, wide = front(V5E_16), front(V5E_16, tried={})
    assert wide.best.cost <= narrow.best.cost
    assert wide.fastest.itl_s <= narrow.fastest.itl_s
    both = front((V5E_8, V5E_16))
    assert both.best.cost <= min(front(V5E_8).best.cost, narrow.best.cost) * (1 + 1e-12)


def test_chips_without_a_price_are_counted_in_hours_and_not_mixed():
    v6e = Slice.of(chips.V6E, "2x4")
    alone = front(v6e)
    assert alone.unit == "chip-hours"
    assert "chip-hours" in str(alone)
    with pytest.raises(ValueError, match="no price"):
        front((V5E_8, v6e))


def test_experts_are_spread_over_a_node_of_gpus():
    mixtral = models.find("Mixtral 8x7B")
    node = clusters.Cluster.of(chips.H100, 8)
    found = planner.serve(mixtral, node, P=1024, G=256, fixed={"weights": FP8, "kv": FP8, "compute": FP8},
                          tried={"pp": (1,)})  # fmt: skip
    assert any(p.layout.ep > 1 or p.layout.tp > 1 for p in found)
    assert found.ways > 100


def test_sizes_double_in_two_steps_and_end_at_the_most():
    assert sizes(13) == [1, 2, 3, 4, 6, 8, 12, 13]
    assert sizes(0) == []
    assert sizes(1) == [1]


@pytest.mark.parametrize(
    ("fixed", "why"),
    [
        ({"tp": 3}, "tp=3 does not divide the 8 chips; write one of 1, 2, 4, 8"),
        ({"tp": 4, "pp": 4}, "tp=4, pp=4: no layout on 8 chips has all of these; leave out one of them"),
        ({"tp": 8, "ep": 3}, "ep=3 does not divide tp=8; write one of 1, 2, 4, 8"),
        ({"ep": 3}, "ep=3 does not divide tp=8"),
        ({"kv_sequence": 5}, "kv_sequence=5 does not divide tp=8"),
        ({"rows": 2, "attention_dp": 2}, "rows=2, attention_dp=2: no layout on 8 chips"),
    ],
)
def test_degrees_that_leave_no_layout_are_named(fixed, why):
    machine = clusters.Cluster.of(chips.H100, 8)
    found = planner.serve(models.find("Mixtral 8x7B"), machine, P=1024, G=512, fixed=fixed)
    (miss,) = found.misses
    assert why in miss.why


def test_a_missed_target_is_the_reason_and_not_the_memory_of_other_layouts():
    h100 = clusters.Cluster.of(chips.H100, 8)
    found = planner.serve(LLAMA, h100, P=1024, G=512, itl_s=1e-3, ttft_s=1.0)
    (miss,) = found.misses
    assert {"latency", "memory"} <= {one.kind for one in found.rejected}
    assert miss.why.startswith("ITL ")
    assert "and the target is 1 ms, with TP 8" in miss.why
    assert "TTFT" not in miss.why


def test_a_batch_that_does_not_fit_is_the_reason():
    h100 = clusters.Cluster.of(chips.H100, 8)
    found = planner.serve(LLAMA, h100, P=1024, G=512, batches=(100_000,), tried={"pp": (1,)})
    (miss,) = found.misses
    assert "fewer than the batch size of 100,000" in miss.why


def test_layouts_that_would_divide_domains_unequally_are_left_out_of_a_search():
    """DeepSeek-V3 on 9 hosts: EP 72 with 32 redundant experts is possible with 72 attention-DP groups."""
    v3, hosts = models.find("DeepSeek-V3"), clusters.Cluster.of(chips.H100, 72)
    ways = {"weights": FP8, "compute": FP8, "redundant_experts": 32}
    found = planner.serve(v3, hosts, P=2000, G=100, fixed=ways, tried={"ep": (72,)})
    assert {one.layout.ep for one in found.points} == {72}
    refused = next(one for one in found.rejected if one.kind == "the machine's domains")
    assert "would divide domains of 8 (NVLink) unequally; let the degrees" in refused.why
