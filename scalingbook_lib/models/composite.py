"""Readers of the configurations whose layers combine sublayers in their own way.

LongCat-Flash (two attention sublayers in a layer), Nemotron-NAS (a width for each layer), ERNIE 4.5 VL
(separate experts for pictures), Llama 3.2 Vision (layers that attend to pictures), Ling 3, Laguna, Bamba and
others: an entry of `COMPOSITE` for each `model_type`.
"""

from collections.abc import Iterable
from typing import Any

from scalingbook_lib.models import structure
from scalingbook_lib.models.blocks import attention as attending
from scalingbook_lib.models.blocks import hidden, recurrent
from scalingbook_lib.models.blocks.block import Block, gathered, products, vectors
from scalingbook_lib.models.dense import Reader, Shapes
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.latent import LATENT
from scalingbook_lib.models.layered import (
    BOTH,
    Maker,
    delta_net,
    dense,
    heads,
    latent,
    layered,
    mamba2,
    sparse,
)
from scalingbook_lib.models.parts import Experts, ModelError, Weight, printable

# LongCat-Flash: two attention sublayers and two MLPs in a layer, experts beside them


def _longcat_fields(f: Fields) -> Fields:
    f.require(attention_bias=False, router_bias=False, zero_expert_type="identity", attention_method="MLA")
    return f.overridden(intermediate_size=f.number("ffn_hidden_size", "intermediate_size"))


def _longcat_attention(f: Fields, m: Shapes) -> Iterable[Block]:
    yield from latent()(f, m)
    yield from latent()(f, m)


def _longcat_experts(f: Fields) -> tuple[Experts, int]:
    """The experts with weights, of which a token gets its share of the choices, and the number without."""
    e, zero = structure.experts_of(f), f.number("zero_expert_num", default=0, least=0)
    chosen = max(round(e.k * e.E / (e.E + zero)), 1)
    return Experts(E=e.E, k=chosen, F=e.F), zero


def _longcat_hidden(f: Fields, m: Shapes) -> Iterable[Block]:
    e, zero = _longcat_experts(f)
    for _ in range(2):
        yield from dense(f, m)
    yield hidden.experts(m["D"], E=e.E, k=e.k, F=e.F, zero=zero)


def _longcat_assumed(f: Fields, m: Shapes) -> tuple[str, ...]:
    e, zero = _longcat_experts(f)
    if not zero:
        return ()
    k = f.number(*structure.CHOSEN)
    return (f"of the {k} experts of a token, {e.k} have weights on average ({e.E} of {e.E + zero} do)",)


_LONGCAT = layered(
    {"full_attention": _longcat_attention},
    {"sparse": _longcat_hidden},
    hidden_kinds=lambda f, L: ("sparse",) * L,
    norms=4,
    experts=lambda f, m: _longcat_experts(f)[0],
    assumed=_longcat_assumed,
)


def _longcat(f: Fields) -> Shapes:
    return _LONGCAT(_longcat_fields(f))


# Nemotron-NAS (DeciLM): a search chose the key-value heads and the width of each layer


def _nas(f: Fields) -> Shapes:
    """The shapes of a model whose `block_configs` give each layer an attention and an MLP, or none."""
    D, N = f.number("hidden_size"), f.number("num_attention_heads")
    L = f.number("num_hidden_layers", most=1000)
    f.require(attention_bias=False, mlp_bias=False)
    made: list[tuple[int, Block]] = []
    for layer, own in enumerate(f.listed_of("block_configs", dict, L) or _missing("block_configs")):
        blocks = [
            *_nas_attention(Fields(own).inner("attention"), f, D, N),
            *_nas_mlp(Fields(own).inner("ffn"), D),
        ]
        made += [(layer, block) for block in (*blocks, hidden.norms(D, len(blocks)))]
    blocks = gathered(made)
    kinds = [kind for block in blocks for kind in block.kinds]
    widths = [w.shape[1] for block in blocks for w in block.weights if w.name == "up"]
    return {
        "L": L,
        "D": D,
        "V": f.number("vocab_size"),
        "N": N,
        "K": max((kind.kv_heads for kind in kinds), default=N),
        "H": f.head_width(D, N),
        "F": max(widths, default=D),
        "tied": f.flag("tie_word_embeddings", False),
        "blocks": blocks,
    }


def _missing(field: str) -> Any:
    raise ModelError(field, "it is missing", "add an object for each layer")


def _linear(D: int) -> Block:
    """A sublayer that is one square matrix."""
    return Block("linear", tuple(products("mlp", {"linear": (D, D)})))


