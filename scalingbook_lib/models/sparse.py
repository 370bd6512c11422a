"""Readers of the configurations of mixture-of-experts models.

Mixtral, Qwen MoE, Next and 3.5 (also dense), DeepSeek V2 to V3.2, Kimi K2, GLM-4.5, gpt-oss, Granite,
MiniMax-M2 and Llama 4: an entry of `SPARSE` for each `model_type`, built with `dense.family`.
"""

from functools import partial

from scalingbook_lib.models import dense, structure
from scalingbook_lib.models.dense import (
    OWN_HEADS,
    QKV,
    QKVO,
    Reader,
    Shapes,
    always_normed,
    biases,
    family,
    letters,
)
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.parts import Experts, Latent, Linear, ModelError, Weight, printable


def experts(f: Fields, E: str, F: str, **more: int | bool | None) -> Experts:
    """The routed experts, under this family's field names for E and F."""
    k, width, many = f.number("num_experts_per_tok"), f.number(F), f.number(E, *structure.EXPERTS)
    if k > many:
        raise ModelError("num_experts_per_tok", f"{k} contradicts {E}, {many}", "lower it")
    return Experts(E=many, k=k, F=width, **more)  # type: ignore[arg-type]


def _local_experts(f: Fields, m: Shapes) -> Experts:
    """Experts in every layer, without shared ones."""
    return experts(f, "num_local_experts", "intermediate_size")


# Qwen


def _first_dense(f: Fields) -> int:
    """The number of leading dense layers from Qwen's list of layers without experts.

    Refused if they are not first.
    """
    dense = f.listed("mlp_only_layers") or []
    if dense != list(range(len(dense))) or any(type(layer) is not int for layer in dense):
        raise ModelError(
            "mlp_only_layers", f"{printable(dense)} is not 0, 1, …", "list the first layers only"
        )
    return len(dense)


def _qwen_experts(f: Fields, m: Shapes, shared: bool = False) -> Experts:
    """Qwen's experts; the shared expert, where there is one, is scaled by a gate of width 1."""
    if shared:
        f.present("shared_expert_intermediate_size")
    width = (f.optional("shared_expert_intermediate_size", least=0) or 0) if shared else 0
    return experts(
        f,
        "num_experts",
        "moe_intermediate_size",
        first_dense=_first_dense(f),
        every=f.number("decoder_sparse_step", default=1, most=1000),
        shared=1 if width else 0,
        shared_F=width or None,
        shared_gate=bool(width),
    )


def _qwen_letters(f: Fields) -> Shapes:
    """Qwen's letters; some configurations omit the dense MLP's width where no layer has one."""
    routed, L = _qwen_experts(f, {}), f.number("num_hidden_layers", most=1000)
    has_width = routed.layers(L) < L or f.value("intermediate_size") is not None
    return letters(f if has_width else f.overridden(intermediate_size=routed.F))


def _linear(f: Fields, m: Shapes) -> Linear:
    f.value("mamba_ssm_dtype")  # of its states: no part
    return Linear(
        k_heads=f.number("linear_num_key_heads"),
        v_heads=f.heads_of("linear_num_value_heads", "linear_num_key_heads"),
        key=f.number("linear_key_head_dim"),
        value=f.number("linear_value_head_dim"),
        conv=f.number("linear_conv_kernel_dim"),
        every=_interval(f, m["L"]),
    )


def _interval(f: Fields, L: int) -> int:
    """The period in layers of softmax attention, from `layer_types` or as a number."""
    types = f.listed("layer_types", L)
    if types is None:
        return f.number("full_attention_interval", default=4, most=1000)
    if "full_attention" not in types:
        raise ModelError("layer_types", "no layer has full_attention", "give one in four to it")
    first = types.index("full_attention") + 1
    rule = ["full_attention" if (i + 1) % first == 0 else "linear_attention" for i in range(L)]
    if types != rule or f.optional("full_attention_interval") not in (None, first):
        raise ModelError("layer_types", "full_attention does not come at even steps", "give every n-th layer")
    return first


# DeepSeek, and who followed


