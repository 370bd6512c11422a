"""Readers of the configurations whose latent attention differs by layer, or is compressed.

DeepSeek-V4, GLM-5.2 and later, Mistral Large 4, Hunyuan 4 and dots 3: an entry of `LATENT` for each
`model_type`, built with `layered`.
"""

from collections.abc import Iterable
from dataclasses import replace

from scalingbook_lib.models import structure
from scalingbook_lib.models.blocks import attention as attending
from scalingbook_lib.models.blocks.block import Block, LayerKind, Shape, products, vectors
from scalingbook_lib.models.dense import Reader, Shapes
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.layered import BOTH, Maker, latent_of, layered
from scalingbook_lib.models.mixed import key_delta
from scalingbook_lib.models.parts import Latent, ModelError, Weight, printable

# an indexer in some layers, whose choice the others share


def indexer_layers(f: Fields, kinds: tuple[str, ...]) -> tuple[Fields, ...]:
    """The fields of each layer, with `chooses`: whether it has an indexer, or shares an earlier one's."""
    L = len(kinds)
    types, pattern = f.listed_of("indexer_types", str, L), f.value("index_topk_pattern")
    step = f.number("index_topk_freq", default=1)
    skip = f.number("index_skip_topk_offset", default=2, least=0)
    if types is None and isinstance(pattern, str):
        types = [{"F": "full", "S": "shared"}.get(one, one) for one in pattern]
    if types is None:
        types = ["full" if max(i - skip + 1, 0) % step == 0 else "shared" for i in range(L)]
    if not set(types) <= {"full", "shared"} or len(types) != L:
        raise ModelError("indexer_types", f"{printable(types)} is unknown", "write full or shared for each")
    own = structure.per_layer(f, L)
    return tuple(g.overridden(chooses=one == "full") for g, one in zip(own, types, strict=True))


def _chosen(f: Fields) -> Latent:
    """Latent attention to chosen positions; a layer that shares an indexer has none of its own."""
    a = latent_of(f, index=True)
    return a if f.value("chooses") else replace(a, index_heads=0, index_width=0)


def _indexed(f: Fields, m: Shapes) -> Iterable[Block]:
    f.require(attention_bias=False)
    yield attending.latent_attention(m["D"], f.number("num_attention_heads"), _chosen(f))


# Mistral Large 4: layers without rotary positions, indexers that read the residual stream


def _mistral_layers(f: Fields, kinds: tuple[str, ...]) -> tuple[Fields, ...]:
    L = len(kinds)
    f.require(kv_source_layers=list(range(L)))
    rotary = f.listed_of("no_rope_layers", int, L) or [int((i + 1) % 4 != 0) for i in range(L)]
    nope, rope = f.number("qk_nope_head_dim"), f.number("qk_rope_head_dim")
    bare = {"qk_nope_head_dim": nope + rope, "qk_rope_head_dim": 0}
    own = indexer_layers(f, kinds)
    return tuple(g if turns else g.overridden(**bare) for g, turns in zip(own, rotary, strict=True))


def _mistral(f: Fields, m: Shapes) -> Iterable[Block]:
    D, N, a = m["D"], f.number("num_attention_heads"), _chosen(f)
    heads = a.index_heads
    scales = {"softmax scale": (N,), "softmax shift": (N,)}
    index: dict[str, Shape] = {"index scale": (heads,), "index shift": (heads,)}
    normed: dict[str, Shape] = {"index query norm": (D,), "index query norm: shift": (D,)}
    more = vectors("attention", scales | (index if heads else {}))
    more += vectors("norms", normed if heads else {})
    yield attending.latent_attention(D, N, a, more=tuple(more))


# Hunyuan 4, GLM-5.3 Flash and DeepSeek-V4: several residual streams (hyper-connections)