def _nas_attention(own: Fields, f: Fields, D: int, N: int) -> Iterable[Block]:
    if own.flag("no_op", False):
        return
    if own.flag("replace_with_linear", False):
        yield _linear(D)
        return
    if own.value("num_sink_tokens") is not None or own.value("sparsify") is not None:
        raise ModelError("block_configs", "a layer has sparse attention", "give a model without")
    group = own.number("n_heads_in_group")
    if N % group:
        raise ModelError("n_heads_in_group", f"{group} does not divide {N} heads", "let it divide them")
    yield attending.attention(
        D, N=N, K=N // group, H=f.head_width(D, N), window=own.optional("window_length")
    )


def _nas_mlp(own: Fields, D: int) -> Iterable[Block]:
    if own.flag("no_op", False):
        return
    if own.flag("replace_with_linear", False):
        yield _linear(D)
        return
    if own.value("sparsify") is not None:
        raise ModelError("block_configs", "a layer has a sparse MLP", "give a model without")
    ratio, width = own.value("ffn_mult"), own.optional("intermediate_size")
    if width is None:
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < 1000:
            raise ModelError("ffn_mult", f"{printable(ratio)} is not a ratio", "write one such as 2.625")
        # two thirds of the ratio, as the MLP has three matrices; up to a multiple of 256
        width = -(-int(2 * ratio * D / 3) // 256) * 256
    yield hidden.mlp(D, width)


# ERNIE 4.5 VL: the router sends tokens of text and of pictures to experts of their own


def _first(f: Fields, name: str) -> Any:
    """The value for text: the first where a field has one for text and one for pictures."""
    value = f.value(name)
    return value[0] if isinstance(value, list) and value else value


_PICTURES = "pictures_intermediate_size"  # added: the width of the experts for pictures
_PAIRED = "moe_num_experts", "moe_layer_start_index", "moe_layer_end_index", "num_experts"


def _ernie_fields(f: Fields) -> Fields:
    widths = f.listed_of("moe_intermediate_size", int, 2)
    if widths is None:
        raise ModelError("moe_intermediate_size", "it is missing", "add the widths for text and for pictures")
    own = {name: _first(f, name) for name in _PAIRED if f.value(name) is not None}
    shared = f.number(*structure.SHARED, default=0, least=0)
    text, pictures = widths
    own |= {"moe_intermediate_size": text, "shared_intermediate_size": shared * text, _PICTURES: pictures}
    first = own.get("moe_layer_start_index")
    if first is not None and f.value("mlp_layer_types", "first_k_dense_replace") is None:
        own["first_k_dense_replace"] = first
    f.require(moe_layer_interval=1)
    f.value("moe_layer_end_index")
    return f.overridden(**own)


def _ernie_pictures(f: Fields, m: Shapes) -> int:
    """The parameters of the experts for pictures and of their routers."""
    E = f.number(*structure.EXPERTS)
    one = m["D"] * E + E + 3 * m["D"] * f.number(_PICTURES) * E
    return one * sum(block.layers for block in m["blocks"] if block.name == "experts")


_ERNIE = layered(
    {"full_attention": heads()},
    {"dense": dense, "sparse": sparse(correction=True)},
    tied=True,
    vision_params=_ernie_pictures,
)


def _ernie(f: Fields) -> Shapes:
    f.require(use_bias=False)
    return _ERNIE(_ernie_fields(f))


# Llama 3.2 Vision: some layers attend to pictures alone


def _cross(f: Fields, m: Shapes) -> Iterable[Block]:
    """Attention to pictures, whose keys and values are made once for a picture, with two gates."""
    D, N = m["D"], f.number("num_attention_heads")
    one = attending.attention(D, N=N, K=f.number("num_key_value_heads"), H=f.head_width(D, N), qk_norm="head")
    made_once = {"k", "v"}
    weights = tuple(
        Weight(w.part, w.name, w.shape, w.copies, w.active_copies, w.matmul and w.name not in made_once)
        for w in one.weights
    )
    gates = vectors("attention", {"attention gate": (1,), "MLP gate": (1,)})
    yield Block("attention to pictures", (*weights, *gates))


def _mllama_kinds(f: Fields, L: int) -> tuple[str, ...]:
    layers = f.listed_of("cross_attention_layers", int) or []
    return tuple("cross" if layer in layers else "full_attention" for layer in range(L))


def _mllama_vocabulary(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The embeddings of the tokens that stand for pictures."""
    return (Weight("embedding", "embed pictures", (8, m["D"]), 1, 1),)


# others


def _ling_kinds(f: Fields, L: int) -> tuple[str, ...]:
    """Ling 3's kinds of layers: the last of each group has softmax attention."""
    group = f.number("layer_group_size", default=6, most=1000)
    return structure.mixers(f, L, ("linear_attention",) * (group - 1) + ("full_attention",))


def _ling_delta(f: Fields, m: Shapes) -> Iterable[Block]:
    yield recurrent.key_delta(
        m["D"],
        heads=f.number("linear_num_heads"),
        width=f.number("linear_head_dim"),
        conv=f.number("linear_conv_kernel_dim", "short_conv_kernel_size"),
        ranks=(None, None),
    )


def _laguna_layers(f: Fields, kinds: tuple[str, ...]) -> tuple[Fields, ...]:
    """Laguna's fields of each layer, which have their own number of query heads."""
    own = f.listed_of("num_attention_heads_per_layer", int, len(kinds))
    return tuple(f.overridden(num_attention_heads=n) for n in own) if own else (f,) * len(kinds)


def _laguna_heads(*, window: bool = False) -> Maker:
    """Laguna's attention, with a gate for each head if the file has one."""

    def blocks(f: Fields, m: Shapes) -> Iterable[Block]:
        gated = f.value("gating")
        if gated not in (None, False, True, "per-head"):
            raise ModelError("gating", f"{printable(gated)} is unknown", "write true or false")
        return heads(window=window, qk_norm="head", gate="head" if gated else "")(f, m)

    return blocks


def _only_dense(f: Fields, L: int) -> tuple[str, ...]:
    """The kinds of MLPs where a list names the dense ones."""
    bare = f.listed_of("mlp_only_layers", int) or []
    f.require(decoder_sparse_step=1)
    return tuple("dense" if layer in bare else "sparse" for layer in range(L))


def _spark_fields(f: Fields) -> Fields:
    return f.overridden(routed_expert_hidden_size=f.number("moe_hidden_size"), latent_moe_use_norm=True)


def _spark_gates(f: Fields, m: Shapes) -> Iterable[Block]:
    """The gates of both residual additions, and the norm of the experts' sum."""
    gates = {"attention residual gate": (m["D"],), "MLP residual gate": (m["D"],)}
    norm = {"expert output norm": (f.number("moe_hidden_size"),)}
    yield Block("residual gates", (*vectors("attention", gates), *vectors("norms", norm)))


_SPARK = layered(
    {"full_attention": heads(gate="element"), "sliding_attention": heads(gate="element", window=True)},
    {"sparse": sparse()},
    norms=3,
    each=_spark_gates,
)


def _spark(f: Fields) -> Shapes:
    return _SPARK(_spark_fields(f))


def _bamba_kinds(f: Fields, L: int) -> tuple[str, ...]:
    full = f.listed_of("attn_layer_indices", int) or []
    if not full:
        return structure.mixers(f, L, ("linear_attention",))
    return tuple("full_attention" if layer in full else "linear_attention" for layer in range(L))


_SINKS = {
    "full_attention": heads(qk_norm="head", sinks=True),
    "sliding_attention": heads(qk_norm="head", sinks=True, window=True),
}
_WITHOUT_NORMS = layered({"full_attention": heads()}, {"dense": dense}, norms=0, final_norm=False)
COMPOSITE: dict[str, Reader] = {
    "longcat_flash": _longcat,
    **dict.fromkeys(("nemotron-nas", "deci"), _nas),
    **dict.fromkeys(("ernie4_5_vl_moe_text", "ernie4_5_moe_vl", "ernie4_5_vl_moe"), _ernie),
    "mllama_text_model": layered(
        {"full_attention": heads(), "cross": _cross},
        {"dense": dense},
        kinds=_mllama_kinds,
        extra=_mllama_vocabulary,
    ),
    "hy_v4_vl_text": LATENT["hy_v4"],
    "bailing_hybrid": layered(
        {"full_attention": latent(gate="head"), "linear_attention": _ling_delta}, BOTH, kinds=_ling_kinds
    ),
    "laguna": layered(
        {"full_attention": _laguna_heads(), "sliding_attention": _laguna_heads(window=True)},
        {"dense": dense, "sparse": sparse(correction=True)},
        fields=_laguna_layers,
    ),
    "lara_mini": layered(
        {
            "full_attention": heads(qk_norm="head"),
            "sliding_attention": heads(qk_norm="head", window=True),
            "linear_attention": delta_net,
        },
        BOTH,
        tied=True,
    ),
    "flint": layered(_SINKS, BOTH, hidden_kinds=_only_dense),
    "muse_spark_text": _spark,
    "bamba": layered(
        {"full_attention": heads(), "linear_attention": mamba2},
        {"dense": dense},
        kinds=_bamba_kinds,
    ),
    "olmo": _WITHOUT_NORMS,
    "nanochat": layered(
        {"full_attention": heads()},
        {"dense": lambda f, m: (hidden.mlp(m["D"], f.number("intermediate_size"), gated=False),)},
        norms=0,
        final_norm=False,
        gated=False,
    ),
}
