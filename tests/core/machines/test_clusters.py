"""Clusters have the switches and bandwidths that vendors build, and impossible ones are refused."""

import math
from dataclasses import replace

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster, Level

approx = pytest.approx
H100 = chips.H100
MESHED = chips.MI300X


@pytest.mark.parametrize(
    ("n", "leaves", "spines", "cores"),
    [(8, 0, 0, 0), (1024, 32, 16, 0), (2048, 64, 32, 0), (4096, 128, 128, 64)],
)
def test_switches_of_64_ports_are_counted_as_in_the_superpod(n, leaves, spines, cores):
    cluster = Cluster.of(H100, n)
    assert (cluster.leaves, cluster.spines, cluster.cores) == (leaves, spines, cores)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 16, 64, 256, 512, 1024, 2048, 4096, 6144, 16384, 65536])
def test_the_levels_multiply_to_the_chips_and_none_gets_wider(n):
    levels = Cluster.of(H100, n).levels
    assert math.prod(level.size for level in levels) == n
    rates = [level.bytes_per_s for level in levels]
    assert rates == sorted(rates, reverse=True)


def test_each_domain_of_a_non_blocking_tree_sends_400_gigabytes_a_second_at_every_level():
    pod = Cluster.of(H100, 4096)
    assert pod.node_bytes_per_s == 400e9
    assert [8 * level.bytes_per_s for level in pod.levels[1:]] == [400e9] * 3
    assert pod.bisection_bytes_per_s == 4096 / 2 * 50e9
    assert pod.diameter_hops == 5


def test_the_bisection_of_a_domain_is_half_of_its_wires():
    node = Cluster.of(H100, 8)
    assert node.bisection_bytes_per_s == 1.8e12  # 3.6e12 both directions together
    assert node.diameter_hops == 1
    assert node.hbm_bytes == 8 * H100.hbm_bytes
    assert node.flops_per_s() == 8 * H100.bf16_flops_per_s
    assert node.hosts == 1
    assert node.host_bytes_per_s == 63e9


def test_oversubscription_thins_what_is_above_the_leaves():
    thin = Cluster.of(H100, 1024, oversubscription=2)
    assert [level.bytes_per_s for level in thin.levels] == [450e9, 50e9, 25e9]
    assert thin.spines == 8


def test_switches_reduce_from_nvlink_4_on():
    assert Cluster.of(H100, 8).levels[0].reduces
    assert not Cluster.of(chips.A100, 8).levels[0].reduces
    assert not Cluster.of(H100, 8, in_switch=False).levels[0].reduces
    assert [level.reduces for level in Cluster.of(H100, 64, network_reduces=True).levels] == [True, True]


def test_a_domain_of_72_sends_3_6_terabytes_a_second():
    rack = Cluster.of(chips.GB200, 576)
    assert rack.node_bytes_per_s == 3.6e12
    assert [level.size for level in rack.levels] == [72, 8]


def test_a_full_mesh_has_one_link_to_each_peer():
    (level,) = Cluster.of(MESHED, 8).levels
    assert (level.bytes_per_s, level.peer_bytes_per_s) == (448e9, 64e9)
    mesh = Cluster.of(MESHED, 8).mesh(X=2, Y=4)
    assert (mesh.bytes_per_s("X"), mesh.bytes_per_s("Y"), mesh.bytes_per_s("XY")) == (64e9, 192e9, 448e9)
    assert Cluster.of(MESHED, 2).levels[0].bytes_per_s == 64e9
    assert Cluster.of(MESHED, 8).bisection_bytes_per_s == 16 * 64e9


def test_cluster_and_slice_meshes_have_the_same_interface():
    mesh = Cluster.of(H100, 1024).mesh(X=8, Y=128)
    assert mesh.sizes == {"X": 8, "Y": 128}
    assert mesh.size("XY") == 1024
    assert mesh.chip is H100
    assert [level.name for level in mesh.axes("Y")] == ["leaf", "spine"]
    assert mesh.bytes_per_s("X") == 450e9
    assert mesh.bytes_per_s("Y") == 50e9
    assert mesh.bytes_per_s("XY") == 400e9
    assert str(mesh) == "1,024 H100 as X8 at 450 GB/s, Y128 at 50 GB/s"


