"""The model of a Megatron command: by its shape flags, by its recipe, or by its name on Hugging Face."""

import re
from collections.abc import Iterator
from dataclasses import replace
from math import gcd
from typing import Any

from scalingbook_lib.launch.flags import meanings
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import Given, divided
from scalingbook_lib.machines import chips
from scalingbook_lib.models import ModelError, Transformer, find
from scalingbook_lib.models.parts import Experts
from scalingbook_lib.training import Plan

LM, BRIDGE = "megatron", "megatron_bridge"
_RECIPE_SETS = ("tp", "pp", "cp", "sequence", "microbatch", "global_batch")
_TASK = re.compile(r"_(pretrain|sft|peft|lora|dora)(_.*)?$|_config$")


def of_recipe(r: Reading, given: Given) -> Given:
    """What a recipe's name and the scripts' own options tell: the model and the chip.

    A recipe is a Python function. Its settings are not those of the table, so a command that names one has to
    repeat what the plan needs; a recipe that was read from its file has to write it out.
    """
    key = next((one for one in ("recipe_function", "recipe") if r.given(one)), None)
    if key:
        told = {"sequence": given.sequence, "global_batch": given.batch, "microbatch": given.batch}
        open_ = [r.setting(one).name for one in _RECIPE_SETS if not r.given(one) and not told.get(one)]
        if open_ and key == "recipe_function":
            raise r.refuse(
                key,
                f"does not write out {', '.join(open_)}",
                "set them in its lines, or give the path of the recipe within a checkout",
            )
        if open_:
            raise r.refuse(
                key,
                f"sets {', '.join(open_)} in Python, which is not executed",
                "add them to the command, or give the recipe's file, as in llama31.py:FUNCTION",
            )
        r.idle("recipe_function")
        if given.model is None and r.given("hf_model"):
            given = replace(given, model=_pretrained(r, key))
        r.unexpressed(
            "recipe", "it is Python: what the command leaves open counts as the framework's default"
        )
        if given.model is None and (model := recipe_model(r.word(key))):
            given = replace(given, model=model)
            r.assume(f"The model is {model.name}, by the name of the recipe.")
    if given.machine is None and r.given("gpu"):
        try:
            given = replace(given, machine=chips.find(r.word("gpu")))
        except ValueError as error:
            raise r.refuse("gpu", "is not a chip of the catalog", f"add --machine: {error}") from error
    r.idle("gpu")
    return given


def _pretrained(r: Reading, key: str) -> Transformer | None:
    """The model of a recipe by its Hugging Face name, or else by the recipe's; None if its shape is given."""
    found = _known(r.word("hf_model"))
    if found or r.given("shape.L"):
        return found
    r.asked.pop("hf_model")
    if recipe_model(r.word(key)) is None:
        raise r.refuse(
            "hf_model",
            "is not in the catalog of models",
            "add --model with a model that is, or with the path of its config.json",
        )
    return None


def recipe_model(name: str) -> Transformer | None:
    """The model that the name of a recipe begins with; None if it is not in the catalog.

    >>> recipe_model("llama31_405b_pretrain_1024gpu_h100_bf16_config").name
    'Llama 3.1 405B'
    """
    stem = _TASK.sub("", name)
    stem = re.sub(r"^([a-z]+)(\d)(\d)(?=_)", r"\1-\2.\3", stem)  # llama31 is Llama 3.1
    return _known(stem.replace("_", "-"))


def _known(name: str) -> Transformer | None:
    """The model of the catalog with this name; None if there is none."""
    try:
        return find(name)
    except ModelError:
        return None


