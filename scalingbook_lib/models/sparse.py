"""Which shapes does the configuration of a model with experts mean?

Mixtral, Qwen MoE and Next, DeepSeek V2 and V3, Kimi K2, GLM-4.5, gpt-oss and Llama 4.
"""

from scalingbook_lib.models.dense import QKV, QKVO, Shapes, biases, own_heads, qwen_windows, shapes
from scalingbook_lib.models.error import ModelError, shown
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.parts import Experts, Latent, Linear


def experts(f: Fields, E: str, F: str, **more: int | bool | None) -> Experts:
    """The routed experts, under the names that this family gives them."""
    return _checked(f, E, k=f.number("num_experts_per_tok"), F=f.number(F), **more)


def _checked(f: Fields, E: str, *, k: int, F: int, **more: int | bool | None) -> Experts:
    count = f.number(E)
    if k > count:
        raise ModelError("num_experts_per_tok", f"{k} contradicts {E}, {count}", "lower it")
    return Experts(E=count, k=k, F=F, **more)  # type: ignore[arg-type]


def mixtral(f: Fields) -> Shapes:
    """Mixtral: every MLP is a choice of experts."""
    read = shapes(f)
    slides = f.value("sliding_window") is not None
    return read | {
        "experts": experts(f, "num_local_experts", "intermediate_size"),
        "windows": f.windows(read["L"], (slides,)),
    }


def _first_dense(f: Fields) -> int:
    """Qwen lists the layers without experts; counted here where they are the first ones."""
    dense = f.listed("mlp_only_layers") or []
    if dense != list(range(len(dense))) or any(type(layer) is not int for layer in dense):
        raise ModelError("mlp_only_layers", f"{shown(dense)} is not 0, 1, …", "list the first layers only")
    return len(dense)


def _qwen_experts(f: Fields, *, shared: bool) -> Experts:
    if shared:
        f.present("shared_expert_intermediate_size")
    width = (f.maybe("shared_expert_intermediate_size", least=0) or 0) if shared else 0
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


def _dense_width(f: Fields, routed: Experts, L: int) -> Fields:
    """Some configurations leave out the width of the dense MLP where no layer has one."""
    if routed.layers(L) < L or f.value("intermediate_size") is not None:
        return f
    return Fields({**f.config, "intermediate_size": routed.F})


def qwen2_moe(f: Fields) -> Shapes:
    """Qwen 1.5 and 2 MoE: one shared expert behind a gate of width 1."""
    routed = _qwen_experts(f, shared=True)
    read = shapes(_dense_width(f, routed, f.number("num_hidden_layers", most=1000)))
    qkv = QKV if f.flag("qkv_bias", True) else ()
    return read | {"experts": routed, "biases": qkv, "windows": qwen_windows(f, read["L"])}


def qwen3_moe(f: Fields) -> Shapes:
    """Qwen 3 MoE: no shared expert."""
    routed = _qwen_experts(f, shared=False)
    read = shapes(_dense_width(f, routed, f.number("num_hidden_layers", most=1000)))
    more = {"experts": routed, "qk_norm": "head", "biases": biases(f)}
    return read | more | {"windows": qwen_windows(f, read["L"])}


def qwen3_next(f: Fields) -> Shapes:
    """Qwen3-Next: three layers of linear attention to one of softmax attention, which has a gate."""
    routed = _qwen_experts(f, shared=True)
    read = shapes(_dense_width(f, routed, f.number("num_hidden_layers", most=1000)))
    linear = Linear(
        k_heads=f.number("linear_num_key_heads"),
        v_heads=f.heads_of("linear_num_value_heads", "linear_num_key_heads"),
        key=f.number("linear_key_head_dim"),
        value=f.number("linear_value_head_dim"),
        conv=f.number("linear_conv_kernel_dim"),
        every=_interval(f, read["L"]),
    )
    more = {"attention_gate": True, "qk_norm": "head", "biases": biases(f)}
    return read | more | {"experts": routed, "linear": linear}


def _interval(f: Fields, L: int) -> int:
    types = f.listed("layer_types", L)
    every = f.maybe("full_attention_interval")
    if types is None:
        return f.number("full_attention_interval", default=4, most=1000)
    if "full_attention" not in types:
        raise ModelError("layer_types", "no layer has full_attention", "give one in four to it")
    first = types.index("full_attention") + 1
    rule = ["full_attention" if (i + 1) % first == 0 else "linear_attention" for i in range(L)]
    if types != rule or (every is not None and every != first):
        raise ModelError("layer_types", "full_attention does not come at even steps", "give every n-th layer")
    return first


def deepseek(f: Fields) -> Shapes:
    """DeepSeek V2, V2-Lite, V3 and R1, Kimi K2: latent attention, many small experts, some shared."""
    f.must("attention_bias", False, False)
    f.must("moe_layer_freq", 1, 1)
    latent = Latent(
        q_rank=f.maybe("q_lora_rank"),
        kv_rank=f.number("kv_lora_rank"),
        nope=f.number("qk_nope_head_dim"),
        rope=f.number("qk_rope_head_dim"),
        v=f.number("v_head_dim"),
    )
    N = f.number("num_attention_heads")
    if (f.maybe("num_key_value_heads") or N) != N:
        raise ModelError(
            "num_key_value_heads",
            f"{f.value('num_key_value_heads')} contradicts num_attention_heads, {N}",
            "with latent attention every head has its own keys: write the same number",
        )
    read = shapes(Fields({**f.config, "num_key_value_heads": N, "head_dim": latent.qk}))
    return read | {"latent": latent, "experts": _many_experts(f, read["L"])}


def _many_experts(f: Fields, L: int) -> Experts | None:
    experts_have = ("num_experts_per_tok", "moe_intermediate_size", "n_shared_experts")
    if f.value("n_routed_experts") is None and all(f.value(name) is None for name in experts_have):
        return None  # a dense model of the family
    f.present("n_shared_experts", "first_k_dense_replace")
    return experts(
        f,
        "n_routed_experts",
        "moe_intermediate_size",
        shared=f.maybe("n_shared_experts", least=0) or 0,
        first_dense=f.number("first_k_dense_replace", default=0, least=0, most=L),
    )


def glm4_moe(f: Fields) -> Shapes:
    """GLM-4.5 and GLM-4.5-Air: experts as DeepSeek's, attention with grouped heads."""
    f.number("n_routed_experts")
    read = shapes(f)
    return read | {
        "experts": _many_experts(f, read["L"]),
        "biases": biases(f, attention=QKV),
        "qk_norm": "head" if f.flag("use_qk_norm", False) else None,
    }


def gpt_oss(f: Fields) -> Shapes:
    """gpt-oss: a window in every other layer, a sink for each head, biases nearly everywhere."""
    read = shapes(f)
    attention = QKVO if f.flag("attention_bias", True) else ()
    return read | {
        "experts": experts(f, "num_local_experts", "intermediate_size"),
        "biases": (*attention, "router", "experts"),
        "sinks": True,
        "windows": f.windows(read["L"], (True, False)),
    }


def llama4(f: Fields) -> Shapes:
    """Llama 4, text: one routed and one shared expert, three layers of four see a chunk of the context."""
    every = f.number("interleave_moe_layer_step", default=1, most=1000)
    routed = experts(f, "num_local_experts", "intermediate_size", shared=1, every=every)
    read = shapes(f, kv=own_heads(f))
    chunks = f.windows(read["L"], (True, True, True, False))
    return read | {
        "F": f.number("intermediate_size_mlp"),
        "experts": routed,
        "biases": biases(f),
        "windows": chunks,
    }
