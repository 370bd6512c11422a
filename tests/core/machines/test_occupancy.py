"""Occupancy of an SM by NVIDIA's allocation rules, and bytes in flight by Little's law."""

import itertools

import pytest

from scalingbook_lib.machines import chips, occupancy
from scalingbook_lib.units import KiB

approx = pytest.approx


def held(threads=256, registers=32, smem=0, chip=chips.H100):
    return occupancy.occupancy(chip, threads=threads, registers=registers, smem_bytes=smem * KiB)


BY_HAND = [  # threads, registers, KiB; warps, and what runs out
    (256, 32, 0, 64, "registers"),  # 32 · 32 = 1,024 a warp: 16 in a quarter of 16,384, 64 in all
    (256, 64, 64, 24, "shared memory"),  # 65 KiB a block: three in 228
    (256, 255, 0, 8, "registers"),  # 8,160 become 8,192 a warp: two in a quarter
    (128, 168, 0, 12, "registers"),  # 5,376 a warp: three in a quarter, 12 warps
    (384, 168, 0, 12, "registers"),
    (320, 168, 0, 10, "registers"),  # one block of 10 warps in room for 12
    (32, 8, 12, 17, "shared memory"),  # 13 KiB each; Modal's glossary has 19, without the system's KiB
    (32, 16, 0, 32, "blocks"),
    (1024, 33, 0, 32, "registers"),  # 1,056 become 1,280 a warp: 12 a quarter, 48, and one block of 32
]


@pytest.mark.parametrize(("threads", "registers", "smem", "warps", "bound"), BY_HAND)
def test_occupancy_matches_cases_counted_by_hand(threads, registers, smem, warps, bound):
    found = held(threads, registers, smem)
    assert (found.warps, found.bound) == (warps, bound)
    assert found.share == warps / 64


@pytest.mark.parametrize(
    ("chip", "shared"), [(chips.A100, 164), (chips.H100, 228), (chips.H200, 228), (chips.B200, 228)]
)
def test_shared_memory_per_sm_follows_the_generation(chip, shared):
    assert occupancy.smem_per_sm(chip) == shared * KiB
    assert held(smem=shared - 1, chip=chip).blocks == 1
    with pytest.raises(occupancy.KernelError, match=f"0 to {shared - 1} KiB"):
        held(smem=shared, chip=chip)


def test_more_resources_per_block_never_fit_more_blocks():
    for threads, registers, smem in itertools.product((32, 64, 256, 512), (16, 40, 64, 96), (0, 1, 30, 100)):
        blocks = held(threads, registers, smem).blocks
        assert blocks >= held(threads + 32, registers, smem).blocks
        assert blocks >= held(threads, registers + 7, smem).blocks
        assert blocks >= held(threads, registers, smem + 13).blocks


def test_the_resident_blocks_do_not_exceed_any_resource():
    for threads, registers, smem in itertools.product((32, 96, 320, 1024), (16, 33, 64), (0, 10, 200)):
        found = held(threads, registers, smem)
        assert found.blocks * threads * registers <= 65_536
        assert found.blocks * (smem + 1) <= 228
        assert 0 < found.warps <= 64


def test_bytes_in_flight_follow_littles_law():
    """H100: 3.35 TB/s · 600 ns are 2.01 MB under way; 64 warps an SM have 1.08 MB with 4 bytes a thread."""
    assert occupancy.bytes_to_saturate(chips.H100, 600e-9) == approx(2.01e6)
    full = held(256, 32)
    assert full.bytes_in_flight(4) == 132 * 64 * 32 * 4
    assert full.bytes_per_s(4, 600e-9) == approx(full.bytes_in_flight(4) / 600e-9)
    assert full.bytes_per_s(16, 600e-9) == chips.H100.hbm_bytes_per_s


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"threads": 2048}, "1 to 1,024 threads"),
        ({"threads": 0}, "1 to 1,024 threads"),
        ({"registers": 256}, "1 to 255 registers"),
        ({"threads": 1024, "registers": 65}, "use fewer of either"),
        ({"smem": -1}, "0 to 227 KiB"),
        ({"chip": chips.V5P}, "choose an NVIDIA chip"),
        ({"chip": chips.MI300X}, "choose an NVIDIA chip"),
    ],
)
def test_what_no_sm_can_hold_is_refused(asked, says):
    with pytest.raises(occupancy.KernelError, match=says):
        held(**asked)


def test_an_occupancy_prints_as_one_line():
    assert str(held(256, 64, 64)) == ("SM of H100, limited by shared memory: blocks 3, warps 24, share 38%")