def _latent(f: Fields) -> Latent:
    # who has one of an index has all: DeepSeek-V3.2, also as a deepseek_v3 that says so
    indexed = any(
        [f.value("model_type") == "deepseek_v32"]
        + [f.value(name) for name in ("index_n_heads", "index_head_dim", "index_topk")]
    )
    return Latent(
        q_rank=f.optional("q_lora_rank"),
        kv_rank=f.number("kv_lora_rank"),
        nope=f.number("qk_nope_head_dim"),
        rope=f.number("qk_rope_head_dim"),
        v=f.number("v_head_dim"),
        index_heads=f.number("index_n_heads") if indexed else 0,
        index_width=f.number("index_head_dim") if indexed else 0,
        index_topk=(f.optional("index_topk") or 0) if indexed else 0,
    )


def _deepseek_letters(f: Fields) -> Shapes:
    """DeepSeek's letters.

    Every head has its own keys, from the latent vector: K is N, and H is its query's width.
    """
    f.require(attention_bias=False)
    latent, N = _latent(f), f.number("num_attention_heads")
    L = f.number("num_hidden_layers", most=1000)
    if any(kind != "full_attention" for kind in structure.mixers(f, L)):
        raise ModelError(
            "layer_types", "it has other kinds than full attention", "give the type that has them"
        )
    if (f.optional("num_key_value_heads") or N) != N:
        raise ModelError(
            "num_key_value_heads",
            f"{f.value('num_key_value_heads')} contradicts num_attention_heads, {N}",
            "with latent attention every head has its own keys: write the same number",
        )
    return letters(f.overridden(num_key_value_heads=N, head_dim=latent.qk)) | {"latent": latent}


def _many_experts(f: Fields, m: Shapes) -> Experts | None:
    """DeepSeek's routed and shared experts; None for a dense model of the family."""
    names = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts")
    if all(f.value(name) is None for name in names):
        return None
    f.present("n_shared_experts")
    if f.value("mlp_layer_types") is None:
        f.present("first_k_dense_replace")
    return structure.shapes_with_experts(f, m)


def _glm_letters(f: Fields) -> Shapes:
    """GLM's letters; no model of this family is dense."""
    f.number("n_routed_experts")
    return letters(f)


# Llama 4


def _llama4_experts(f: Fields, m: Shapes) -> Experts:
    """One routed and one shared expert, in every layer or in every other one."""
    every = f.number("interleave_moe_layer_step", default=1, most=1000)
    f.flag("use_qk_norm", True)  # its norms have no weights
    return experts(f, "num_local_experts", "intermediate_size", shared=1, every=every)


def _minimax_letters(f: Fields) -> Shapes:
    """MiniMax-M2's letters: softmax attention in every layer, as its list says, and no shared expert."""
    f.require(attn_type_list=[1] * f.number("num_hidden_layers", most=1000), shared_intermediate_size=0)
    return letters(f)


def _all_local(f: Fields, m: Shapes) -> Experts | None:
    """Experts in every layer, whose width is the MLP's field, and shared ones where the file has a width."""
    return structure.shapes_with_experts(f, m, width="intermediate_size")


def _phi_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    return (*biases(f, m), *(("unembedding",) if f.flag("lm_head_bias", False) else ()))


def _hunyuan_experts(f: Fields, m: Shapes) -> Experts | None:
    """Hunyuan's experts: one shared MLP of the same width unless the file says how many."""
    one = f if f.value("num_shared_expert") is not None else f.overridden(num_shared_expert=1)
    return structure.shapes_with_experts(one, m, width="intermediate_size")


def _ernie_experts(f: Fields, m: Shapes) -> Experts | None:
    """ERNIE's experts, from one layer to another at even steps."""
    L = m["L"]
    f.require(moe_layer_interval=1)
    first = f.number("moe_layer_start_index", default=1, least=0, most=L)
    if f.number("moe_layer_end_index", default=L - 1, least=0, most=L) not in (L - 1, L):
        raise ModelError("moe_layer_end_index", "the last layers are dense", "list the dense layers first")
    return structure.shapes_with_experts(f.overridden(first_k_dense_replace=first), m)


