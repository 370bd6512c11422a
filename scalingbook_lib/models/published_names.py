"""The names under which organizations publish checkpoints: what of them tells the shapes.

A checkpoint's name on Hugging Face is an organization, a slash, and words of which some only tell how the
model was trained (`-Instruct`, `-hf`, `-2507`): the shapes are the same. Words that tell how the weights are
stored (`-FP8`, `-AWQ`) change the bytes of every weight, so such a name alone determines no model.
"""

import re

_TRAINED = {
    "base", "chat", "hf", "instruct", "it", "meta", "pt", "sft", "dpo", "thinking", "preview",
    "nvidia", "bf16", "think", "reasoning", "inst", "deduped", "paddle",
}  # fmt: skip
_DATED = re.compile(r"(20)?2[3-9](0[1-9]|1[0-2])|0[1-9]([0-2][0-9]|3[01])|1[0-2]([0-2][0-9]|3[01])")
_STORED = {  # how the weights are stored, and the type to write for it
    r"fp8(?:dynamic|block|kv)?|w8a8fp8": "fp8",
    "nvfp4|fp4": "nvfp4",
    "mxfp4": "mxfp4",
    r"awq|gptq|int4|w4a16|4bit|nf4|bnb|autoround": "int4",
    r"int8|w8a8|8bit": "int8",
    "gguf|mlx|exl2|exl3": "int4",
}


def bare(name: str) -> str:
    """The name without its organization and without the words that tell how the model was trained.

    >>> bare("meta-llama/Meta-Llama-3.1-8B-Instruct"), bare("Qwen/Qwen3-235B-A22B-Thinking-2507")
    ('Llama-3.1-8B', 'Qwen3-235B-A22B')
    """
    words = name.strip().rstrip("/").rpartition("/")[2].split("-")
    kept = [word for word in words if word.lower() not in _TRAINED and not _DATED.fullmatch(word)]
    return "-".join(kept)


def stored_type(name: str) -> str:
    """The type in which the weights of this checkpoint are stored, by a word of its name, or ""."""
    words = re.split(r"[-_. ]", name.lower().rpartition("/")[2])
    return next(
        (kind for word in words for words_of, kind in _STORED.items() if re.fullmatch(words_of, word)), ""
    )


def without_stored_type(name: str) -> str:
    """The name of the checkpoint whose weights are not quantized: 'Qwen/Qwen3-8B' for 'Qwen/Qwen3-8B-FP8'."""
    words = name.split("-")
    while len(words) > 1 and _tells_storage(words):
        words.pop()
    return "-".join(words)


def _tells_storage(words: list[str]) -> bool:
    """Whether the last word tells a type, also as in 'quantized.w4a16', or how the one before it scales."""
    last = words[-1].lower().removeprefix("quantized.")
    if re.fullmatch(r"v\d", last):  # of the quantization, as in 'DeepSeek-R1-0528-FP4-V2'
        return len(words) > 1 and _tells_storage(words[:-1])
    if last in ("dynamic", "static", "block", "pertensor", "channel"):
        return _tells_storage(words[:-1])
    return any(re.fullmatch(words_of, last) for words_of in _STORED)
