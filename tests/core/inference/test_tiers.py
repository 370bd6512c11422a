"""Tests of loading a cached prefix from a tier, or computing it again."""

from math import inf

import pytest

from scalingbook_lib import inference, models
from scalingbook_lib.inference import Layout, Tier, load
from scalingbook_lib.machines import Cluster, chips

LLAMA, EIGHT, LAYOUT = models.find("Llama 3 70B"), Cluster.of(chips.H100, 8), Layout(tp=8)


def loaded(**tier):
    return load(LLAMA, EIGHT, LAYOUT, Tier(name="here", **tier), P=8192, cached=8000)


def test_without_overheads_it_is_the_prefix_of_the_chapter():
    found = loaded(bytes_per_s=50e9)
    plain = inference.prefix(LLAMA, EIGHT, LAYOUT, P=8192, cached=8000, bytes_per_s=50e9)
    assert found.load_s == plain.reload_s
    assert found.break_even_bytes_per_s == plain.break_even_bytes_per_s
    assert found.pays == plain.pays


def test_at_the_break_even_bandwidth_both_take_equally_long():
    overheads = {"latency_s": 1e-3, "descriptor_s": 1e-6}
    rate = loaded(bytes_per_s=1e9, **overheads).break_even_bytes_per_s
    even = loaded(bytes_per_s=rate, **overheads)
    assert even.load_s == pytest.approx(even.recompute_s)
    assert loaded(bytes_per_s=2 * rate, **overheads).pays
    assert not loaded(bytes_per_s=rate / 2, **overheads).pays


def test_descriptors_can_cost_more_than_bytes():
    found = loaded(bytes_per_s=1e15, descriptor_s=1e-3)
    assert found.descriptors == 125 * 80
    assert found.load_s == pytest.approx(10, rel=1e-3)
    assert not found.pays
    assert found.break_even_bytes_per_s == inf


def test_overlap_hides_the_shorter_of_loading_and_computing():
    for rate in (1e9, 1e10, 1e11, 1e12):
        found = loaded(bytes_per_s=rate)
        assert max(found.load_s, found.prefix.rest_s) < found.overlapped_ttft_s < found.ttft_s


def test_a_tier_holds_its_bytes_over_those_of_a_token():
    assert loaded(bytes_per_s=1e9, nbytes=1e12).tokens == pytest.approx(1e12 / 327_680)


@pytest.mark.parametrize("wrong", [{"bytes_per_s": 0}, {"bytes_per_s": 1e9, "nbytes": 0}])
def test_a_tier_without_bandwidth_or_room_is_refused(wrong):
    with pytest.raises(ValueError, match="here: write a positive"):
        Tier(name="here", **wrong)
