"""Which shapes does a model have, and how many parameters, part by part and exact?

`models.find("LLaMA-3 70B")`, `models.from_hf("config.json")`, `Transformer(...).weights()`.
Chapter: Transformers.
"""

from .catalogue import CATALOGUE, find
from .error import ModelError
from .hf import KNOWN_TYPES, from_hf
from .parts import Experts, Latent, Linear
from .transformer import LayerKind, Transformer
from .weight import PARTS, Weight

__all__ = [
    "CATALOGUE",
    "KNOWN_TYPES",
    "PARTS",
    "Experts",
    "Latent",
    "LayerKind",
    "Linear",
    "ModelError",
    "Transformer",
    "Weight",
    "find",
    "from_hf",
]
