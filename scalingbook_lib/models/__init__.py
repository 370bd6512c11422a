"""Shapes of published models, and their exact parameter counts part by part.

`models.find("Llama 3 70B")`, `models.from_hf("config.json")`, `Transformer(...).weights()`. Chapter:
Transformers.

>>> print(find("llama-3-70b"))
Llama 3 70B: 70,553,706,496 parameters; D=8192 L=80 F=28672 N=64 K=8 H=128 V=128256
"""

from scalingbook_lib.models.blocks.block import Block, LayerKind
from scalingbook_lib.models.catalog import CATALOG, KNOWN_TYPES, find, find_as_stored, from_hf, further
from scalingbook_lib.models.parts import PARTS, Experts, Latent, Linear, ModelError, Weight
from scalingbook_lib.models.transformer import Transformer

__all__ = [
    "CATALOG",
    "KNOWN_TYPES",
    "PARTS",
    "Block",
    "Experts",
    "Latent",
    "LayerKind",
    "Linear",
    "ModelError",
    "Transformer",
    "Weight",
    "find",
    "find_as_stored",
    "from_hf",
    "further",
]
