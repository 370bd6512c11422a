"""Readers of the configurations of models that mix kinds of layers.

Gemma 3n and 4, MiMo-V2, Step 3.5 and 3.7, MiniMax 01 and M3, Kimi Linear, Nemotron-H, Falcon-H1, Jamba,
Granite 4, OLMo Hybrid, LFM2 and 3: an entry of `MIXED` for each `model_type`, built with `layered`.
"""

from collections.abc import Iterable
from functools import partial
from math import ceil

from scalingbook_lib.models import structure
from scalingbook_lib.models.blocks import attention as attending
from scalingbook_lib.models.blocks import hidden, recurrent
from scalingbook_lib.models.blocks.block import Block, vectors
from scalingbook_lib.models.dense import Reader, Shapes
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.gemma import GEMMA
from scalingbook_lib.models.layered import (
    BOTH,
    convolution,
    delta_net,
    dense,
    heads,
    latent,
    layered,
    mamba2,
    nothing,
    sparse,
)
from scalingbook_lib.models.parts import Weight

# windows with heads of their own


def _mimo_layers(f: Fields, kinds: tuple[str, ...]) -> tuple[Fields, ...]:
    """MiMo-V2's fields of each layer: those with a window have twice the key-value heads."""
    f.require(add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False)
    size = f.optional("sliding_window_size")  # the tokens before the query, which it does not count
    f.optional("attention_chunk_size")
    names = {name: f"swa_{name}" for name in ("num_attention_heads", "head_dim", "v_head_dim")}
    own = {name: f.value(swa) for name, swa in names.items() if f.value(swa) is not None}
    own["num_key_value_heads"] = f.optional("swa_num_key_value_heads") or 2 * f.number("num_key_value_heads")
    own["sliding_window"] = size + 1 if size else f.number("sliding_window")
    own["attention_chunk_size"] = None
    whole, windowed = f, f.overridden(**own)
    return tuple(windowed if kind == "sliding_attention" else whole for kind in kinds)


def _mimo_kinds(f: Fields, L: int) -> tuple[str, ...]:
    slides = f.listed("hybrid_layer_pattern", L) if f.value("layer_types") is None else None
    f.value("hybrid_layer_pattern")
    if slides is None:
        return structure.mixers(f, L, ("full_attention", *("sliding_attention",) * 4))
    return tuple("sliding_attention" if one else "full_attention" for one in slides)


def _step_layers(f: Fields, kinds: tuple[str, ...]) -> tuple[Fields, ...]:
    """Step 3.5's fields of each layer: those with a window have more query heads."""
    N = f.optional("num_sliding_attention_heads")
    own = structure.per_layer(f, len(kinds))
    many = {"num_attention_heads": N} if N and "per_layer_config" not in f.config else {}
    return tuple(
        g.overridden(**many) if k == "sliding_attention" else g for g, k in zip(own, kinds, strict=True)
    )


def _step_hidden(f: Fields, L: int) -> tuple[str, ...]:
    """Step's MLPs: sparse from the fourth layer on, unless the file says which."""
    first = {} if f.value("first_k_dense_replace") is not None else {"first_k_dense_replace": 3}
    return structure.mlps(f.overridden(**first), L, structure.routed(f))


# MiniMax


def _m3_fields(f: Fields) -> Fields:
    """MiniMax-M3's fields under the names of transformers; the published file nests those of its indexer."""
    inner = f.inner("sparse_attention_config")
    names = {
        "index_n_heads": "sparse_num_index_heads",
        "index_head_dim": "sparse_index_dim",
        "index_block_size": "sparse_block_size",
        "index_topk_blocks": "sparse_topk_blocks",
    }
    return f.overridden(**{ours: inner.value(its) for ours, its in names.items() if inner.value(its)})


def _m3_sparse(f: Fields, m: Shapes) -> Iterable[Block]:
    """Grouped-query attention to the blocks of keys that an indexer selects."""
    f = _m3_fields(f)
    N, D = f.number("num_attention_heads"), m["D"]
    chosen = f.number("index_topk_blocks") * f.number("index_block_size")
    yield attending.attention(
        D,
        N=N,
        K=f.heads(N, f.number("num_key_value_heads")),
        H=f.head_width(D, N),
        qk_norm="head",
        index=(f.number("index_n_heads"), f.number("index_head_dim"), chosen),
    )


def _m3_kinds(f: Fields, L: int) -> tuple[str, ...]:
    f.require(attention_output_gate=False, use_qk_norm=True, qk_norm_type="per_head")
    chosen = f.inner("sparse_attention_config").listed("sparse_attention_freq", L)
    if chosen is None:
        return structure.mixers(f, L)
    return tuple("minimax_m3_sparse" if one else "full_attention" for one in chosen)


