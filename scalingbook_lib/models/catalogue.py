"""Which published models does the book speak of, in which shapes, and who says so?

Shapes are those of the published `config.json`; each model names where it was read. Chapter: Transformers.
"""

from difflib import get_close_matches
from typing import Any

from scalingbook_lib.models.error import ModelError, shown
from scalingbook_lib.models.parts import Experts, Latent, Linear
from scalingbook_lib.models.transformer import Transformer

# Where the shapes were read, all on 2026-11-21.
_AIC = "copy of the published config.json in aiconfigurator-core 0.12.0, read 2026-11-21"
_LLM = "llm-analysis 0.2.2 model_configs, read 2026-11-21"
_MAX = "AI-Hypercomputer/maxtext configs/models at e591f30, read 2026-11-21"
_HF = "config.json as quoted in public repositories, count equal to the published one, read 2026-11-21"
_OWN = "shapes from memory, held to the published count in data/model_configs.csv, 2026-11-21"

_QKV, _ALL = ("q", "k", "v"), ("q", "k", "v", "o", "mlp")
_PLAIN: dict[str, Any] = {"gated": False, "norm_bias": True, "tied": True, "biases": _ALL}
_QWEN3: dict[str, Any] = {"H": 128, "qk_norm": "head"}
_MLA = Latent(q_rank=1536, kv_rank=512, nope=128, rope=64, v=128)


