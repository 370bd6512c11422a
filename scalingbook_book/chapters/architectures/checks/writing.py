"""Can a reader price what is not written token by token: blocks, videos, pictures, searches?"""

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
        title="How many at once",
        answer=lambda: _BLOCK.even_batch,
        difficulty=2,
        hints=(
            "A step waits for weights. What does a pass wait for?",
            "R over the passes, in bf16.",
        ),
        mistakes=(
            Mistake(32.0, "That is the ridge; each pass computes the whole block again."),
            Mistake(lambda: 256 / 32, "That is the gain while both wait for weights."),
            Mistake(lambda: 560 / 256, "Tokens of the block drop out; passes do not."),
        ),
    ),
    Check(
        key="architectures.video-share",
        title="Attention in a video",
        answer=lambda: _ATTENTION / (_WEIGHTS + _ATTENTION),
        difficulty=2,
        hints=("How many tokens? 21 steps in time, patches of 16 × 16.", "2P·tokens and 4·tokens²·D·L."),
        mistakes=(
            Mistake(lambda: _ATTENTION / _WEIGHTS, "That is attention over weights, not its share."),
            Mistake(
                lambda: _ATTENTION / 2 / (_WEIGHTS + _ATTENTION / 2),
                "Nothing is causal here: every token sees every other.",
            ),
        ),
    ),
    Check(
        key="architectures.eye-share",
        title="The eye and the model",
        answer=lambda: sum(_EYE) / _MODEL,
        difficulty=2,
        hints=("How many patches, how many tokens?", "The encoder's attention is quadratic in the patches."),
        mistakes=(
            Mistake(lambda: _EYE[0] / _MODEL, "The encoder's attention is missing."),
            Mistake(lambda: sum(_EYE) / (2 * 8e9 * 1024), "The model sees 256 tokens, not 1,024 patches."),
            Mistake(lambda: SIGLIP.params / 8e9, "Four patches are one token."),
        ),
    ),
    Check(
        key="architectures.search-pass",
        title="One pass over all vectors",
        answer=lambda: _VECTORS / (8 * chips.H200.hbm_bytes_per_s),
        unit="s",
        chips=8,
        difficulty=1,
        hints=("Every vector is read once.", "Bytes over the bandwidth of eight chips."),
        mistakes=(
            Mistake(100.0, "One pass serves all hundred: the product is far below the ridge."),
            Mistake(0.5, "Two bytes a number."),
        ),
    ),
)