def of_shape(r: Reading, given: Given) -> Transformer | None:
    """The model of the shape flags; None where they are missing, or describe what --model has to name."""
    if given.model is None:
        _refuse_program(r)
    r.idle(*_LAYER_KEYS)  # without effect where --model names the model
    if not (r.given("shape.L") and r.given("shape.D") and r.given("shape.N")):
        return None
    if r.on("shape.mla"):
        if given.model:  # --model has these shapes
            r.idle(*(row.key for row in r.table.rows if row.key.startswith("shape.")))
            return None
        raise r.refuse(
            "shape.mla", "has shapes that are not read from flags", "add --model, as in --model deepseek-v3"
        )
    D, N = r.whole("shape.D"), r.whole("shape.N")
    V = _vocabulary(r)
    if V is None and given.model:
        return None
    if V is None:
        raise LaunchError(
            "the command gives the shape of the model without its vocabulary, which the tokenizer has; add "
            f"{r.example('shape.V').rpartition('8')[0]}128256, or --model, as in --model llama-3-8b"
        )
    bridge = r.table.launcher == BRIDGE
    grouped = bridge or r.on("shape.gqa")
    K = r.whole("shape.K") if grouped and r.given("shape.K") else N
    H = r.maybe("shape.H") or divided(r, "shape.D", D, N, "elements")
    gated = r.on("shape.gated")
    F = r.maybe("shape.F") or 4 * D
    tied = r.on("shape.tied") if bridge else not r.on("shape.untied")
    return Transformer(
        name=f"{r.whole('shape.L')} layers of width {D:,}",
        D=D,
        L=r.whole("shape.L"),
        V=V,
        N=N,
        K=K,
        H=H,
        F=F,
        gated=gated,
        tied=tied,
        experts=_expert_shape(r, F),
        **({} if bridge else _layer_shape(r)),
    )


_LAYER_KEYS = (
    "shape.norm", "shape.qk_norm", "shape.no_bias", "shape.qkv_bias", "shape.position_kind",
    "shape.positions", "shape.rotary",
)  # fmt: skip
_ALL_BIASES = ("q", "k", "v", "o", "mlp")


def _layer_shape(r: Reading) -> dict[str, Any]:
    """The norms, biases and positions, which are those of GPT-3 by default."""
    biases = ("q", "k", "v") if r.on("shape.qkv_bias") else ()
    if not r.on("shape.no_bias"):
        biases = (*_ALL_BIASES, *(("router", "experts") if r.maybe("shape.experts", 0) else ()))
    learned = r.word("shape.position_kind") == "learned_absolute" and not r.on("shape.rotary")
    positions = r.maybe("shape.positions") or 0
    return {
        "norm_bias": r.word("shape.norm") == "LayerNorm",
        "qk_norm": "head" if r.on("shape.qk_norm") else None,
        "biases": biases,
        "positions": positions if learned else 0,
    }


