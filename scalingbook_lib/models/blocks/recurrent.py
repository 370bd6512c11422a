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


def mamba(D: int, *, inner: int, state: int, rank: int, conv: int, conv_bias: bool, bias: bool) -> Block:
    """Mamba with norms of its time step, input and output vectors, as in Jamba."""
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
        norm={"time step norm": (rank,), "input norm": (state,), "output norm": (state,)},
    )


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
