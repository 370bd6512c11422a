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
    "LLaMA 1 7B": "LLaMA 7B",
    "LLaMA 1 13B": "LLaMA 13B",
    "LLaMA 1 65B": "LLaMA 65B",
    "LLaMA 3.1 8B": "LLaMA-3 8B",
    "LLaMA 3.1 70B": "LLaMA-3 70B",
    "LLaMA 3.3 70B": "LLaMA-3 70B",
    "LLaMA 3.1 405B": "LLaMA-3 405B",
    "Llama 4 Scout 17B 16E": "Llama 4 Scout",
    "Llama 4 Maverick 17B 128E": "Llama 4 Maverick",
    "Mistral 7B": "Mistral 7B v0.1",
    "DeepSeek-R1": "DeepSeek-V3",
    "GPT-2": "GPT-2 124M",
    "Gemma 1 2B": "Gemma 2B",
    "BLOOM": "BLOOM 176B",
}


def squeezed(name: str) -> str:
    """Its letters and digits alone, in small letters."""
    return "".join(c for c in name.lower() if c.isalnum())


def _numbers(name: str) -> list[str]:
    return re.findall(r"[0-9]+(?:[.][0-9]+)?", name)


_NAMED = {model.name: model for model in CATALOGUE}
_NAMED |= {alias: _NAMED[name] for alias, name in ALIASES.items()}
_BY_KEY = {squeezed(name): name for name in reversed(_NAMED)}  # of two the catalogue's own


def find(name: str) -> Transformer:
    """The model of that name, whatever its capitals, spaces and hyphens.

    Its numbers have to be the model's: a point that is left out, or put in, makes another (13B of 1.3B).
    """
    if not isinstance(name, str):
        raise ModelError("name", f"{shown(name)} is no text", "write a name, as in 'LLaMA-3 70B'")
    key, said = squeezed(name), _numbers(name)
    own = _numbers(_BY_KEY.get(key, ""))
    points = {number for number in said if "." in number}
    if key in _BY_KEY and points <= set(own) and ".".join(said).split(".") == ".".join(own).split("."):
        return _NAMED[_BY_KEY[key]]
    near = dict.fromkeys(_NAMED[_BY_KEY[m]].name for m in get_close_matches(key[:80], _BY_KEY, 5, 0.4))
    known = list(near)[:3] or [model.name for model in CATALOGUE]
    raise ModelError("name", f"{shown(name)} is not in the catalogue", f"write one of {', '.join(known)}")
