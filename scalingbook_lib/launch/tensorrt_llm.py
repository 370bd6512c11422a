"""Reads `trtllm-serve` and its YAML file, which overrides the command line.

Expert parallelism is inside TP: TP = TP of the experts x EP. With attention DP, every GPU attends to its own
sequences. The memory fraction is a share of what weights and buffers leave.
"""

from collections.abc import Iterator

from scalingbook_lib.inference import Layout, LayoutError
from scalingbook_lib.launch.memory_fraction import LEFT
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

NAME = "tensorrt_llm"


def read(r: Reading, given: Given) -> ServingLaunch:
    """The launch of these settings."""
    what = served(r, given)
    tp, pp, cp = r.whole("tp"), r.whole("pp"), r.whole("cp")
    ep = r.maybe("ep") or 1
    machine = machine_of(r, given, tp * pp * cp, f"TP {tp} x PP {pp} x CP {cp}")
    if not r.on("attention_dp"):
        refuse_uneven_heads(r, what.model, tp)
    what = computable(r, what, machine.chip)
    moe = what.model.experts is not None
    if moe and tp % ep:
        raise r.refuse(
            "ep", f"does not divide --tp_size {tp}", "write a divisor: experts are spread inside TP"
        )
    own = r.on("attention_dp")
    try:
        layout = Layout(tp=tp, pp=pp, cp=cp, ep=ep if moe else 1, attention_dp=tp if own else 1, **what.types)
    except LayoutError as error:
        raise LaunchError(str(error)) from error
    fraction = r.number("memory_fraction")
    if not 0 < fraction <= 1:
        raise r.refuse("memory_fraction", "is not a share", "write one from 0 to 1, as in 0.9")
    most, tokens = r.whole("max_sequences"), r.whole("chunk")
    if own:
        r.assume(
            f"With attention DP, each of the {tp} GPUs serves up to {most:,} sequences, and processes up to "
            f"{tokens:,} tokens in a step."
        )
    if r.on("prefix") and not r.given("prefix"):
        r.assume("Block reuse is on by default; no request is assumed to hit it (see --prefix-cache-hit).")
    r.idle("chunked")
    r.unexpressed("pool_tokens", "the pool is computed from the fraction")
    drafts, draft = drafts_of(r, given, what.model)
    return ServingLaunch(
        launcher=NAME,
        model=what.model,
        machine=machine,
        layout=layout,
        rule=LEFT,
        fraction=fraction,
        chunk=tokens * (tp if own else 1),
        policy="chunked",  # in-flight batching: prompts and decode steps share an iteration
        max_sequences=most * (tp if own else 1),
        max_length=r.maybe("max_length"),
        drafts=drafts,
        draft=draft,
        account=r.account(),
    )


def flags_of(one: ServingLaunch) -> Iterator[tuple[str, object]]:
    """The keys and values of a layout and its caps; with attention DP, the caps are those of a GPU."""
    layout = one.layout
    own = layout.attention_dp
    yield "tp", layout.tp
    yield "pp", layout.pp
    yield "cp", layout.cp
    if layout.ep > 1:
        yield "ep", layout.ep
    if own > 1:
        yield "attention_dp", True
    yield "memory_fraction", f"{one.fraction:g}"
    if one.max_sequences:
        yield "max_sequences", max(one.max_sequences // own, 1)
    if one.max_length:
        yield "max_length", one.max_length
    yield "chunk", max(one.chunk // own, 1)
