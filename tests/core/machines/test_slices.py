"""Slices: which shapes exist, which axes wrap, and the bandwidth of a mesh axis."""

import itertools
import math

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import CATALOG, Slice, SliceError

TPUS = [chip for chip in CATALOG.values() if chip.torus]
EVERY_TPU = pytest.mark.parametrize("chip", TPUS, ids=lambda chip: chip.name)


@pytest.mark.parametrize(
    ("chip", "shape", "hosts", "wrapped"),
    [
        (chips.V5E, "1x1", 1, (False, False)),
        (chips.V5E, "2x4", 1, (False, False)),
        (chips.V5E, "4x4", 2, (False, False)),
        (chips.V5E, "8x8", 8, (False, False)),
        (chips.V5E, "8x16", 16, (False, True)),
        (chips.V5E, "16x16", 32, (True, True)),
        (chips.V6E, "16x8", 16, (True, False)),
        (chips.V2, "2x2", 1, (False, False)),
        (chips.V2, "8x16", 32, (False, True)),
        (chips.V2, "16x16", 64, (True, True)),
        (chips.V3, "32x32", 128, (True, True)),
        (chips.V3, "16x16", 32, (False, False)),
        (chips.V3, "16x32", 64, (False, True)),
        (chips.V4, "2x2x1", 1, (False, False, False)),
        (chips.V5P, "2x4x4", 8, (False, False, False)),
        (chips.V5P, "4x4x4", 16, (True, True, True)),
        (chips.V5P, "4x4x8", 32, (True, True, True)),
        (chips.V5P, "16x20x28", 2240, (True, True, True)),
        (chips.V4, "12x12x24", 864, (True, True, True)),
        (chips.TPU7X, "2x2x4", 4, (False, False, False)),
    ],
)
def test_hosts_and_wraps_as_documented(chip, shape, hosts, wrapped):
    slice_ = Slice.of(chip, shape)
    assert (slice_.hosts, tuple(axis.wrapped for axis in slice_.axes)) == (hosts, wrapped)


@pytest.mark.parametrize(
    ("chip", "shape", "bisection"),
    [
        (chips.V5E, "16x16", 1.6e12),
        (chips.V6E, "16x16", 3.2e12),
        (chips.V5E, "8x16", 0.8e12),
        (chips.V5E, "4x4", 0.2e12),
    ],
)
def test_bisection_as_google_prints_it_for_a_pod(chip, shape, bisection):
    assert Slice.of(chip, shape).bisection_bytes_per_s == pytest.approx(bisection)


def test_bisection_of_a_v4_pod_is_near_google_s_24_tb_per_s():
    assert Slice.of(chips.V4, "16x16x16").bisection_bytes_per_s == pytest.approx(24e12, rel=0.07)


def test_full_pods_have_the_textbook_s_totals():
    """Worked problem of the TPU chapter: 256 chips on 32 hosts, 8,960 on 2,240."""
    v5e, v5p = Slice.of(chips.V5E, "16x16"), Slice.of(chips.V5P, "16x20x28")
    assert (v5e.chips, v5e.flops_per_s(), v5e.hbm_bytes) == (256, pytest.approx(5.04e16, rel=1e-3), 2**42)
    assert (v5p.chips, v5p.flops_per_s()) == (8960, pytest.approx(4.11e18, rel=1e-3))


@pytest.mark.parametrize(("chip", "shapes"), [(chips.V5P, 414), (chips.TPU7X, 432)])
def test_as_many_shapes_as_google_s_own_tool_offers(chip, shapes):
    """AI-Hypercomputer/xpk, tests of generate_tpu_topologies: 414 for 140 cubes, 432 for 144."""
    assert len(list(chip.torus.shapes())) == shapes


def test_as_many_shapes_of_v4_as_google_s_own_tool_offers_in_any_order():
    cubes = [shape for shape in chips.V4.torus.shapes() if min(shape) >= 4]
    assert sum(len(set(itertools.permutations(shape))) for shape in cubes) + 4 == 800


