"""Read configurations whose layers differ: every layer gets a token mixer and an MLP by its kind.

`layered` makes the reader of a model type from two tables, of token mixers and of MLPs by the kind that the
file's lists name; each entry makes the `Block` of one layer. The makers below cover attention with and
without windows, MLA, Mamba, delta rules and convolutions under the field names in use.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from scalingbook_lib.models import structure
from scalingbook_lib.models.blocks import attention as attending
from scalingbook_lib.models.blocks import hidden, recurrent
from scalingbook_lib.models.blocks.block import Block, gathered
from scalingbook_lib.models.dense import Reader, Shapes
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.parts import Latent, ModelError, printable

type Maker = Callable[[Fields, Shapes], Iterable[Block]]  # of a layer's fields and the model's letters


def layered(
    mixers: Mapping[str, Maker],
    mlps: Mapping[str, Maker],
    *,
    otherwise: tuple[str, ...] = ("full_attention",),
    kinds: Callable[[Fields, int], tuple[str, ...]] | None = None,
    hidden_kinds: Callable[[Fields, int], tuple[str, ...]] | None = None,
    fields: Callable[[Fields, tuple[str, ...]], tuple[Fields, ...]] | None = None,
    width: str = "",
    next_layer: bool = False,
    norms: int = 2,
    tied: bool = False,
    each: Maker | None = None,
    **rules: Any,
) -> Reader:
    """The reader of a model type whose layers are a mixer and an MLP, each of the kind that the file says.

    `otherwise` repeats the kinds of mixers where the file has no list; `kinds` and `hidden_kinds` read the
    lists of a type that has its own, and `fields` gives each layer its fields. `width` is the field with the
    width of an expert where it is another one. With `next_layer`, a layer that predicts one token more is a
    last layer with its own vocabulary, as in DeepSeek-V3; otherwise such layers are named and not counted.
    `each` makes further blocks of every layer.
    """

    def shapes(f: Fields) -> Shapes:
        m = _letters(f, tied)
        L = m["L"]
        mixing = kinds(f, L) if kinds else structure.mixers(f, L, otherwise)
        feeding = hidden_kinds(f, L) if hidden_kinds else structure.mlps(f, L, structure.routed(f))
        made: list[tuple[int, Block]] = []
        layers = fields(f, mixing) if fields else structure.per_layer(f, L)
        for i, (g, mixer, fed) in enumerate(zip(layers, mixing, feeding, strict=True)):
            made += [(i, block) for block in _made(mixers, "layer_types", mixer, g, m)]
            made += [(i, block) for block in _made(mlps, "mlp_layer_types", fed, g, m)]
            made += [(i, block) for block in (hidden.norms(m["D"], norms), *(each(g, m) if each else ()))]
        _ask_of_others(mixers, mixing, f, m)
        m["blocks"] = gathered(made)
        f.asked.update(structure.EXPERT_FIELDS)  # of no importance where no layer is sparse
        m["next_tokens"] = f.number("num_nextn_predict_layers", default=0, least=0)
        if next_layer:
            last = layers[-1]
            m["next_blocks"] = (
                *_made(mixers, "layer_types", mixing[-1], last.overridden(chooses=True), m),
                *_made(mlps, "mlp_layer_types", feeding[-1], last, m),
                hidden.norms(m["D"], norms),
            )
        m["experts"] = (
            structure.experts_of(f, width=width) if any(b.name == "experts" for _, b in made) else None
        )
        return m | {name: rule(f, m) if callable(rule) else rule for name, rule in rules.items()}

    return shapes


def _made(makers: Mapping[str, Maker], field: str, kind: str, f: Fields, m: Shapes) -> Iterable[Block]:
    if kind not in makers:
        raise ModelError(field, f"{printable(kind)} is unknown", f"write one of {', '.join(makers)}")
    return makers[kind](f, m)


def _ask_of_others(mixers: Mapping[str, Maker], used: tuple[str, ...], f: Fields, m: Shapes) -> None:
    """Record the fields of the kinds that no layer has, such as the window of a model with full attention."""
    for kind in mixers.keys() - set(used):
        with suppress(ModelError):
            tuple(mixers[kind](f, m))


def _letters(f: Fields, tied: bool) -> Shapes:
    """The letters that describe the layers with full attention; F is the width of the dense MLPs."""
    D, N = f.number("hidden_size"), f.number("num_attention_heads")
    K = f.heads(N, f.number("num_key_value_heads", default=N))
    dense_F = f.value("dense_intermediate_size")
    F = f.value("intermediate_size") if dense_F is None else dense_F
    widest = max(F) if isinstance(F, list) and F and all(type(n) is int for n in F) else F
    return {
        "L": structure.layers_of(f),
        "D": D,
        "V": f.number("vocab_size"),
        "N": N,
        "K": K,
        "H": f.head_width(D, N) if f.value("kv_lora_rank") is None else latent_of(f).qk,
        "F": widest if isinstance(widest, int) else f.number(*structure.EXPERT_WIDTH),
        "tied": f.flag("tie_word_embeddings", tied),
    }


# token mixers


def heads(
    *, window: bool = False, qk_norm: str | None = None, sinks: bool = False, gate: str = "", o: str = "o"
) -> Maker:
    """A maker of grouped-query attention, whose values may have a width of their own."""

    def make(f: Fields, m: Shapes) -> Iterable[Block]:
        N, D = f.number("num_attention_heads"), m["D"]
        yield attending.attention(
            D,
            N=N,
            K=f.heads(N, f.number("num_key_value_heads", default=N)),
            H=f.head_width(D, N),
            v=f.optional("v_head_dim"),
            window=f.number("sliding_window", "attention_chunk_size") if window else None,
            qk_norm=qk_norm,
            biases=("q", "k", "v", o) if f.flag("attention_bias", False) else (),
            sinks=sinks,
            gate=gate,
        )

    return make


def latent_of(f: Fields, *, index: bool = False) -> Latent:
    """Latent attention under DeepSeek's field names; with `index`, its indexer."""
    return Latent(
        q_rank=f.optional("q_lora_rank"),
        kv_rank=f.number("kv_lora_rank"),
        nope=f.number("qk_nope_head_dim"),
        rope=f.number("qk_rope_head_dim", default=0, least=0),
        v=f.number("v_head_dim"),
        index_heads=f.number("index_n_heads") if index else 0,
        index_width=f.number("index_head_dim") if index else 0,
        index_topk=f.number("index_topk") if index else 0,
    )