def _of(name: str, D: int, L: int, N: int, K: int, F: int, V: int, source: str, **more: Any) -> Transformer:
    letters: dict[str, Any] = {"D": D, "L": L, "N": N, "K": K, "H": D // N, "F": F, "V": V}
    return Transformer(name=name, source=source, **(letters | more))


def _gemma(name: str, D: int, L: int, N: int, K: int, F: int, source: str, **more: Any) -> Transformer:
    return _of(name, D, L, N, K, F, more.pop("V", 256000), source, **({"H": 256, "tied": True} | more))


def _gemma3(name: str, D: int, L: int, N: int, K: int, F: int, source: str, **more: Any) -> Transformer:
    slides = (1024,) * 5 + (None,)
    kept: dict[str, Any] = {"V": 262208, "norms": 4, "qk_norm": "head", "windows": slides}
    return _gemma(name, D, L, N, K, F, source, **(kept | more))


def _gpt(name: str, D: int, L: int, N: int, **more: Any) -> Transformer:
    return _of(name, D, L, N, N, 4 * D, more.pop("V"), _LLM, **(_PLAIN | more))


def _gpt2(name: str, D: int, L: int, N: int) -> Transformer:
    return _gpt(name, D, L, N, V=50257, positions=1024)


def _opt(name: str, D: int, L: int, N: int) -> Transformer:
    return _gpt(name, D, L, N, V=50272, positions=2050)


def _falcon(name: str, D: int, L: int, N: int, K: int, source: str, **more: Any) -> Transformer:
    return _of(name, D, L, N, K, 4 * D, 65024, source, **(_PLAIN | {"biases": ()} | more))


def _oss(name: str, L: int, E: int) -> Transformer:
    return _of(
        *(name, 2880, L, 64, 8, 2880, 201088, _AIC),
        **{"H": 64, "experts": Experts(E=E, k=4, F=2880), "sinks": True, "windows": (128, None)},
        biases=("q", "k", "v", "o", "router", "experts"),
    )


def _deepseek(name: str, N: int, V: int, experts: Experts) -> Transformer:
    return _of(name, 7168, 61, N, N, 18432, V, _AIC, H=192, latent=_MLA, experts=experts)


CATALOGUE = (
    _of("LLaMA 7B", 4096, 32, 32, 32, 11008, 32000, _LLM),
    _of("LLaMA 13B", 5120, 40, 40, 40, 13824, 32000, _LLM),
    _of("LLaMA 65B", 8192, 80, 64, 64, 22016, 32000, _LLM),
    _of("LLaMA-2 7B", 4096, 32, 32, 32, 11008, 32000, _MAX),
    _of("LLaMA-2 13B", 5120, 40, 40, 40, 13824, 32000, _OWN),
    _of("LLaMA-2 70B", 8192, 80, 64, 8, 28672, 32000, _MAX),
    _of("LLaMA-3 8B", 4096, 32, 32, 8, 14336, 128256, _AIC),
    _of("LLaMA-3 70B", 8192, 80, 64, 8, 28672, 128256, _AIC),
    _of("LLaMA-3 405B", 16384, 126, 128, 8, 53248, 128256, _AIC),
    _of("LLaMA-3.2 1B", 2048, 16, 32, 8, 8192, 128256, _OWN, tied=True),
    _of("LLaMA-3.2 3B", 3072, 28, 24, 8, 8192, 128256, _OWN, tied=True),
    _of(
        *("Llama 4 Scout", 5120, 48, 40, 8, 16384, 202048, _AIC),
        experts=Experts(E=16, k=1, F=8192, shared=1),
        windows=(8192, 8192, 8192, None),
    ),
    _of(
        *("Llama 4 Maverick", 5120, 48, 40, 8, 16384, 202048, _AIC),
        experts=Experts(E=128, k=1, F=8192, shared=1, every=2),
        windows=(8192, 8192, 8192, None),
    ),
    _of("Mistral 7B v0.1", 4096, 32, 32, 8, 14336, 32000, _MAX, windows=(4096,)),
    _of("Mistral 7B v0.3", 4096, 32, 32, 8, 14336, 32768, _OWN),
    _of("Mistral Nemo 12B", 5120, 40, 32, 8, 14336, 131072, _OWN, H=128),
    _of("Mixtral 8x7B", 4096, 32, 32, 8, 14336, 32000, _AIC, experts=Experts(E=8, k=2, F=14336)),
    _of("Mixtral 8x22B", 6144, 56, 48, 8, 16384, 32000, _AIC, experts=Experts(E=8, k=2, F=16384)),
    _gemma("Gemma 2B", 2048, 18, 8, 1, 16384, _MAX),
    _gemma("Gemma-2 2B", 2304, 26, 8, 4, 9216, _MAX, norms=4, windows=(4096, None)),
    _gemma("Gemma-2 9B", 3584, 42, 16, 8, 14336, _MAX, norms=4, windows=(4096, None)),
    _gemma("Gemma-2 27B", 4608, 46, 32, 16, 36864, _OWN, H=128, norms=4, windows=(4096, None)),
    _gemma3("Gemma-3 4B", 2560, 34, 8, 4, 10240, _MAX),
    _gemma3("Gemma-3 12B", 3840, 48, 16, 8, 15360, _HF),
    _gemma3("Gemma-3 27B", 5376, 62, 32, 16, 21504, _OWN, H=128),
    _of("Qwen2.5 0.5B", 896, 24, 14, 2, 4864, 151936, _OWN, tied=True, biases=_QKV),
    _of("Qwen2.5 1.5B", 1536, 28, 12, 2, 8960, 151936, _MAX, tied=True, biases=_QKV),
    _of("Qwen2.5 7B", 3584, 28, 28, 4, 18944, 152064, _MAX, biases=_QKV),
    _of("Qwen2.5 72B", 8192, 80, 64, 8, 29568, 152064, _OWN, biases=_QKV),
    _of("Qwen3 0.6B", 1024, 28, 16, 8, 3072, 151936, _AIC, tied=True, H=128, qk_norm="head"),
    _of("Qwen3 4B", 2560, 36, 32, 8, 9728, 151936, _MAX, tied=True, H=128, qk_norm="head"),
    _of("Qwen3 8B", 4096, 36, 32, 8, 12288, 151936, _AIC, qk_norm="head"),
    _of("Qwen3 32B", 5120, 64, 64, 8, 25600, 151936, _AIC, H=128, qk_norm="head"),
    _of(
        *("Qwen3 30B-A3B", 2048, 48, 32, 4, 6144, 151936, _AIC),
        **_QWEN3,
        experts=Experts(E=128, k=8, F=768),
    ),
    _of(
        *("Qwen3 235B-A22B", 4096, 94, 64, 4, 12288, 151936, _AIC),
        **_QWEN3,
        experts=Experts(E=128, k=8, F=1536),
    ),
    _of(
        *("Qwen3-Next 80B-A3B", 2048, 48, 16, 2, 5120, 151936, _OWN),
        **_QWEN3 | {"H": 256},
        attention_gate=True,
        experts=Experts(E=512, k=10, F=512, shared=1, shared_F=512, shared_gate=True),
        linear=Linear(k_heads=16, v_heads=32, key=128, value=128, conv=4, every=4),
    ),
    _of(
        *("DeepSeek-V2-Lite", 2048, 27, 16, 16, 10944, 102400, _MAX),
        H=192,
        latent=Latent(q_rank=None, kv_rank=512, nope=128, rope=64, v=128),
        experts=Experts(E=64, k=6, F=1408, shared=2, first_dense=1),
    ),
    _deepseek("DeepSeek-V3", 128, 129280, Experts(E=256, k=8, F=2048, shared=1, first_dense=3)),
    _deepseek("Kimi K2", 64, 163840, Experts(E=384, k=8, F=2048, shared=1, first_dense=1)),
    _of(
        *("GLM-4.5", 5120, 92, 96, 8, 12288, 151552, _OWN),
        **{"H": 128, "biases": _QKV, "qk_norm": "head"},
        experts=Experts(E=160, k=8, F=1536, shared=1, first_dense=3),
    ),
    _of(
        *("GLM-4.5-Air", 4096, 46, 96, 8, 10944, 151552, _HF),
        **{"H": 128, "biases": _QKV},
        experts=Experts(E=128, k=8, F=1408, shared=1, first_dense=1),
    ),
    _oss("gpt-oss 20B", 24, 32),
    _oss("gpt-oss 120B", 36, 128),
    _gpt2("GPT-2 124M", 768, 12, 12),
    _gpt2("GPT-2 medium", 1024, 24, 16),
    _gpt2("GPT-2 XL", 1600, 48, 25),
    _opt("OPT 125M", 768, 12, 12),
    _opt("OPT 1.3B", 2048, 24, 32),
    _opt("OPT 6.7B", 4096, 32, 32),
    _opt("OPT 175B", 12288, 96, 96),
    _gpt("BLOOM 176B", 14336, 70, 112, V=250880, embedding_norm=True),
    _falcon("Falcon 7B", 4544, 32, 71, 1, "FalconConfig of transformers 4.57.6, read 2026-11-21", norms=1),
    _falcon("Falcon 40B", 8192, 60, 128, 8, _HF.replace(", count equal to the published one", "")),
    _falcon("Falcon 180B", 14848, 80, 232, 8, _OWN, tied=False),
    _of(
        *("Phi-2", 2560, 32, 32, 32, 10240, 51200, _OWN),
        **_PLAIN | {"tied": False, "norms": 1, "biases": (*_ALL, "unembedding")},
    ),
    _of("Phi-3 mini", 3072, 32, 32, 32, 8192, 32064, _HF, windows=(2047,)),
    _of("Phi-4", 5120, 40, 40, 10, 17920, 100352, _OWN),
    _of("Phi-4 mini", 3072, 32, 24, 8, 8192, 200064, _HF, tied=True),
    _of("OLMo-2 7B", 4096, 32, 32, 32, 11008, 100352, _OWN, qk_norm="all"),
    _of("SmolLM3 3B", 2048, 36, 16, 4, 11008, 128256, _OWN, tied=True),
    _of(
        *("MPT 7B", 4096, 32, 32, 32, 16384, 50432, _HF.replace(", count equal to the published one", "")),
        **{"gated": False, "tied": True},
    ),
)

ALIASES = {
    "llama17b": "LLaMA 7B",
    "llama113b": "LLaMA 13B",
    "llama165b": "LLaMA 65B",
    "llama318b": "LLaMA-3 8B",
    "llama3170b": "LLaMA-3 70B",
    "llama3370b": "LLaMA-3 70B",
    "llama31405b": "LLaMA-3 405B",
    "llama4scout17b16e": "Llama 4 Scout",
    "llama4maverick17b128e": "Llama 4 Maverick",
    "mistral7b": "Mistral 7B v0.1",
    "deepseekr1": "DeepSeek-V3",
    "gpt2": "GPT-2 124M",
    "gemma12b": "Gemma 2B",
    "bloom": "BLOOM 176B",
}


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


_BY_KEY = {_key(model.name): model for model in CATALOGUE}
_BY_KEY |= {alias: _BY_KEY[_key(name)] for alias, name in ALIASES.items() if alias not in _BY_KEY}


def find(name: str) -> Transformer:
    """The model of that name, whatever its capitals, spaces and hyphens."""
    if not isinstance(name, str):
        raise ModelError("name", f"{shown(name)} is no text", "write a name, as in 'LLaMA-3 70B'")
    key = _key(name[:80])
    if key in _BY_KEY:
        return _BY_KEY[key]
    near = [_BY_KEY[match].name for match in get_close_matches(key, _BY_KEY, 3, 0.4)]
    known = near or [model.name for model in CATALOGUE]
    raise ModelError("name", f"{shown(name)} is not in the catalogue", f"write one of {', '.join(known)}")
