"""Readers of the configurations that use field names of their own.

GPT-2, OPT, BLOOM, Falcon, MPT, Phi-1 and Phi-2, GPT-NeoX: layer norms with a bias, plain MLPs of width 4 · D.
An entry of `OLDER` for each `model_type`, built with `dense.family`.
"""

from scalingbook_lib.models.dense import OWN_HEADS, QKVO, Reader, Shapes, family
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.parts import ModelError, printable, whole

LAYER_NORM = {"gated": False, "norm_bias": True}
EVERYWHERE = (*QKVO, "mlp")  # biases
_EITHER = ("n_head", "num_attention_heads"), ("n_layer", "num_hidden_layers")  # in old files, in new

type Names = tuple[str, ...]  # of one field, as several versions call it


def _split(D: Names, N: Names, L: Names) -> Reader:
    """A reader for heads of width D / N under these field names; no shared keys, tied embeddings."""

    def letters(f: Fields) -> Shapes:
        width, heads = f.number(*D), f.number(*N)
        layers = f.number(*L, most=1000)
        if width % heads:
            raise ModelError(
                "num_attention_heads", f"{heads} heads do not divide the width, {width}", "change one of them"
            )
        sizes = {"D": width, "N": heads, "K": heads, "L": layers, "H": width // heads, "F": 4 * width}
        return sizes | {"V": f.number("vocab_size"), "tied": f.flag("tie_word_embeddings", True)} | LAYER_NORM

    return letters


def _opt_letters(f: Fields) -> Shapes:
    m = _split(("hidden_size",), ("num_attention_heads",), ("num_hidden_layers",))(f)
    f.require(word_embed_proj_dim=m["D"], do_layer_norm_before=True, layer_norm_elementwise_affine=True)
    return m


def _phi_letters(f: Fields) -> Shapes:
    f.require(qk_layernorm=False)
    return OWN_HEADS(f)


def _neox_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    return EVERYWHERE if f.flag("attention_bias", True) else ("mlp",)


# Falcon: 7B has one key-value head and one norm, 40B and 180B have eight and two


def _new(f: Fields) -> bool:
    return f.flag("new_decoder_architecture", f.value("n_head_kv") is not None)


def _falcon_heads(f: Fields, m: Shapes) -> int:
    if _new(f):
        return f.heads(m["N"], f.number("num_kv_heads", "n_head_kv", default=m["N"]), "num_kv_heads")
    return 1 if f.flag("multi_query", True) else m["N"]


def _falcon_norms(f: Fields, m: Shapes) -> int:
    parallel = f.flag("parallel_attn", True)
    if _new(f):
        return f.number("num_ln_in_parallel_attn", default=2, most=2)
    return 1 if parallel else 2


# MPT: no biases in the published models, and positions unless attention is biased by distance (ALiBi)


def _mpt_heads(f: Fields, m: Shapes) -> int:
    attention = f.inner("attn_config")
    attention.require(qk_ln=False)
    return attention.heads(m["N"], attention.number("kv_n_heads", default=m["N"]), "kv_n_heads")


def _mpt_positions(f: Fields, m: Shapes) -> int:
    by_distance = f.inner("attn_config").flag("alibi", False)
    return f.number("max_seq_len") if f.flag("learned_pos_emb", True) and not by_distance else 0


def _mpt_width(f: Fields, m: Shapes) -> int:
    """MPT's MLP width: a multiple of D, which may be fractional."""
    name, D = "expansion_ratio", m["D"]
    ratio = f.value(name)
    if not isinstance(ratio, float):
        return whole(name, 4 if ratio is None else ratio, most=1000) * D
    if 0 < ratio < 1000 and (ratio * D).is_integer():
        return int(ratio * D)
    raise ModelError(name, f"{printable(ratio)} times {D} is no width", "write a ratio such as 4")


OLDER: dict[str, Reader] = {
    "gpt2": family(
        _split(("n_embd", "hidden_size"), *_EITHER),
        F=lambda f, m: f.number("n_inner", default=4 * m["D"]),
        positions=lambda f, m: f.number("n_positions"),
        biases=EVERYWHERE,
    ),
    "opt": family(
        _opt_letters,
        F=lambda f, m: f.number("ffn_dim"),
        positions=lambda f, m: f.number("max_position_embeddings") + 2,  # two more than the context has
        biases=lambda f, m: EVERYWHERE if f.flag("enable_bias", True) else (),
    ),
    "bloom": family(
        _split(("hidden_size", "n_embed"), *_EITHER),
        biases=EVERYWHERE,
        embedding_norm=True,
    ),
    "gpt_neox": family(OWN_HEADS, **LAYER_NORM, biases=_neox_biases),  # also Pythia
    "phi": family(_phi_letters, **LAYER_NORM, norms=1, biases=(*EVERYWHERE, "unembedding")),
    "falcon": family(
        _split(("hidden_size",), ("num_attention_heads", "n_head"), ("num_hidden_layers", "n_layer")),
        K=_falcon_heads,
        F=lambda f, m: f.number("ffn_hidden_size", default=4 * m["D"]),
        norms=_falcon_norms,
        biases=lambda f, m: EVERYWHERE if f.flag("bias", False) else (),
    ),
}
OLDER |= {"RefinedWeb": OLDER["falcon"], "RefinedWebModel": OLDER["falcon"]}
OLDER["mpt"] = family(
    _split(("d_model",), ("n_heads",), ("n_layers",)),
    K=_mpt_heads,
    F=_mpt_width,
    positions=_mpt_positions,
    biases=lambda f, m: () if f.flag("no_bias", False) else EVERYWHERE,
    norm_bias=lambda f, m: not f.flag("no_bias", False),
)

OLDER["gpt_bigcode"] = family(  # StarCoder: all query heads share one key-value head
    _split(("n_embd", "hidden_size"), *_EITHER),
    K=lambda f, m: 1 if f.flag("multi_query", True) else m["N"],
    F=lambda f, m: f.number("n_inner", default=4 * m["D"]),
    positions=lambda f, m: f.number("n_positions"),
    biases=EVERYWHERE,
)
_GPTJ = {"norms": 1, "F": lambda f, m: f.number("n_inner", default=4 * m["D"]), "tied": False}
OLDER["gptj"] = family(_split(("n_embd",), *_EITHER), **_GPTJ, biases=("mlp", "unembedding"))
OLDER["codegen"] = OLDER["gptj"]