def latent(*, index: bool = False, gate: str = "", window: bool = False) -> Maker:
    """A maker of multi-head latent attention."""

    def make(f: Fields, m: Shapes) -> Iterable[Block]:
        f.require(attention_bias=False)
        span = f.number("sliding_window") if window else None
        N, a = f.number("num_attention_heads"), latent_of(f, index=index)
        yield attending.latent_attention(m["D"], N, a, gate=gate, window=span)

    return make


def delta_net(f: Fields, m: Shapes) -> Iterable[Block]:
    """Gated DeltaNet under Qwen's field names."""
    yield recurrent.delta_net(
        m["D"],
        k_heads=f.number("linear_num_key_heads"),
        v_heads=f.heads_of("linear_num_value_heads", "linear_num_key_heads"),
        key=f.number("linear_key_head_dim"),
        value=f.number("linear_value_head_dim"),
        conv=f.number("linear_conv_kernel_dim"),
    )


def mamba2(f: Fields, m: Shapes) -> Iterable[Block]:
    """Mamba-2 under the field names of Bamba, Falcon-H1 and Granite."""
    D, heads_ = m["D"], f.number("mamba_n_heads")
    expand = f.number("mamba_expand", default=2)
    inner = f.optional("mamba_d_ssm") or expand * D
    width = f.value("mamba_d_head")
    width = inner // heads_ if width in (None, "auto") else f.number("mamba_d_head")
    if heads_ * width != inner:
        raise ModelError("mamba_d_head", f"{heads_} heads of {width} are not {inner}", "change one")
    yield recurrent.mamba2(
        D,
        heads=heads_,
        width=width,
        groups=f.number("mamba_n_groups", default=1),
        state=f.number("mamba_d_state"),
        conv=f.number("mamba_d_conv"),
        conv_bias=f.flag("mamba_conv_bias", True),
        bias=f.flag("mamba_proj_bias", False),
        norm=f.flag("mamba_rms_norm", True),
    )


def convolution(f: Fields, m: Shapes) -> Iterable[Block]:
    """The short convolution of LFM2."""
    yield recurrent.short_convolution(m["D"], conv=f.number("conv_L_cache"), bias=f.flag("conv_bias", False))


def nothing(f: Fields, m: Shapes) -> Iterable[Block]:
    """No sublayer: a layer of Nemotron-H is either a mixer or an MLP."""
    return ()


# MLPs


def dense(f: Fields, m: Shapes) -> Iterable[Block]:
    """A gated MLP."""
    F = f.optional("dense_intermediate_size") or f.number("intermediate_size")
    yield hidden.mlp(m["D"], F, bias=f.flag("mlp_bias", False))


def sparse(*, gated: bool = True, width: str = "", correction: bool = False) -> Maker:
    """A maker of routed and shared experts; `correction` of the router's scores may be a parameter."""

    def make(f: Fields, m: Shapes) -> Iterable[Block]:
        e = structure.experts_of(f, width=width)
        inner = f.optional("moe_latent_size", "routed_expert_hidden_size")
        yield hidden.experts(
            m["D"],
            E=e.E,
            k=e.k,
            F=e.F,
            shared=e.shared_width,
            gated=gated,
            inner=inner,
            inner_norm=f.flag("latent_moe_use_norm", False),
            more={"router correction": (e.E,)} if correction else None,
        )

    return make


BOTH: dict[str, Maker] = {"dense": dense, "sparse": sparse()}
