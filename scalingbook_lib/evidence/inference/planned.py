"""The layout, machine and batch of a published inference run, by the same rules for all runs.

What a source does not say is filled in by what its software does, never by what fits the result. Chapter:
Inference.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import inf

from scalingbook_lib.calibrated.default_machine import default_machine
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.inference import Layout, largest_batch
from scalingbook_lib.inference.vllm_defaults import default_batched_tokens
from scalingbook_lib.machines import Machine
from scalingbook_lib.units import BF16, FP16

MAX_ENGINE_SEQUENCES = 4096
"""TensorRT-LLM's limit per attention-DP group (tensorrt_llm/bench/build/tuning.py)."""
STEP_TOKENS = 2048, 32768
"""Its bounds for the tokens of a step, from the same file."""
MAX_STEP_TOKENS = 8192
"""The default token limit of a step: max_num_tokens of TensorRT-LLM and of vLLM's throughput runs."""
VLLM = "vLLM", "vLLM on ROCm"
"""The software whose steps have vLLM's default limit of tokens."""
RESERVE = 0.08
"""The share of HBM for the runtime: TensorRT-LLM gives its cache 0.90 to 0.95 of what is left."""


@dataclass(frozen=True, slots=True)
class ServingSetup:
    """A published run in the library's terms.

    At most `batch` sequences at once and `step_tokens` new tokens in a step. `whole_prompts`: no chunked
    prefill. `weights_gathered`: weights move to the tokens (weight-gathered, Pope et al.), so every chip has
    its own sequences.
    """

    run: InferenceRun
    machine: Machine
    layout: Layout
    batch: int
    step_tokens: float
    whole_prompts: bool
    weights_gathered: bool = False


@cache
def planned(run: InferenceRun) -> ServingSetup:
    """The machine, the layout and the limits of the engine."""
    on, how = default_machine(run.chip, run.chips), layout(run)
    batch = _batch(run, on, how)
    weights_gathered = run.family == "palm" and (run.B or 0) * run.P > 1e6
    return ServingSetup(
        run, on, how, batch, _step_tokens(run, how, batch), run.family == "trtllm", weights_gathered
    )


def layout(run: InferenceRun) -> Layout:
    """The layout as published.

    TensorRT-LLM's published runs use attention DP for models with experts. Other engines shard every matrix
    over all chips by default. This includes latent attention, whose single cache vector serves every head, so
    every chip holds the whole cache. In vLLM (--enable-expert-parallel) and SGLang (--enable-dp-attention),
    the other layout is an option, which a row states by ep. A row with ep=1 uses neither. Where ep does not
    divide the experts, these engines add as few redundant experts as make it (EP 72 with 288 for 256).
    """
    outer = None if run.head == run.weights else run.head
    found = Layout(
        tp=run.tp,
        pp=run.pp,
        weights=run.weights,
        kv=run.kv,
        compute=run.compute,
        outer=outer,
        activations=FP16 if run.kv == FP16 else BF16,
    )
    grouped = run.software[0] == "TensorRT-LLM"
    if (experts := run.model.experts) and run.tp > 1 and run.ep != 1 and (grouped or run.ep):
        return replace(found, attention_dp=run.tp, ep=run.tp, redundant_experts=-experts.E % run.tp)
    if run.family == "palm":  # 2D weight sharding of 4 × 16; the cache is sharded over sequences
        return replace(found, rows=4, kv_batch=min(run.tp, run.B or 1))
    return found


def _batch(run: InferenceRun, on: Machine, how: Layout) -> int:
    """The sequences at once: as many as fit with all their tokens, are allowed, or exist.

    TensorRT-LLM keeps the whole context of layers with sliding windows.
    """
    allowed = min(run.B or inf, run.most_sequences or inf, run.requests or inf)
    if run.kind != "serving":
        return int(allowed)
    if run.family == "trtllm":
        allowed = min(allowed, MAX_ENGINE_SEQUENCES * how.attention_dp)
    model = replace(run.model, windows=(None,)) if run.family == "trtllm" else run.model
    step_tokens = max(run.P, MAX_STEP_TOKENS)  # the activations of a step need memory too
    room = largest_batch(model, how, on, S=run.P + run.G, reserve=RESERVE, step_tokens=step_tokens)
    return max(int(min(allowed, room)), 1)


def _step_tokens(run: InferenceRun, how: Layout, batch: int) -> float:
    """The token budget of a step as the engine was configured.

    vLLM's default follows from the chip. TensorRT-LLM derives it from prompt over output length, and prefills
    whole prompts; software whose rule is not known is treated the same.
    """
    if run.most_tokens or run.kind != "serving":
        return run.most_tokens or inf
    if run.software[0] in VLLM:
        return default_batched_tokens(run.chip) * how.attention_dp * how.pp
    least, most = STEP_TOKENS
    own = batch / how.attention_dp / how.pp  # of one attention-DP group, in one microbatch
    tokens = min(max(own * (1 + run.P / run.G), least), most)
    return max(tokens, run.P + own) * how.attention_dp * how.pp