def _ernie_router(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The correction of the router's scores, which ERNIE stores as a parameter."""
    e = _ernie_experts(f, m)
    layers = e.layers(m["L"]) if e else 0
    return (Weight("router", "router correction", (e.E if e else 0,), layers, layers),)


_SHARED = partial(_qwen_experts, shared=True)


def _qwen3_norm(f: Fields, m: Shapes) -> str:
    f.require(use_qk_norm=True, qkv_bias=False)  # as all of them have it, files rarely say so
    if f.optional("shared_expert_intermediate_size", least=0):
        f.require(shared_expert_intermediate_size=0)
    return "head"


_QWEN3_MOE = family(
    _qwen_letters, experts=_qwen_experts, qk_norm=_qwen3_norm, biases=biases, windows=dense.upper_windows
)
_NEXT = {
    "next_tokens": lambda f, m: f.optional("num_nextn_predict_layers", least=0) or 0,
    "next_vocabulary": True,
}
_DEEPSEEK = family(_deepseek_letters, experts=_many_experts, **_NEXT)
_MIXED: Shapes = {  # three layers of linear attention to one of softmax attention, which has a gate
    "linear": _linear,
    "attention_gate": lambda f, m: f.flag("attn_output_gate", True),
    "qk_norm": "head",
    "biases": biases,
    "next_tokens": lambda f, m: f.optional("mtp_num_hidden_layers", least=0) or 0,
}
_LLAMA4 = family(
    OWN_HEADS,
    F=lambda f, m: f.number("intermediate_size_mlp"),
    experts=_llama4_experts,
    biases=biases,
    windows=dense.cycle(True, True, True, False),  # three layers of four see a chunk of the context
)
_GLM4 = family(
    _glm_letters,
    **_NEXT,
    experts=_many_experts,
    biases=partial(biases, attention=QKV),
    qk_norm=lambda f, m: "head" if f.flag("use_qk_norm", False) else None,
)
SPARSE: dict[str, Reader] = {
    "mixtral": family(experts=_local_experts, windows=dense.one_window),
    "qwen2_moe": family(
        _qwen_letters,
        experts=_SHARED,
        biases=lambda f, m: QKV if f.flag("qkv_bias", True) else (),
        windows=dense.upper_windows,
    ),
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_text": dense.DENSE["qwen3"],
    "qwen3_vl_moe_text": _QWEN3_MOE,
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"),
        family(_qwen_letters, experts=_SHARED, **_MIXED),
    ),
    **dict.fromkeys(("qwen3_5", "qwen3_5_text"), family(**_MIXED)),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK,  # with an index of the positions that are worth attending to
    "kimi_k2": _DEEPSEEK,
    "glm4v_moe_text": _GLM4,
    "glm4_moe": _GLM4,
    "gpt_oss": family(
        experts=_local_experts,
        biases=lambda f, m: (*(QKVO if f.flag("attention_bias", True) else ()), "router", "experts"),
        sinks=True,
        windows=dense.cycle(True, False),
    ),
    "granitemoe": family(OWN_HEADS, experts=_local_experts, biases=biases),
    "minimax_m2": family(
        _minimax_letters,
        experts=_local_experts,
        qk_norm=lambda f, m: "all" if f.flag("use_qk_norm", True) else None,
    ),
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "glm4_moe_lite": _DEEPSEEK,
    "mistral4": _DEEPSEEK,
    "hy_v3": family(always_normed, experts=structure.shapes_with_experts, qk_norm="head", biases=biases),
    "dots1": family(
        OWN_HEADS,
        experts=structure.shapes_with_experts,
        qk_norm="head",
        biases=biases,
        windows=dense.late_windows,
    ),
    "exaone_moe": family(
        OWN_HEADS, experts=structure.shapes_with_experts, qk_norm="head", windows=dense.pattern_windows
    ),
    "ernie4_5_moe": family(dense.TIED, experts=_ernie_experts, biases=dense.one_bias, extra=_ernie_router),
    "hunyuan_v1_moe": family(OWN_HEADS, experts=_hunyuan_experts, qk_norm="head", biases=biases),
    "granitemoeshared": family(OWN_HEADS, experts=_all_local, biases=biases),
    "granitemoe_swa": family(
        OWN_HEADS, experts=_all_local, biases=biases, sinks=True, windows=dense.cycle(False, True, True, True)
    ),
    "phimoe": family(
        OWN_HEADS, experts=_all_local, norm_bias=True, biases=_phi_biases, windows=dense.one_window
    ),
}
