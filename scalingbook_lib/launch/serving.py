"""A serving launch as read: the model, the machine, the layout and the engine's caps."""

import re
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.inference import Drafting, Layout
from scalingbook_lib.launch.flags import meanings
from scalingbook_lib.launch.memory_fraction import FractionRule, reserve
from scalingbook_lib.launch.reading import Account, Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import Given, of_size, refuse_model
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models import ModelError, Transformer, find, published_names
from scalingbook_lib.models.quantization import serving_types
from scalingbook_lib.units import BF16, FP16, FP32, DType, dtype, matrix_unit_dtype

MODEL_OPTION = "add --model, as in --model llama-3-70b"


@dataclass(frozen=True, slots=True)
class Draft:
    """What drafts tokens: a model, or a head of `layers` layers, of which there are none for n-grams."""

    model: Transformer | None = None
    layers: int = 1

    def cost(self, of: Transformer) -> float:
        """The time of one drafted token over that of a plain decode step of a model; 0 with a draft model."""
        return 0.0 if self.model else self.layers / of.L

    @property
    def beside(self) -> Drafting:
        """What is held beside the served model: the weights and the KV cache of a draft model."""
        return Drafting(model=self.model)


HEAD = Draft()
"""One layer behind the model, as of MTP and EAGLE."""
DRAFT_HEAD = "DRAFT_HEAD"
"""What stands in a command for the checkpoint of an EAGLE head, which no option names."""
LOOKED_UP = ("ngram", "ngram_gpu", "suffix", "lookahead", "user_provided")
"""Methods that look tokens up, and compute nothing to draft them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLaunch:
    """What a serving command asks for: `replicas` of a layout fill the machine.

    The caps are those of one replica; None is no cap. `fraction` is the share of the memory by `rule`.
    `chunk` is the largest number of prompt tokens in a step of the replica, over all groups of attention DP.
    `drafts` are tokens that speculative decoding verifies in a step, 0 without it; `draft` says what drafts.
    """

    launcher: str
    model: Transformer
    machine: Machine
    layout: Layout
    rule: FractionRule
    fraction: float
    chunk: int
    policy: str
    max_sequences: int | None = None
    max_length: int | None = None
    drafts: int = 0
    draft: Draft = HEAD
    account: Account

    @property
    def replicas(self) -> int:
        """Copies of the model."""
        return self.machine.chips // self.layout.chips

    @property
    def reserve(self) -> float:
        """The share of the HBM that the engine leaves, by its own rule."""
        tokens = -(-self.chunk // self.layout.attention_dp)  # of the group of a chip
        how: dict[str, Any] = {"step_tokens": tokens, "drafting": self.draft.beside}
        return reserve(self.rule, self.fraction, self.model, self.layout, self.machine, **how)


@dataclass(frozen=True, slots=True)
class Served:
    """A model with the dtypes in which a checkpoint stores it; `types` are fields of a layout."""

    model: Transformer
    types: dict[str, Any]


def served(r: Reading, given: Given) -> Served:
    """The model of the command, or the given one, with the dtypes of its checkpoint."""
    name = r.word("model") if r.given("model") else ""
    model = given.model
    if model is None and not name:
        for file in r.absent:
            rule = "is not here, and the command names no model"
            raise file.refuse(rule, f"run this where the file is, or {MODEL_OPTION}")
        raise LaunchError(f"the command does not name the model; {MODEL_OPTION}")
    if model is None:
        model = _found(r, name)
    types: dict[str, Any] = dict(serving_types(model))
    if not types and name:
        types = _stored(r, name)
    return Served(model, types | _asked(r, types))


def _found(r: Reading, name: str) -> Transformer:
    for text in (name, published_names.without_stored_type(name)):
        try:
            return find(text)
        except ModelError as found:
            error = found
    raise refuse_model(r, error, MODEL_OPTION) from error


def _stored(r: Reading, name: str) -> dict[str, DType]:
    """The dtypes of a published checkpoint: by a word of its name, or by values.csv."""
    known = meanings("checkpoints", "stored")
    lowered = name.lower()
    kind = published_names.stored_type(name)
    if not kind:
        kind = next((means for start, means in known.items() if lowered.startswith(start.lower())), "")
    if not kind:
        return {}
    found: dict[str, DType] = {}
    for each in kind.split():  # such as "fp8 experts:mxfp4"
        part, colon, kind = each.rpartition(":")
        stored = dtype(kind)
        compute = matrix_unit_dtype(stored) if kind in ("fp8", "nvfp4", "mxfp8", "int8") else BF16
        if colon:
            found |= {part: stored, "experts_compute": compute}
        else:
            found |= {"weights": stored, "compute": compute, "outer": BF16}
        r.assume(f"The checkpoint {name} stores its {part or 'weights'} in {kind}.")
    return found


def computable(r: Reading, what: Served, chip: Chip) -> Served:
    """The same, with matmuls in a half-precision type where the chip cannot multiply the stored one.

    vLLM, SGLang and TensorRT-LLM then convert the weights in the kernel (weight-only quantization).
    """
    types, rates = dict(what.types), chip.rates()
    if types.get("compute") == FP32 and "fp32" not in rates:
        raise LaunchError(
            f"the catalog has no rate of fp32 matmuls for {chip.name}; write --dtype bfloat16 or --dtype half"
        )
    if "compute" not in types and "bf16" not in rates and "fp16" in rates:
        types |= {"compute": FP16, "activations": FP16}
        r.assume(f"No bf16 rate of {chip.name} is known: the model is served in fp16.")
    for field in ("compute", "experts_compute"):
        kind = types.get(field)
        if kind is not None and kind.name not in rates and kind not in (BF16, FP16):
            types[field] = BF16 if "bf16" in rates else FP16
            r.assume(
                f"No {kind.name} rate of {chip.name} is known: kernels convert the weights, and multiply in "
                f"{types[field].name}."
            )
    return Served(what.model, types)


def _asked(r: Reading, types: dict[str, DType]) -> dict[str, DType]:
    """The dtypes that flags set: --quantization, --kv-cache-dtype, --dtype."""
    found: dict[str, DType] = {}
    half = r.get("dtype")
    if half == FP32:
        found |= {"weights": FP32, "kv": FP32, "activations": FP32, "compute": FP32}
    if half == FP16:
        found["activations"] = FP16
        if "compute" not in types:
            found["compute"] = FP16
    if r.table.has("quantization") and r.given("quantization"):
        means = r.meaning("quantization").split()
        if means and not types:
            found |= {
                "weights": dtype(means[0]),
                "compute": matrix_unit_dtype(dtype(means[1])),
                "outer": BF16,
            }
    if kind := r.meaning("kv"):
        found["kv"] = dtype(kind)
    return found


def refuse_uneven_heads(r: Reading, model: Transformer, tp: int) -> None:
    """Refuse a tensor-parallel degree that does not divide the heads, as the servers do.

    KV heads are split or replicated: the larger of their number and the degree divides by the smaller one.
    """
    heads = model.K if not model.latent else 1
    uneven = max(heads, tp) % min(heads, tp) if heads else 0
    if tp > 1 and model.N and (model.N % tp or uneven):
        raise r.refuse(
            "tp",
            f"splits the {model.N:,} heads and {heads:,} KV heads of {model.name} unevenly",
            "write a degree that divides the heads, such as a power of two",
        )


def machine_of(r: Reading, given: Given, needed: int, how: str) -> Machine:
    """The machine: the given one, or so many of the given chip."""
    machine = given.machine
    if machine is None:
        raise LaunchError(
            f"the command starts {needed:,} GPU{'s' * (needed > 1)} ({how}) and does not say which; add "
            f"--machine, as in --machine h100:{needed}"
        )
    if isinstance(machine, Chip):
        return of_size(machine, needed)
    if machine.chips % needed:
        raise LaunchError(
            f"the command starts {needed:,} GPUs ({how}), and {machine.name} has {machine.chips:,}; write a "
            f"machine of {needed:,}, or a multiple for replicas"
        )
    if machine.chips > needed:
        r.assume(
            f"The command starts {needed:,} of the {machine.chips:,} chips; {machine.chips // needed} such "
            "instances fill the machine."
        )
    return machine


def drafts_of(r: Reading, given: Given, model: Transformer) -> tuple[int, Draft]:
    """The drafted tokens of a step and what drafts them; they count only with a known acceptance length."""
    drafts, draft = r.maybe("drafts", 0) or 0, HEAD
    method = r.word("spec").lower()
    if drafts and given.acceptance_length is None:
        why = "how many drafted tokens are accepted decides; add --acceptance-length"
        for key in ("drafts", "draft_model", "spec"):
            r.unexpressed(key, why)
        return 0, draft
    if not drafts:
        for key in ("draft_model", "spec"):
            r.unexpressed(key, f"the command does not set {r.setting('drafts').name}")
        return 0, draft
    if method in LOOKED_UP:
        draft = Draft(layers=0)
        r.idle("draft_model")
    elif method in _DRAFT_MODELS and r.given("draft_model"):
        draft = _draft_model(r, model)
    else:
        r.idle("draft_model")
    return drafts, draft


_DRAFT_MODELS = ("", "draft_model", "standalone", "drafttarget", "draft_target")
"""Methods whose draft model is a language model of its own, not a head on the large one."""
_HEADS = re.compile(r"(?i)eagle|[-_/]mtp|medusa|hydra|speculator|dflash")
"""What the names of heads say, by which vLLM, too, finds the method."""


def _draft_model(r: Reading, model: Transformer) -> Draft:
    name = r.word("draft_model")
    if _HEADS.search(name):
        return HEAD
    try:
        found = find(name)
    except ModelError:
        r.unexpressed(
            "draft_model", "it is not a model of the catalog; the drafts are those of a head of one layer"
        )
        return HEAD
    if found.V != model.V:
        sizes = f"has a vocabulary of {found.V:,} tokens, and {model.name} one of {model.V:,}"
        raise r.refuse("draft_model", sizes, "write a draft model with the same vocabulary")
    r.assume(f"The prefill of the draft model {name} is not counted.")
    return Draft(found)
