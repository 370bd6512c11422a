"""Reads `python -m sglang.launch_server`, `sglang serve`, and the YAML file of --config.

--tp is the number of all GPUs of an instance. With --enable-dp-attention, the data-parallel groups are cut
out of it; without, --dp multiplies the GPUs. Experts are spread inside TP. The memory fraction covers weights
and the KV cache; activations come out of the rest.
"""

from collections.abc import Iterator
from typing import Any

from scalingbook_lib.inference import Layout, LayoutError
from scalingbook_lib.launch.memory_fraction import STATIC
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.serving import (
    ServingLaunch,
    computable,
    drafts_of,
    machine_of,
    refuse_uneven_heads,
    served,
)
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import Given
from scalingbook_lib.launch.vllm import draft_flags, type_flags
from scalingbook_lib.machines import Chip
from scalingbook_lib.units import BF16, GiB

NAME = "sglang"
_WIDE = ("deepep", "mooncake", "mori", "nixl", "flashinfer")
"""Backends of the all-to-all that need expert parallelism over the whole TP group; they set --ep-size."""
DEFAULT_FRACTION = 0.9
"""What the documentation names; the engine derives a smaller one from its buffers."""


def default_chunk(chip: Chip) -> int:
    """The default chunk of a prompt by the memory: 8,192 from 60 GiB, 4,096 from 35 GiB, else 2,048."""
    return 8192 if chip.hbm_bytes >= 60 * GiB else 4096 if chip.hbm_bytes >= 35 * GiB else 2048


def read(r: Reading, given: Given) -> ServingLaunch:
    """The launch of these settings."""
    if r.on("embedding"):
        raise r.refuse("embedding", "generates no tokens, and only generation is counted", "leave it out")
    what = served(r, given)
    tp, pp, dp, cp, ep = (r.whole(key) for key in ("tp", "pp", "dp", "cp", "ep"))
    inside = r.on("dp_attention")
    if inside and tp % dp:
        raise r.refuse(
            "dp", f"does not divide --tp-size {tp}", "write a divisor: DP attention is cut out of TP"
        )
    copies = 1 if inside else dp
    machine = machine_of(r, given, tp * pp * copies, f"TP {tp} x PP {pp}" + f" x DP {dp}" * (not inside))
    refuse_uneven_heads(r, what.model, tp // dp if inside else tp)
    what = computable(r, what, machine.chip)
    moe = what.model.experts is not None
    if moe and r.word("a2a").lower() in _WIDE:
        if ep != tp:
            r.assume(f"--moe-a2a-backend {r.word('a2a')} distributes the experts over all {tp} GPUs of TP.")
        ep = tp
    if cp > 1:
        r.unexpressed("cp", "attention is counted as split by heads")
    try:
        layout = Layout(
            tp=tp,
            pp=pp,
            ep=ep if moe else 1,
            redundant_experts=r.whole("redundant", 0) if moe and ep > 1 else 0,
            attention_dp=dp if inside else 1,
            **what.types,
        )
    except LayoutError as error:
        raise LaunchError(str(error)) from error
    chunk = r.whole("chunk", -1) if r.given("chunk") else default_chunk(machine.chip)
    if not r.given("chunk"):
        r.assume(f"--chunked-prefill-size is {chunk:,}, the default for the memory of this chip.")
    whole = chunk == -1
    fraction = r.number("memory_fraction") if r.given("memory_fraction") else DEFAULT_FRACTION
    if not 0 < fraction <= 1:
        raise r.refuse("memory_fraction", "is not a share of the card", "write one from 0 to 1, as in 0.9")
    if not r.given("memory_fraction"):
        r.assume(f"--mem-fraction-static is read as {DEFAULT_FRACTION}; SGLang derives it from its buffers.")
    if not r.on("no_prefix"):
        r.assume(
            "The radix cache is on by default; no request is assumed to hit it (see --prefix-cache-hit)."
        )
    r.idle("draft_steps", "nodes")
    r.unexpressed("pool_tokens", "the pool is computed from --mem-fraction-static")
    drafts, draft = drafts_of(r, given, what.model)
    if drafts > 1:  # the flag counts the tokens that a step verifies, with the one that is known
        drafts -= 1
    return ServingLaunch(
        launcher=NAME,
        model=what.model,
        machine=machine,
        layout=layout,
        rule=STATIC,
        fraction=fraction,
        chunk=16384 if whole else chunk,
        policy="chunked" if r.on("mixed") and not whole else "interleaved",
        max_sequences=r.maybe("max_sequences"),
        max_length=r.maybe("max_length"),
        drafts=drafts,
        draft=draft,
        account=r.account(),
    )


SEARCHED: dict[str, Any] = {"rows": 1, "kv_batch": 1, "kv_sequence": 1, "cp": 1, "activations": BF16}
"""The fields of layouts that a command can express."""


def flags_of(one: ServingLaunch) -> Iterator[tuple[str, object]]:
    """The keys and values of a layout and its caps; reading back shows what cannot be said."""
    layout = one.layout
    if one.drafts and layout.pp > 1:
        raise LaunchError("SGLang does not start speculative decoding with pipeline stages; write --pp 1")
    yield "tp", layout.tp
    if layout.pp > 1:
        yield "pp", layout.pp
    if layout.attention_dp > 1:
        yield "dp", layout.attention_dp
        yield "dp_attention", True
    elif one.replicas > 1:
        yield "dp", one.replicas
    if layout.ep > 1:
        yield "ep", layout.ep
    if layout.redundant_experts:
        yield "redundant", layout.redundant_experts
    yield from type_flags(one)
    yield "memory_fraction", f"{one.fraction:g}"
    if one.max_sequences:
        yield "max_sequences", one.max_sequences
    if one.max_length:
        yield "max_length", one.max_length
    yield "chunk", one.chunk
    if one.policy == "chunked" and not one.drafts:  # with drafts, SGLang turns it off
        yield "mixed", True
    if one.drafts:
        yield "draft_steps", one.drafts
        yield "--speculative-eagle-topk", 1
        yield "drafts", one.drafts + 1  # with the token that is known
        yield from draft_flags(one, "STANDALONE", "EAGLE", "EAGLE3")
