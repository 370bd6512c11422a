"""Times of collectives agree with numbers in the literature."""

from dataclasses import replace

import pytest

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.evidence import fabric_fit
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.units import BF16, GB, KB, MB

approx = pytest.approx

# --- the numbers of the literature ------------------------------------------------------------------------

V5E = chips.V5E
DERATED = replace(V5E, link_bytes_per_s=45e9)  # what the scaling book uses: 90% of the documented 50 GB/s
V4_DERATED = replace(chips.V4, link_bytes_per_s=45e9)


def test_gathering_34_megabytes_over_a_line_of_four():
    nbytes = 2 * 2048 * 8192
    line = DERATED.axis(4)
    assert not line.wrapped
    took = collectives.all_gather(nbytes, line)
    assert took.bandwidth_s == approx(559e-6, rel=2e-3)
    assert took.textbook_s == approx(373e-6, rel=2e-3)  # the naive ring; 377 from a rounded size
    assert collectives.all_gather(nbytes, DERATED.axis(4, wrapped=True)).bandwidth_s == approx(
        280e-6, rel=2e-3
    )
    assert took.bandwidth_s / 680e-6 == approx(0.82, abs=0.005)  # measured on a real v5e: 680 µs
    assert collectives.all_gather(nbytes, V5E.axis(4)).bandwidth_s == approx(503.3e-6, rel=1e-3)


def test_gathering_128_kilobytes_over_a_line_of_four_is_latency_bound():
    took = collectives.all_gather(2 * 256 * 256, DERATED.axis(4))
    assert took.latency_s == approx(3e-6)
    assert took.bandwidth_s / 3 == approx(0.73e-6, rel=5e-3)
    assert took.bound == "latency"


def test_three_collectives_on_a_v4_cube():
    x = y = z = V4_DERATED.axis(4, wrapped=True)
    whole = 2 * 1024 * 4096
    one = collectives.all_gather(whole / 4, x)
    assert (one.textbook_s, one.bandwidth_s) == (approx(23.3e-6, rel=2e-3), approx(17.5e-6, rel=2e-3))
    two = collectives.all_gather(whole, x, y)
    assert (two.textbook_s, two.bandwidth_s) == (approx(46.6e-6, rel=2e-3), approx(43.7e-6, rel=2e-3))
    three = collectives.all_reduce(whole / 16, z)
    assert (three.textbook_s, three.bandwidth_s) == (approx(11.65e-6, rel=2e-3), approx(8.74e-6, rel=2e-3))
    assert [t.latency_s for t in (one, two, three)] == [approx(2e-6), approx(4e-6), approx(4e-6)]
    documented = collectives.all_gather(whole / 4, chips.V4.axis(4, wrapped=True))
    assert documented.bandwidth_s == approx(15.73e-6, rel=1e-3)


def test_256_bytes_take_as_long_as_their_hops():
    took = collectives.all_gather(128 * BF16.bytes, chips.V4.axis(4, wrapped=True))
    assert took.total_s == approx(2e-6, rel=1e-2)
    assert took.textbook_s == 2e-6


def test_the_textbook_form_on_a_ring_overestimates_by_n_over_n_minus_1():
    for n, error in [(4, 1 / 3), (16, 1 / 15)]:
        took = collectives.all_gather(1 * GB, Axis(n, True, 45e9, 0))
        assert took.textbook_error == approx(error)


def test_a_wrapped_ring_of_16_is_latency_bound_below_three_quarters_of_a_megabyte():
    ring = DERATED.axis(16)
    assert ring.wrapped
    assert collectives.hop_crossover_bytes(ring) == approx(45 * KB)
    assert collectives.latency_bound_below(ring) == approx(16 / 15 * 16 * 45 * KB)
    below = collectives.latency_bound_below(ring)
    assert collectives.all_gather(0.99 * below, ring).bound == "latency"
    assert collectives.all_gather(1.01 * below, ring).bound == "bandwidth"
    assert collectives.latency_bound_below(ring, collective=collectives.all_to_all) > 3 * below


def test_nccl_bus_bandwidth_of_a_perfect_ring_is_the_ring():
    for n in (2, 4, 8, 16):
        ring = Axis(n, True, 45e9, 0)
        for formula in (collectives.all_gather, collectives.reduce_scatter, collectives.all_reduce):
            name = formula.__name__.replace("_", "-")
            seconds = formula(64 * MB, ring).total_s
            assert collectives.bus_bandwidth(name, 64 * MB, n, seconds) == approx(90e9)


def test_across_slices_only_the_scattered_part_crosses_the_network():
    slice_axes = [chips.V5P.axis(4, wrapped=True)] * 3
    dcn = Axis(2, False, 6.25e9, 0)
    took = collectives.hierarchical_all_reduce(1 * GB, *slice_axes, dcn=dcn)
    inside = collectives.all_reduce(1 * GB, *slice_axes)
    assert took.bandwidth_s - inside.bandwidth_s == approx(2 * (1 - 1 / 2) * 1 * GB / 64 / 6.25e9)
    assert took.textbook_s == approx(2 * GB / (3 * 2e11) + 2 * GB / (64 * 6.25e9))


# --- words and refusals ---------------------------------------------------------------------------------


def test_results_print_as_one_line():
    ring = Axis(16, True, 50e9, 1e-6)
    assert str(collectives.all_gather(10 * MB, ring)) == (
        "AllGather, bandwidth-bound: total 102 µs, bandwidth 93.8 µs, latency 8 µs"
    )
    assert str(collectives.all_gather(10 * MB)) == "AllGather: total 0 s, bandwidth 0 s, latency 0 s"
    assert sum([collectives.permute(1, ring)], collectives.NOTHING).name == "CollectivePermute"


def test_a_shift_by_nothing_is_free():
    assert collectives.permute(1 * GB, Axis(4, True, 1e9, 1e-6), shift=4).total_s == 0


@pytest.mark.parametrize(
    "formula",
    [collectives.all_gather, collectives.reduce_scatter, collectives.all_reduce, collectives.all_to_all],
    ids=lambda formula: formula.__name__,
)
def test_impossible_arguments_are_refused(formula):
    with pytest.raises(ValueError, match="nbytes=-1: write a number of at least 0"):
        formula(-1, Axis(4, True, 1, 0))
    with pytest.raises(ValueError, match="no wraparound"):
        formula(1, Axis(4, False, 1, 0), bidirectional=False)


def test_a_torus_starts_its_collectives_as_v5e_was_measured():
    """128 KiB over three hops take 8 µs."""
    row = fabric_fit.MeasuredCollective(
        chips.V5E, fabric_fit.networks(chips.V5E, 4), Collective.ALL_GATHER, 2**17
    )
    assert fabric_fit.predicted_s(row) == pytest.approx(8e-6, rel=0.15)
