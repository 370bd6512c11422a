"""The numbers of a model that any calculator can be held to: parameters, caches, states, FLOPs.

Each row has a quantity, its exact value, its unit and the configuration fields that it comes from. The rows
of many models are in `data/vectors/models.json`, which `tools/model_vectors.py` writes. Chapter:
Transformers.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scalingbook_lib.models.arithmetic import flops, kv_cache, states
from scalingbook_lib.models.blocks.block import LayerKind
from scalingbook_lib.models.catalog import fields_read
from scalingbook_lib.models.quantization import storage
from scalingbook_lib.models.transformer import Transformer

CONTEXTS = (1024, 8192, 32768, 131072, 1048576)  # tokens
FOLDERS = (  # where the table is in an installed package, and in a clone
    Path(__file__).parent / "data",
    Path(__file__).parents[3] / "data" / "vectors",
)
_WIDTHS = (
    r"hidden_size|n_embd|num_hidden_layers|num_layers|n_layer|layers_block_type|hybrid_override_pattern|"
    r"layer_types|layer_group_size|attn_layer_indices|cross_attention_layers|block_configs"
)
_HEADS = (
    r"(swa_|global_)?(num_attention_heads|num_key_value_heads|head_dim|v_head_dim)|num_global_key_value_heads|"
    r"per_layer_config|(q|kv|o)_lora_rank|qk_\w+_head_dim|index_\w+|indexer_types|attention_k_eq_v|"
    r"num_kv_shared_layers|compress_\w+|sparse_attention_config|num_sliding_attention_heads|no_rope_layers|"
    r"num_attention_heads_per_layer|n_head|multi_query"
)
_WINDOW = (
    r"sliding_window\w*|use_sliding_window|max_window_layers|attention_chunk_size|hybrid_layer_pattern|"
    r"layer_types"
)
_STATE = (
    r"(linear|mamba|ssm|conv)_\w+|expand|n_groups|attn_layer_\w+|attn_type_list|full_attention_interval|"
    r"full_attn_idxs"
)
_CHOSEN = r"num_experts_per_tok(en)?|moe_topk|moe_k|top_k_experts|experts_per_token"
_TYPES = r"(torch_)?dtype|kv_cache_dtype|quantization_config|mamba_ssm\w*dtype|expert_dtype"
FIELDS = {  # a quantity, up to its first slash or @, and the fields that it comes from
    "parameters": rf"(?!({_TYPES}|{_CHOSEN})$).*",
    "active_parameters": rf"(?!({_TYPES})$).*",
    "weight_bytes": rf"(?!({_CHOSEN}|kv_cache_dtype|mamba_ssm\w*)$).*",
    "kv_bytes_per_token": f"{_WIDTHS}|{_HEADS}|{_WINDOW}",
    "state_bytes": f"{_WIDTHS}|{_STATE}|num_attention_heads|head_dim",
    "convolution_bytes": f"{_WIDTHS}|{_STATE}",
    "forward_flops": rf"(?!({_TYPES})$).*",
}


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One number of one model."""

    quantity: str
    value: float
    unit: str
    fields: tuple[str, ...]


def rows(model: Transformer, config: Mapping[str, Any]) -> tuple[VectorRow, ...]:
    """The rows of a model that was read from this configuration."""
    inner = config.get("text_config")
    present = {**config, **(inner if isinstance(inner, Mapping) else {})}
    names = [name for name in sorted(fields_read(config)) if present.get(name) is not None]
    return tuple(
        VectorRow(quantity, value, unit, _fields(quantity, names))
        for quantity, value, unit in _numbers(model)
    )


def _fields(quantity: str, names: list[str]) -> tuple[str, ...]:
    """The fields that decide a quantity, of those that were read."""
    about = FIELDS[re.split(r"[/@]", quantity)[0]]
    return tuple(name for name in names if name == "model_type" or re.fullmatch(about, name))


def _numbers(model: Transformer) -> Iterator[tuple[str, float, str]]:
    """Every quantity of a model, its value and its unit; caches and states in the types of the file."""
    yield "parameters", model.params, "parameters"
    yield "active_parameters", model.active_params, "parameters"
    yield "weight_bytes", storage(model).nbytes, "B"
    held = kv_cache(model, max(CONTEXTS))
    yield "kv_bytes_per_token", held.bytes_per_token, "B"
    for kind, term in zip(cached(model), held.terms, strict=True):
        name = f"kv_bytes_per_token/{term.name.replace(' ', '_')}"
        yield name, 2 * kind.layers * kind.kv_elements_per_token / kind.every, "B"
    for term in states(model).terms:
        name = "state_bytes" if term.name == "recurrent states" else "convolution_bytes"
        yield name, term.value, "B"
    for S in CONTEXTS:
        yield f"forward_flops@{S}", flops(model, 1, 1, S=S, absorbed=True).total, "FLOPs"


def cached(model: Transformer) -> list[LayerKind]:
    """The kinds of layers that cache anything."""
    return [kind for kind in model.layer_kinds if kind.kv_elements_per_token]


def as_json(row: VectorRow) -> dict[str, Any]:
    """A row as the table has it; a whole number is written as one."""
    whole = int(row.value) if float(row.value).is_integer() else row.value
    return asdict(row) | {"value": whole, "fields": list(row.fields)}


@cache
def table() -> dict[str, Any]:
    """The table of conformance vectors, `data/vectors/models.json`."""
    paths = [folder / "models.json" for folder in FOLDERS]
    path = next((path for path in paths if path.is_file()), paths[-1])
    return json.loads(path.read_text(encoding="utf-8"))


def published() -> dict[str, dict[str, Mapping[str, Any]]]:
    """The rows of the table, by model and quantity."""
    return {model["model"]: {row["quantity"]: row for row in model["rows"]} for model in table()["models"]}
