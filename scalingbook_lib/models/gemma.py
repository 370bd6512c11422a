"""Readers of the configurations of Gemma 3n and 4.

Their layers have embeddings of their own, may read an earlier layer's cache, and have wider heads where
attention is full. An entry of `GEMMA` for each `model_type`, built with `layered`.
"""

from collections.abc import Iterable
from functools import partial

from scalingbook_lib.models import structure
from scalingbook_lib.models.blocks import attention as attending
from scalingbook_lib.models.blocks import hidden
from scalingbook_lib.models.blocks.block import Block, products, vectors
from scalingbook_lib.models.dense import Reader, Shapes
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.layered import dense, layered
from scalingbook_lib.models.parts import Weight


def _gemma_layers(f: Fields, kinds: tuple[str, ...]) -> tuple[Fields, ...]:
    """The fields of each layer: its heads, its width, and whether it reads an earlier layer's cache."""
    L = len(kinds)
    first_shared = L - f.number("num_kv_shared_layers", default=0, least=0, most=L)
    widths, double = f.value("intermediate_size"), f.flag("use_double_wide_mlp", False)
    whole = {"head_dim": f.optional("global_head_dim")}
    alike = f.flag("attention_k_eq_v", False)
    whole |= {"num_key_value_heads": f.optional("num_global_key_value_heads") if alike else None}
    made = []
    for i, (g, kind) in enumerate(zip(structure.per_layer(f, L), kinds, strict=True)):
        wide = kind == "full_attention"
        own = {name: n for name, n in whole.items() if n and wide and "per_layer_config" not in f.config}
        width = widths[i] if isinstance(widths, list) and len(widths) == L else widths
        if double and i >= first_shared and isinstance(width, int):
            width *= 2
        keys = "shared" if i >= first_shared else "values" if alike and wide else "own"
        made.append(g.overridden(intermediate_size=width, keys=keys, **own))
    return tuple(made)


def _gemma(f: Fields, m: Shapes, *, window: bool) -> Iterable[Block]:
    N, H = f.number("num_attention_heads"), f.number("head_dim")
    yield attending.attention(
        m["D"],
        N=N,
        K=f.heads(N, f.number("num_key_value_heads")),
        H=H,
        window=f.number("sliding_window") if window else None,
        qk_norm="head",
        biases=("q", "k", "v", "o") if f.flag("attention_bias", False) else (),
        keys=f.value("keys"),
    )


def _gemma_mlp(f: Fields, m: Shapes) -> Iterable[Block]:
    """A dense MLP, and experts beside it where the file enables them."""
    yield from dense(f, m)
    if f.flag("enable_moe_block", False):
        e, D = structure.experts_of(f), m["D"]
        router = {"router scale": (D,), "expert scale": (e.E,)}
        yield hidden.experts(D, E=e.E, k=e.k, F=e.F, prefix="own expert ", more=router)
        yield hidden.norms(D, 3)


def _per_layer_input(f: Fields, m: Shapes) -> Iterable[Block]:
    """The gate, projection and norm of a layer's own embedding."""
    D, width = m["D"], f.number("hidden_size_per_layer_input", default=0, least=0)
    if width:
        shapes = {"layer input gate": (D, width), "layer input projection": (width, D)}
        yield Block("layer input", (*products("mlp", shapes), *vectors("norms", {"layer norms": (D,)})))


def _per_layer_embedding(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The embedding of every layer, which a token is looked up in, and the projection that it is added to."""
    width = f.number("hidden_size_per_layer_input", default=0, least=0)
    V = f.number("vocab_size_per_layer_input", default=m["V"])
    if not width:
        return ()
    wide = m["L"] * width
    return (
        *vectors("embedding", {"layer embeddings": (V, wide)}),
        *products("embedding", {"layer projection": (m["D"], wide)}),
        *vectors("norms", {"layer projection norm": (width,)}),
    )


def _streams(f: Fields, m: Shapes) -> Iterable[Block]:
    """Gemma 3n's low-rank block (LAuReL) and the mixing of its streams (AltUp), besides the layer's input."""
    D, n, rank = m["D"], f.number("altup_num_inputs"), f.number("laurel_rank")
    f.flag("altup_correct_scale", True)
    shapes = {
        "laurel down": (D, rank),
        "laurel up": (rank, D),
        "altup router": (D, n),
        "altup predict": (n, n * n),
        "altup correct": (n, n),
    }
    normed = {"laurel norm": (D,), "altup norm": (D,), "altup scale": (D,)}
    yield Block("streams", (*products("mlp", shapes), *vectors("norms", normed)))
    yield from _per_layer_input(f, m)


def _gemma3n_extra(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    D, n = m["D"], f.number("altup_num_inputs")
    ends = Weight("embedding", "altup projections", (D, D), 2 * (n - 1), 2 * (n - 1), matmul=True)
    return (*_per_layer_embedding(f, m), ends)


_GEMMA = {
    "full_attention": partial(_gemma, window=False),
    "sliding_attention": partial(_gemma, window=True),
}
_FIVE_OF_SIX = ("sliding_attention",) * 5 + ("full_attention",)
_GEMMA4 = layered(
    _GEMMA,
    {"dense": _gemma_mlp},
    otherwise=_FIVE_OF_SIX,
    hidden_kinds=lambda f, L: ("dense",) * L,
    fields=_gemma_layers,
    norms=4,
    tied=True,
    each=_per_layer_input,
    extra=_per_layer_embedding,
)
_GEMMA3N = layered(
    _GEMMA,
    {"dense": dense},
    otherwise=("sliding_attention",) * 4 + ("full_attention",),
    fields=_gemma_layers,
    norms=4,
    tied=True,
    each=_streams,
    extra=_gemma3n_extra,
)
GEMMA: dict[str, Reader] = {
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma4_unified_text"), _GEMMA4),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), _GEMMA3N),
}
