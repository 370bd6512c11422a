"""Which published models does the book speak of, and which Transformer does a `config.json` describe?

A line of `catalogue.json` is a model in the fields of `Transformer`, as its published `config.json` has
them; each names where it was read. `from_hf` reads such a file, a text or a dict: every `model_type` has a
reader that turns its fields into the book's letters, and what it cannot count it refuses. Chapter:
Transformers.
"""

import json
import pkgutil
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from scalingbook_lib.models.dense import DENSE
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.older import OLDER
from scalingbook_lib.models.parts import Experts, Latent, Linear, ModelError, shown
from scalingbook_lib.models.sparse import SPARSE
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


MOST_CHARACTERS = 2_000_000
MOST_LEVELS = 50  # a published file has four; a browser's Python dies of a few thousand
READERS = DENSE | SPARSE | OLDER
KNOWN_TYPES = tuple(READERS)


def from_hf(config: Mapping[str, Any] | str | Path, *, name: str | None = None) -> Transformer:
    """The Transformer of a `config.json`: a dict, its JSON text, or the path of the file or its folder."""
    fields = _text_part(_read(config))
    kind = _kind(fields)
    return Transformer(name=name or _name(fields, kind), **READERS[kind](Fields(fields)))


def _read(config: object) -> dict[str, Any]:
    if isinstance(config, str) and "{" in config:
        config = _parsed(config)
    elif isinstance(config, str | Path):
        config = _parsed(_file(Path(config)))
    if not isinstance(config, Mapping):
        raise ModelError("config", f"{shown(config)} is no object", "give the whole config.json, in { }")
    if not all(isinstance(key, str) for key in config):
        raise ModelError("config", "a field's name is no text", "give the config.json as it was published")
    return dict(config)


def _file(path: Path) -> str:
    try:
        path = path / "config.json" if path.is_dir() else path
        with path.open(encoding="utf-8") as file:
            return file.read(MOST_CHARACTERS + 1)
    except (OSError, ValueError) as error:  # also: no UTF-8, a null byte in the path
        raise ModelError(
            "config", f"{shown(str(path))} cannot be read", "give the path of a config.json"
        ) from error


def _parsed(text: str) -> object:
    if len(text) > MOST_CHARACTERS:
        raise ModelError("config", f"it has more than {MOST_CHARACTERS:,} characters", "give a config.json")
    if _levels(text) > MOST_LEVELS:  # before json.loads, whose recursion ends a browser's Python
        raise ModelError("config", "it is nested too deeply", "give a config.json")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ModelError(
            "config", f"it is no JSON from {where} on", "paste the whole file, { to }"
        ) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            "config", "it has a number too long or is nested too deeply", "give a config.json"
        ) from error


def _levels(text: str) -> int:
    """How deep its brackets open, those in strings left out."""
    level = deepest = 0
    for bracket in re.findall(r"[][{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json.loads keeps the last of two values for one name: not the one that a reader saw first
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read and repr(read[key]) != repr(value):
            raise ModelError(shown(key).strip("'"), "it stands twice, with two values", "keep one of them")
        read[key] = value
    return read


def _text_part(config: dict[str, Any]) -> dict[str, Any]:
    """The language model of a configuration that also has a picture or a sound part."""
    inner = config.get("text_config")
    if inner is None:
        return config
    if not isinstance(inner, Mapping) or not all(isinstance(key, str) for key in inner):
        raise ModelError("text_config", f"{shown(inner)} is no object", "write it in { }")
    # what the outer object says holds where the inner one is silent
    outer = {key: config[key] for key in ("tie_word_embeddings", "model_type") if key in config}
    return {**outer, **{key: value for key, value in inner.items() if value is not None}}


def _kind(config: dict[str, Any]) -> str:
    kind = config.get("model_type")
    if kind is None:
        raise ModelError("model_type", "it is missing", f"add it: one of {', '.join(KNOWN_TYPES)}")
    if not isinstance(kind, str) or kind not in READERS:
        near = get_close_matches(kind[:40], KNOWN_TYPES, 3, 0.5) if isinstance(kind, str) else []
        raise ModelError(
            "model_type",
            f"{shown(kind)} is not counted here",
            f"give one of {', '.join(near or KNOWN_TYPES)}, or write its shapes as a Transformer",
        )
    return kind


def _name(config: dict[str, Any], kind: str) -> str:
    """The last part of the name that the file gives itself, if it gives one."""
    path = config.get("_name_or_path")
    if not isinstance(path, str):
        return kind
    last = path.rstrip("/").rsplit("/", 1)[-1].strip()
    return last if last.isprintable() and 0 < len(last) <= 60 else kind
