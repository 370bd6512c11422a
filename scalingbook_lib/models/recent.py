"""Readers of the configurations of further uniform models: known parts in new combinations.

Arcee, Cohere Command, GLM-4, StarCoder 2, StableLM, BitNet, OLMoE, Trinity and others: an entry of `RECENT`
for each `model_type`, built with `dense.family`.
"""

from functools import partial

from scalingbook_lib.models import dense, structure
from scalingbook_lib.models.dense import OWN_HEADS, QKV, QKVO, Reader, Shapes, biases, family, letters
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.older import EVERYWHERE, LAYER_NORM
from scalingbook_lib.models.parts import Experts, ModelError, Weight, printable
from scalingbook_lib.models.sparse import SPARSE

_OWN_TIED: Reader = partial(letters, tied=True, own_heads=True)


def _periodic(default: int) -> dense.Rule:
    """A rule for windows in all but the last layer of each period, under any field that gives the period."""

    def windows(f: Fields, m: Shapes) -> tuple[int | None, ...]:
        names = "sliding_window_pattern", "global_attn_every_n_layers"
        period = f.number(*names, default=default, most=1000)
        return f.windows(m["L"], tuple(layer + 1 < period for layer in range(period)))

    return windows


def _cohere_norm(f: Fields, m: Shapes) -> str | None:
    """Cohere's norms of queries and keys, whose weights are as many as all heads have elements."""
    return "all" if f.flag("use_qk_norm", False) else None


def _wide_experts(f: Fields, m: Shapes) -> Experts | None:
    """Experts whose width stands in the field of a dense MLP."""
    return structure.shapes_with_experts(f, m, width="intermediate_size")


def _stablelm_letters(f: Fields) -> Shapes:
    f.require(qk_layernorm=False)
    return OWN_HEADS(f)


def _each_layer(part: str, name: str, shape: tuple[int, ...], m: Shapes) -> Weight:
    return Weight(part, name, shape, m["L"], m["L"])