def shape_flags(model: Transformer, plan: Plan, T: int) -> Iterator[tuple[str, object]]:
    """The keys and values of a model of uniform layers; others have no flags for all that they are."""
    if model.latent or model.linear or model.blocks:
        return
    yield "shape.L", model.L
    yield "shape.D", model.D
    yield "shape.F", model.F
    yield "shape.N", model.N
    if model.K != model.N:
        yield "shape.gqa", True
        yield "shape.K", model.K
    yield "shape.H", model.H
    if model.gated:
        yield "shape.gated", True
    if not model.tied:
        yield "shape.untied", True
    yield "shape.V", model.V
    if model.V % (128 * plan.tp):  # Megatron would pad it
        yield "shape.V_multiple", gcd(128, model.V // plan.tp) if model.V % plan.tp == 0 else 1
    yield from _layer_flags(model, T)
    if model.experts:
        yield from _expert_flags(model.experts, model.L)


def _layer_flags(model: Transformer, T: int) -> Iterator[tuple[str, object]]:
    yield "shape.positions", max(T, model.positions)
    yield "shape.position_kind", "learned_absolute" if model.positions else "rope"
    yield "shape.norm", "LayerNorm" if model.norm_bias else "RMSNorm"
    if model.qk_norm == "head":
        yield "shape.qk_norm", True
    if "o" not in model.biases:
        yield "shape.no_bias", True
        if "q" in model.biases:
            yield "shape.qkv_bias", True


def _expert_flags(experts: Experts, L: int) -> Iterator[tuple[str, object]]:
    yield "shape.experts", experts.E
    yield "shape.topk", experts.k
    yield "shape.expert_F", experts.F
    if experts.shared:
        yield "shape.shared_F", experts.shared_width
    if experts.first_dense and experts.every == 1:
        yield "shape.moe_freq", f"'([0]*{experts.first_dense}+[1]*{L - experts.first_dense})'"
    elif experts.every > 1 and not experts.first_dense:
        yield "shape.moe_freq", experts.every


_OTHER_MODELS = {
    "bert": "an encoder", "t5": "an encoder and a decoder", "mamba": "a model with state-space layers",
    "hybrid": "a model with state-space layers", "vlm": "a model with a vision tower",
    "vision": "a vision model", "ict": "a retriever", "retro": "a model that retrieves",
    "biencoder": "a retriever", "realm": "a retriever",
}  # fmt: skip


def _refuse_program(r: Reading) -> None:
    """Refuse a program of Megatron-LM whose model is no decoder of uniform layers."""
    if not r.table.has("program"):
        return
    name = str(r.setting("program").value)
    kind = next((what for word, what in _OTHER_MODELS.items() if f"pretrain_{word}" in name), "")
    if kind:
        raise r.refuse(
            "program",
            f"trains {kind}, whose shape is not read from flags",
            "add --model with a model of the catalog or the path of a config.json",
        )
    if r.given("shape.hybrid"):
        raise r.refuse(
            "shape.hybrid",
            "mixes kinds of layers, which are not read from flags",
            "add --model with a model of the catalog or the path of a config.json",
        )
    if r.given("from_checkpoint") and r.on("from_checkpoint") and not r.given("shape.L"):
        raise r.refuse(
            "from_checkpoint",
            "takes the shape of the model from its checkpoint, which is not read",
            "add --model, as in --model llama-3-8b",
        )


def _expert_shape(r: Reading, F: int) -> Experts | None:
    count = r.maybe("shape.experts")
    if not count:
        return None
    width, shared = r.maybe("shape.expert_F") or F, r.maybe("shape.shared_F")
    frequency = r.word("shape.moe_freq")
    every = int(frequency) if frequency.isdigit() else 1
    first = 0
    if dense := _leading_dense(frequency):
        first = dense
    elif not frequency.isdigit():
        r.unexpressed("shape.moe_freq", "every layer is counted with experts")
    return Experts(
        E=count, k=r.whole("shape.topk"), F=width, shared=1 if shared else 0, shared_F=shared,
        first_dense=first, every=max(every, 1),
    )  # fmt: skip


def _leading_dense(text: str) -> int:
    """3 of '([0]*3+[1]*58)': dense layers at the front, then experts."""
    match = re.fullmatch(r"\(?\s*\[0\]\s*\*\s*(\d{1,4})\s*\+\s*\[1\]\s*\*\s*\d{1,4}\s*\)?", text.strip("'\""))
    return int(match[1]) if match else 0


def _vocabulary(r: Reading) -> int | None:
    """The padded vocabulary: as set, or that of a tokenizer with a known one."""
    V = r.maybe("shape.V")
    if V is None and r.table.has("tokenizer"):
        known = meanings(LM, "tokenizer")
        name = r.word("tokenizer") or ("GPT2BPETokenizer" if r.given("vocab_file") else "")
        if name not in known:
            return None
        V = int(known[name])
        r.assume(f"The vocabulary is that of {name}, {V:,} tokens.")
    if V is None:
        return None
    multiple = r.whole("shape.V_multiple") * r.whole("tp") if r.table.has("shape.V_multiple") else 1
    return -(-V // multiple) * multiple
