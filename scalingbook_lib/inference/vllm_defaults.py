"""The limits that vLLM chooses for a chip if its command gives none.

Source: vllm/engine/arg_utils.py, vLLM 0.11. Chapter: Inference.
"""

from scalingbook_lib.machines import Chip
from scalingbook_lib.units import GiB

LARGE_MEMORY_BYTES = 70 * GiB
"""The memory from which vLLM uses larger steps, except on A100."""


def large(chip: Chip) -> bool:
    """Whether vLLM uses its larger defaults on a chip."""
    return chip.hbm_bytes >= LARGE_MEMORY_BYTES and not chip.name.startswith("A100")


def default_batched_tokens(chip: Chip) -> int:
    """vLLM's default limit of batched tokens for an API server: 8,192 with large memory, else 2,048."""
    return 8192 if large(chip) else 2048


def default_max_sequences(chip: Chip) -> int:
    """vLLM's default for --max-num-seqs of an API server: 1,024 with large memory, else 256."""
    return 1024 if large(chip) else 256
