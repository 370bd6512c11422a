"""Blocks of softmax attention: over heads, over latent vectors, with windows, gates, sinks and indexers."""

from scalingbook_lib.models.blocks.block import Block, LayerKind, Shape, products, vectors
from scalingbook_lib.models.parts import Latent, Weight


def attention(
    D: int,
    *,
    N: int,
    K: int,
    H: int,
    v: int | None = None,
    window: int | None = None,
    qk_norm: str | None = None,
    biases: tuple[str, ...] = (),
    sinks: bool = False,
    gate: str = "",
    keys: str = "own",
    index: tuple[int, int, int] | None = None,
) -> Block:
    """Softmax attention of N query heads over K key-value heads of width H, values of width v.

    `gate` scales its output by head or by element. `keys`: "own" ones and values, "values" where values are
    made of the keys, "shared" where an earlier layer's cache is read. `index`: heads, width and number of
    chosen positions of an indexer.
    """
    v = H if v is None else v
    shapes: dict[str, Shape] = {"q": (D, N, H)}
    if gate:
        shapes["attention gate"] = (D, N, v) if gate == "element" else (D, N)
    if keys != "shared":
        shapes |= {"k": (D, K, H)} | ({"v": (D, K, v)} if keys == "own" else {})
    shapes["o"] = (N, v, D)
    normed: dict[str, Shape] = {}
    if qk_norm:
        normed["q norm"] = (H,) if qk_norm == "head" else (N * H,)
        if keys != "shared":
            normed["k norm"] = (H,) if qk_norm == "head" else (K * H,)
    added = {f"{b} bias": (D,) if b == "o" else shapes[b][1:] for b in biases if b in shapes}
    chooser: list[Weight] = []
    if index:
        heads, width, _ = index
        chooser = [
            *products("attention", {"index q": (D, heads, width), "index k": (D, width)}),
            *vectors("norms", {"index norm": (width,), "index query norm": (width,)}),
        ]
    kind = LayerKind(
        layers=1,
        window=window,
        kv_elements_per_token=0 if keys == "shared" else K * (H + v) + (index[1] if index else 0),
        heads=N,
        kv_heads=K,
        query=H,
        value=v,
        chosen=index[2] if index else None,
        index=index[1] if index else 0,
        index_flops=2 * index[0] * index[1] if index else 0,
    )
    return Block(
        "attention",
        (
            *products("attention", shapes),
            *(vectors("attention", {"sinks": (N,)}) if sinks else ()),
            *vectors("norms", normed),
            *vectors("biases", added),
            *chooser,
        ),
        kinds=(kind,),
    )


def latent_shapes(D: int, N: int, a: Latent) -> dict[str, Shape]:
    """The matrices of multi-head latent attention, without those of an indexer."""
    queries: dict[str, Shape] = {"q": (D, N, a.qk)}
    if a.q_rank is not None:
        queries = {"q down": (D, a.q_rank), "q up": (a.q_rank, N, a.qk)}
    return {
        **queries,
        "kv down": (D, a.kv_rank),  # what the cache keeps is made by this one
        **({"k rope": (D, a.rope)} if a.rope else {}),  # one for all heads
        "k up": (a.kv_rank, N, a.nope),
        "v up": (a.kv_rank, N, a.v),
        "o": (N, a.v, D),
    }


def index_shapes(D: int, a: Latent) -> dict[str, Shape]:
    """The matrices of an indexer: queries of small heads, one key for all of them, how much each counts."""
    return {
        "index q": (a.q_rank or D, a.index_heads, a.index_width),
        "index k": (D, a.index_width),
        "index weights": (D, a.index_heads),
    }


def latent_norms(a: Latent) -> dict[str, Shape]:
    """The norms of latent attention and of its indexer, whose norm is a layer norm."""
    queries = {"q rank norm": (a.q_rank,)} if a.q_rank else {}
    width = a.index_width
    index = {"index norm": (width,), "index norm: shift": (width,)} if width else {}
    return {**queries, "kv rank norm": (a.kv_rank,), **index}


def latent_attention(
    D: int,
    N: int,
    a: Latent,
    *,
    window: int | None = None,
    gate: str = "",
    more: tuple[Weight, ...] = (),
    index_elements: int | None = None,
    pool: int = 1,
) -> Block:
    """Multi-head latent attention, with the indexer that `a` describes and a gate on its output.

    `index_elements` are cached for the indexer where its key is not all that it caches; it scores one entry
    for each `pool` of tokens.
    """
    gates = {"element": (D, N, a.v), "head": (D, N)}
    index = a.index_width if index_elements is None else index_elements
    kind = LayerKind(
        layers=1,
        window=window,
        kv_elements_per_token=a.cached + index,
        heads=N,
        query=a.qk,
        value=a.v,
        absorbed=(a.cached, a.kv_rank),
        chosen=a.index_topk or None,
        index=index,
        index_flops=2 * a.index_heads * a.index_width // pool,
    )
    return Block(
        "latent attention",
        (
            *products("attention", latent_shapes(D, N, a) | (index_shapes(D, a) if a.index_heads else {})),
            *(products("attention", {"attention gate": gates[gate]}) if gate else ()),
            *vectors("norms", latent_norms(a)),
            *more,
        ),
        kinds=(kind,),
    )
