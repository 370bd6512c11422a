"""Two microbatches in turns, and waves of experts: laws of their times, and what others published."""

from itertools import product

import pytest

from scalingbook_lib import models
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.steps.overlap import Stages, stages, turns, two_microbatches, waves

V3 = models.find("DeepSeek-V3")
approx = pytest.approx


def layer(a=1.0, d=0.0, x=1.0, m=0.0):
    return Stages(attention_s=a, dispatch_s=d, experts_s=x, combine_s=m)


def test_between_the_busier_of_two_and_one_after_the_other():
    for a, d, x, m in product((0, 1, 3, 10), repeat=4):
        found = two_microbatches(layer(a, d, x, m))
        lockstep = max(a, d) + max(a, m) + max(x, d) + max(x, m)
        assert 2 * max(a + x, d + m) <= found.total_s + 1e-9
        assert found.total_s <= min(lockstep, 2 * (a + d + x + m)) + 1e-9
        assert found.total_s == approx(found.products_s + found.cores_s + found.exposed_s)


def test_equal_parts_hide_each_other_whole():
    found = two_microbatches(layer(1, 1, 1, 1))
    assert (found.total_s, found.exposed_s, found.gain) == (approx(4), 0, approx(2))


def test_the_order_leaves_something_exposed_where_the_busier_of_two_would_not():
    found = two_microbatches(layer(10, 1, 1, 10))
    assert found.total_s == approx(31)  # long attention, both, then a long way back: a + a + d + m
    assert found.exposed_s == approx(9)


def test_the_first_layer_starts_at_once_and_the_second_microbatch_as_soon_as_cores_are_free():
    parts = [(turn.microbatch, turn.start, turn.end) for turn in turns(layer(0.2, 0.1, 0.3, 0.1), 1)]
    cores, network = parts[::2], parts[1::2]
    assert cores == [(0, 0, 0.2), (1, 0.2, 0.4), (0, 0.4, approx(0.7)), (1, approx(0.7), approx(1))]
    ends = [(one, approx(end), approx(end + 0.1)) for one, _, end in cores]
    assert network == ends  # each part leaves when it is made


def test_cores_that_move_tokens_cost_their_share_of_every_product():
    found = two_microbatches(layer(3, 1, 1, 1), taken=20, cores=132)
    assert found.cores_s == approx(8 * 20 / 112)
    assert two_microbatches(layer(3, 0.1, 1, 0.1), taken=20, cores=132).gain < 1
    with pytest.raises(ValueError, match="none computes"):
        two_microbatches(layer(), taken=132, cores=132)


def test_waves_are_at_most_twice_as_fast_and_one_wave_is_none():
    even = layer(0, 1, 2, 1)
    assert waves(even, 1).gain == 1
    assert [waves(even, n).gain for n in (2, 4, 16)] == [approx(2 * n / (n + 1)) for n in (2, 4, 16)]
    assert waves(layer(0, 1, 8, 1), 1000).gain == approx(1.25, rel=1e-3)


def test_v3_s_layer_across_nodes_of_h100_is_about_one_to_one_as_its_report_says():
    """arXiv 2412.19437, 3.2.1: "a computation-to-communication ratio of approximately 1:1"."""
    part = stages(Cluster.of(chips.H100, 64), V3, tokens=4096, most_domains=4)
    assert part.products_s / part.exchange_s == approx(1.12, abs=0.02)
    assert part.combine_s == approx(2 * part.dispatch_s)  # bf16 back, fp8 out
    with pytest.raises(ValueError, match="no experts"):
        stages(Cluster.of(chips.H100, 64), models.find("llama-3-70b"), tokens=4096)
