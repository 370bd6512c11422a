"""Machines are read as people and clouds write them, and a note says what a name was taken to mean."""

import math

import pytest

from scalingbook_lib.machines import chips, machine_names
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice

V5P_DEFAULTS = {  # AI-Hypercomputer/xpk, core/system_characteristics.py at 367c8382: TensorCores, topology
    8: "2x2x1", 16: "2x2x2", 32: "2x2x4", 64: "2x4x4", 128: "4x4x4", 256: "4x4x8", 384: "4x4x12",
    512: "4x8x8", 1024: "8x8x8", 1536: "8x8x12", 2048: "8x8x16", 4096: "8x16x16", 4608: "12x12x16",
    8192: "16x16x16", 12288: "16x16x24",
}  # fmt: skip


@pytest.mark.parametrize(("cores", "topology"), V5P_DEFAULTS.items())
def test_an_accelerator_type_of_v5p_counts_two_tensorcores_for_each_chip(cores, topology):
    named = machine_names.read(f"v5p-{cores}")
    assert sorted(named.machine.shape) == sorted(map(int, topology.split("x")))
    assert named.machine.chips == cores // 2
    assert named.note.startswith(f"v5p-{cores} counts TensorCores, two per chip: it is {cores // 2:,} chip")


@pytest.mark.parametrize(
    ("written", "topology"),
    [
        ("v6e-8", "2x4"),
        ("v5litepod-8", "2x4"),
        ("v5litepod-1", "1x1"),
        ("v6e-256", "16x16"),
        ("v6e-16", "4x4"),
    ],
)
def test_an_accelerator_type_of_v5e_and_v6e_counts_chips_which_have_one_tensorcore(written, topology):
    named = machine_names.read(written)
    assert named.machine.shape == tuple(map(int, topology.split("x")))
    assert named.machine.chips == int(written.split("-")[1])
    assert "one per chip" in named.note


@pytest.mark.parametrize(
    ("written", "machine"),
    [
        ("tpu7x-4x8x8", Slice.of(chips.TPU7X, "4x8x8")),
        ("v5p:4x4x8", Slice.of(chips.V5P, "4x4x8")),
        ("tpu7x-128", Slice.of(chips.TPU7X, "4x4x4")),
        ("v3-32", Slice.of(chips.V3, "4x4")),
        ("8xv5e", Slice.of(chips.V5E, "2x4")),
        ("v5p:64", Slice.of(chips.V5P, "4x4x4")),
        ("h100-sxm:8", Cluster.of(chips.H100, 8)),
        ("8xH100", Cluster.of(chips.H100, 8)),
        ("8 x H100", Cluster.of(chips.H100, 8)),
        ("H100x8", Cluster.of(chips.H100, 8)),
        ("NVIDIA H100 80GB HBM3:8", Cluster.of(chips.H100, 8)),
        ("4xA100-40GB", Cluster.of(chips.A100_40GB, 4)),
        ("h100:1Ki", Cluster.of(chips.H100, 1024)),
        ("gb200", Cluster.of(chips.GB200, 72)),
        ("2x4090", Cluster.of(chips.find("RTX 4090"), 2)),
        ("v100", Cluster.of(chips.V100, 1)),
    ],
)
def test_other_names_are_read(written, machine):
    assert machine_names.read(written).machine == machine


@pytest.mark.parametrize(
    "written",
    ["p4d.24xlarge:4", "4x p4d.24xlarge", "4xp4d.24xlarge", "4 p4d.24xlarge", "p4d.24xlarge x4",
     "p4d.24xlarge*4", "P4D.24xlarge × 4", "ml.p4d.24xlarge:4"],
)  # fmt: skip
def test_a_number_of_instances_is_written_before_or_after_their_name(written):
    named = machine_names.read(written)
    assert named.machine.chips == 32
    assert isinstance(named.machine, Cluster)
    assert named.machine.nic_bytes_per_s == 6.25e9
    assert named.note == (
        f"{written} is 32 A100 40GB, 8 per instance (AWS); an instance has 400 Gb/s of network, "
        "6.25 GB/s per chip, where the catalog's A100 40GB has 25 GB/s"
    )


@pytest.mark.parametrize(
    "written",
    ["2x8xH100", "2 x 8 x H100", "2x 8xh100", "2x8 H100", "2*8*H100", "2 nodes of 8 H100",
     "2 nodes x 8xH100"],
)  # fmt: skip
def test_nodes_times_chips_of_a_node(written):
    named = machine_names.read(written)
    assert named.machine == Cluster.of(chips.H100, 16)
    assert named.note.endswith(" is 16 H100 in 2 nodes of 8")


