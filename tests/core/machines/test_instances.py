"""Instances of clouds: every row has a source, becomes a machine, and carries its own network."""

import csv
import datetime
from pathlib import Path

import pytest

from scalingbook_lib.machines import Cluster, Slice, chips, instances, machine_names

TABLE = Path(instances.__file__).with_name("instances.csv")
EVERY = pytest.mark.parametrize("instance", instances.every(), ids=lambda one: one.name)
# a slice spans several instances of TPUs without the network
SWITCHED = pytest.mark.parametrize(
    "instance", [one for one in instances.every() if not one.torus], ids=lambda one: one.name
)


def test_a_row_is_one_instance_with_one_dated_source():
    """The schema of the table, and that no two rows are the same name in another spelling."""
    rows = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
    assert list(rows[0]) == [
        "instance", "cloud", "chip", "chips", "domain", "network_gbps", "says", "but", "url", "read",
    ]  # fmt: skip
    assert len(instances.every()) == len(rows)
    for row in rows:
        assert row["chip"] in chips.ALL
        assert row["says"]
        assert row["url"].startswith("https://")
        assert datetime.date.fromisoformat(row["read"]) <= datetime.date.today()


@EVERY
def test_an_instance_is_a_machine_of_its_chips_in_any_case(instance):
    machine = machine_names.read(instance.name.upper()).machine
    assert (machine.chips, machine.chip.name) == (instance.chips, instance.chip)
    with pytest.raises(ValueError, match="no chip"):
        chips.find(instance.name)  # it hides no chip


@SWITCHED
def test_several_instances_have_the_network_of_the_instance(instance):
    count = 2 * instance.domain // instance.chips  # two domains
    machine = machine_names.read(f"{instance.name}:{count}").machine
    assert isinstance(machine, Cluster)
    assert (machine.nodes, machine.domain) == (2, instance.domain)
    if instance.network_bytes_per_s:
        assert machine.node_bytes_per_s == pytest.approx(
            instance.network_bytes_per_s * instance.domain / instance.chips
        )
        assert machine.levels[-1].bytes_per_s * instance.chips == pytest.approx(instance.network_bytes_per_s)
        assert machine.chip.dcn_bytes_per_s == machine.nic_bytes_per_s
    else:
        assert machine.nic_bytes_per_s == chips.ALL[instance.chip].dcn_bytes_per_s


@pytest.mark.parametrize(
    ("name", "chip", "count", "nic_bytes_per_s"),
    [
        ("p4d.24xlarge", "A100 40GB", 8, 6.25e9), ("p5.48xlarge", "H100", 8, 50e9),
        ("p6-b300.48xlarge", "B300", 8, 100e9), ("a2-highgpu-8g", "A100 40GB", 8, 1.5625e9),
        ("a3-highgpu-8g", "H100", 8, 12.5e9), ("a3-megagpu-8g", "H100", 8, 25e9),
        ("a4-highgpu-8g", "B200", 8, 50e9), ("Standard_ND96amsr_A100_v4", "A100", 8, 25e9),
        ("Standard_ND96isr_H200_v5", "H200", 8, 50e9), ("Standard_NC40ads_H100_v5", "H100 NVL", 1, 5e9),
        ("BM.GPU.MI300X.8", "MI300X", 8, 50e9), ("g6e.48xlarge", "L40S", 8, 6.25e9),
        ("trn1n.32xlarge", "Trainium1", 16, 12.5e9),
    ],
)  # fmt: skip
def test_the_share_of_a_chip_is_the_documented_one(name, chip, count, nic_bytes_per_s):
    machine = machine_names.read(f"{name}:2").machine
    assert (machine.chip.name, machine.chips) == (chip, 2 * count)
    assert isinstance(machine, Cluster)
    assert machine.nic_bytes_per_s == nic_bytes_per_s
    assert machine.hosts == 2


def test_what_the_instance_does_not_change_is_the_catalog_s():
    assert machine_names.read("p5.48xlarge:4").machine == Cluster.of(chips.H100, 32)
    p4d = machine_names.read("p4d.24xlarge").machine.chip
    assert p4d.sources["dcn_bytes_per_s"].text.startswith("AWS")
    assert p4d.sources["hbm_bytes"] == chips.A100_40GB.sources["hbm_bytes"]


def test_instances_of_one_rack_share_its_scale_up_domain():
    half = machine_names.read("a4x-highgpu-4g:9").machine
    assert isinstance(half, Cluster)
    assert (half.nodes, half.domain, half.hosts) == (1, 72, 9)
    alone = machine_names.read("u-p6e-gb200x36:2").machine
    assert isinstance(alone, Cluster)
    assert (alone.nodes, alone.domain, alone.hosts) == (2, 36, 18)
    with pytest.raises(ValueError, match="76 chips do not fill domains of 72"):
        machine_names.read("a4x-highgpu-4g:19")


@pytest.mark.parametrize(
    ("written", "topology"),
    [("ct5lp-hightpu-4t", "2x2"), ("ct5lp-hightpu-4t:4", "4x4"), ("ct6e-standard-8t", "2x4"),
     ("16x tpu7x-standard-4t", "4x4x4"), ("ct5p-hightpu-4t:16", "4x4x4"), ("trn2.48xlarge", "4x4")],
)  # fmt: skip
def test_instances_of_a_torus_are_a_slice(written, topology):
    named = machine_names.read(written)
    assert named.machine == Slice.of(named.machine.chip, topology)
    assert f"taken as the slice {topology}" in named.note
