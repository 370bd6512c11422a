"""The catalog of published models, and the reader of Hugging Face `config.json` files.

An entry of `catalog.json` is a model in the fields of `Transformer`, as its published `config.json` has them,
with the source it was read from; its `stored` are the `quantization_config` of published files.
`further.json` holds the published files of further models, which the tables of the website do not list, and
the names of checkpoints that have the shapes of another model; `find` knows them all and reads a file when it
is first asked for. `from_hf` reads such a file, a text or a dict: every `model_type` has a
reader that turns its fields into the book's letters, and refuses what it cannot count. Chapter: Transformers.
"""

import json
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from os import PathLike
from typing import Any

from scalingbook_lib.models import files, published_names, quantized, unknown
from scalingbook_lib.models.composite import COMPOSITE
from scalingbook_lib.models.dense import DENSE
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.latent import LATENT
from scalingbook_lib.models.mixed import MIXED
from scalingbook_lib.models.older import OLDER
from scalingbook_lib.models.parts import Experts, Latent, Linear, ModelError, printable
from scalingbook_lib.models.quantization import Scheme
from scalingbook_lib.models.recent import RECENT
from scalingbook_lib.models.sparse import SPARSE
from scalingbook_lib.models.stateful import STATEFUL
from scalingbook_lib.models.transformer import Transformer
from scalingbook_lib.models.uncounted import NO_SIZES, OTHERS, PARTS, UNCOUNTED

_PARTS = {"experts": Experts, "latent": Latent, "linear": Linear}


def _model(*, source: str, sources: dict[str, str], **fields: Any) -> Transformer:
    """The model of a catalog entry; JSON lists become tuples, and objects become the parts of a layer."""
    for name, value in fields.items():
        if name in _PARTS:
            fields[name] = _PARTS[name](**value)
        elif isinstance(value, list):
            fields[name] = tuple(value)
    return Transformer(**fields, source=sources.get(source, source))


_PUBLISHED = json.loads(
    pkgutil.get_data(__package__ or "", "catalog.json") or b""
)  # also from a page's archive
CATALOG = tuple(_model(**fields, sources=_PUBLISHED["sources"]) for fields in _PUBLISHED["models"])

ALIASES = {
    "LLaMA 1 7B": "LLaMA 7B",
    "LLaMA 1 13B": "LLaMA 13B",
    "LLaMA 1 65B": "LLaMA 65B",
    "Llama 3.1 8B": "Llama 3 8B",
    "Llama 3.1 70B": "Llama 3 70B",
    "Llama 3.3 70B": "Llama 3 70B",
    "llama-3-405b": "Llama 3.1 405B",
    "Llama 4 Scout 17B 16E": "Llama 4 Scout",
    "Llama 4 Maverick 17B 128E": "Llama 4 Maverick",
    "Mistral 7B": "Mistral 7B v0.1",
    "DeepSeek-R1": "DeepSeek-V3",
    "Qwen3.6 27B": "Qwen3.5 27B",
    "Qwen3.6 35B-A3B": "Qwen3.5 35B-A3B",
    "Qwen3.8 27B": "Qwen3.5 27B",
    "Grok-1": "Grok-1 314B",
    "GPT-2": "GPT-2 124M",
    "Gemma 1 2B": "Gemma 2B",
    "BLOOM": "BLOOM 176B",
    "Mistral Nemo": "Mistral Nemo 12B",
    "Mixtral 8x7B v0.1": "Mixtral 8x7B",
    "Mixtral 8x22B v0.1": "Mixtral 8x22B",
    "DeepSeek-V3.1": "DeepSeek-V3",
    "DeepSeek-V3.1-Terminus": "DeepSeek-V3",
    "DeepSeek-V3.2-Exp": "DeepSeek-V3.2",
    "DeepSeek-V3.2-Speciale": "DeepSeek-V3.2",
    "DeepSeek-R1-Distill-Llama-8B": "Llama 3 8B",
    "DeepSeek-R1-Distill-Llama-70B": "Llama 3 70B",
    "DeepSeek-R1-Distill-Qwen-7B": "Qwen2.5 7B",
    "GLM-4.6": "GLM-4.5",
    "Phi-3-mini-4k": "Phi-3 mini",
    "SmolLM3": "SmolLM3 3B",
}
FAMILIES = (
    "Llama 3 70B",
    "Mistral Small 24B",
    "Gemma-3 27B",
    "Qwen3 8B",
    "DeepSeek-V3",
    "Kimi K2",
    "GLM-4.5",
    "gpt-oss 120B",
)
"""A model of each of the best-known families, for an error about a name that resembles none."""
_LIKE = (("gpt3", "OPT 175B"),)  # models whose weights nobody published, and one of the same shapes


