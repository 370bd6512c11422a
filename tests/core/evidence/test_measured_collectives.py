"""Tests of the collective model against every published time within one scale-up domain."""

from collections import defaultdict
from statistics import median

import pytest

from scalingbook_lib import collectives
from scalingbook_lib.calibrated import fabrics
from scalingbook_lib.evidence import fabric_fit, measured, resources
from scalingbook_lib.evidence.measured.collectives import _BANDS, FORMS, LARGE
from scalingbook_lib.evidence.reading.cells import UnpredictedRow
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster

COMPARISON = measured.COLLECTIVES
ERRORS = {row.name: row for row in COMPARISON.errors()}
approx = pytest.approx


def rows():
    return [row for row in resources.rows("collectives") if not row["system"].startswith("TPU")]


def named(row):
    return {"alltoall": "all-to-all"}.get(row["collective"], row["collective"].replace("_", "-"))


def test_the_library_reads_every_row_of_a_switch_once():
    """If the source prints only a bus bandwidth, the time follows from it."""
    own = {
        (run.system, run.n, run.collective, run.algorithm, size): us
        for run in measured.RUNS
        for size, us in zip(run.sizes, run.microseconds, strict=True)
    }
    table = {}
    for row in rows():
        n, size, kind = int(row["n_devices"]), int(row["size_bytes"]), named(row)
        one = collectives.bus_bandwidth(kind, size, n, 1) / 1e3
        us = float(row["time_us"]) if row["time_us"] else one / float(row["busbw_GBps"])
        table[row["system"], n, kind, row["algo_or_tool"], size] = us
    assert own == approx(table, rel=1e-9)
    assert len(own) == len(rows()) == 958


def test_rows_with_a_data_quality_note_are_not_used():
    assert not [row for row in rows() if "DATA-QUALITY" in row["notes"] or "do not use" in row["notes"]]
    assert all(row["source"] and row["source_kind"] == "primary" for row in rows())
    assert all(run.source.url and run.source.as_of == "2026-11-21" for run in measured.RUNS)


def test_large_messages_are_off_by_at_most_6_percent_in_the_median():
    assert ERRORS["from 64 MiB"].median <= 0.06
    bandwidth = [abs(point.seconds / point.model_s - 1) for point in COMPARISON.large]
    assert median(bandwidth) <= 0.06


@pytest.mark.parametrize("scale", ["2 chips", "4 chips", "8 chips", *FORMS, "A100", "H100", "B200", "GB200"])
def test_the_median_error_is_small_for_each_collective_scale_and_chip(scale):
    assert ERRORS[scale].median <= 0.09
    assert abs(ERRORS[scale].bias) <= 0.06


def test_larger_errors_of_medium_sizes_are_documented():
    """Medium sizes, where NCCL changes its protocols, and two chips, which use fewer channels."""
    assert ERRORS["4 to 32 MiB"].median > 0.07
    assert ERRORS["2 chips"].median > ERRORS["8 chips"].median


def test_no_fitted_share_exceeds_the_peak():
    assert all(0.35 < point.model.share < 0.9 for point in COMPARISON.points)


def test_no_measured_time_beats_its_bound():
    assert all(point.seconds > point.model.ideal_s for point in COMPARISON.points)


def test_efficiency_depends_on_the_number_of_chips_as_ring_and_switch_formulas_say():
    """H200, 8 GiB, 4 to 8 chips: one efficiency for 2(1 - 1/N)/W by rings, one for 1/W in the switch."""
    shares = defaultdict(list)
    for point in COMPARISON.points:
        if point.chip is chips.H200 and point.collective == "all-reduce" and point.size == 2**33:
            shares[point.model.share > 0.7].append(point.model.ideal_s / point.seconds)
    assert len(shares) == 2
    for same in shares.values():
        assert max(same) / min(same) < 1.06
        assert len(same) >= 5


def test_two_chips_of_a_full_mesh_use_one_link_of_seven():
    two, eight = (point for point in COMPARISON.points if point.chip is chips.MI300X)
    assert (two.n, eight.n) == (2, 8)
    assert two.model.ideal_s / two.seconds == approx(eight.model.ideal_s / eight.seconds, rel=0.07)
    switch = collectives.all_reduce(
        2**32, *[level.part(2) for level in Cluster.of(chips.H100, 8).levels]
    ).bandwidth_s
    assert two.seconds / switch > 9


def test_collective_times_print_as_sentences():
    point = COMPARISON.large[0]
    assert str(point).startswith("2 A100, all-gather of 64 MiB: ")
    assert str(point.model).startswith("CollectiveTerms: total ")


@pytest.mark.parametrize(("n", "nodes", "sizes"), [(8, 1, [8]), (8, 2, [4, 2]), (6, 3, [2, 3])])
def test_partly_filled_hosts_form_smaller_domains(n, nodes, sizes):
    assert [level.size for level in fabric_fit.networks(chips.H100, n, nodes)] == sizes


@pytest.mark.parametrize(
    ("n", "system", "sizes"), [(32, "8x4", [8, 4]), (8, "8x4", [8]), (4, "8x4", [4]), (16, "", [16])]
)
def test_torus_devices_are_a_whole_slice_or_one_axis(n, system, sizes):
    found = fabric_fit.networks(chips.V5E, n, system=f"TPU v5e {system}")
    assert [axis.size for axis in found] == sizes
    with pytest.raises(UnpredictedRow, match=r"16 devices are no axis of TPU v5e 8x4"):
        fabric_fit.networks(chips.V5E, 16, system="TPU v5e 8x4")


def test_every_size_belongs_to_exactly_one_range():
    assert [low for low, *_ in _BANDS[1:]] == [high for _, high, _ in _BANDS[:-1]]
    (last,) = (name for low, high, name in _BANDS if low < LARGE <= high)
    assert (last, _BANDS[-1][0], _BANDS[0][0]) == ("from 64 MiB", LARGE - 1, 0)


def test_a_ring_over_two_hosts_carries_the_whole_array():
    """Of 2 hosts with 8 chips each, NCCL's ring carries 15/16 of the array, where 1/2 would be enough."""
    inside, network = Cluster.of(chips.A100, 16).levels
    size = 2**36
    found = fabrics.fabric(chips.A100).attained("all-gather", size, inside, network)
    assert found.ideal_s == approx(15 / 8 * collectives.all_gather(size / 8, network).bandwidth_s)
