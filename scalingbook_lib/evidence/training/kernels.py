"""How does the rate of attention grow with the sequence? Measured kernels, and one formula for all chips.

Chapter: Training.
"""

from scalingbook_lib.machines.chips import B200, H100, Chip, Source

SOURCE = Source(
    text="aiconfigurator-core 0.12.0 (NVIDIA, Apache License 2.0), context_attention_perf.parquet: medians "
    "of three to five shapes with heads of 128 and batch · heads · T of at least 2^19",
    as_of="2026-11-21",
    url="https://pypi.org/project/aiconfigurator-core/",
)
MEASURED = {
    H100: {1024: 0.252, 2048: 0.366, 4096: 0.431, 8192: 0.501, 16384: 0.515},
    B200: {1024: 0.181, 2048: 0.260, 4096: 0.385, 8192: 0.429, 16384: 0.502},
}
"""Shares of the bf16 peak that causal attention reaches forward, by the tokens of a sequence."""
LONG = 0.55  # of the peak, at sequences without end
RAMP_S = 1024 / 989e12  # tokens for each FLOP/s: what is lost is a time, and faster chips lose more in it


def ramp(chip: Chip) -> float:
    """The tokens of a sequence at which attention has half of its rate: 1,024 on H100."""
    return RAMP_S * chip.bf16_flops_per_s


def attention(chip: Chip, T: float) -> float:
    """The share of the peak that the formula gives."""
    return LONG / (1 + ramp(chip) / T)
