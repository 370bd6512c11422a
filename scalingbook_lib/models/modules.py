"""The names of modules in published files, and the patterns by which `quantization_config` means them."""

import re
from functools import lru_cache


@lru_cache(maxsize=65536)
def matches(pattern: str, name: str) -> bool:
    """Whether a pattern of a file means this module: a regular expression, or names with `*`."""
    if pattern.startswith("re:"):
        return re.match(pattern[3:], name) is not None
    plain, bare = _bare(pattern), _bare(name)
    if "*" not in plain:
        return f".{plain}." in f".{bare}."
    wild = ".*".join(map(re.escape, plain.split("*")))
    return re.search(rf"(^|[.]){wild}([.]|$)", bare) is not None


def _bare(name: str) -> str:
    return re.sub(r"^((language_model|model|backbone)[.])+", "", name)


_ATTENTION = "self_attn", "attn", "mixer"
_HIDDEN = "mlp", "feed_forward", "block_sparse_moe", "ffn", "mixer"
MODULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # a weight of this library: the modules that may hold it, and what it is called there
    "q": (_ATTENTION, ("q_proj", "qkv_proj")),
    "k": (_ATTENTION, ("k_proj", "qkv_proj")),
    "v": (_ATTENTION, ("v_proj", "qkv_proj")),
    "o": (_ATTENTION, ("o_proj", "out_proj", "o_b_proj", "wo_b")),
    "o down": (_ATTENTION, ("o_a_proj", "wo_a")),
    "attention gate": (_ATTENTION, ("q_proj", "g_proj", "gate_proj")),
    "q down": (_ATTENTION, ("q_a_proj", "wq_a")),
    "q up": (_ATTENTION, ("q_b_proj", "wq_b")),
    "kv down": (_ATTENTION, ("kv_a_proj_with_mqa", "kv_proj", "wkv")),
    "k rope": (_ATTENTION, ("kv_a_proj_with_mqa",)),
    "k up": (_ATTENTION, ("kv_b_proj",)),
    "v up": (_ATTENTION, ("kv_b_proj",)),
    "index q": (("self_attn.indexer", "attn.indexer"), ("wq_b", "q_b_proj")),
    "index k": (("self_attn.indexer", "attn.indexer"), ("wk", "k_proj")),
    "gate": (_HIDDEN, ("gate_proj", "gate_up_proj", "w1")),
    "up": (_HIDDEN, ("up_proj", "gate_up_proj", "w3")),
    "down": (_HIDDEN, ("down_proj", "w2")),
    "expert gate": (tuple(f"{m}.experts.0" for m in _HIDDEN), ("gate_proj", "w1")),
    "expert up": (tuple(f"{m}.experts.0" for m in _HIDDEN), ("up_proj", "w3")),
    "expert down": (tuple(f"{m}.experts.0" for m in _HIDDEN), ("down_proj", "w2")),
    "own expert gate": (("experts.0",), ("gate_proj",)),
    "own expert up": (("experts.0",), ("up_proj",)),
    "own expert down": (("experts.0",), ("down_proj",)),
    "shared gate": (tuple(f"{m}.shared_expert{s}" for m in _HIDDEN for s in ("s", "")), ("gate_proj", "w1")),
    "shared up": (tuple(f"{m}.shared_expert{s}" for m in _HIDDEN for s in ("s", "")), ("up_proj", "w3")),
    "shared down": (tuple(f"{m}.shared_expert{s}" for m in _HIDDEN for s in ("s", "")), ("down_proj", "w2")),
    "expert in": (("mixer",), ("fc1_latent_proj",)),
    "expert out": (("mixer",), ("fc2_latent_proj",)),
    "linear q": (("linear_attn",), ("in_proj_qkvz", "in_proj_qkv")),
    "linear k": (("linear_attn",), ("in_proj_qkvz", "in_proj_qkv")),
    "linear v": (("linear_attn",), ("in_proj_qkvz", "in_proj_qkv")),
    "linear gate": (("linear_attn",), ("in_proj_qkvz", "in_proj_z")),
    "linear o": (("linear_attn",), ("out_proj",)),
    "linear beta": (("linear_attn",), ("in_proj_ba", "in_proj_b")),
    "linear decay": (("linear_attn",), ("in_proj_ba", "in_proj_a")),
    "delta q": (("self_attn",), ("q_proj",)),  # Kimi delta attention
    "delta k": (("self_attn",), ("k_proj",)),
    "delta v": (("self_attn",), ("v_proj",)),
    "delta beta": (("self_attn",), ("b_proj",)),
    "delta decay": (("self_attn",), ("f_proj",)),
    "delta decay down": (("self_attn",), ("f_a_proj",)),
    "delta decay up": (("self_attn",), ("f_b_proj",)),
    "delta gate": (("self_attn",), ("g_proj",)),
    "delta gate down": (("self_attn",), ("g_a_proj",)),
    "delta gate up": (("self_attn",), ("g_b_proj",)),
    "delta o": (("self_attn",), ("o_proj",)),
    "mamba in": (("mixer", "mamba"), ("in_proj",)),
    "mamba out": (("mixer", "mamba"), ("out_proj",)),
}


def names_of(weight: str, layer: int) -> tuple[str, ...]:
    """The names that the module with this weight of a layer may have; none where it has no name here."""
    folders, leaves = MODULES.get(weight, ((), ()))
    return tuple(f"model.layers.{layer}.{folder}.{leaf}" for folder in folders for leaf in leaves)