def normalize_name(name: str) -> str:
    """The letters and digits of the name, in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())


def _numbers(name: str) -> list[str]:
    return re.findall(r"[0-9]+(?:[.][0-9]+)?", name)


_BY_NAME = {model.name: model for model in CATALOG}
_NAMED = {name: name for name in _BY_NAME} | ALIASES


def find(name: str) -> Transformer:
    """The model of that name in any case, spacing and hyphenation, or of a checkpoint on Hugging Face.

    'meta-llama/Llama-3.1-8B-Instruct' is Llama 3.1 8B: an organization, and words on how it was trained,
    change no shape. ModelError, with close matches, if unknown, and for a checkpoint whose weights are
    quantized. Its numbers must be the model's own: a decimal point left out or added names another model
    (13B, 1.3B).
    """
    if not isinstance(name, str):
        raise ModelError("name", f"{printable(name)} is not a string", "write a name, as in 'Llama 3 70B'")
    if found := _published(name):
        return found
    bare = published_names.bare(name)
    stored, plain = published_names.stored_type(name), published_names.without_stored_type(name)
    if stored and (found := _published(plain)):
        raise ModelError(
            "name",
            f"{printable(name)} stores the weights of {found.name} in {stored}, and a name gives "
            "shapes alone",
            f"write {plain}, and {stored} as the type of its weights",
        )
    # one name for all aliases of a model
    close = get_close_matches(normalize_name(bare)[:80], _SPELLED, 5, 0.4)
    known = list(dict.fromkeys(_NAMED[one] for key in close for one in _SPELLED[key]))[:3]
    listed = "" if known else " (see `scalingbook model --help`)"
    like = next(
        (f"{other}, which has its shapes; or " for words, other in _LIKE if words in normalize_name(bare)), ""
    )
    raise ModelError(
        "name",
        f"{printable(name)} is not in the catalog",
        f"write {like}one of {', '.join(known or FAMILIES)}{listed}, or give the model's config.json",
    )


def find_as_stored(name: str) -> Transformer:
    """As `find`; a checkpoint whose name says how its weights are stored has them in the usual formats.

    'Qwen/Qwen3-8B-FP8' is Qwen3 8B with its matrices in fp8. `named_format` tells the type of such a model.
    A model or a checkpoint whose own published file quantizes its weights (gpt-oss, Kimi-K2.5-NVFP4) has them
    as in that file, unless the name says bf16.
    """
    if _SIXTEEN_BITS.search(name.lower()):
        return find(name)
    found, kind = _published(name), ""
    if found is None and (kind := published_names.stored_type(name)):
        found = _published(published_names.without_stored_type(name))
    found = found or find(name)
    own, general = map(normalize_name, (published_names.last_part(name), found.name))
    if said := _STORED.get(own) or (None if kind else _STORED.get(general)):
        return replace(found, quantization=_scheme(found, said))
    return replace(found, quantization=quantized.by_name(kind)) if kind else found


_STORED = {normalize_name(name): said for name, said in _PUBLISHED["stored"].items()}
"""The `quantization_config` of published files, by the name of a model or of a single checkpoint."""


def _scheme(model: Transformer, said: dict[str, Any]) -> Scheme | None:
    """How the published file of a model, with this `quantization_config`, stores its weights."""
    config = _FURTHER_BY_NAME.get(model.name, {}).get("config", {})
    return quantized.scheme(Fields(config | {"quantization_config": said}))


def _published(name: str) -> Transformer | None:
    """The model of this name, also with an organization and with words on how it was trained."""
    spellings = (name, published_names.last_part(name), published_names.bare(name))
    return next((found for one in spellings if (found := _named(one))), None)


def _named(name: str) -> Transformer | None:
    """The model with this name or alias in any spelling, and with all of its numbers."""
    numbers = _numbers(name)
    points = {number for number in numbers if "." in number}
    digits = ".".join(numbers).split(".")
    for spelled in _SPELLED.get(normalize_name(name), ()):
        own = _numbers(spelled)
        if points <= set(own) and digits == ".".join(own).split("."):
            return _by_name(_NAMED[spelled])
    return None


READERS = DENSE | SPARSE | OLDER | RECENT | MIXED | LATENT | COMPOSITE | STATEFUL
KNOWN_TYPES = tuple(READERS)
OUTER = "quantization_config", "kv_cache_dtype", "dtype", "torch_dtype", "expert_dtype"
INNER = "text_config", "llm_config", "language_config", "thinker_config"
"""The fields that hold the language model of a multimodal configuration."""
STATE_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def from_hf(config: Mapping[str, Any] | str | PathLike[str], *, name: str | None = None) -> Transformer:
    """The Transformer of a `config.json`: a dict, its JSON text, or the path of the file or its folder.

    ModelError where a field is missing, contradicts another or cannot be counted. A pipe, a device or a file
    too long for a configuration is refused before it is read.
    """
    return _read_model(files.read(config), name)[0]


def fields_read(config: Mapping[str, Any]) -> frozenset[str]:
    """The names of the fields that decide what `from_hf` makes of a configuration."""
    return frozenset(_read_model(dict(config), None)[1])


def _read_model(whole: dict[str, Any], name: str | None) -> tuple[Transformer, set[str]]:
    fields = _text_part(whole)
    kind, f = _kind(fields), Fields(fields)
    like = kind if kind in READERS else _by_architecture(fields)
    shapes = READERS[like](f) if like else unknown.read(f, kind)
    if like and like != kind:
        own = f"model_type {printable(kind)} is unknown and was read as {like}, by its architecture"
        shapes["assumed"] = (*shapes.get("assumed", ()), own)
    if like != kind:
        shapes["assumed"] = (*shapes["assumed"], *unknown.unread_sizes(f))
    f.value("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    for field, value in fields.items():
        plain = isinstance(value, list) and all(entry == "full_attention" for entry in value)
        part = PARTS.fullmatch(field) and not NO_SIZES.fullmatch(field)
        if value and not plain and part and field not in f.asked:
            where = f"no model of type {kind} has"
            if not like:
                where = f"is not read where model_type, {printable(kind)}, is unknown"
            raise ModelError(
                field,
                f"{printable(value)} is a part that {where}",
                "give the model_type that has it, or leave it out",
            )
    uncounted = [words for field, words in UNCOUNTED.items() if {**whole, **fields}.get(field)]
    scheme = quantized.scheme(f)
    uncounted += quantized.not_counted(scheme)
    named = shapes.get("blocks") or kind not in READERS
    if named and shapes.get("next_tokens") and not shapes.get("next_blocks"):
        uncounted.append(UNCOUNTED["num_mtp_modules"])
    model = Transformer(
        name=name or _name(fields, kind),
        uncounted=tuple(dict.fromkeys(uncounted)),
        state_dtype=_state_dtype(f),
        base_dtype=quantized.base_dtype(f),
        quantization=scheme,
        **shapes,
    )
    return model, f.asked


def _state_dtype(f: Fields) -> str:
    """The type of the recurrent states, fp32 unless the file says another one."""
    name = f.value("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    if name is not None and (not isinstance(name, str) or name not in STATE_DTYPES):
        broke = f"{printable(name)} is no type of a state"
        raise ModelError("mamba_ssm_dtype", broke, f"write one of {', '.join(STATE_DTYPES)}")
    return STATE_DTYPES[name] if name else "fp32"


def _text_part(config: dict[str, Any]) -> dict[str, Any]:
    """The language model of a multimodal configuration."""
    name = next((one for one in INNER if config.get(one) is not None), "")
    if not name:
        return config
    inner = config[name]
    if not isinstance(inner, Mapping) or not all(isinstance(key, str) for key in inner):
        raise ModelError(name, f"{printable(inner)} is not an object", "write it in { }")
    if name == "thinker_config":  # Qwen Omni: the part that thinks has a text_config of its own
        return _text_part({**{key: config[key] for key in OUTER if key in config}, **inner})
    # the outer object ties the embeddings; what else it says holds where the inner one is silent
    kind = {"model_type": config["model_type"]} if "model_type" in config else {}
    tied = {"tie_word_embeddings": tie} if (tie := config.get("tie_word_embeddings")) is not None else {}
    outer = {key: config[key] for key in OUTER if key in config}
    return {**kind, **outer, **{key: value for key, value in inner.items() if value is not None}, **tied}


def _kind(config: dict[str, Any]) -> str:
    kind = config.get("model_type")
    if kind is None:
        raise ModelError("model_type", "it is missing", "add it, as in llama, qwen3_moe or deepseek_v3")
    other = next((o for o in OTHERS if isinstance(kind, str) and re.match(o, kind)), None)
    if other and kind not in READERS:
        raise ModelError(
            "model_type",
            f"{printable(kind)} has {OTHERS[other]}, which is not counted here",
            "give another model, or write its shapes as a Transformer if it has none",
        )
    if not isinstance(kind, str):
        raise ModelError("model_type", f"{printable(kind)} is not a name", "write a text, as in llama")
    return kind


def _by_architecture(config: dict[str, Any]) -> str:
    """The known type of the file's `architectures`, or "": 'DeepseekV4ForCausalLM' is of deepseek_v4."""
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    bare = re.sub(r"(For\w+|LMHeadModel|Model)$", "", first) if isinstance(first, str) else ""
    return next((kind for kind in READERS if bare and normalize_name(kind) == normalize_name(bare)), "")


