"""Which layout, on which machine, in which batch, is a published run? The same rules for all of them.

What a source does not say is filled in by what its software does, never by what fits a figure. Chapter:
Inference.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import inf

from scalingbook_lib.evidence.joined import machine
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.inference import Layout, largest_batch
from scalingbook_lib.machines import Machine
from scalingbook_lib.units import BF16, FP16

ENGINE_SEQUENCES = 4096
"""TensorRT-LLM has no more at once, in each group (tensorrt_llm/bench/build/tuning.py)."""
STEP_TOKENS = 2048, 32768
"""There too: a step takes the tokens that keep prompts coming as sequences end, within these."""
MOST_TOKENS = 8192
"""Of a step, unless it is told otherwise: max_num_tokens of TensorRT-LLM and of vLLM's throughput runs."""
RESERVE = 0.08
"""Of the HBM, for the runtime: TensorRT-LLM gives its cache 0.90 to 0.95 of what weights and steps leave."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A published run as the library asks for it.

    `batch` sequences at once, at most; `step_tokens` new tokens in a step, at most; `whole`: prompts are not
    cut into chunks; `gathered`: weights travel to the tokens (Pope et al., "WG"), so that every chip works
    on sequences of its own.
    """

    run: InferenceRun
    machine: Machine
    layout: Layout
    batch: int
    step_tokens: float
    whole: bool
    gathered: bool = False


@cache
def planned(run: InferenceRun) -> Planned:
    """The machine, the layout, and what the engine allowed."""
    on, how = machine(run.chip, run.chips), layout(run)
    batch = _batch(run, on, how)
    gathered = run.family == "palm" and (run.B or 0) * run.P > 1e6
    return Planned(run, on, how, batch, _step_tokens(run, how, batch), run.family == "trtllm", gathered)


def layout(run: InferenceRun) -> Layout:
    """As published. TensorRT-LLM serves models with experts by groups that own sequences, as it says.

    So do all who serve latent attention: one vector of the cache is every head's, and cannot be split.
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
    grouped = run.model.latent or run.software[0] == "TensorRT-LLM"
    if grouped and run.experts and run.tp > 1:
        return replace(found, attention_dp=run.tp, ep=run.tp)
    if run.family == "palm":  # two dimensions, 4 and 16; the cache by sequences
        return replace(found, rows=4, kv_batch=min(run.tp, run.B or 1))
    return found


def _batch(run: InferenceRun, on: Machine, how: Layout) -> int:
    """As many as fit with all their tokens, as many as are allowed, as many as there are.

    TensorRT-LLM keeps the whole context of layers with a window.
    """
    allowed = min(run.B or inf, run.most_sequences or inf, run.requests or inf)
    if run.kind != "serving":
        return int(allowed)
    if run.family == "trtllm":
        allowed = min(allowed, ENGINE_SEQUENCES * how.attention_dp)
    model = replace(run.model, windows=(None,)) if run.family == "trtllm" else run.model
    step_tokens = max(run.P, MOST_TOKENS)  # room for what passes a step at once, too
    room = largest_batch(model, how, on, S=run.P + run.G, reserve=RESERVE, step_tokens=step_tokens)
    return max(int(min(allowed, room)), 1)


def _step_tokens(run: InferenceRun, how: Layout, batch: int) -> float:
    """As the engine was told. TensorRT-LLM goes by prompt over output, and takes whole prompts."""
    if run.most_tokens or run.kind != "serving":
        return run.most_tokens or inf
    least, most = STEP_TOKENS
    own = batch / how.attention_dp / how.pp  # of one group, in one microbatch
    tokens = min(max(own * (1 + run.P / run.G), least), most)
    return max(tokens, run.P + own) * how.attention_dp * how.pp
