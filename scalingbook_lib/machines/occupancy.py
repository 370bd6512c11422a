"""Occupancy of an SM: the warps it holds, and whether they hide the latency of its memory.

A block of threads stays on its SM until it is done, with registers for every thread and its shared memory;
the resource that runs out first decides how many blocks fit. By Little's law, bytes in flight = rate ·
latency. Allocation rules: NVIDIA's `cuda_occupancy.h`, read 2026-11-21; sizes: `chips`. Chapter: GPUs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import KiB, Result, count

WARP, QUARTERS = 32, 4  # threads in a warp; each quarter of an SM has a quarter of its registers
MOST_WARPS, MOST_BLOCKS, MOST_THREADS = 64, 32, 1024  # per SM, per SM, per block
MOST_REGISTERS, REGISTER_BYTES, REGISTER_GRAIN = 255, 4, 256  # per thread; the granularity is per warp
SMEM_GRAIN, SMEM_RESERVED = 128, 1 * KiB  # the reserved part of every block's shared memory
# the part of L1 and shared memory that cannot be shared memory
UNSHARED = {256 * KiB: 28 * KiB, 192 * KiB: 28 * KiB}


class KernelError(ValueError):
    """An error for a thread block that no SM can hold; the message says which resource it exceeds."""


@dataclass(frozen=True, slots=True)
class Occupancy(Result):
    """The thread blocks that fit on one SM by each resource, and the warps of the blocks that fit by all."""

    chip: Chip
    warps_per_block: int
    blocks_by: Mapping[str, int]  # 'registers', 'shared memory', 'warps', 'blocks'
    line = "blocks", "warps", "share"

    @property
    def blocks(self) -> int:
        """The number of blocks resident on an SM at a time: the minimum over its resources."""
        return min(self.blocks_by.values())

    @property
    def warps(self) -> int:
        """The number of warps resident on an SM at a time."""
        return self.blocks * self.warps_per_block

    @property
    def share(self) -> float:
        """The occupancy: resident warps over the 64 that an SM can hold."""
        return self.warps / MOST_WARPS

    @property
    def bound(self) -> str:
        """The resource that runs out first: 'registers', 'shared memory', 'warps' or 'blocks'."""
        return min(self.blocks_by, key=lambda name: self.blocks_by[name])

    def bytes_in_flight(self, bytes_per_thread: float) -> float:
        """The bytes in flight from HBM if each resident thread of the chip waits for `bytes_per_thread`."""
        return (self.chip.cores or 0) * self.warps * WARP * bytes_per_thread

    def bytes_per_s(self, bytes_per_thread: float, latency_s: float) -> float:
        """The bandwidth attained by Little's law: bytes in flight over the latency, at most HBM's rate."""
        return min(self.bytes_in_flight(bytes_per_thread) / latency_s, self.chip.hbm_bytes_per_s)

    @property
    def heading(self) -> str:
        """The chip, and the resource that runs out first."""
        return f"SM of {self.chip.name}, limited by {self.bound}"


def occupancy(chip: Chip, *, threads: int, registers: int, smem_bytes: float = 0.0) -> Occupancy:
    """The occupancy for blocks of `threads` threads with `registers` registers each and `smem_bytes` bytes.

    A warp's registers are allocated in units of 256 from its quarter of the SM; shared memory in units of 128
    bytes, after 1 KiB that the system reserves for each block. Raises a KernelError if no SM can hold the
    block.
    """
    file, shared, most = registers_per_sm(chip), smem_per_sm(chip), smem_per_block(chip)
    if not 1 <= threads <= MOST_THREADS:
        raise KernelError(f"a block has 1 to {count(MOST_THREADS)} threads, not {threads}")
    if not 1 <= registers <= MOST_REGISTERS:
        raise KernelError(f"a thread has 1 to {MOST_REGISTERS} registers, not {registers}")
    warps = ceil(threads / WARP)
    per_warp = _rounded(registers * WARP, REGISTER_GRAIN)
    if per_warp * _rounded(warps, QUARTERS) > file:
        raise KernelError(
            f"{threads} threads with {registers} registers each need "
            f"{count(per_warp * _rounded(warps, QUARTERS))} registers, but an SM has "
            f"{count(file)}: use fewer of either"
        )
    if not 0 <= smem_bytes <= most:
        raise KernelError(
            f"a block has 0 to {most // KiB} KiB of shared memory, not {smem_bytes / KiB:.4g} KiB"
        )
    return Occupancy(
        chip,
        warps,
        {
            "registers": QUARTERS * (file // QUARTERS // per_warp) // warps,  # whole warps of a quarter
            "shared memory": shared // _rounded(ceil(smem_bytes) + SMEM_RESERVED, SMEM_GRAIN),
            "warps": MOST_WARPS // warps,
            "blocks": MOST_BLOCKS,
        },
    )


def smem_per_sm(chip: Chip) -> int:
    """The bytes of an SM's L1 and shared memory usable as shared memory: 228 of 256 KiB, 164 of 192 KiB.

    Raises a KernelError for a chip that is not from NVIDIA or has no such SM.
    """
    both = chip.smem_bytes_per_core
    if chip.vendor != "NVIDIA" or both not in UNSHARED:
        raise KernelError(f"{chip.name} has no such SM; choose an NVIDIA chip, A100 or later")
    return int(both - UNSHARED[int(both)])


def smem_per_block(chip: Chip) -> int:
    """The most bytes of shared memory that a block can use: those of an SM, without the reserved ones."""
    return smem_per_sm(chip) - SMEM_RESERVED


def registers_per_sm(chip: Chip) -> int:
    """The registers of an SM, of 4 bytes each."""
    return int(chip.registers_bytes_per_core or 0) // REGISTER_BYTES


def bytes_to_saturate(chip: Chip, latency_s: float) -> float:
    """The bytes that must be in flight to keep HBM busy at this latency (Little's law)."""
    return chip.hbm_bytes_per_s * latency_s


def _rounded(value: int, grain: int) -> int:
    return -(-value // grain) * grain