def _streams(f: Fields, m: Shapes, *, mixed: bool) -> Iterable[Block]:
    """The two hyper-connections of a layer; `mixed` streams are also mixed with each other."""
    n, D = f.number("hc_mult"), m["D"]
    out = n * (2 + n) if mixed else 2 * n
    base = {"streams base": (out,), "streams scale": (3 if mixed else 2,)}
    yield Block("streams", (*products("mlp", {"streams": (n * D, out)}), *vectors("mlp", base)) * 2)


def _plain_streams(f: Fields, m: Shapes) -> Iterable[Block]:
    return _streams(f, m, mixed=False)


def _mixed_streams(f: Fields, m: Shapes) -> Iterable[Block]:
    return _streams(f, m, mixed=True)


def _joined(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The weights that join the streams behind the last layer."""
    n, D = f.number("hc_mult"), m["D"]
    ends = vectors("mlp", {"streams end base": (n,), "streams end scale": (1,)})
    return (*products("mlp", {"streams end": (n * D, n)}), *ends)


def _hunyuan(f: Fields, m: Shapes) -> Iterable[Block]:
    f.require(attention_bias=False)
    N = f.number("num_attention_heads")
    sinks = tuple(vectors("attention", {"sinks": (N,)}))
    yield attending.latent_attention(m["D"], N, _chosen(f), gate="element", more=sinks)


def _pooled(f: Fields, m: Shapes) -> Iterable[Block]:
    """Latent attention without rotary positions to pools of tokens that an indexer selects."""
    N, a, pool = f.number("num_attention_heads"), _chosen(f), f.number("index_kpool")
    width = a.index_width
    index: dict[str, Shape] = {"index pool gate": (m["D"], width)}
    more = (
        *products("attention", index if width else {}),
        *vectors("attention", {"index pool": (pool, width)}),
    )
    kept = 2 * width + 1  # a key, its weight in the pool, and the position
    yield attending.latent_attention(
        m["D"], N, a, more=more if width else (), index_elements=kept if width else 0, pool=pool
    )


def _dots(*, window: bool) -> Maker:
    """dots 3: a gate for each head, and a norm of the rotary part of the key."""

    def make(f: Fields, m: Shapes) -> Iterable[Block]:
        a = latent_of(f, index=not window)
        norm = tuple(vectors("norms", {"k rope norm": (a.rope,)}))
        span = f.number("sliding_window") if window else None
        N = f.number("num_attention_heads")
        yield attending.latent_attention(m["D"], N, a, gate="head", window=span, more=norm)

    return make


# DeepSeek-V4: one vector for key and value, kept whole in a window and compressed beyond it

_RATES = {4: "compressed_sparse_attention", 128: "heavily_compressed_attention", 0: "sliding_attention"}


def _v4_kinds(f: Fields, L: int) -> tuple[str, ...]:
    ratios = f.listed_of("compress_ratios", int)
    if ratios is None:
        return structure.mixers(f, L, ("compressed_sparse_attention", "heavily_compressed_attention"))
    if not set(ratios) <= set(_RATES) or len(ratios) < L:
        raise ModelError(
            "compress_ratios", f"{printable(ratios)} is unknown", "write 0, 4 or 128 for each layer"
        )
    return tuple(_RATES[one] for one in ratios[:L])


def _v4(kind: str) -> Maker:
    """DeepSeek-V4's attention: entries of a window, and compressed ones where the kind has them."""

    def make(f: Fields, m: Shapes) -> Iterable[Block]:
        D, N, H = m["D"], f.number("num_attention_heads"), f.number("head_dim")
        rank, groups, out = f.number("q_lora_rank"), f.number("o_groups"), f.number("o_lora_rank")
        f.require(num_key_value_heads=1, attention_bias=False)
        f.value("qk_rope_head_dim")
        shapes: dict[str, Shape] = {
            "q down": (D, rank),
            "q up": (rank, N, H),
            "kv down": (D, H),
            "o down": (N * H // groups, groups * out),
            "o": (groups * out, D),
        }
        normed = {"q rank norm": (rank,), "kv rank norm": (H,)}
        entry = LayerKind(1, f.number("sliding_window"), H, heads=N, query=H, value=H, absorbed=(H, H))
        compressor, far = (), ()
        if kind != "sliding_attention":
            compressor, far = _compressor(f, m, kind, replace(entry, window=None))
        yield Block(
            "attention",
            (
                *products("attention", shapes),
                *vectors("attention", {"sinks": (N,)}),
                *vectors("norms", normed),
                *compressor,
            ),
            kinds=(entry, *far),
        )

    return make


def _compressor(
    f: Fields, m: Shapes, kind: str, entry: LayerKind
) -> tuple[tuple[Weight, ...], tuple[LayerKind, ...]]:
    """The weights that compress entries, and the entries: with an index where a few of them are chosen."""
    D, H, rank = m["D"], f.number("head_dim"), f.number("q_lora_rank")
    rate = next(every for every, name in _RATES.items() if name == kind)
    given = f.inner("compress_rates")
    rate = given.number(kind, default=rate)
    heads, width = f.number("index_n_heads"), f.number("index_head_dim")
    if kind == "heavily_compressed_attention":
        return _pooling(D, H, rate, 1), (replace(entry, every=rate),)
    index = {"index q": (rank, heads, width), "index weights": (D, heads)}
    chosen = f.number("index_topk")
    kinds = replace(
        entry,
        every=rate,
        kv_elements_per_token=H + width,
        chosen=chosen,
        index=width,
        index_flops=2 * heads * width,
    )
    weights = (
        *_pooling(D, H, rate, 2),
        *_pooling(D, width, rate, 2, "index "),
        *products("attention", index),
    )
    return weights, (kinds,)


def _pooling(D: int, width: int, rate: int, overlap: int, prefix: str = "") -> tuple[Weight, ...]:
    """The weights that make one entry of `rate` tokens; entries of overlapping groups are made of two."""
    wide = overlap * width
    shapes = {f"{prefix}compress kv": (D, wide), f"{prefix}compress gate": (D, wide)}
    return (
        *products("attention", shapes),
        *vectors("attention", {f"{prefix}compress positions": (rate, wide)}),
        *vectors("norms", {f"{prefix}compress norm": (width,)}),
    )


def _v4_hidden(f: Fields, L: int) -> tuple[str, ...]:
    """All layers have experts; the first ones choose them by the token's number instead of a product."""
    f.value("num_hash_layers", "mlp_layer_types")
    return ("sparse",) * L


_V4 = {kind: _v4(kind) for kind in _RATES.values()}
_GLM53 = layered(
    {"full_attention": _pooled, "linear_attention": key_delta},
    BOTH,
    otherwise=("linear_attention",) * 3 + ("full_attention",),
    fields=indexer_layers,
    each=_mixed_streams,
)
LATENT: dict[str, Reader] = {
    "deepseek_v4": layered(
        _V4,
        BOTH,
        kinds=_v4_kinds,
        hidden_kinds=_v4_hidden,
        each=_mixed_streams,
        extra=_joined,
    ),
    "glm_moe_dsa": layered(
        {"full_attention": _indexed},
        BOTH,
        fields=indexer_layers,
        next_layer=True,
        next_vocabulary=True,
    ),
    **dict.fromkeys(("glm5_next", "glm5_next_text"), _GLM53),
    "mistral_large4_text": layered(
        {"full_attention": _mistral},
        BOTH,
        fields=_mistral_layers,
        extra=lambda f, m: tuple(
            vectors("attention", {"rotary scale": (f.number("qk_rope_head_dim") // 2,)})
        ),
    ),
    "hy_v4": layered(
        {"full_attention": _hunyuan}, BOTH, fields=indexer_layers, each=_plain_streams, extra=_joined
    ),
    "dots3_note_text": layered(
        {"full_attention": _dots(window=False), "sliding_attention": _dots(window=True)},
        BOTH,
    ),
}
