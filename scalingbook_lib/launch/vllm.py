"""Reads `vllm serve`: its options, and the YAML file of --config.

A data-parallel rank is an engine of its own, with its own caps and KV cache. The experts of a mixture are
spread over all TP x DP ranks, whole ones with --enable-expert-parallel. Context parallelism of decoding
reuses the GPUs of TP. The memory fraction is a share of the whole card.
"""

from collections.abc import Iterator
from typing import Any

from scalingbook_lib.inference import Layout, LayoutError, concurrency, largest_batch
from scalingbook_lib.inference.vllm_defaults import default_batched_tokens, default_max_sequences
from scalingbook_lib.launch.memory_fraction import CARD
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.serving import (
    DRAFT_HEAD,
    HEAD,
    ServingLaunch,
    computable,
    drafts_of,
    machine_of,
    refuse_uneven_heads,
    served,
)
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import Given
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.quantization import serving_types
from scalingbook_lib.units import BF16, FP8
from scalingbook_lib.words import pluralize

NAME = "vllm"


def read(r: Reading, given: Given) -> ServingLaunch:
    """The launch of these settings."""
    _refuse_pooling(r)
    what = served(r, given)
    tp, pp, dp, pcp, dcp = (r.whole(key) for key in ("tp", "pp", "dp", "pcp", "dcp"))
    moe = what.model.experts is not None
    spread = r.on("ep")
    machine = machine_of(r, given, tp * pp * dp * pcp, f"TP {tp} x PP {pp} x DP {dp}")
    refuse_uneven_heads(r, what.model, tp)
    what = computable(r, what, machine.chip)
    wide, inside = (tp * dp, dp) if moe else (tp, 1)
    try:
        layout = Layout(
            tp=wide,
            pp=pp,
            cp=pcp,
            ep=wide if moe and spread else 1,
            redundant_experts=r.whole("redundant", 0) if moe and spread else 0,
            attention_dp=inside,
            kv_sequence=dcp,
            **what.types,
        )
    except LayoutError as error:
        raise LaunchError(str(error)) from error
    if r.given("dp_local"):
        r.idle("dp_local")
    if pcp == 1:
        _refuse_decode_context(r, what.model, tp, dcp)
    chip = machine.chip
    chunk = r.whole("chunk") if r.given("chunk") else _default(r, "chunk", default_batched_tokens(chip))
    each = (
        r.whole("max_sequences")
        if r.given("max_sequences")
        else _default(r, "max_sequences", default_max_sequences(chip))
    )
    if inside > 1:
        r.assume(
            f"Each of the {dp} data-parallel ranks serves up to {each:,} sequences, together {each * dp:,}, "
            f"and processes up to {chunk:,} tokens in a step."
        )
    r.unexpressed("pool_bytes", "the pool is computed from --gpu-memory-utilization")
    if r.on("prefix") and not r.given("prefix"):
        r.assume("Prefix caching is on by default; no request is assumed to hit it (see --prefix-cache-hit).")
    drafts, draft = drafts_of(r, given, what.model)
    found = ServingLaunch(
        launcher=NAME,
        model=what.model,
        machine=machine,
        layout=layout,
        rule=CARD,
        fraction=_share(r),
        chunk=chunk * inside,
        policy="chunked" if r.on("chunked") else "interleaved",
        max_sequences=each * inside,
        max_length=r.maybe("max_length", -1) if r.word("max_length") not in ("-1", "auto") else None,
        drafts=drafts,
        draft=draft,
        account=r.account(),
    )
    _refuse_long(r, found)
    return found


def _refuse_long(r: Reading, one: ServingLaunch) -> None:
    """Refuse a maximum length that the KV cache does not hold once: vLLM does not start with it."""
    if one.max_length is None:
        return
    how: dict[str, Any] = {"reserve": one.reserve, "drafting": one.draft.beside}
    on = one.model, one.layout, one.machine
    held = concurrency(*on, S=one.max_length, **how) if one.reserve < 1 else 0.0
    fits = largest_batch(*on, S=1, **how)
    if fits and held < 1:  # what does not fit at all is told by the answer
        raise r.refuse(
            "max_length",
            f"is {1 / held:,.1f} times what the KV cache holds, and vLLM does not start"
            if held
            else "has no room",
            f"write at most {int(held * one.max_length):,}, or more GPUs",
        )


_POOLING = ("pooling", "embed", "embedding", "classify", "reward", "score", "rerank", "token_embed")