def _bitnet(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The norms in front of BitNet's output projection and of its last matrix."""
    return (
        _each_layer("norms", "attention output norm", (m["N"] * m["H"],), m),
        _each_layer("norms", "MLP norm", (m["F"],), m),
    )


def _persimmon(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The shifts of the norms of queries and keys."""
    if not f.flag("qk_layernorm", True):
        return ()
    return (
        _each_layer("norms", "q norm: shift", (m["H"],), m),
        _each_layer("norms", "k norm: shift", (m["H"],), m),
    )


def _starcoder_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    return EVERYWHERE if f.flag("use_bias", True) else ()


def _jais_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    attention = QKVO if f.flag("attention_bias", True) else ()
    return (*attention, *(("mlp",) if f.flag("mlp_bias", True) else ()))


def _glm_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    return QKV if f.flag("attention_bias", True) else ()


def _visual_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    """The biases of GLM-4.1V: queries, keys and values, which some files also state."""
    f.require(attention_bias=True)
    return QKV


def _molmo_norm(f: Fields, m: Shapes) -> str:
    """Molmo's norms of queries and keys: of each head as in Qwen 3, or of all heads as in OLMo 2."""
    f.require(norm_after=False)
    kind = f.value("qk_norm_type")
    if kind not in (None, "qwen3", "olmo"):
        raise ModelError("qk_norm_type", f"{printable(kind)} is unknown", "write qwen3 or olmo")
    return "all" if kind == "olmo" else "head"


def _molmo_vocabulary(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The embeddings of tokens that no output predicts."""
    more = f.number("additional_vocab_size", default=0, least=0)
    return (Weight("embedding", "embed more", (more, m["D"]), 1, 1),) if more else ()


def _expert_bias(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The correction of the router's scores, stored as a parameter."""
    e = structure.shapes_with_experts(f, m)
    layers = e.layers(m["L"]) if e else 0
    return (Weight("router", "router correction", (e.E,), layers, layers),) if e and layers else ()


def _sparse_norms(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """A norm behind the experts of each layer that has them."""
    e = structure.shapes_with_experts(f, m)
    layers = e.layers(m["L"]) if e else 0
    return (Weight("norms", "expert output norm", (m["D"],), layers, layers),)


def _gate_bias(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The bias of the gate on attention's output, a number for each head."""
    return (_each_layer("biases", "attention gate bias", (m["N"],), m),)


def _post_norms(f: Fields, m: Shapes) -> int:
    return 4 if f.flag("use_post_norm", False) else 2


_COHERE2 = {"norms": 1, "qk_norm": _cohere_norm, "biases": biases, "windows": _periodic(4)}
_GATED_SPARSE = {
    "norms": 4,
    "attention_gate": True,
    "experts": structure.shapes_with_experts,
    "qk_norm": "head",
    "biases": biases,
}
RECENT: dict[str, Reader] = {
    "arcee": family(OWN_HEADS, gated=False, biases=biases),
    "cohere": family(_OWN_TIED, norms=1, qk_norm=_cohere_norm, biases=biases),  # one norm for both sublayers
    "cohere2": family(_OWN_TIED, **_COHERE2),
    "cohere2_moe": family(_OWN_TIED, experts=_wide_experts, **_COHERE2),
    "glm": family(OWN_HEADS, biases=_glm_biases),
    "glm4": family(OWN_HEADS, norms=4, biases=_glm_biases),
    "glm4v_text": family(OWN_HEADS, norms=4, biases=_visual_biases),
    "glm_ocr_text": family(OWN_HEADS, norms=4),
    "hyperclovax": family(OWN_HEADS, norms=_post_norms, biases=biases),
    "bitnet": family(OWN_HEADS, biases=biases, extra=_bitnet),
    "stablelm": family(
        _stablelm_letters,
        norm_bias=True,
        norms=lambda f, m: 1 if f.flag("use_parallel_residual", False) else 2,
        biases=lambda f, m: QKV if f.flag("use_qkv_bias", False) else (),
    ),
    "starcoder2": family(_OWN_TIED, **LAYER_NORM, biases=_starcoder_biases, windows=dense.one_window),
    "jais2": family(OWN_HEADS, **LAYER_NORM, biases=_jais_biases),
    "persimmon": family(
        OWN_HEADS,
        **LAYER_NORM,
        biases=EVERYWHERE,
        qk_norm=lambda f, m: "head" if f.flag("qk_layernorm", True) else None,
        extra=_persimmon,
    ),
    "molmo2_text": family(OWN_HEADS, biases=biases, qk_norm=_molmo_norm, extra=_molmo_vocabulary),
    "muse_glimmer_text": family(
        OWN_HEADS, norms=4, attention_gate=True, biases=biases, windows=dense.cycle(True, True, True, False)
    ),
    "paddleocr_vl_text": dense.DENSE["ernie4_5"],
    "qwen2_5_omni_text": dense.DENSE["qwen2"],
    "qwen3_omni_moe_text": SPARSE["qwen3_moe"],
    **dict.fromkeys(
        ("olmoe", "flex_olmo"), family(OWN_HEADS, experts=_wide_experts, qk_norm="all", biases=biases)
    ),
    "mellum": family(
        OWN_HEADS,
        experts=structure.shapes_with_experts,
        qk_norm="head",
        biases=biases,
        windows=dense.cycle(False),
    ),
    "kolibri1": family(
        partial(letters, own_heads=True, width=structure.EXPERT_WIDTH[0]),
        norms=4,
        experts=structure.shapes_with_experts,
        qk_norm="head",
        windows=dense.cycle(True, True, True, True, False),
    ),
    "afmoe": family(
        OWN_HEADS,
        **_GATED_SPARSE,
        extra=_expert_bias,
        windows=_periodic(4),
    ),
    "beam": family(
        OWN_HEADS,
        **_GATED_SPARSE,
        extra=_gate_bias,
        windows=dense.cycle(True, True, True, True, True, False),
    ),
    "axk1": family(SPARSE["deepseek_v3"], extra=_sparse_norms),
}
"""MoE and dense types whose layers are alike but for windows and leading dense layers."""