_M3 = layered(
    {"full_attention": heads(qk_norm="head"), "minimax_m3_sparse": _m3_sparse},
    {"dense": dense, "sparse": sparse(width="intermediate_size")},
    kinds=_m3_kinds,
    width="intermediate_size",
)


def _lightning(f: Fields, m: Shapes) -> Iterable[Block]:
    N = f.number("num_attention_heads")
    yield recurrent.lightning(m["D"], heads=N, width=f.head_width(m["D"], N))


def _minimax_kinds(f: Fields, L: int) -> tuple[str, ...]:
    full = f.listed("attn_type_list", L)
    if full is None:
        return structure.mixers(f, L, ("full_attention", "linear_attention"))
    return tuple("full_attention" if one else "linear_attention" for one in full)


# recurrences beside attention


def key_delta(f: Fields, m: Shapes) -> Iterable[Block]:
    """Kimi delta attention under both spellings of its fields."""
    inner = f.inner("linear_attn_config")
    heads_ = inner.optional("num_heads") or f.number("linear_num_heads")
    width = inner.optional("head_dim") or f.number("linear_head_dim")
    conv = inner.optional("short_conv_kernel_size") or f.number("linear_conv_kernel_dim")
    full_rank = inner.flag("use_full_rank_gate", False)
    yield recurrent.key_delta(
        m["D"], heads=heads_, width=width, conv=conv, ranks=(width, None if full_rank else width)
    )


def _kimi_attention(f: Fields, m: Shapes) -> Iterable[Block]:
    """Latent attention without rotary positions; Kimi K3 has a gate on its output."""
    return latent(gate="element" if f.flag("mla_use_output_gate", False) else "")(f, m)


def _depth_attention(D: int) -> dict[str, tuple[int, ...]]:
    """The weights of one attention residual (Kimi K3): a query over earlier blocks of layers, and a norm."""
    return {"depth query": (D,), "depth norm": (D,)}


def _kimi_residuals(f: Fields, m: Shapes) -> Iterable[Block]:
    """The attention residuals in front of both sublayers, where the file has them."""
    if f.optional("attn_res_block_size"):
        yield Block("attention residuals", tuple(vectors("norms", _depth_attention(m["D"])) * 2))


