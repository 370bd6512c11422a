"""PCIe boards, variants and older chips: sourced, dense, found by the names that drivers and people use."""

import csv
from pathlib import Path
from statistics import median

import pytest

from scalingbook_lib.calibrated.fabrics import fabric
from scalingbook_lib.collectives import FORMULAS, Collective
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.machines.age import PRICE
from scalingbook_lib.units import BF16, FP4, FP8, FP16, INT8

DATA = Path(__file__).parents[3] / "data"
EVERY = pytest.mark.parametrize("chip", chips.OTHERS, ids=lambda chip: chip.name)


@EVERY
def test_every_figure_has_a_source_and_no_price_is_another_chip_s(chip):
    assert all(chip.sources[figure].text for figure in chip.figures())
    assert PRICE not in chip.figures()
    assert chips.find(chip.name) is chip


def test_no_chip_stands_in_two_tables():
    assert len(chips.ALL) == len(chips.CATALOG) + len(chips.FURTHER) + len(chips.OTHERS)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("T4", "T4"), ("Tesla T4", "T4"), ("L4", "L4"), ("A10", "A10"), ("A100-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"), ("NVIDIA A100-SXM4-80GB", "A100"), ("a100 80gb", "A100"),
        ("RTX 3090", "RTX 3090"), ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("rtx5090", "RTX 5090"),
        ("RTX PRO 6000", "RTX PRO 6000 SE"), ("H20", "H20"), ("H800", "H800"), ("H200-NVL", "H200 NVL"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 WS"), ("GH200", "GH200"),
        ("RTX A6000", "RTX A6000"), ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"), ("GB10", "DGX Spark"),
        ("Tesla V100-SXM2-16GB", "V100 16GB"), ("NVIDIA GeForce RTX 4080 SUPER", "RTX 4080 Super"),
        ("Apple M4 Max", "M4 Max"), ("AMD Instinct MI210", "MI210"),
        ("NVIDIA Jetson AGX Orin", "Jetson AGX Orin"), ("rtx 4070 ti", "RTX 4070 Ti"),
        ("Tesla P100-SXM2-16GB", "P100"), ("Radeon RX 7900 XTX", "RX 7900 XTX"),
        ("MI250X", "MI250X GCD"), ("h100-sxm", "H100"), ("NVIDIA H100 80GB HBM3", "H100"),
        ("H100 PCIe", "H100 PCIe"), ("B200 192GB", "B200"), ("TPU v5 lite", "TPU v5e"), ("L40S", "L40S"),
    ],
)  # fmt: skip
def test_chips_are_found_however_they_are_spelled(written, name):
    assert chips.find(written).name == name


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("h1000", "write one of H100"),
        ("rtx 4060", "write one of RTX 4090"),
        ("h100 94gb", "H100 has 80 GiB, not 94 GB; write H100 NVL or H100"),
        ("h100 but faster", "no chip 'h100 but faster' in the catalog"),
        ("", "no chip '' in the catalog"),
    ],
)
def test_a_name_that_only_resembles_a_chip_is_refused_with_the_nearest(written, told):
    with pytest.raises(ValueError, match="no chip") as refused:
        chips.find(written)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "cores", "per_cycle", "ghz", "dtype"),
    [
        ("RTX 3090", 328, 128, 1.695, BF16), ("RTX 4090", 512, 128, 2.52, BF16),
        ("RTX 4090", 512, 256, 2.52, FP8), ("RTX 5090", 680, 128, 2.407, BF16),
        ("RTX 5090", 680, 1024, 2.407, FP4), ("T4", 320, 128, 1.59, FP16), ("A10", 288, 256, 1.695, BF16),
        ("L4", 240, 256, 2.04, BF16), ("A10", 288, 512, 1.695, INT8), ("RTX A6000", 336, 256, 1.8, BF16),
        ("RTX 6000 Ada", 568, 256, 2.505, BF16), ("A30", 224, 512, 1.44, BF16),
        ("RTX 5080", 336, 128, 2.617, BF16),
        ("RTX 4080", 304, 256, 2.505, FP8), ("RTX 5070 Ti", 280, 1024, 2.452, FP4),
        ("Jetson AGX Orin", 64, 512, 1.3, BF16),
    ],
)  # fmt: skip
def test_dense_peaks_follow_from_tensor_cores_and_boost_clocks(name, cores, per_cycle, ghz, dtype):
    """With fp32 sums; a datasheet that counts sparsity or fp16 sums prints twice or four times that."""
    chip = chips.find(name)
    assert chip.matrix_units == cores
    assert cores * per_cycle * ghz * 1e9 == pytest.approx(chip.flops_per_s(dtype), rel=0.04)


