"""The names under which organizations publish checkpoints: what of them tells the shapes.

A checkpoint's name on Hugging Face is an organization, a slash, and words of which some only tell how the
model was trained (`-Instruct`, `-hf`, `-2507`): the shapes are the same. Words that tell how the weights are
stored (`-FP8`, `-AWQ`) change the bytes of every weight, so such a name alone determines no model.
"""

import re

_TRAINED = {
    "base", "chat", "hf", "instruct", "it", "meta", "pt", "sft", "dpo", "thinking", "preview",
    "nvidia", "bf16", "fp16", "f16", "think", "reasoning", "inst", "deduped", "paddle", "unquantized",
}  # fmt: skip
_DATED = re.compile(r"(20)?2[3-9](0[1-9]|1[0-2])|0[1-9]([0-2][0-9]|3[01])|1[0-2]([0-2][0-9]|3[01])")
_STORED = {  # how the weights are stored, and the type to write for it; a width decides before a method
    r"fp8(?:dynamic|block|kv)?|w8a8fp8": "fp8",
    "nvfp4|fp4": "nvfp4",
    "mxfp4": "mxfp4",
    r"int8|w8a8|w8a16|8bit|q8(?:[_.]\w+)?": "int8",
    r"int4|w4a16|4bit|nf4|q4(?:[_.]\w+)*|(?:spinquant|qlora)_int4_eo8": "int4",
    "awq|gptq|bnb|autoround|gguf|mlx|exl2|exl3": "int4",
}
_ABOUT_STORED = {  # details behind such a word, as in 'FP8-KV', and in front of it, as in 'unsloth-bnb-4bit'
    "dynamic", "static", "block", "pertensor", "channel", "kv", "k", "v", "128g", "4b", "8b", "sym",
}  # fmt: skip
_BEFORE_STORED = {"unsloth", "qat", "ptq", "dwq"}


def bare(name: str) -> str:
    """The name without its organization and without the words that tell how the model was trained.

    >>> bare("meta-llama/Meta-Llama-3.1-8B-Instruct"), bare("Qwen/Qwen3-235B-A22B-Thinking-2507")
    ('Llama-3.1-8B', 'Qwen3-235B-A22B')
    """
    words = last_part(name).split("-")
    if "unquantized" in (word.lower() for word in words):  # trained for a type that it is not stored in
        words = without_stored_type("-".join(words)).split("-")
    kept = [word for word in words if word.lower() not in _TRAINED and not _DATED.fullmatch(word)]
    return "-".join(kept)


def last_part(name: str) -> str:
    """The name without its organization."""
    return name.strip().rstrip("/").rpartition("/")[2]


def stored_type(name: str) -> str:
    """The type in which the weights of this checkpoint are stored, by the words of its name, or "".

    >>> stored_type("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8"), stored_type("Qwen/Qwen3-8B-AWQ")
    ('int8', 'int4')
    """
    words = {*re.split(r"[-_. ]", last_part(name.lower())), *last_part(name.lower()).split("-")}
    if "unquantized" in words:
        return ""
    told = (kind for kind_words, kind in _STORED.items() if any(re.fullmatch(kind_words, w) for w in words))
    return next(told, "")


def without_stored_type(name: str) -> str:
    """The name of the checkpoint whose weights are not quantized: 'Qwen/Qwen3-8B' for 'Qwen/Qwen3-8B-FP8'.

    >>> without_stored_type("unsloth/Qwen3-14B-unsloth-bnb-4bit"), without_stored_type("Llama-3-8B-FP8-KV")
    ('unsloth/Qwen3-14B', 'Llama-3-8B')
    """
    organization, slash, part = name.rpartition("/")
    kept: list[str] = []
    behind = False
    for word in part.split("-"):
        if kept and _tells_storage(word):
            behind = True
            while len(kept) > 1 and kept[-1].lower() in _BEFORE_STORED:
                kept.pop()
        elif not (behind and (word.lower() in _ABOUT_STORED or re.fullmatch(r"v\d", word.lower()))):
            behind = False
            kept.append(word)
    return f"{organization}{slash}{'-'.join(kept)}"


def _tells_storage(word: str) -> bool:
    """Whether the word tells a type, also as in 'quantized.w4a16'."""
    told = word.lower().removeprefix("quantized.")
    return any(re.fullmatch(words_of, told) for words_of in _STORED)
