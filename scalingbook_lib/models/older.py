"""Which shapes do the configurations with names of their own mean?

GPT-2, OPT, BLOOM, Falcon, MPT, Phi-1 and Phi-2, GPT-NeoX: layer norms with a shift, plain MLPs, 4 · D wide.
"""

from scalingbook_lib.models.dense import QKVO, Shapes, own_heads, shapes
from scalingbook_lib.models.error import ModelError, shown, whole
from scalingbook_lib.models.fields import Fields

LAYER_NORM = {"gated": False, "norm_bias": True}


def _own(f: Fields, D: int, N: int, L: int, *, tied: bool) -> Shapes:
    """The letters of a model whose heads split its width; it shares no keys, unless more is said."""
    if D % N:
        raise ModelError(
            "num_attention_heads", f"{N} heads do not divide the width, {D}", "change one of them"
        )
    vocabulary = {"V": f.number("vocab_size"), "tied": f.flag("tie_word_embeddings", tied)}
    return {"D": D, "N": N, "K": N, "L": L, "H": D // N, "F": 4 * D} | vocabulary | LAYER_NORM


def gpt2(f: Fields) -> Shapes:
    """GPT-2: learned positions, biases everywhere."""
    D, N = f.number("n_embd", "hidden_size"), f.number("n_head", "num_attention_heads")
    read = _own(f, D, N, f.number("n_layer", "num_hidden_layers", most=1000), tied=True)
    return read | {
        "F": f.number("n_inner", default=4 * D),
        "positions": f.number("n_positions"),
        "biases": (*QKVO, "mlp"),
    }


def opt(f: Fields) -> Shapes:
    """OPT: learned positions, two more than the context has."""
    D, N = f.number("hidden_size"), f.number("num_attention_heads")
    f.must("word_embed_proj_dim", D, D)
    f.must("do_layer_norm_before", True, True)
    f.must("layer_norm_elementwise_affine", True, True)
    read = _own(f, D, N, f.number("num_hidden_layers", most=1000), tied=True)
    return read | {
        "F": f.number("ffn_dim"),
        "positions": f.number("max_position_embeddings") + 2,
        "biases": (*QKVO, "mlp") if f.flag("enable_bias", True) else (),
    }


def bloom(f: Fields) -> Shapes:
    """BLOOM: a norm after the embedding, no positions."""
    D, N = f.number("hidden_size", "n_embed"), f.number("n_head", "num_attention_heads")
    read = _own(f, D, N, f.number("n_layer", "num_hidden_layers", most=1000), tied=True)
    return read | {"biases": (*QKVO, "mlp"), "embedding_norm": True}


def neox(f: Fields) -> Shapes:
    """GPT-NeoX and Pythia."""
    attention = QKVO if f.flag("attention_bias", True) else ()
    return shapes(f, kv=own_heads(f)) | LAYER_NORM | {"biases": (*attention, "mlp")}


def phi(f: Fields) -> Shapes:
    """Phi-1, Phi-1.5 and Phi-2: one norm for both sublayers, a bias at the unembedding too."""
    f.must("qk_layernorm", False, False)
    return shapes(f, kv=own_heads(f)) | LAYER_NORM | {"norms": 1, "biases": (*QKVO, "mlp", "unembedding")}


def falcon(f: Fields) -> Shapes:
    """Falcon: 7B with one key-value head and one norm, 40B and 180B with eight and two."""
    D, N = f.number("hidden_size"), f.number("num_attention_heads", "n_head")
    read = _own(f, D, N, f.number("num_hidden_layers", "n_layer", most=1000), tied=True)
    new = f.flag("new_decoder_architecture", f.value("n_head_kv") is not None)
    return read | {
        "K": _falcon_heads(f, N, new),
        "F": f.number("ffn_hidden_size", default=4 * D),
        "norms": _falcon_norms(f, new),
        "biases": (*QKVO, "mlp") if f.flag("bias", False) else (),
    }


def _falcon_heads(f: Fields, N: int, new: bool) -> int:
    if new:
        return f.heads(N, f.number("num_kv_heads", "n_head_kv", default=N), "num_kv_heads")
    return 1 if f.flag("multi_query", True) else N


def _falcon_norms(f: Fields, new: bool) -> int:
    parallel = f.flag("parallel_attn", True)
    if new:
        return f.number("num_ln_in_parallel_attn", default=2, most=2)
    return 1 if parallel else 2


def mpt(f: Fields) -> Shapes:
    """MPT: no biases in the published models, positions unless attention is biased by distance (ALiBi)."""
    D, N = f.number("d_model"), f.number("n_heads")
    read = _own(f, D, N, f.number("n_layers", most=1000), tied=True)
    attention = f.inner("attn_config")
    attention.must("qk_ln", False, False)
    alibi, bias = attention.flag("alibi", False), not f.flag("no_bias", False)
    learned = f.flag("learned_pos_emb", True) and not alibi
    return read | {
        "K": attention.heads(N, attention.number("kv_n_heads", default=N), "kv_n_heads"),
        "F": _times(f, "expansion_ratio", D),
        "positions": f.number("max_seq_len") if learned else 0,
        "biases": (*QKVO, "mlp") if bias else (),
        "norm_bias": bias,
    }


def _times(f: Fields, name: str, D: int) -> int:
    """A width given as a multiple of D, which may be a fraction."""
    ratio = f.value(name)
    if ratio is None:
        return 4 * D
    if isinstance(ratio, float) and 0 < ratio < 1000 and (ratio * D).is_integer():
        return int(ratio * D)
    if isinstance(ratio, float):
        raise ModelError(name, f"{shown(ratio)} times {D} is no width", "write a ratio such as 4")
    return whole(name, ratio, most=1000) * D
