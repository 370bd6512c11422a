"""Predicted tokens per second of a published inference run.

A server takes requests of equal length as slots become free. `batch` of them form a wave: their prompts are
spread over as many steps as the token budget requires, and each stays for G steps. Chapter: Inference.
"""

from math import ceil, sqrt
from typing import NamedTuple

from scalingbook_lib import collectives
from scalingbook_lib.evidence.inference.planned import ServingSetup, planned
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.inference import Layout, ServingCase, ServingEfficiency, case
from scalingbook_lib.machines import Slice


class Intake(NamedTuple):
    """The prompts that start per step, and the steps until a whole wave has started."""

    prompts: float
    steps: float


def tokens_per_s(run: InferenceRun, efficiency: ServingEfficiency) -> float:
    """Tokens per second as `InferenceRun.tokens_per_s` counts: output tokens, or those of prompts."""
    p = planned(run)
    costs = case(run.model, p.machine, p.layout, efficiency)
    if run.kind == "serving":
        return _serving_tokens_per_s(p, costs)
    B = run.B or 1
    if run.kind == "decode":
        return B / _decode_s(costs, B, run.S or 0)
    prefill_s = (
        _gathered_prefill_s(p, efficiency) if p.weights_gathered else costs.step_s(0, 0, B * run.P, 0, B)
    )
    if run.kind == "prefill":
        return B * run.P / prefill_s
    return B * run.G / (prefill_s + run.G * _decode_s(costs, B, run.P + run.G / 2))


def _decode_s(costs: ServingCase, b: float, context: float) -> float:
    """The seconds of a decode step of b sequences with `context` cached tokens each, without prefill."""
    return costs.step_s(b, b * context, 0, 0, 1)


def _serving_tokens_per_s(p: ServingSetup, costs: ServingCase) -> float:
    """Output tokens per second of all waves, the last of which is smaller; or of a steady state."""
    run = p.run
    if run.requests is None:
        return p.batch * run.G / _wave_s(p, costs, p.batch)
    waves, rest = divmod(run.requests, p.batch)
    total_s = waves * _wave_s(p, costs, p.batch) + (_wave_s(p, costs, rest) if rest else 0.0)
    idle_s = _intake(p, p.batch).steps * _decode_s(costs, 1, run.P)  # warm-up and drain
    return run.requests * run.G / (total_s + idle_s)


def _intake(p: ServingSetup, batch: int) -> Intake:
    """How the prompts of a wave start.

    Attention-DP groups all wait for one that prefills. That costs nothing if all prefill in the same steps,
    and most if each does so in different steps: the geometric mean of both is used.
    """
    groups, run = p.layout.attention_dp, p.run
    room = max(p.step_tokens - batch, 1.0)
    ways = groups * p.layout.pp
    many = max(room // (ways * run.P) * ways, ways) if p.whole_prompts else room / run.P
    steps = batch / min(many, float(batch))
    if groups > 1 and steps < run.G:
        apart = (1 - (1 - steps / run.G) ** groups) * run.G
        steps = sqrt(steps * apart)
    return Intake(batch / steps, steps)


def _wave_s(p: ServingSetup, costs: ServingCase, batch: int) -> float:
    """The seconds of a wave: steps with and without prefill; fewer sequences decode if all steps prefill."""
    run = p.run
    many, steps = _intake(p, batch)
    context, chunk = run.P + run.G / 2, many * run.P
    at_once = max(round(many / p.layout.pp), 1)
    before = max(run.P - chunk, 0.0) / 2
    together = batch if steps <= run.G else many * run.G
    mixed_s = costs.step_s(together, together * context, chunk, before, at_once)
    if steps > run.G:
        return steps * mixed_s
    return steps * mixed_s + (run.G - steps) * _decode_s(costs, batch, context)


def _gathered_prefill_s(p: ServingSetup, efficiency: ServingEfficiency) -> float:
    """The seconds of a prefill in which every chip gathers all weights once for its own prompts."""
    run = p.run
    unsharded = Layout(weights=run.weights, kv=run.kv, compute=run.compute)
    B = ceil((run.B or 1) / run.chips)
    own = case(run.model, p.machine, unsharded, efficiency)
    assert isinstance(p.machine, Slice)
    nbytes = sum(w.params for w in run.model.weights() if w.matmuls) * run.weights.bytes
    gather_s = collectives.all_gather(nbytes, *p.machine.axes).total_s / efficiency.torus
    return own.step_s(0, 0, B * run.P, 0, B) + gather_s
