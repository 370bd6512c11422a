"""Which model did a published run train, and on which chip?

Models of the catalogue, and those that only these runs name, built from their published shapes.
Chapter: Training.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from scalingbook_lib import models
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import GB

ALL = ("q", "k", "v", "o", "mlp")


def gpt(name: str, L: int, D: int, N: int, V: int, T: int) -> Transformer:
    """GPT-3's form: an MLP of 4 D without a gate, biases, learned positions, one matrix for both ends."""
    return Transformer(
        name=name, D=D, L=L, V=V, N=N, K=N, H=D // N, F=4 * D, gated=False, tied=True, norm_bias=True,
        biases=ALL, positions=T,
    )  # fmt: skip


def mpt(name: str, L: int, D: int, N: int, T: int) -> Transformer:
    """MPT as llm-foundry measured it: learned positions for its T, biases, scales and shifts."""
    return gpt(name, L, D, N, 50368, T)


def maxtext(name: str, L: int, D: int, N: int, F: int) -> Transformer:
    """MaxText's own models: 128-wide heads, a gated MLP, two embeddings, 32,000 words."""
    return Transformer(name=name, D=D, L=L, V=32000, N=N, K=N, H=128, F=F)


def nemotron() -> Transformer:
    """Nemotron-4 340B: squared ReLU without a gate, eight key-value heads."""
    return Transformer(
        name="Nemotron-4 340B", D=18432, L=96, V=256000, N=96, K=8, H=192, F=73728, gated=False
    )


def mistral() -> Transformer:
    """Mistral 7B as MaxText trains it: no window, 32,000 words."""
    return replace(models.find("Mistral 7B v0.3"), name="Mistral 7B", V=32000)


_GPT = {  # L, D, N by the vocabulary
    51200: {
        "GPT-1.7B": (24, 2304, 24), "GPT-3.6B": (30, 3072, 32), "GPT-7.5B": (36, 4096, 32),
        "GPT-39B": (48, 8192, 64), "GPT-145B": (80, 12288, 96), "GPT-530B": (105, 20480, 128),
        "GPT-22B": (48, 6144, 64), "GPT-175B": (96, 12288, 96), "GPT-1T": (128, 25600, 160),
        "MT-NLG": (105, 20480, 128), "GPT3-175B": (96, 12288, 96),
    },
    131072: {
        "GPT-1.7B-131k": (24, 2048, 16), "GPT-16B": (32, 6144, 48), "GPT-70B": (84, 8192, 64),
        "GPT-177B": (96, 12288, 96), "GPT-462B": (112, 18432, 144),
    },
}  # fmt: skip
_MPT = {
    "MPT-125m": (12, 768, 12), "MPT-350m": (24, 1024, 16), "MPT-1b": (24, 2048, 16),
    "MPT-3b": (32, 2560, 20), "MPT-7b": (32, 4096, 32), "MPT-13b": (40, 5120, 40), "MPT-30b": (48, 7168, 56),
}  # fmt: skip
_MAXTEXT = {
    "MaxText-16B": (32, 4096, 64, 28672), "MaxText-32B": (32, 8192, 64, 28672),
    "MaxText-64B": (64, 8192, 64, 28672), "MaxText-128B": (64, 8192, 128, 57344),
    "MaxText-256B": (64, 16384, 128, 57344), "MaxText-512B": (128, 16384, 128, 57344),
}  # fmt: skip


@cache
def model(key: str, T: int) -> Transformer:
    """The model of that name in the tables; some learn a position for each of the T tokens."""
    for V, known in _GPT.items():
        if key in known:
            return gpt(key, *known[key], V, T)
    made: dict[str, Callable[[], Transformer]] = {"Nemotron4-340B": nemotron, "Mistral-7B": mistral}
    made |= {name: lambda s=shape, n=name: maxtext(n, *s) for name, shape in _MAXTEXT.items()}
    made |= {name: lambda s=shape, n=name: mpt(n, *s, T) for name, shape in _MPT.items()}
    return made[key]() if key in made else models.find(key.replace("_", " "))


A100_40G = replace(chips.A100, name="A100 40GB", hbm_bytes=40 * 2**30, hbm_bytes_per_s=1555 * GB)
H100_500W = replace(
    chips.H100, name="H100 96GB, 500 W", hbm_bytes=96 * 2**30, hbm_bytes_per_s=2400 * GB, power_w=500
)
"""The H100 of torchtitan's tables: 96 GB of HBM2e, and 500 W."""


def chip(key: str) -> Chip:
    """The chip of that name in the tables."""
    own = {"A100-40G": A100_40G, "H100-500W": H100_500W}
    return own[key] if key in own else chips.CATALOGUE[key.replace("_", " ")]


SLUGS = {
    "A100": "a100-80g", "A100-40G": "a100-40g", "H100": "h100-sxm", "H100-500W": "h100-96g-hbm2e-500w",
    "TPU_v5e": "tpuv5e", "TPU_v5p": "tpuv5p", "TPU_v6e": "tpuv6e",
}  # fmt: skip
"""What the chips are called in the ids of `data/training_runs.csv`."""