def _name(config: dict[str, Any], kind: str) -> str:
    """The last part of the name that the file states, or the model type."""
    path = config.get("_name_or_path")
    if not isinstance(path, str):
        return kind
    last = path.rstrip("/").rsplit("/", 1)[-1].strip()
    return last if last.isprintable() and 0 < len(last) <= 60 else kind


_SIXTEEN_BITS = re.compile(r"bf16|bfloat16|fp16|unquantized")
_FURTHER = json.loads(pkgutil.get_data(__package__ or "", "further.json") or b"")
_FURTHER_BY_NAME: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in _FURTHER["models"]}


@cache
def _by_name(name: str) -> Transformer:
    """The model of the catalog with exactly this name; one of `further.json` is read when first asked for."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    entry = _FURTHER_BY_NAME[name]
    source, read = entry.get("source", "aiconfigurator"), from_hf(entry["config"], name=name)
    assumed = (*read.assumed, *entry.get("assumed", ()))
    return replace(read, source=_FURTHER["sources"].get(source, source), assumed=assumed)


def further() -> tuple[Transformer, ...]:
    """The models of `further.json`."""
    return tuple(_by_name(name) for name in _FURTHER_BY_NAME)


FURTHER_ALIASES = _FURTHER["aliases"]
"""Names of models whose published files give the shapes of another one."""
_NAMED |= {name: name for name in _FURTHER_BY_NAME} | FURTHER_ALIASES
_SPELLED: dict[str, list[str]] = {}  # OPT 1.3B and OPT 13B have the same letters and digits
for _name_or_alias in _NAMED:
    _SPELLED.setdefault(normalize_name(_name_or_alias), []).append(_name_or_alias)