@EVERY_TPU
def test_every_shape_that_is_listed_exists_whichever_way_round(chip):
    for shape in itertools.islice(chip.torus.shapes(), 60):
        for turned in itertools.permutations(shape):
            assert Slice(chip, turned).chips == math.prod(shape) <= chip.torus.pod_chips


@EVERY_TPU
def test_the_nearest_to_what_exists_is_itself(chip):
    for shape in itertools.islice(chip.torus.shapes(), 60):
        assert chip.torus.nearest(shape, 1) == (shape,)


@pytest.mark.parametrize(
    ("chip", "shape", "nearest"),
    [
        (chips.V5E, "3x4", "4x4, 2x4"),
        (chips.V5E, "16x32", "16x16"),
        (chips.V5E, "4x4x4", "4x4"),
        (chips.V5E, "0x4", "2x4"),
        (chips.V5P, "4x4", "2x4x4, 2x2x4"),
        (chips.V5P, "4x4x6", "4x4x8, 4x4x4"),
        (chips.V4, "1x1x1", "2x2x1"),
        (chips.V4, "16x16x20", "16x16x16"),
        (chips.TPU7X, "8", "2x2x4"),
    ],
)
def test_a_slice_that_does_not_exist_is_refused_with_the_nearest(chip, shape, nearest):
    with pytest.raises(
        SliceError, match=f"{chip.name} is not offered as {shape}; the nearest slices are .*"
    ) as error:
        Slice.of(chip, shape)
    named = str(error.value).split(" are ")[1].split(", ")
    assert set(nearest.split(", ")) <= set(named)
    for other in named:
        Slice.of(chip, other)


@pytest.mark.parametrize("text", ["", "4x", "fourxfour", "4,4"])
def test_a_text_that_is_no_shape_is_refused(text):
    with pytest.raises(SliceError, match="is not a slice shape; write one as in 4x8"):
        Slice.of(chips.V5E, text)


@pytest.mark.parametrize(
    ("chip", "shape", "twisted"),
    [
        (chips.V4, (4, 4, 8), True), (chips.V5P, (8, 4, 8), True), (chips.V4, (12, 12, 24), True),
        (chips.V4, (4, 4, 4), False), (chips.V5P, (4, 8, 16), False), (chips.V5P, (2, 2, 4), False),
        (chips.V5E, (8, 16), False), (chips.TPU7X, (8, 16, 16), True),
    ],
)  # fmt: skip
def test_shapes_that_are_also_wired_as_a_twisted_torus(chip, shape, twisted):
    """Google's page v4: k x k x 2k and k x 2k x 2k, where k is a multiple of 4."""
    assert chip.torus.twistable(shape) is twisted


def test_gpus_come_in_no_slice():
    with pytest.raises(SliceError, match="joined by switches"):
        Slice.of(chips.H100, "2x4")


def counted_links(slice_):
    links = set()
    for chip in itertools.product(*map(range, slice_.shape)):
        for k, axis in enumerate(slice_.axes):
            step = (chip[k] + 1) % axis.size if axis.wrapped else chip[k] + 1
            if step < axis.size:
                links.add((chip, k))
    return len(links)


@pytest.mark.parametrize(
    ("chip", "shape"),
    [
        (chips.V5E, "8x16"),
        (chips.V5E, "4x4"),
        (chips.V5P, "4x4x8"),
        (chips.V5P, "2x4x4"),
        (chips.V4, "2x2x1"),
    ],
)
def test_links_are_those_counted_cable_by_cable(chip, shape):
    assert Slice.of(chip, shape).links == counted_links(Slice.of(chip, shape))


def test_every_chip_of_a_full_torus_uses_all_its_links():
    pod = Slice.of(chips.V5P, "4x8x8")
    assert 2 * pod.links == pod.chips * chips.V5P.links


def test_mean_distance_on_half_a_v5e_pod():
    """A line of 8 (21/8 hops) and a ring of 16 (4 hops)."""
    half = Slice.of(chips.V5E, "8x16")
    assert (half.mean_hops, half.diameter_hops) == (21 / 8 + 4, 7 + 8)


def test_the_two_corners_of_a_v5e_4x4_are_six_hops_apart():
    assert Slice.of(chips.V5E, "4x4").diameter_hops == 6


