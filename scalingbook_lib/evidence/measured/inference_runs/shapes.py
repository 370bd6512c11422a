"""Which model did a published run serve, on which chip, in which types?

Models of the catalogue, and those that only these runs name, built from their published shapes.
Chapter: Inference.
"""

from dataclasses import replace
from functools import cache

from scalingbook_lib import models
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import BF16, FP4, FP8, FP16, INT8, DType

BIASES = ("q", "k", "v", "o", "mlp")
NVFP4 = DType("nvfp4", 0.5 + 1 / 16)
"""Four bits, and a scale of eight for every sixteen of them."""
INT4_G32 = DType("int4 in groups of 32", 0.5 + 4 / 32)
"""Four bits, and a scale and a zero of sixteen bits each for every 32 of them."""
TYPES = {"bf16": BF16, "fp16": FP16, "fp8": FP8, "int8": INT8, "fp4": NVFP4, "int4-g32": INT4_G32}
"""The types of weights, as the table calls them."""
COMPUTES = {"bf16": BF16, "fp16": FP16, "fp8": FP8, "int8": BF16, "fp4": FP4, "int4-g32": BF16}
"""What products are computed in: int8 and int4 weights are made 16 bits wide first, fp8 and fp4 are not."""
A100_330W = replace(chips.A100, name="A100, 330 W", power_w=330)
"""The A100 of gpt-fast's tables, held to 330 of its 400 watts."""


def palm(heads: int = 48) -> Transformer:
    """PaLM 540B: one key-value head, one norm for both halves of a layer; 64 heads as it was served."""
    return Transformer(
        name=f"PaLM 540B, {heads} heads", D=18432, L=118, V=256000, N=heads, K=1, H=256, F=73728, tied=True,
        norms=1,
    )  # fmt: skip


def mt_nlg() -> Transformer:
    """Megatron-Turing NLG: GPT-3's form."""
    return Transformer(
        name="MT-NLG 530B", D=20480, L=105, V=51200, N=128, K=128, H=160, F=81920, gated=False, tied=True,
        norm_bias=True, biases=BIASES, positions=2048,
    )  # fmt: skip


@cache
def model(key: str) -> Transformer:
    """The model of that name in the tables."""
    made = {"PaLM-540B": lambda: palm(48), "PaLM-540B-64": lambda: palm(64), "MT-NLG-530B": mt_nlg}
    return made[key]() if key in made else models.find(key.replace("_", " "))


def chip(key: str) -> Chip:
    """The chip of that name in the tables."""
    return A100_330W if key == "A100-330W" else chips.find(key.replace("_", " "))
