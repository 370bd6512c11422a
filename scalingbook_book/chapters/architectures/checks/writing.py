"""Exercises on diffusion language models, videos, images and vector search."""

from scalingbook_book.chapters.architectures.case import SIGLIP, WAN
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.inference import diffusion
from scalingbook_lib.machines import chips
from scalingbook_lib.models.arithmetic.mixers import bidirectional_flops, video_tokens

_BLOCK = diffusion(7e9, chips.V6E, T=256, passes=32)
_TOKENS = video_tokens(81, 480, 832)
_WEIGHTS, _ATTENTION = bidirectional_flops(WAN.params, _TOKENS, WAN.D, WAN.L)
_EYE = bidirectional_flops(SIGLIP.params, 1024, SIGLIP.D, SIGLIP.L)
_MODEL = 2 * 8e9 * 256
_VECTORS = 5e8 * 768 * 2

CHECKS = (
    Check(
        key="architectures.block-batch",
        title="Break-even of diffusion",
        answer=lambda: _BLOCK.even_batch,
        difficulty=2,
        hints=(
            "A decode step is memory-bound. What is a diffusion pass bound by?",
            "In bf16, it is the ridge divided by the number of passes.",
        ),
        mistakes=(
            Mistake(32.0, "That is the ridge. But each of the 32 passes computes the whole block again."),
            Mistake(lambda: 256 / 32, "That is the gain if both are memory-bound."),
            Mistake(lambda: 560 / 256, "The number of tokens cancels, but the number of passes does not."),
        ),
    ),
    Check(
        key="architectures.video-share",
        title="Attention in a video",
        answer=lambda: _ATTENTION / (_WEIGHTS + _ATTENTION),
        difficulty=2,
        hints=(
            "How many tokens are there? 21 time steps, and one token per 16 × 16 pixels.",
            "The weights take 2P·tokens FLOPs, and attention takes 4·tokens²·D·L.",
        ),
        mistakes=(
            Mistake(
                lambda: _ATTENTION / _WEIGHTS,
                "That is attention divided by weights, not its share of the total.",
            ),
            Mistake(
                lambda: _ATTENTION / 2 / (_WEIGHTS + _ATTENTION / 2),
                "Nothing is causal here: every token attends to every other.",
            ),
        ),
    ),
    Check(
        key="architectures.eye-share",
        title="Vision encoder and language model",
        answer=lambda: sum(_EYE) / _MODEL,
        difficulty=2,
        hints=(
            "How many patches does the image have, and how many tokens?",
            "The encoder's attention is quadratic in the number of patches.",
        ),
        mistakes=(
            Mistake(lambda: _EYE[0] / _MODEL, "You left out the encoder's attention."),
            Mistake(
                lambda: sum(_EYE) / (2 * 8e9 * 1024),
                "The language model processes 256 tokens, not 1,024 patches.",
            ),
            Mistake(
                lambda: SIGLIP.params / 8e9,
                "That is the ratio of the parameters. The encoder also processes four patches per token.",
            ),
        ),
    ),
    Check(
        key="architectures.search-pass",
        title="One pass over all vectors",
        answer=lambda: _VECTORS / (8 * chips.H200.hbm_bytes_per_s),
        unit="s",
        chips=8,
        difficulty=1,
        hints=("Every vector is read once.", "Divide the bytes by the bandwidth of eight chips."),
        mistakes=(
            Mistake(100.0, "One pass serves all hundred queries, because the matmul is below the ridge."),
            Mistake(0.5, "Each number takes two bytes."),
        ),
    ),
)
