"""Readers of the configurations of dense models with rotary positions.

LLaMA, Mistral, Qwen, Gemma, Phi-3, OLMo 2 and SmolLM3: an entry of `DENSE` for each `model_type`, built with
`family`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.parts import Weight, whole

type Shapes = dict[str, Any]  # fields of a Transformer
type Reader = Callable[[Fields], Shapes]
type Rule = Callable[[Fields, Shapes], Any]  # of a configuration and the letters that were read from it

QKV, QKVO = ("q", "k", "v"), ("q", "k", "v", "o")


def letters(
    f: Fields, *, tied: bool = False, own_heads: bool = False, width: str = "intermediate_size"
) -> Shapes:
    """The book's letters from the field names that nearly all configurations share.

    `tied` is the default for tied embeddings. With `own_heads`, a configuration without key-value heads has
    as many as query heads; otherwise it is refused.
    """
    D, N = f.number("hidden_size"), f.number("num_attention_heads")
    return {
        "L": f.number("num_hidden_layers", most=1000),
        "D": D,
        "V": f.number("vocab_size"),
        "N": N,
        "K": f.heads(N, f.number("num_key_value_heads", default=N if own_heads else None)),
        "H": f.head_width(D, N),
        "F": f.number(width),
        "tied": f.flag("tie_word_embeddings", tied),
    }


OWN_HEADS: Reader = partial(letters, own_heads=True)  # older than grouped heads: silence means all
TIED: Reader = partial(letters, tied=True)


def family(read: Reader = letters, **rules: Any) -> Reader:
    """The reader of a model family: `read` gives the letters, and each rule one more field of `Transformer`.

    A rule is the value that all models of the family have, or a `Rule` that computes it.
    """

    def shapes(f: Fields) -> Shapes:
        m = read(f)
        return m | {name: rule(f, m) if callable(rule) else rule for name, rule in rules.items()}

    return shapes


def biases(f: Fields, m: Shapes, attention: tuple[str, ...] = QKVO) -> tuple[str, ...]:
    """The names of the matmuls that add a bias."""
    have = attention if f.flag("attention_bias", False) else ()
    return (*have, "mlp") if f.flag("mlp_bias", False) else have


def _qwen2_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    """The biases of Qwen 2: queries, keys and values, whatever else the file says."""
    f.require(attention_bias=True)
    return QKV


def _seed_biases(f: Fields, m: Shapes) -> tuple[str, ...]:
    """The biases of Seed-OSS: the output projection has a field of its own."""
    have = (
        *(QKV if f.flag("attention_bias", True) else ()),
        *(("o",) if f.flag("attention_out_bias", False) else ()),
    )
    return (*have, "mlp") if f.flag("mlp_bias", False) else have


def one_bias(f: Fields, m: Shapes) -> tuple[str, ...]:
    """The biases of ERNIE 4.5: everywhere, or nowhere."""
    return (*QKVO, "mlp") if f.flag("use_bias", False) else ()


def _activation(f: Fields, m: Shapes) -> tuple[Weight, ...]:
    """The two weights of an xIELU activation function in each layer (Apertus)."""
    return (Weight("mlp", "activation", (2,), m["L"], m["L"]),)


def always_normed(f: Fields) -> Shapes:
    """The letters of a family whose queries and keys always have norms, which some files also state."""
    f.require(qk_norm=True, use_qk_norm=True)
    return OWN_HEADS(f)


def pattern_windows(f: Fields, m: Shapes) -> tuple[int | None, ...]:
    """EXAONE's windows: all but the last layer of each period slide, where there is a window."""
    period = f.value("sliding_window_pattern")
    if isinstance(period, str):  # as in LLLG
        period = len(period)
    if f.value("sliding_window") is None or period is None:
        return f.windows(m["L"], (False,))
    period = whole("sliding_window_pattern", period, most=1000)
    return f.windows(m["L"], tuple(layer + 1 < period for layer in range(period)))


def one_window(f: Fields, m: Shapes) -> tuple[int | None, ...]:
    """The same window in every layer, where the configuration has one."""
    return f.windows(m["L"], (f.value("sliding_window") is not None,))


