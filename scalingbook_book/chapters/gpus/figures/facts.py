"""Numbers of an H100 and a TPU v5p that the figures use and that the catalog lacks for some chips."""

from scalingbook_lib.machines import Chip
from scalingbook_lib.machines.chips import H100, V5P


def known[T](number: T | None) -> T:
    """The number, or a ValueError if the catalog has none."""
    if number is None:
        raise ValueError("the catalog does not have this number for the chip; choose another chip")
    return number


def per_cycle(chip: Chip) -> float:
    """FLOPs per cycle of one matrix unit: documented peak / (units · clock)."""
    return chip.bf16_flops_per_s / known(chip.matrix_units) / known(chip.clock_hz)


SMS, TENSOR_CORES, CLOCK_HZ = known(H100.cores), known(H100.matrix_units), known(H100.clock_hz)
REGISTERS = known(H100.registers_bytes_per_core)  # bytes of an SM, as is the next
SMEM = known(H100.smem_bytes_per_core)
L2, LANES_FLOPS_PER_S = known(H100.l2_bytes), known(H100.vector_flops_per_s)
CARD_BYTES_PER_S = known(H100.dcn_bytes_per_s)
V5P_CORES, VMEM = known(V5P.cores), known(V5P.vmem_bytes)