@pytest.mark.parametrize(
    ("chip", "shape", "sizes", "bytes_per_s"),
    [
        (chips.V5E, "4x8", {"X": 4, "Y": 8}, {"X": 50e9, "Y": 50e9, "XY": 100e9}),
        (chips.V5E, "4x8", {"X": 8, "Y": 4}, {"X": 50e9, "Y": 50e9}),
        (chips.V5E, "8x16", {"X": 8, "Y": 16}, {"X": 50e9, "Y": 100e9}),
        (chips.V5E, "16x16", {"X": 256}, {"X": 200e9}),
        (chips.V5P, "4x4x4", {"X": 4, "Y": 16}, {"X": 200e9, "Y": 400e9, "XY": 600e9}),
        (chips.V5P, "4x4x4", {"X": 16, "Y": 4}, {"X": 400e9, "Y": 200e9}),
        (chips.V4, "2x2x1", {"X": 2, "Y": 2}, {"X": 50e9}),
        (chips.V4, "4x4x4", {"X": 4, "Y": 4, "Z": 4}, {"X": 100e9, "XYZ": 300e9, "": 0}),
        (chips.V5E, "4x4", {"X": 16, "Y": 1}, {"X": 100e9, "Y": 0}),
    ],
)
def test_the_bandwidth_of_a_mesh_axis_sums_its_torus_axes(chip, shape, sizes, bytes_per_s):
    mesh = Slice.of(chip, shape).mesh(**sizes)
    assert mesh.sizes == sizes
    assert {names: mesh.bytes_per_s(names) for names in bytes_per_s} == bytes_per_s


def test_mesh_axes_share_out_the_torus():
    slice_ = Slice.of(chips.V5P, "4x8x8")
    mesh = slice_.mesh(X=8, Y=4, Z=8)
    assert sorted(mesh.axes("XYZ"), key=repr) == sorted(slice_.axes, key=repr)
    assert (mesh.size("XZ"), mesh.size(""), mesh.chip) == (64, 1, chips.V5P)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ("4x4", {"X": 8, "Y": 2}),
        ("4x8", {"X": 4, "Y": 4}),
        ("4x8", {"X": 64}),
        ("4x8", {"X": 3, "Y": 11}),
        ("1x1", {"X": 2}),
    ],
)
def test_a_mesh_that_cuts_a_torus_axis_is_refused(shape, sizes):
    with pytest.raises(SliceError, match="each mesh axis is a product of whole torus axes"):
        Slice.of(chips.V5E, shape).mesh(**sizes)


@pytest.mark.parametrize("sizes", [{}, {"X": 0, "Y": 16}])
def test_a_mesh_without_chips_is_refused(sizes):
    with pytest.raises(SliceError, match="at least one axis"):
        Slice.of(chips.V5E, "4x4").mesh(**sizes)


@pytest.mark.parametrize("names", ["Z", "XX", "x"])
def test_unknown_mesh_axes_are_refused(names):
    mesh = Slice.of(chips.V5E, "4x4").mesh(X=4, Y=4)
    for ask in (mesh.size, mesh.axes, mesh.bytes_per_s):
        with pytest.raises(SliceError, match="name each of X, Y at most once"):
            ask(names)


def test_a_slice_and_a_mesh_print_as_one_line():
    half = Slice.of(chips.V5E, "8x16")
    assert str(half) == (
        "TPU v5e 8x16: 128 chips on 16 hosts; ring of 16; bisection bandwidth 800 GB/s in each direction"
    )
    assert str(half.mesh(X=8, Y=16)) == "TPU v5e 8x16 as X8 at 50 GB/s, Y16 at 100 GB/s"
    assert str(Slice.of(chips.V5E, "1x1")) == "TPU v5e 1x1: 1 chip on 1 host; no axis wraps"
    assert "256 chips on 32 hosts; rings of 16 and 16; bisection" in str(Slice.of(chips.V6E, "16x16"))


@pytest.mark.parametrize("shape", [(4, 4, 0), (0, 4, 4), (4, 4, -4), (4, 4)])
def test_a_slice_with_an_axis_of_no_chips_is_refused(shape):
    assert not chips.V5P.torus.exists(shape)
