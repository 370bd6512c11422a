"""Finds the same mesh axes in all three forms in which XLA writes groups of devices."""

import pytest

from scalingbook_lib.hlo import replica_groups

X2Y4 = {"X": 2, "Y": 4}
FORMS = {
    "X": ("{{0,4},{1,5},{2,6},{3,7}}", "[4,2]<=[2,4]T(1,0)", "mesh['a'=2,'b'=4] {'a'}"),
    "Y": ("{{0,1,2,3},{4,5,6,7}}", "[2,4]<=[8]", "mesh['a'=2,'b'=4] {'b'}"),
    "XY": ("{{0,1,2,3,4,5,6,7}}", "[1,8]<=[8]", "mesh['a'=2,'b'=4] {'a','b'}"),
    "YX": ("{{0,4,1,5,2,6,3,7}}", "[1,8]<=[2,4]T(1,0)", "mesh['a'=2,'b'=4] {'b','a'}"),
}


@pytest.mark.parametrize("axes", FORMS)
@pytest.mark.parametrize("form", range(3), ids=["lists", "iota", "mesh"])
def test_each_form_names_the_axes(axes, form):
    groups = replica_groups.read(f"replica_groups={FORMS[axes][form]}, dimensions={{0}}", 8)
    assert replica_groups.axes_of(groups, X2Y4) == axes


def test_an_all_reduce_has_its_axes_in_the_order_of_the_mesh():
    groups = replica_groups.read("replica_groups=[1,8]<=[2,4]T(1,0)", 8)
    assert replica_groups.axes_of(groups, X2Y4, ordered=False) == "XY"


@pytest.mark.parametrize("text", ["channel_id=1", "replica_groups={}, dimensions={0}"])
def test_a_collective_without_groups_runs_over_all_devices(text):
    assert replica_groups.axes_of(replica_groups.read(text, 8), X2Y4) == "XY"


@pytest.mark.parametrize(
    ("written", "axes"),
    [
        ("mesh['all'=8] {'all':(1)2}", "X"),  # the first 2 of an axis of 8
        ("mesh['all'=8] {'all':(2)4}", "Y"),  # the 4 behind the first 2
        ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}", "Y"),
        ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}", "X"),
        ("mesh['a'=2,'b'=4], device_ids=(0,1,2,3,4,5,6,7) {'b'}", "Y"),
        ("@mesh<a=2,b=4> {b}", "Y"),
    ],
)
def test_the_mesh_form_may_have_sub_axes_and_permuted_devices(written, axes):
    groups = replica_groups.read(f"replica_groups={written}, dimensions={{0}}", 8)
    assert replica_groups.axes_of(groups, X2Y4) == axes


@pytest.mark.parametrize("groups", [[(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 1, 2, 3)], [(0, 9)]])
def test_groups_along_no_axis_have_no_name(groups):
    assert replica_groups.axes_of(groups, X2Y4) is None


@pytest.mark.parametrize(
    ("moves", "found"),
    [
        ("{{0,1},{1,2},{2,3},{3,0},{4,5},{5,6},{6,7},{7,4}}", ("Y", 1)),
        ("{{0,3},{1,0},{2,1},{3,2},{4,7},{5,4},{6,5},{7,6}}", ("Y", -1)),
        ("{{0,1},{1,2},{2,3},{4,5},{5,6},{6,7}}", ("Y", 1)),  # a line without wraparound
        ("{{0,4},{4,0},{1,5},{5,1},{2,6},{6,2},{3,7},{7,3}}", ("X", 1)),
        ("{{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}", ("XY", 1)),
        ("{{0,0},{1,4},{2,1},{3,5},{4,2},{5,6},{6,3},{7,7}}", ("XY", None)),  # a transposition
        ("{{0,0}}", (None, None)),
    ],
)
def test_a_permute_has_axes_and_a_shift(moves, found):
    assert replica_groups.shift_of(replica_groups.pairs(f"source_target_pairs={moves}"), X2Y4) == found


def test_axis_names_of_several_letters_are_separated_by_commas():
    groups = replica_groups.read("channel_id=1", 8)
    assert replica_groups.axes_of(groups, {"data": 2, "model": 4}) == "data,model"
