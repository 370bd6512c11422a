"""Readers of the configurations of models that keep a state instead of a cache in all or most layers.

Mamba, Mamba-2, Falcon Mamba, RWKV-4 and RecurrentGemma (Griffin): an entry of `STATEFUL` for each
`model_type`. Where no layer has attention, the letters describe the recurrence: N = K heads of width H, and F
is the number of its channels.
"""

from collections.abc import Iterable
from math import ceil

from scalingbook_lib.models.blocks import attention as attending
from scalingbook_lib.models.blocks import hidden, recurrent
from scalingbook_lib.models.blocks.block import Block
from scalingbook_lib.models.dense import Reader, Shapes
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.layered import Maker, layered, nothing
from scalingbook_lib.models.parts import ModelError, printable


def _without_attention(f: Fields, *, heads: int, width: int, channels: int) -> Fields:
    """The fields with the letters of a recurrence where those of attention would be."""
    return f.overridden(
        num_attention_heads=heads, num_key_value_heads=heads, head_dim=width, intermediate_size=channels
    )


def _alone(mixer: Maker) -> Reader:
    """The reader of a model whose layers are a norm and one recurrence."""
    return layered(
        {"linear_attention": mixer},
        {"none": nothing},
        otherwise=("linear_attention",),
        hidden_kinds=lambda f, L: ("none",) * L,
        norms=1,
    )


# Mamba


def _inner(f: Fields) -> int:
    """The channels of Mamba: their own field, or a multiple of the width of the residual stream."""
    expand = f.number("expand", default=2)
    return f.optional("intermediate_size") or expand * f.number("hidden_size")


def _mamba_block(f: Fields, m: Shapes) -> Iterable[Block]:
    D, rank = m["D"], f.value("time_step_rank")
    yield recurrent.mamba(
        D,
        inner=_inner(f),
        state=f.number("state_size", default=16),
        rank=ceil(D / 16) if rank in (None, "auto") else f.number("time_step_rank"),
        conv=f.number("conv_kernel", default=4),
        conv_bias=f.flag("use_conv_bias", True),
        bias=f.flag("use_bias", False),
        normed=False,
    )


_MAMBA = _alone(_mamba_block)


def _mamba(tied: bool) -> Reader:
    """The reader of Mamba, each of whose channels has a state of its own, as a head of width 1."""

    def shapes(f: Fields) -> Shapes:
        inner = _inner(f)
        own = _without_attention(f, heads=inner, width=1, channels=inner)
        return _MAMBA(own.overridden(tie_word_embeddings=f.flag("tie_word_embeddings", tied)))

    return shapes


def _mamba2_block(f: Fields, m: Shapes) -> Iterable[Block]:
    yield recurrent.mamba2(
        m["D"],
        heads=f.number("num_heads"),
        width=f.number("head_dim"),
        groups=f.number("n_groups", default=8),
        state=f.number("state_size", default=128),
        conv=f.number("conv_kernel", default=4),
        conv_bias=f.flag("use_conv_bias", True),
        bias=f.flag("use_bias", False),
    )


_MAMBA2 = _alone(_mamba2_block)


def _mamba2(f: Fields) -> Shapes:
    """Mamba-2's shapes, whose heads and their width make the channels."""
    f.require(rms_norm=True)
    heads, width = f.number("num_heads"), f.number("head_dim")
    inner = f.number("expand", default=2) * f.number("hidden_size")
    if heads * width != inner:
        raise ModelError("num_heads", f"{heads} heads of {width} are not {inner} channels", "change one")
    return _MAMBA2(_without_attention(f, heads=heads, width=width, channels=inner))


# RWKV-4


def _rwkv_mixing(f: Fields, m: Shapes) -> Iterable[Block]:
    yield recurrent.rwkv(m["D"], channels=m["N"])


def _rwkv_channels(f: Fields, m: Shapes) -> Iterable[Block]:
    yield hidden.rwkv_mlp(m["D"], m["F"])


_RWKV = layered(
    {"linear_attention": _rwkv_mixing},
    {"dense": _rwkv_channels},
    otherwise=("linear_attention",),
    norms=0,
    each=lambda f, m: (hidden.norms(m["D"], 2, shift=True),),
    gated=False,
    embedding_norm=True,  # in front of the first layer
    norm_bias=True,
)


def _rwkv(f: Fields) -> Shapes:
    """RWKV-4's shapes: each channel is a head of width 1, and F is the width of its channel mixing."""
    D = f.number("hidden_size")
    channels = f.optional("attention_hidden_size") or D
    wide = f.optional("intermediate_size") or 4 * D
    return _RWKV(_without_attention(f, heads=channels, width=1, channels=wide))


# RecurrentGemma


def _griffin_attention(f: Fields, m: Shapes) -> Iterable[Block]:
    """Attention in a window, whose output projection always has a bias."""
    yield attending.attention(
        m["D"],
        N=m["N"],
        K=m["K"],
        H=m["H"],
        window=f.number("attention_window_size", "sliding_window", default=2048),
        biases=("q", "k", "v", "o") if f.flag("attention_bias", False) else ("o",),
    )


def _griffin_recurrence(f: Fields, m: Shapes) -> Iterable[Block]:
    width = f.optional("lru_width") or m["D"]
    if width % m["N"]:
        raise ModelError("lru_width", f"{m['N']} heads do not divide {width}", "let them divide it")
    yield recurrent.rg_lru(m["D"], width=width, heads=m["N"], conv=f.number("conv1d_width", default=4))


def _griffin_kinds(f: Fields, L: int) -> tuple[str, ...]:
    """The kinds of layers: a list that repeats."""
    kinds = f.listed_of("block_types", str) or ["recurrent", "recurrent", "attention"]
    names = {"recurrent": "linear_attention", "attention": "sliding_attention"}
    for kind in kinds:
        if kind not in names:
            raise ModelError("block_types", f"{printable(kind)} is unknown", f"write {' or '.join(names)}")
    return tuple(names[kinds[i % len(kinds)]] for i in range(L))


def _griffin_mlp(f: Fields, m: Shapes) -> Iterable[Block]:
    yield hidden.mlp(m["D"], m["F"], bias=True)


_GRIFFIN = layered(
    {"sliding_attention": _griffin_attention, "linear_attention": _griffin_recurrence},
    {"dense": _griffin_mlp},
    kinds=_griffin_kinds,
    tied=True,
)


def _griffin(f: Fields) -> Shapes:
    """RecurrentGemma's shapes; its file states the width of both matrices up together."""
    both = f.number("intermediate_size")
    if both % 2:
        raise ModelError("intermediate_size", f"{both} is odd", "write the width of both matrices together")
    N = f.number("num_attention_heads")
    return _GRIFFIN(
        f.overridden(intermediate_size=both // 2, head_dim=f.head_width(f.number("hidden_size"), N))
    )


STATEFUL: dict[str, Reader] = {
    **dict.fromkeys(("mamba", "falcon_mamba"), _mamba(tied=True)),
    "mamba2": _mamba2,
    "rwkv": _rwkv,
    "recurrent_gemma": _griffin,
}