def upper_windows(f: Fields, m: Shapes) -> tuple[int | None, ...]:
    """Qwen's windows: in the upper layers, and only where the configuration enables them."""
    if not f.flag("use_sliding_window", False):
        f.asked.update(("sliding_window", "max_window_layers"))  # switched off
        return (None,)
    first = f.number("max_window_layers", default=m["L"], least=0)
    return f.windows(m["L"], tuple(layer >= first for layer in range(m["L"])))


def late_windows(f: Fields, m: Shapes) -> tuple[int | None, ...]:
    """The windows of dots 1: in the upper layers, where the configuration has a window."""
    first = f.number("max_window_layers", default=m["L"], least=0)
    sliding = f.value("sliding_window") is not None
    return f.windows(m["L"], tuple(sliding and layer >= first for layer in range(m["L"])))


def cycle(*slides: bool) -> Rule:
    """A rule for layers that alternate between sliding-window and full attention in this order."""
    return lambda f, m: f.windows(m["L"], slides)


def next_tokens(f: Fields, m: Shapes) -> int:
    """The layers that predict one token more each, under either name."""
    return f.number("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, least=0)


GEMMA3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}
"""The fields that the configurations of Gemma 3 omit, with their defaults."""


def _gemma3_letters(f: Fields) -> Shapes:
    missing = {name: value for name, value in GEMMA3.items() if f.value(name) is None}
    return letters(f.overridden(**missing), tied=True)


def _gemma3_windows(f: Fields, m: Shapes) -> tuple[int | None, ...]:
    """Gemma 3's windows: all but the last layer of each period slide."""
    period = f.number("sliding_window_pattern", default=6, most=1000)
    return f.windows(m["L"], tuple(layer + 1 < period for layer in range(period)))


DENSE: dict[str, Reader] = {
    "llama": family(OWN_HEADS, biases=biases),  # also Yi and SmolLM
    "granite": family(OWN_HEADS, biases=biases),  # its multipliers are no weights
    "mistral": family(windows=one_window),  # the first 7B slides in every layer
    "qwen2": family(biases=_qwen2_biases, windows=upper_windows),
    "qwen3": family(qk_norm="head", biases=biases, windows=upper_windows),  # norms in place of the biases
    "smollm3": family(TIED, biases=biases, windows=upper_windows),
    "phi3": family(OWN_HEADS, windows=one_window),
    "olmo2": family(OWN_HEADS, qk_norm="all", biases=biases),  # one norm over all queries, one over all keys
    "gemma": family(TIED, biases=biases),
    "gemma2": family(TIED, norms=4, biases=biases, windows=cycle(True, False)),  # before and after a sublayer
    "gemma3": family(_gemma3_letters, norms=4, qk_norm="head", biases=biases, windows=_gemma3_windows),
}
DENSE |= {
    "gemma3_text": DENSE["gemma3"],
    "ministral": DENSE["mistral"],
    "ministral3": DENSE["mistral"],  # also Devstral
    "mimo": family(biases=_qwen2_biases, windows=upper_windows, next_tokens=next_tokens),
    "olmo3": family(OWN_HEADS, qk_norm="all", biases=biases, windows=cycle(True, True, True, False)),
    "exaone4": family(OWN_HEADS, qk_norm="head", windows=pattern_windows),
    "seed_oss": family(biases=_seed_biases),
    "ernie4_5": family(TIED, biases=one_bias),
    "hunyuan_v1_dense": family(always_normed, qk_norm="head", biases=biases),
    "granite_swa": family(OWN_HEADS, sinks=True, biases=biases, windows=cycle(False, True, True, True)),
    "nemotron": family(OWN_HEADS, gated=False, norm_bias=True, biases=biases),
    "apertus": family(always_normed, gated=False, qk_norm="head", biases=biases, extra=_activation),
    "phi4_multimodal": DENSE["phi3"],
}
DENSE["apertus1p5_text"] = DENSE["apertus"]
DENSE |= dict.fromkeys(("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), DENSE["qwen2"])
