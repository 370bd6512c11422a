"""How a trainer of Hugging Face's family loads a model: adapters (LoRA), quantized weights (QLoRA), dtypes.

TRL, LLaMA-Factory and Axolotl write the same settings in their own words. Weights that are frozen keep the
dtype in which they are loaded. bitsandbytes stores the matrices of the layers in 4 or 8 bits; embedding,
unembedding and norms stay in half precision.
"""

from dataclasses import dataclass

from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.training import assume_adapters
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import BF16, FP16, FP32, DType, dtype

_ADAPTERS = ("lora", "qlora", "dora", "pissa", "oft", "qoft")
_BLOCK = 64
"""Elements that share a scale in fp32 (bitsandbytes, without double quantization)."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Whether adapters are trained, the dtype of the base weights, and whether the tool recomputes layers."""

    adapters: bool
    weights: DType
    quantized: bool = False


_NEXT_TOKEN = ("sft", "pt", "")


def _refuse_other_steps(r: Reading) -> None:
    """Refuse what trains on pairs, rewards or generated tokens: its step is more than one pass."""
    if r.given("stage") and str(r.setting("stage").value).lower() not in _NEXT_TOKEN:
        raise r.refuse(
            "stage",
            "is no step of next-token training: it runs a reference, a reward or a generating model too",
            "leave it out to count a step of fine-tuning on as many sequences",
        )


def of_llama_factory(r: Reading) -> bool:
    """Whether the settings are those of LLaMA-Factory, which names the method of fine-tuning."""
    return r.given("method") and r.setting("method").name.lstrip("-") == "finetuning_type"


def factory_remat(r: Reading) -> str:
    """What LLaMA-Factory recomputes, which needs no flag for it; "" for another tool, or with the flag."""
    if not of_llama_factory(r) or r.given("trainer_remat"):
        return ""
    if r.on("no_remat"):
        return "none"
    r.assume("LLaMA-Factory recomputes every layer unless disable_gradient_checkpointing is set.")
    return "full"


def trains_adapters(r: Reading) -> bool:
    """Whether adapters are trained and the base weights are frozen."""
    method = r.word("method").lower() if r.given("method") else ""
    found = r.on("peft") or method in _ADAPTERS
    if found:
        assume_adapters(r)
    elif method not in ("", "full", "none"):
        r.unexpressed("method", "counted as training all weights")
    return found


def loaded(r: Reading, model: Transformer, half: DType) -> Loaded:
    """How the base weights are loaded; `half` is the dtype of mixed precision."""
    _refuse_other_steps(r)
    adapters = trains_adapters(r)
    weights = _dtype(r, half, adapters)
    bits = _bits(r)
    if bits and not adapters:
        for key in ("load_4bit", "load_8bit", "bits"):
            r.unexpressed(key, "quantized weights are frozen, and the command trains no adapters")
        return Loaded(adapters, weights)
    if not bits:
        return Loaded(adapters, weights)
    other = half if weights is FP32 else weights
    stored = quantized(model, bits, other)
    r.assume(
        f"The base weights are in {bits} bits with a scale of {_BLOCK} elements each, but embedding, "
        f"unembedding and norms in {other.name}: {stored.bytes:.3g} bytes per parameter. The time in which "
        "kernels convert them is not counted."
        if bits == 4
        else f"The base weights are in 8 bits, but embedding, unembedding and norms in {other.name}: "
        f"{stored.bytes:.3g} bytes per parameter."
    )
    return Loaded(adapters, stored, quantized=True)


def quantized(model: Transformer, bits: int, other: DType) -> DType:
    """The mean type of weights whose layers are in 4 bits (NF4) or 8 bits and the rest in `other`.

    >>> from scalingbook_lib import models
    >>> round(quantized(models.find("llama-3-8b"), 4, BF16).bytes, 3)
    0.751
    """
    outside = sum(model.by_part.get(name, 0) for name in ("embedding", "unembedding", "positions", "norms"))
    each = bits / 8 + (4 / _BLOCK if bits == 4 else 0.0)
    mean = (each * (model.params - outside) + other.bytes * outside) / model.params
    return DType("nf4" if bits == 4 else "int8", mean)


def _bits(r: Reading) -> int:
    if r.on("load_4bit"):
        return 4
    if r.on("load_8bit"):
        return 8
    bits = r.maybe("bits") if r.given("bits") else None
    if bits not in (None, 4, 8):
        r.unexpressed("bits", "only 4 and 8 bits are counted")
        return 0
    return bits or 0


def _dtype(r: Reading, half: DType, adapters: bool) -> DType:
    """The dtype in which the weights are loaded: as said, or what the tool does on its own."""
    if r.table.has("loaded") and r.given("loaded"):
        word = r.word("loaded").removeprefix("torch.").lower()
        if word == "auto":
            r.assume(f"--torch_dtype auto is read as {half.name}: the dtype of the checkpoint.")
            return half
        return dtype(word)
    axolotl = r.setting("model").name.lstrip("-") == "base_model"
    factory = of_llama_factory(r) and (adapters or r.on("pure_half"))  # which trains in fp32 otherwise
    if axolotl or factory:
        return half if half in (BF16, FP16) else FP32
    return FP32
