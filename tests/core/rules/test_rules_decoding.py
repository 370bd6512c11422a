"""The closed forms of serving layouts, and the terms that they leave out."""

import pytest

from scalingbook_lib import collectives, rules
from scalingbook_lib.inference import queueing
from scalingbook_lib.machines import chips
from scalingbook_lib.units import INT8


def test_the_widest_useful_decode_layout_of_the_sheet():
    """Y < (w/a) M F / (B beta): 57 at F = 16,384, B = 32 and beta 9; here it is 8.19, with W_ici 100 GB/s."""
    assert rules.decode_tensor_parallel_degree(16384, 32, chips.V5E) == pytest.approx(16384 / 32 / 8.19)
    assert rules.decode_tensor_parallel_degree(16384, 32, chips.V5E, wrapped=False) == pytest.approx(
        16384 / 64 / 8.19
    )
    half = rules.decode_tensor_parallel_degree(16384, 32, chips.V5E, weights=INT8)
    assert half == pytest.approx(16384 / 64 / 8.19)
    Y = rules.decode_tensor_parallel_degree(28672, 64, chips.V5E)
    read = 2 * 2 * 8192 * 28672 / Y / chips.V5E.hbm_bytes_per_s
    axis = chips.V5E.axis(16, wrapped=True)
    assert 2 * 2 * 64 * 8192 / axis.bytes_per_s == pytest.approx(read)  # all but (1 - 1/Y) of it


def test_the_widest_layout_bound_by_arithmetic():
    assert rules.tensor_parallel_degree(28672, chips.V5E) == pytest.approx(28672 * 100e9 / 197e12)
    assert rules.tensor_parallel_degree(
        28672, chips.V5E, activations=INT8
    ) == 2 * rules.tensor_parallel_degree(28672, chips.V5E)


@pytest.mark.parametrize(("axes", "least"), [((1, 2), 72), ((1, 1), 64)])
def test_two_dimensions_win_beyond_72_chips_not_81(axes, least):
    i, j = axes
    at = rules.two_dimensional_layout(8192, 4 * 8192, least, chips.V5P, rows_axes=i, columns_axes=j)
    assert at.least == pytest.approx(least)
    assert at.one_s == pytest.approx(at.two_s)
    more = rules.two_dimensional_layout(8192, 4 * 8192, 2 * least, chips.V5P, rows_axes=i, columns_axes=j)
    assert (more.wins and not at.wins) or at.two_s <= at.one_s
    assert more.rows == pytest.approx((2 * least * i / (4 * j)) ** 0.5)


def test_a_latency_bound_collective_is_one_whose_shard_passes_quicker_than_a_hop():
    few = rules.latency_bound_batch(8192, 8, chips.V5E, activations=INT8)
    assert few == pytest.approx(8 * 50e3 / 8192)
    assert rules.latency_bound_batch(8192, 8, chips.V5E, activations=INT8, axes=2) == 2 * few
    axis = chips.V5E.axis(8, wrapped=True)
    one = collectives.all_gather(few * 8192, axis)
    assert one.bandwidth_s == pytest.approx(one.latency_s, rel=0.15)  # 7/8 of 8 shards over two links, 4 hops


def test_less_than_a_request_a_second_is_a_rate():
    assert queueing.little(0.5, 4) == 2
    assert queueing.little(3, 0) == 0
    assert queueing.static_waste([0, 0.5]) == 0.5