def test_axes_take_factors_of_levels_from_the_inside():
    mesh = Cluster.of(H100, 1024).mesh(X=2, Y=16, Z=32)
    sizes = {name: [(v.name, v.size) for v in mesh.axes(name)] for name in "XYZ"}
    assert sizes == {
        "X": [("NVLink", 2)], "Y": [("NVLink", 4), ("leaf", 4)], "Z": [("leaf", 8), ("spine", 4)],
    }  # fmt: skip
    assert mesh.axes("XYZ") == Cluster.of(H100, 1024).levels
    assert mesh.axes("YX") == mesh.axes("XY")


@pytest.mark.parametrize(
    ("chip", "n", "sizes", "assumed"),
    [
        (
            chips.A100,
            384,
            [8, 24, 2],
            "48 domains do not fill scalable units of 32: 2 units of 24 are assumed",
        ),
        (H100, 320, [8, 20, 2], "40 domains do not fill scalable units of 32: 2 units of 20 are assumed"),
        (H100, 2000, [8, 25, 10], "250 domains do not fill scalable units of 32: 10 units of 25 are assumed"),
        (H100, 296, [8, 37], "37 domains do not fill scalable units of 32: 37 units of 1 are assumed"),
        (
            H100,
            4096 + 128,
            [8, 24, 1, 22],
            "528 domains do not fill scalable units of 32: 22 units of 24 are",
        ),
        (
            chips.GB200,
            720,
            [72, 5, 2],
            "10 domains do not fill scalable units of 8: 2 units of 5 are assumed",
        ),
        (H100, 512, [8, 32, 2], ""),
        (H100, 160, [8, 20], ""),
    ],
)
def test_domains_that_do_not_fill_their_units_are_divided_equally(chip, n, sizes, assumed):
    cluster = Cluster.of(chip, n)
    assert [level.size for level in cluster.levels] == [size for size in sizes if size > 1]
    assert cluster.assumed.startswith(assumed)
    assert bool(cluster.assumed) == bool(assumed)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Cluster.of(chips.V5E, 8), "use a Slice"),
        (lambda: Cluster.of(chips.V100, 8), "domain=16"),
        (lambda: Cluster.of(H100, 12), "write 8 or 16"),
        (lambda: Cluster.of(H100, 131072), "at most 65,536 chips"),
        (lambda: Cluster.of(H100, 0), "at least 1 chip"),
        (lambda: Cluster.of(H100, 64, oversubscription=0.5), "at least 1"),
        (lambda: Cluster.of(replace(H100, dcn_bytes_per_s=None), 16), "give nic_bytes_per_s"),
        (lambda: Cluster.of(H100, 64).mesh(X=8, Y=4), "must equal the number of chips"),
        (lambda: Cluster.of(H100, 64).mesh(), "no axes"),
        (lambda: Cluster.of(H100, 48).mesh(X=3, Y=16), "from the inside"),
        (lambda: Cluster.of(H100, 64).mesh(X=8, Y=8).axes("Z"), "name each of X, Y"),
        (lambda: Level("NVLink", 0, 1), "at least 1"),
        (lambda: Level("mesh", 2, 1, reduces=True, peer_bytes_per_s=1), "no switch that can reduce"),
    ],
)
def test_an_impossible_cluster_or_mesh_is_refused_with_a_possible_one(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_clusters_levels_and_meshes_print_as_one_line():
    assert str(Cluster.of(H100, 1024)) == (
        "1,024 H100s in 128 domains of 8 under 32 leaf, 16 spine switches: "
        "each chip sends 450 GB/s (NVLink), then 50 GB/s (leaf), then 50 GB/s (spine)"
    )
    assert str(Cluster.of(H100, 8)) == "8 H100s in 1 domain of 8: each chip sends 450 GB/s (NVLink)"
    assert str(Level.full_mesh("mesh", 8, 64e9)) == "mesh: 8 at 448 GB/s per chip, 64 GB/s to each peer"


@pytest.mark.parametrize("chip", [c for c in chips.GPUS if c is not chips.V100], ids=lambda chip: chip.name)
def test_every_gpu_of_the_catalog_fills_a_domain_at_its_full_rate(chip):
    (level,) = Cluster.of(chip, chip.domain_chips).levels
    assert level.bytes_per_s == approx(chip.domain_bytes_per_s())
    assert level.part(2).bytes_per_s == approx(chip.domain_bytes_per_s(2))


def test_a_v100_has_switches_in_a_dgx_2_alone():
    (level,) = Cluster.of(chips.V100, 16, domain=16).levels
    assert (level.bytes_per_s, level.reduces) == (150e9, False)