def _kimi_end(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The attention residual behind the last layer."""
    has = f.optional("attn_res_block_size") is not None
    return tuple(vectors("norms", _depth_attention(m["D"]))) if has else ()


def kimi_kinds(f: Fields, L: int) -> tuple[str, ...]:
    """Kimi Linear's kinds of layers: its nested lists count from 1."""
    inner = f.inner("linear_attn_config")
    full = inner.listed("full_attn_layers")
    inner.value("kda_layers")
    if full is None:
        return structure.mixers(f, L, ("linear_attention",) * 3 + ("full_attention",))
    return tuple("full_attention" if i + 1 in full else "linear_attention" for i in range(L))


def _falcon_h1(f: Fields, m: Shapes) -> Iterable[Block]:
    """Attention and Mamba-2 side by side."""
    yield from heads()(f, m)
    yield from mamba2(f.overridden(mamba_rms_norm=f.flag("mamba_rms_norm", False)), m)


def _jamba_mamba(f: Fields, m: Shapes) -> Iterable[Block]:
    D, rank = m["D"], f.value("mamba_dt_rank")
    yield recurrent.mamba(
        D,
        inner=f.number("mamba_expand", default=2) * D,
        state=f.number("mamba_d_state", default=16),
        rank=ceil(D / 16) if rank in (None, "auto") else f.number("mamba_dt_rank"),
        conv=f.number("mamba_d_conv", default=4),
        conv_bias=f.flag("mamba_conv_bias", True),
        bias=f.flag("mamba_proj_bias", False),
    )


def _steps(f: Fields, L: int, name: str, this: str, other: str) -> tuple[str, ...]:
    """Jamba's kinds of layers: one kind at a period and an offset, another elsewhere."""
    period = f.number(f"{name}_layer_period", most=1000)
    offset = f.number(f"{name}_layer_offset", least=0, most=1000)
    return tuple(this if i % period == offset else other for i in range(L))


def _nemotron_mamba(f: Fields, m: Shapes) -> Iterable[Block]:
    f.value("expand")
    yield recurrent.mamba2(
        m["D"],
        heads=f.number("mamba_num_heads"),
        width=f.number("mamba_head_dim"),
        groups=f.number("n_groups"),
        state=f.number("ssm_state_size"),
        conv=f.number("conv_kernel"),
        conv_bias=f.flag("use_conv_bias", True),
        bias=f.flag("mamba_proj_bias", False),
    )


def _plain(f: Fields, m: Shapes) -> Iterable[Block]:
    yield hidden.mlp(m["D"], f.number("intermediate_size"), gated=False, bias=f.flag("mlp_bias", False))


def _granite(f: Fields, m: Shapes) -> Iterable[Block]:
    """Granite 4's MLP: shared by all tokens, with experts beside it where there are any."""
    shared, D = f.number("shared_intermediate_size"), m["D"]
    if not structure.routed(f):
        yield hidden.mlp(D, shared)
        return
    e = structure.experts_of(f, width="intermediate_size")
    yield hidden.experts(D, E=e.E, k=e.k, F=e.F, shared=shared)


def _lfm2_kinds(f: Fields, L: int) -> tuple[str, ...]:
    full = f.listed("full_attn_idxs")
    if full is None or f.value("layer_types") is not None:
        return structure.mixers(f, L)
    return tuple("full_attention" if i in full else "conv" for i in range(L))


def _lfm2_mlp(f: Fields, m: Shapes) -> Iterable[Block]:
    """LFM2's MLP, whose width is two thirds of the field's, rounded up, where it is adjusted."""
    width = f.number("intermediate_size", "block_ff_dim")
    if f.flag("block_auto_adjust_ff_dim", True):
        factor, unit = f.value("block_ffn_dim_multiplier"), f.number("block_multiple_of", default=256)
        width = int((1.0 if factor is None else factor) * int(2 * width / 3))
        width = unit * ceil(width / unit)
    yield hidden.mlp(m["D"], width)


_LFM = {"full_attention": heads(qk_norm="head"), "conv": convolution}
_HALF = {"full_attention": heads(qk_norm="head"), "sliding_attention": heads(qk_norm="head", window=True)}
MIXED: dict[str, Reader] = {
    **GEMMA,
    "mimo_v2_flash": layered(
        {"full_attention": heads(), "sliding_attention": heads(window=True, sinks=True)},
        BOTH,
        kinds=_mimo_kinds,
        fields=_mimo_layers,
    ),
    **dict.fromkeys(
        ("step3p5", "step3p7"),
        layered(
            {
                "full_attention": heads(qk_norm="head", gate="head"),
                "sliding_attention": heads(qk_norm="head", gate="head", window=True),
            },
            BOTH,
            hidden_kinds=_step_hidden,
            fields=_step_layers,
        ),
    ),
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"), _M3),
    "minimax": layered(
        {"full_attention": heads(), "linear_attention": _lightning},
        {"sparse": sparse(width="intermediate_size")},
        kinds=_minimax_kinds,
        width="intermediate_size",
    ),
    "kimi_linear": layered(
        {"full_attention": _kimi_attention, "linear_attention": key_delta},
        BOTH,
        kinds=kimi_kinds,
        each=_kimi_residuals,
        extra=_kimi_end,
    ),
    "olmo_hybrid": layered({"full_attention": heads(qk_norm="all"), "linear_attention": delta_net}, BOTH),
    "falcon_h1": layered({"full_attention": _falcon_h1}, {"dense": dense}),
    "jamba": layered(
        {"full_attention": heads(), "linear_attention": _jamba_mamba},
        {"dense": dense, "sparse": sparse(width="intermediate_size")},
        kinds=partial(_steps, name="attn", this="full_attention", other="linear_attention"),
        hidden_kinds=partial(_steps, name="expert", this="sparse", other="dense"),
        width="intermediate_size",
    ),
    "nemotron_h": layered(
        {
            "full_attention": heads(),
            "linear_attention": _nemotron_mamba,
            "mlp": _plain,
            "moe": sparse(gated=False),
        },
        {"none": nothing},
        hidden_kinds=lambda f, L: ("none",) * L,
        norms=1,
        gated=False,
    ),
    "granitemoehybrid": layered(
        {"full_attention": heads(), "linear_attention": mamba2},
        {"sparse": _granite},
        otherwise=("linear_attention",),
        hidden_kinds=lambda f, L: ("sparse",) * L,
        width="intermediate_size",
    ),
    "lfm2": layered(_LFM, {"dense": _lfm2_mlp}, kinds=_lfm2_kinds, tied=True),
    "lfm2_moe": layered(_LFM, BOTH, tied=True),
    "lfm3": layered(
        {
            "conv": convolution,
            "full_attention": heads(qk_norm="head", gate="head"),
            "sliding_attention": heads(qk_norm="head", gate="head", window=True),
        },
        {"dense": dense},
        norms=4,
        tied=True,
    ),
}
