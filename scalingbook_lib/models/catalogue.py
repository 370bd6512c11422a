"""Which published models does the book speak of, in which shapes, and who says so?

A line of `catalogue.json` is a model in the fields of `Transformer`, as its published `config.json` has them;
each names where it was read. Chapter: Transformers.
"""

import json
import pkgutil
import re
from difflib import get_close_matches
from typing import Any

from scalingbook_lib.models.error import ModelError, shown
from scalingbook_lib.models.parts import Experts, Latent, Linear
from scalingbook_lib.models.transformer import Transformer

_PARTS = {"experts": Experts, "latent": Latent, "linear": Linear}


def _model(*, source: str, sources: dict[str, str], **fields: Any) -> Transformer:
    """JSON has lists for tuples, and objects for the parts of a layer."""
    for name, value in fields.items():
        if name in _PARTS:
            fields[name] = _PARTS[name](**value)
        elif isinstance(value, list):
            fields[name] = tuple(value)
    return Transformer(**fields, source=sources.get(source, source))


_TOLD = json.loads(pkgutil.get_data(__package__ or "", "catalogue.json") or b"")  # also from a page's archive
CATALOGUE = tuple(_model(**fields, sources=_TOLD["sources"]) for fields in _TOLD["models"])

ALIASES = {
    "llama17b": "LLaMA 7B",
    "llama113b": "LLaMA 13B",
    "llama165b": "LLaMA 65B",
    "llama318b": "LLaMA-3 8B",
    "llama3170b": "LLaMA-3 70B",
    "llama3370b": "LLaMA-3 70B",
    "llama31405b": "LLaMA-3 405B",
    "llama4scout17b16e": "Llama 4 Scout",
    "llama4maverick17b128e": "Llama 4 Maverick",
    "mistral7b": "Mistral 7B v0.1",
    "deepseekr1": "DeepSeek-V3",
    "gpt2": "GPT-2 124M",
    "gemma12b": "Gemma 2B",
    "bloom": "BLOOM 176B",
}


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


_BY_KEY = {_key(model.name): model for model in CATALOGUE}
_BY_KEY |= {alias: _BY_KEY[_key(name)] for alias, name in ALIASES.items() if alias not in _BY_KEY}


def _sizes(name: str) -> list[str]:
    """The sizes that a name says: a point that is left out makes another model, OPT 13B of OPT 1.3B."""
    return re.findall(r"[0-9.]+(?=[bm]\b)", name.lower())


def find(name: str) -> Transformer:
    """The model of that name, whatever its capitals, spaces and hyphens."""
    if not isinstance(name, str):
        raise ModelError("name", f"{shown(name)} is no text", "write a name, as in 'LLaMA-3 70B'")
    key = _key(name[:80])
    found = _BY_KEY.get(key)
    if found and _sizes(name) in ([], _sizes(found.name) or _sizes(name)):
        return found
    near = dict.fromkeys(_BY_KEY[match].name for match in get_close_matches(key, _BY_KEY, 5, 0.4))
    known = list(near)[:3] or [model.name for model in CATALOGUE]
    raise ModelError("name", f"{shown(name)} is not in the catalogue", f"write one of {', '.join(known)}")