def test_variants_differ_in_what_their_rows_say_alone():
    small, h800 = chips.A100_40GB, chips.find("H800")
    differing = {name for name, value in small.figures().items() if chips.A100.figures()[name] != value}
    assert differing == {"hbm_bytes", "hbm_bytes_per_s"}
    assert h800.domain_bytes_per_s() == 200e9
    assert h800.bf16_flops_per_s == chips.H100.bf16_flops_per_s
    assert h800.sources["cores"].text.endswith("as the H100")
    assert h800.usd_per_hour is None


def test_a_gcd_is_half_of_an_mi250x_on_a_ring():
    gcd = chips.find("MI250X")
    (level,) = Cluster.of(gcd, 8).levels
    assert (2 * gcd.bf16_flops_per_s, gcd.hbm_bytes) == (383e12, 64 * 2**30)
    assert (level.name, level.bytes_per_s, level.reduces) == ("ring", 100e9, False)
    assert Cluster.of(gcd, 8).diameter_hops == 0


BOARDS = [chip for chip in chips.ALL.values() if chip.joined == "PCIe"]


@pytest.mark.parametrize("board", BOARDS, ids=lambda chip: chip.name)
def test_boards_are_joined_by_the_pcie_of_their_host(board):
    assert Cluster.of(board, 1).levels[0].size == 1
    (level,) = Cluster.of(board, 8).levels
    assert (level.name, level.bytes_per_s, level.reduces) == ("PCIe", board.link_bytes_per_s, False)
    assert board.link_bytes_per_s == board.pcie_bytes_per_s


MEASURED = {"RTX PRO 6000 Blackwell Server Edition": chips.RTX_PRO_6000, "L40S": chips.L40S}


def boards_rows(system):
    with (DATA / "added_collectives.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["system"] == system and row["time_us"]]
    for row in rows:
        what, n = Collective.named(row["collective"]), int(row["n_devices"])
        size = int(row["size_bytes"]) * (n if what is Collective.ALL_TO_ALL else 1)  # one chip's share there
        yield what, n, size, float(row["time_us"]) / 1e6


@pytest.mark.parametrize(("system", "board"), MEASURED.items())
def test_measured_collectives_of_boards_are_bounded_by_the_slot_and_met_by_the_fitted_host(system, board):
    """NCCL on 2 to 8 boards without NVLink: no time is below the slot's, and large arrays fit the host's."""
    off = []
    for what, n, size, seconds in boards_rows(system):
        levels = Cluster.of(board, n).levels
        assert seconds >= FORMULAS[what](size, *levels).bandwidth_s
        if size >= 2**20:
            off.append(abs(fabric(board).seconds(what, size, *levels) / seconds - 1))
    assert len(off) > 20
    assert median(off) < 0.25


def test_the_best_all_reduce_of_eight_boards_is_below_the_bound_of_the_slot():
    """voipmonitor/rtx6kpro at 29f3863: 37.6 to 41.7 GB/s of bus bandwidth on seven or eight RTX PRO 6000."""
    board, size = chips.RTX_PRO_6000, 2**31
    bound_s = FORMULAS[Collective.ALL_REDUCE](size, *Cluster.of(board, 8).levels).bandwidth_s
    bus_bytes_per_s = 2 * 7 / 8 * size / bound_s
    assert bus_bytes_per_s == pytest.approx(63e9)
    assert bus_bytes_per_s > 41.7e9
