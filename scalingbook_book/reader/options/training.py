"""The machines that explorers of training offer, and short labels for terms and refusals."""

TRAINING_MACHINES = (
    "TPU v5p 4x4x8", "TPU v5p 8x8x8", "TPU v5p 16x16x16", "TPU v5p 16x20x28", "TPU v5e 16x16",
    "TPU v6e 16x16", "H100 × 512", "H100 × 4,096", "H100 × 16,384", "B200 × 1,024", "GB300 × 1,024",
    "MI355X × 1,024", "Trainium3 × 1,024", "Gaudi3 × 1,024", "MI455X × 1,024", "Rubin × 1,024",
)  # fmt: skip
_WORDS = {
    "heads": "heads",
    "KV heads": "heads",
    "F=": "F",
    "D=": "D",
    "experts": "experts",
    "tokens of a sequence": "tokens",
    "sequences of": "tokens",
    "data ranks": "batch",
    "would hold": "memory",
    "layers": "layers",
    "dualpipe": "batch",
    "interleaved": "batch",
    "zero-bubble": "batch",
}


def word(reason: str) -> str:
    """Return the reason why a plan does not fit, in one word for a small cell."""
    return next((short for part, short in _WORDS.items() if part in reason), "mesh")


def divisors(n: int, most: int) -> list[int]:
    """Return the divisors of n up to `most`, ascending."""
    return [d for d in range(1, min(n, most) + 1) if n % d == 0]