def test_a_node_may_hold_fewer_chips_than_the_generation_joins():
    four = machine_names.read("2x4xH100").machine
    assert isinstance(four, Cluster)
    assert (four.domain, four.nodes, four.hosts, four.nic_bytes_per_s) == (4, 2, 2, 50e9)
    trays = machine_names.read("18x4xGB200").machine  # trays of one rack
    assert trays == Cluster.of(chips.GB200, 72)
    assert machine_names.read("2x8xv5e").machine == Slice.of(chips.V5E, "4x4")
    assert machine_names.read("2x2x4090").machine.chips == 4
    assert machine_names.read("1x4xH100").machine == Cluster.of(chips.H100, 4)


def test_a_pcie_board_alone_is_one_and_several_have_the_path_through_their_host():
    one = machine_names.read("rtx-5090")
    assert (one.machine.chips, one.note) == (
        1,
        "rtx-5090 is one PCIe board; write rtx-5090:4 for four of them in a host",
    )
    four = machine_names.read("rtx-5090:4")
    assert four.note == (
        "RTX 5090 boards have no switch between them: they communicate through the PCIe of their host, 63 "
        "GB/s "
        "each "
        "way and 126 GB/s in total"
    )
    assert not machine_names.read("h100:8").note


@pytest.mark.parametrize(
    ("written", "chip", "n", "note"),
    [
        ("dgx-h100:4", "H100", 32, "dgx-h100:4 is 32 H100 in 4 nodes of 8"),
        ("hgx-h100:2", "H100", 16, "hgx-h100:2 is 16 H100 in 2 nodes of 8"),
        ("2x DGX H100", "H100", 16, "2x DGX H100 is 16 H100 in 2 nodes of 8"),
        ("dgx-a100", "A100", 8, "dgx-a100 is 8 A100 in 1 node of 8"),
        ("gb200-nvl72:2", "GB200", 144, "gb200-nvl72:2 is 144 GB200 in 2 nodes of 72"),
        ("dgx-spark:2", "DGX Spark", 2, ""),
        ("mi250:4", "MI250X GCD", 4, "mi250:4 is 4 GCDs, of which an MI250X has two"),
        ("mi250x gcd:4", "MI250X GCD", 4, ""),
        ("h100", "H100", 8, "h100 is one domain of 8 H100; write h100:1 for one chip"),
        ("h100:320", "H100", 320, "40 domains do not fill scalable units of 32: 2 units of 20 are assumed"),
        (
            "48x8xA100",
            "A100",
            384,
            "48x8xA100 is 384 A100 in 48 nodes of 8; 48 domains do not fill scalable units of 32: 2 units of "
            "24 are assumed",
        ),
    ],
)
def test_a_note_says_what_is_counted_and_assumed(written, chip, n, note):
    named = machine_names.read(written)
    assert (named.machine.chip.name, named.machine.chips, named.note) == (chip, n, note)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "v5p-100",
            "but TPU v5p has no slice of that size; write an available number of chips: 32 (2x4x4) or",
        ),
        ("v5p-7", "two per TPU v5p, and 7 is odd; write an even number"),
        ("h100-4x4", "H100 is not joined in a torus"),
        ("v5p", "write the shape of its slice, as in v5p:4x4x4, or its number of chips, as in v5p:8"),
        ("v5p:x", "'x' is not a slice shape"),
        ("h100:1.5", "'1.5' is not a number of chips"),
        ("h100:0", "'0' is not a number of chips"),
        ("nothing:8", "no chip 'nothing' in the catalog"),
        ("8xnothing", "no chip 'nothing' in the catalog"),
        ("v100:8", "hybrid cube mesh"),
        ("h100:2x8", "write h100:16 for 16 chips, or 2x8xh100 for 2 nodes of 8"),
        ("2x8xv100", "hybrid cube mesh"),
        ("2x16xH100", "has 16 chips per node, but at most 8 H100 are joined in one; write 4x8xH100"),
        (
            "p5.49xlarge",
            "nor an instance of a cloud in it; the nearest instances are p5.4xlarge, p5.48xlarge",
        ),
        ("a3-highgpu:2", "the nearest instances are a3-highgpu-1g, a3-highgpu-2g"),
        ("nd96isr_v5", "the nearest instances are Standard_ND96isr_H200_v5"),
        ("p5", "the nearest instances are p5.4xlarge, p5.48xlarge"),
        ("p5.48xlarge:0", "'0' is not a number of instances"),
        ("trn2.48xlarge:2", "'trn2.48xlarge:2' is 32 chips, but Trainium2 has no slice of that size"),
    ],
)
def test_what_is_no_machine_is_refused_with_what_to_write(written, told):
    with pytest.raises(ValueError, match=r".") as refused:
        machine_names.read(written)
    assert told in str(refused.value)


@pytest.mark.parametrize("chip", [c for c in chips.TPUS if c.torus], ids=lambda chip: chip.name)
def test_every_number_of_chips_that_a_generation_has_gets_a_slice(chip):
    name = chip.name.removeprefix("TPU ")
    for n in {math.prod(shape) for shape in list(chip.torus.shapes())[:40]}:
        assert machine_names.read(f"{name}:{n}").machine.chips == n