def _refuse_pooling(r: Reading) -> None:
    """Refuse a server that generates no tokens: its requests are prompts alone."""
    for key in ("runner", "task"):
        if r.word(key).lower() in _POOLING:
            raise r.refuse(key, "generates no tokens, and only generation is counted", "leave it out")
        r.asked.pop(key, None)  # that it generates is no line of the account


def kv_heads(model: Transformer) -> int:
    """The KV heads that tensor parallelism splits; latent attention has one entry for all heads."""
    return 1 if model.latent else model.K


def decode_context_fits(model: Transformer, tp: int, dcp: int) -> bool:
    """Whether there are enough replicas of the KV heads for a degree of decode context parallelism.

    Source: ModelConfig.verify_with_parallel_config of vLLM.
    """
    heads = kv_heads(model)
    uneven = tp % dcp or (not model.latent and (model.N // heads) % dcp)
    return dcp == 1 or (not uneven and dcp <= tp // heads)


def _refuse_decode_context(r: Reading, model: Transformer, tp: int, dcp: int) -> None:
    """Refuse a degree of decode context parallelism that vLLM refuses."""
    if not decode_context_fits(model, tp, dcp):
        heads = kv_heads(model)
        raise r.refuse(
            "dcp",
            f"splits the replicas of KV heads, and --tensor-parallel-size {tp} has {max(tp // heads, 1)} of "
            f"the {pluralize(heads, 'KV head')}",
            "write a degree of at most that number, or a larger tensor-parallel degree",
        )


def _default(r: Reading, key: str, value: int) -> int:
    """A default that depends on the chip."""
    flag = r.setting(key).name
    r.assume(f"{flag} is {value:,}, the default on this chip ({r.table.of(key).version}).")
    return value


def _share(r: Reading) -> float:
    share = r.number("memory_fraction")
    if not 0 < share <= 1:
        raise r.refuse("memory_fraction", "is not a share of the card", "write one from 0 to 1, as in 0.9")
    return share


SEARCHED: dict[str, Any] = {"rows": 1, "kv_batch": 1, "cp": 1, "activations": BF16}
"""The fields of layouts that a command can express."""


def flags_of(one: ServingLaunch) -> Iterator[tuple[str, object]]:
    """The keys and values of a layout and its caps; reading back shows what cannot be said."""
    layout, moe = one.layout, one.model.experts is not None
    inside = layout.attention_dp if moe else 1
    yield "tp", layout.tp // inside
    if layout.pp > 1:
        yield "pp", layout.pp
    ranks = inside if moe else one.replicas
    if ranks > 1:
        yield "dp", ranks
    if layout.ep > 1:
        yield "ep", True
    if layout.redundant_experts:
        yield "redundant", layout.redundant_experts
    if layout.kv_sequence > 1:
        yield "dcp", layout.kv_sequence
    if layout.cp > 1:
        yield "pcp", layout.cp
    yield from type_flags(one)
    yield "memory_fraction", f"{one.fraction:g}"
    if one.max_sequences:
        yield "max_sequences", max(one.max_sequences // inside, 1)
    if one.max_length:
        yield "max_length", one.max_length
    yield "chunk", max(one.chunk // inside, 1)
    if one.policy == "interleaved":
        yield "chunked", False
    if one.drafts:
        yield "drafts", one.drafts
        yield from draft_flags(one, "draft_model", "mtp", "eagle3")


def draft_flags(one: ServingLaunch, of_model: str, mtp: str, eagle: str) -> Iterator[tuple[str, object]]:
    """The method that drafts, by its three names in a server, and the checkpoint that it loads."""
    if one.draft.model:
        yield "spec", of_model
        yield "draft_model", one.draft.model.name.replace(" ", "-")
    elif one.draft == HEAD and one.model.next_tokens:  # in the checkpoint of the model
        yield "spec", mtp
    elif one.draft == HEAD:
        yield "spec", eagle
        yield "draft_model", DRAFT_HEAD


def type_flags(one: ServingLaunch) -> Iterator[tuple[str, object]]:
    """--quantization for fp8 weights, and the type of the KV cache."""
    if one.layout.weights is FP8 and "weights" not in serving_types(one.model):
        yield "quantization", "fp8"
    if one.layout.kv is FP8:
        yield "kv", "fp8_e4m3" if one.launcher == "sglang" else "fp8"
