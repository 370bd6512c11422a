"""Blocks that keep a state instead of a cache: delta rules, Mamba, lightning attention, convolutions."""

from scalingbook_lib.models.blocks.block import Block, Shape, Shapes, products, vectors


def recurrence(
    name: str,
    shapes: Shapes,
    others: Shapes,
    *,
    state: int = 0,
    channels: int = 0,
    conv: int = 1,
    flops: int = 0,
    norm: Shapes | None = None,
) -> Block:
    """A sublayer with a state instead of a cache; a convolution keeps conv - 1 tokens of its channels."""
    return Block(
        name,
        (
            *products("linear attention", shapes),
            *vectors("linear attention", others),
            *vectors("norms", norm or {}),
        ),
        state=state,
        convolution=channels * (conv - 1),
        state_flops=flops,
    )


def delta_net(D: int, *, k_heads: int, v_heads: int, key: int, value: int, conv: int) -> Block:
    """Gated DeltaNet: a matrix [key, value] for each value head, one decay for each head."""
    channels = 2 * k_heads * key + v_heads * value
    shapes = {
        "linear q": (D, k_heads, key),
        "linear k": (D, k_heads, key),
        "linear v": (D, v_heads, value),
        "linear gate": (D, v_heads, value),
        "linear beta": (D, v_heads),
        "linear decay": (D, v_heads),
        "linear o": (v_heads, value, D),
    }
    others = {"conv": (channels, conv), "decay rate": (v_heads,), "time step": (v_heads,)}
    state = v_heads * key * value  # read with the key, write, read with the query
    return recurrence(
        "gated DeltaNet",
        shapes,
        others,
        state=state,
        channels=channels,
        conv=conv,
        flops=6 * state,
        norm={"linear norm": (value,)},
    )


def key_delta(D: int, *, heads: int, width: int, conv: int, ranks: tuple[int | None, int | None]) -> Block:
    """Kimi delta attention (KDA): a decay for each element of the key.

    `ranks` of the matrices that make the decay and the output gate; None where they have full rank.
    """
    inner = heads * width
    shapes: dict[str, Shape] = {
        "delta q": (D, heads, width),
        "delta k": (D, heads, width),
        "delta v": (D, heads, width),
        "delta beta": (D, heads),
        "delta o": (heads, width, D),
    }
    for name, rank in zip(("delta decay", "delta gate"), ranks, strict=True):
        shapes |= (
            {f"{name} down": (D, rank), f"{name} up": (rank, inner)} if rank else {name: (D, heads, width)}
        )
    others = {"conv": (3 * inner, conv), "decay rate": (heads,), "time step": (inner,)}
    state = heads * width * width
    return recurrence(
        "Kimi delta attention",
        shapes,
        others,
        state=state,
        channels=3 * inner,
        conv=conv,
        flops=6 * state,
        norm={"linear norm": (width,)},
    )


def mamba2(
    D: int,
    *,
    heads: int,
    width: int,
    groups: int,
    state: int,
    conv: int,
    conv_bias: bool = True,
    bias: bool = False,
    norm: bool = True,
) -> Block:
    """Mamba-2: heads of `width` with a state of `state` each; groups of heads share inputs and outputs."""
    inner = heads * width
    channels = inner + 2 * groups * state
    into = inner + channels + heads
    others: dict[str, Shape] = {
        "conv": (channels, conv),
        **({"conv bias": (channels,)} if conv_bias else {}),
        "decay rate": (heads,),
        "time step": (heads,),
        "skip": (heads,),
        **({"in bias": (into,), "out bias": (D,)} if bias else {}),
    }
    return recurrence(
        "Mamba-2",
        {"mamba in": (D, into), "mamba out": (inner, D)},
        others,
        state=inner * state,
        channels=channels,
        conv=conv,
        flops=4 * inner * state,  # write, read with the query
        norm={"mamba norm": (inner,)} if norm else None,
    )


def mamba(
    D: int,
    *,
    inner: int,
    state: int,
    rank: int,
    conv: int,
    conv_bias: bool,
    bias: bool,
    normed: bool = True,
) -> Block:
    """Mamba; `normed`: with norms of its time step, input and output vectors, as in Jamba."""
    others: dict[str, Shape] = {
        "conv": (inner, conv),
        **({"conv bias": (inner,)} if conv_bias else {}),
        "decay rate": (inner, state),
        "time step": (inner,),
        "skip": (inner,),
        **({"in bias": (2 * inner,), "out bias": (D,)} if bias else {}),
    }
    return recurrence(
        "Mamba",
        {
            "mamba in": (D, 2 * inner),
            "mamba x": (inner, rank + 2 * state),
            "mamba time step": (rank, inner),
            "mamba out": (inner, D),
        },
        others,
        state=inner * state,
        channels=inner,
        conv=conv,
        flops=4 * inner * state,
        norm={"time step norm": (rank,), "input norm": (state,), "output norm": (state,)} if normed else {},
    )


def rwkv(D: int, *, channels: int) -> Block:
    """RWKV-4's time mixing: a weighted sum of values for each channel, with a decay and a first weight.

    The state is a numerator, a denominator and the largest exponent of both. Time mixing and channel mixing
    blend a token with the one before, which a convolution over two tokens of either input keeps.
    """
    shapes = {
        "linear k": (D, channels),
        "linear v": (D, channels),
        "linear receptance": (D, channels),
        "linear o": (channels, D),
    }
    others = {"decay rate": (channels,), "first weight": (channels,), "mix with the token before": (3, D)}
    # the numerator and the denominator: one multiply-add each
    return recurrence("RWKV", shapes, others, state=3 * channels, channels=2 * D, conv=2, flops=4 * channels)


def rg_lru(D: int, *, width: int, heads: int, conv: int) -> Block:
    """Griffin's recurrent block: a convolution, a gated linear recurrence (RG-LRU), and an output gate.

    The gates of the recurrence and of its input are made by a square matrix for each head.
    """
    each = width // heads
    shapes: dict[str, Shape] = {
        "lru gate": (D, width),
        "lru x": (D, width),
        "lru input gate": (each, heads, each),
        "lru recurrence gate": (each, heads, each),
        "lru out": (width, D),
    }
    others: dict[str, Shape] = {
        "conv": (width, conv),
        "conv bias": (width,),
        "decay rate": (width,),
        "lru biases": (4, width),  # of both matrices in, and of both gates
        "out bias": (D,),
    }
    return recurrence("RG-LRU", shapes, others, state=width, channels=width, conv=conv, flops=2 * width)


def lightning(D: int, *, heads: int, width: int) -> Block:
    """Lightning attention (MiniMax-01): a matrix [width, width] per head and a fixed decay."""
    inner = heads * width
    return recurrence(
        "lightning attention",
        {"linear qkv": (D, 3 * inner), "linear gate": (D, inner), "linear o": (inner, D)},
        {},
        state=heads * width * width,
        flops=4 * heads * width * width,
        norm={"linear norm": (inner,)},
    )


def short_convolution(D: int, *, conv: int, bias: bool) -> Block:
    """A gated convolution over the last tokens (LFM2)."""
    others: dict[str, Shape] = {"conv": (D, conv)}
    if bias:
        others |= {"conv bias": (D,), "in bias": (3 * D,), "out bias": (D,)}
    shapes = {"conv in": (D, 3 * D), "conv out": (D, D)}
    return recurrence("short convolution", shapes, others, channels=D, conv=conv)
