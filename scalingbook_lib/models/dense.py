"""Which shapes does the configuration of a dense model with rotary positions mean?

LLaMA, Mistral, Qwen, Gemma, Phi-3, OLMo 2 and SmolLM3: each function answers for one `model_type`.
"""

from typing import Any

from scalingbook_lib.models.fields import Fields

Shapes = dict[str, Any]
QKV, QKVO = ("q", "k", "v"), ("q", "k", "v", "o")


def shapes(f: Fields, *, tied: bool = False, kv: int | None = None, H: str = "head_dim") -> Shapes:
    """The letters that nearly all configurations call by the same names."""
    D, N = f.number("hidden_size"), f.number("num_attention_heads")
    L = f.number("num_hidden_layers", most=1000)
    return {
        "D": D,
        "L": L,
        "V": f.number("vocab_size"),
        "N": N,
        "K": f.heads(N, f.number("num_key_value_heads", default=kv)),
        "H": f.head_width(D, N, H),
        "F": f.number("intermediate_size"),
        "tied": f.flag("tie_word_embeddings", tied),
    }


def own_heads(f: Fields) -> int:
    """As many key-value heads as query heads: what the older configurations mean by silence."""
    return f.number("num_attention_heads")


def biases(f: Fields, *, attention: tuple[str, ...] = QKVO) -> tuple[str, ...]:
    """Which products add a bias."""
    have = attention if f.flag("attention_bias", False) else ()
    return (*have, "mlp") if f.flag("mlp_bias", False) else have


def llama(f: Fields) -> Shapes:
    """LLaMA 1, 2, 3 and 3.x, Yi, SmolLM."""
    return shapes(f, kv=own_heads(f)) | {"biases": biases(f)}


def mistral(f: Fields) -> Shapes:
    """Mistral 7B, whose first version slides a window in every layer, and Nemo."""
    read = shapes(f)
    slides = f.value("sliding_window") is not None
    return read | {"windows": f.windows(read["L"], (slides,))}


def qwen_windows(f: Fields, L: int) -> tuple[int | None, ...]:
    """Qwen slides its upper layers, and only where it says so."""
    if not f.flag("use_sliding_window", False):
        return (None,)
    first = f.number("max_window_layers", default=L, least=0)
    return f.windows(L, tuple(layer >= first for layer in range(L)))


def qwen2(f: Fields) -> Shapes:
    """Qwen 2 and 2.5: queries, keys and values with a bias."""
    read = shapes(f)
    return read | {"biases": QKV, "windows": qwen_windows(f, read["L"])}


def qwen3(f: Fields) -> Shapes:
    """Qwen 3: a norm over each head in place of the biases."""
    read = shapes(f)
    return read | {
        "qk_norm": "head",
        "biases": biases(f),
        "windows": qwen_windows(f, read["L"]),
    }


def smollm3(f: Fields) -> Shapes:
    """SmolLM3."""
    read = shapes(f, tied=True)
    return read | {"biases": biases(f), "windows": qwen_windows(f, read["L"])}


def phi3(f: Fields) -> Shapes:
    """Phi-3 and Phi-4."""
    read = shapes(f, kv=own_heads(f))
    slides = f.value("sliding_window") is not None
    return read | {"windows": f.windows(read["L"], (slides,))}


def olmo2(f: Fields) -> Shapes:
    """OLMo 2: norms after the sublayers, and one over all queries and all keys."""
    return shapes(f, kv=own_heads(f)) | {"qk_norm": "all", "biases": biases(f)}


def gemma(f: Fields) -> Shapes:
    """Gemma 1."""
    return shapes(f, tied=True) | {"biases": biases(f)}


def gemma2(f: Fields) -> Shapes:
    """Gemma 2: norms before and after each sublayer, a window in every other layer."""
    read = shapes(f, tied=True)
    return read | {"norms": 4, "biases": biases(f), "windows": f.windows(read["L"], (True, False))}


GEMMA3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}


def gemma3(f: Fields) -> Shapes:
    """Gemma 3, text: five layers slide, the sixth does not. What its files leave out is in `GEMMA3`."""
    given = {name: value for name, value in f.config.items() if value is not None}
    f = Fields(GEMMA3 | given)
    read = shapes(f, tied=True)
    period = f.number("sliding_window_pattern", default=6, most=1000)
    slides = tuple(layer + 1 < period for layer in range(period))
    more = {"norms": 4, "qk_norm": "head", "biases": biases(f)}
    return read | more | {"windows": f.windows(read["L"], slides)}
