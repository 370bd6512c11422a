"""Read a configuration of an unknown model type by its fields alone, and say what was assumed.

The fields tell which parts a layer has: latent attention, experts, recurrences, windows. What no field tells
(norms, biases, gated MLPs) is assumed as most published models have it.
"""

import re
from collections.abc import Iterable

from scalingbook_lib.models import dense, structure
from scalingbook_lib.models.blocks.block import Block
from scalingbook_lib.models.dense import Shapes
from scalingbook_lib.models.fields import Fields, cycle_of
from scalingbook_lib.models.layered import (
    Maker,
    convolution,
    delta_net,
    heads,
    latent,
    layered,
    mamba2,
    sparse,
)
from scalingbook_lib.models.layered import dense as dense_mlp
from scalingbook_lib.models.mixed import key_delta
from scalingbook_lib.models.parts import ModelError, printable

UNGATED = "relu", "relu2", "gelu_new", "gelu_fast"
SIZES = re.compile(r"(num|n)_(?!return|beam)\w+|(?!max_|chunk)\w*(dim|size|width|rank|heads|layers)")
LIKE = (  # the first of these whose fields the file has is the known type that it resembles
    (("index_topk", "kv_lora_rank"), "deepseek_v32"),
    (("linear_num_value_heads",), "qwen3_next"),
    (("linear_attn_config",), "kimi_linear"),
    (("kv_lora_rank",), "deepseek_v3"),
    (("mamba_n_heads",), "granitemoehybrid"),
    (("mamba_num_heads",), "nemotron_h"),
    (("conv_L_cache",), "lfm2"),
    (("shared_expert_intermediate_size",), "qwen2_moe"),
    (("n_routed_experts",), "glm4_moe"),
    (("num_local_experts", "moe_intermediate_size"), "qwen3_moe"),
    (("num_experts",), "qwen3_moe"),
    (("num_local_experts",), "mixtral"),
    (("sliding_window", "layer_types"), "gemma2"),
    ((), "llama"),
)


def like(f: Fields) -> str:
    """The known model type whose fields are most like those of the file."""
    return next(kind for names, kind in LIKE if all(f.config.get(name) is not None for name in names))


def read(f: Fields, kind: str) -> Shapes:
    """The shapes of a file of this unknown type, with `assumed`: what no field of it says.

    ModelError where the fields do not make a model.
    """
    f.require(
        is_encoder_decoder=False, is_encoder=False, use_cross_attention=False, add_cross_attention=False
    )
    if f.value("type_vocab_size") is not None:  # segments of a pair of sentences
        broke = f"{printable(kind)} is unknown, and its type_vocab_size is that of an encoder"
        raise ModelError(
            "model_type", broke, "give a decoder-only model, or write its shapes as a Transformer"
        )
    norm = f.flag("use_qk_norm", False)
    qk_norm = "head" if norm or f.flag("qk_norm", False) else None
    try:
        shapes = _uniform(f, qk_norm) or _layers(f, qk_norm)
    except ModelError as error:
        raise ModelError(
            "model_type",
            f"{printable(kind)} is unknown, and by its fields alone the file is no model ({error.field}: "
            f"{error.broke})",
            f"name the fields as {like(f)} does, or write its shapes as a Transformer",
        ) from error
    shapes["next_tokens"] = f.number("num_nextn_predict_layers", default=0, least=0)
    if not _gated(f) and not shapes.get("blocks"):
        shapes["gated"] = False
    return shapes | {
        "assumed": (f"model_type {printable(kind)} is unknown and was read like {like(f)}", *_said(f))
    }


def unread_sizes(f: Fields) -> tuple[str, ...]:
    """The fields that look like sizes of layers and that the reader did not ask for, as one sentence."""
    found = [
        f"{printable(name)}: {value}"
        for name, value in f.config.items()
        if type(value) is int and value > 1 and name not in f.asked and SIZES.fullmatch(name)
    ]
    return (f"no layer has the sizes that were not read ({', '.join(found)})",) if found else ()


def _said(f: Fields) -> Iterable[str]:
    """What is assumed where no field says it."""
    yield f"two RMS norms in a layer and {'gated MLPs' if _gated(f) else 'MLPs without gates'}"
    if f.value("use_qk_norm", "qk_norm") is None:
        yield "no norms of queries and keys"
    if f.value("attention_bias", "qkv_bias", "use_bias") is None:
        yield "no biases"
    if f.value("tie_word_embeddings") is None:
        yield "an unembedding of its own"


def _gated(f: Fields) -> bool:
    """Whether MLPs have gates: not those with ReLU, squared or not, and not with GPT-2's GELU."""
    return f.value("hidden_act", "hidden_activation", "activation_function") not in UNGATED


def _biases(f: Fields) -> tuple[str, ...]:
    if f.flag("qkv_bias", False):
        return dense.QKV
    return dense.QKVO if f.flag("attention_bias", False) or f.flag("use_bias", False) else ()


def _uniform(f: Fields, qk_norm: str | None) -> Shapes | None:
    """A model whose layers have plain attention, but for windows, and an MLP or experts; None for others."""
    L = structure.layers_of(f)
    kinds = structure.mixers(f, L, _window_kinds(f))
    plain = {"full_attention", "sliding_attention"}
    if (
        not set(kinds) <= plain
        or f.value("kv_lora_rank")
        or f.value("v_head_dim")
        or f.value("per_layer_config")
    ):
        return None
    routed = structure.routed(f)
    placed = structure.evenly(f, structure.mlps(f, L, routed))
    if placed is None:
        return None
    wide = structure.EXPERT_WIDTH[0] if f.value(*structure.EXPERT_WIDTH) else "intermediate_size"
    e = structure.experts_of(f, width=wide, **placed) if routed else None
    given = f if f.value("intermediate_size") or not e else f.overridden(intermediate_size=e.F)
    m = dense.letters(given.overridden(num_hidden_layers=L), own_heads=True)
    slides = tuple(kind == "sliding_attention" for kind in kinds)
    windows = tuple(f.number("sliding_window") if one else None for one in cycle_of(slides))
    return m | {"qk_norm": qk_norm, "biases": _biases(f), "experts": e, "windows": windows}


def _window_kinds(f: Fields) -> tuple[str, ...]:
    """A window in every layer, where the file has one and enables it."""
    slides = f.value("sliding_window") is not None and f.flag("use_sliding_window", True)
    return ("sliding_attention",) if slides else ("full_attention",)


def _layers(f: Fields, qk_norm: str | None) -> Shapes:
    """A model whose layers differ, by the kinds that its lists name."""
    rank, index = f.value("kv_lora_rank") is not None, f.value("index_topk") is not None
    full = latent(index=index) if rank else heads(qk_norm=qk_norm)
    mixers: dict[str, Maker] = {
        "full_attention": full,
        "sliding_attention": heads(qk_norm=qk_norm, window=True),
        "conv": convolution,
        "linear_attention": _recurrence,
    }
    width = "" if f.value(*structure.EXPERT_WIDTH) else "intermediate_size"
    read_layers = layered(mixers, {"dense": dense_mlp, "sparse": sparse(width=width)}, width=width)
    return read_layers(f)


def _recurrence(f: Fields, m: Shapes) -> Iterable[Block]:
    """The recurrence whose fields the file has."""
    if f.value("linear_num_value_heads") is not None:
        return delta_net(f, m)
    if f.value("linear_attn_config") is not None or f.value("linear_num_heads") is not None:
        return key_delta(f, m)
    return mamba2(f, m)
