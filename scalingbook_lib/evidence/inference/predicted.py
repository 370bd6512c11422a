"""How many tokens a second does the library say that a published run makes?

A server takes requests of equal lengths as room becomes free: `batch` of them are one wave, their prompts
spread over as many steps as the tokens of a step allow, and each stays for G steps. Chapter: Inference.
"""

from math import ceil, sqrt
from typing import NamedTuple

from scalingbook_lib import collectives
from scalingbook_lib.evidence.inference.planned import Planned, planned
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.inference import Case, Efficiency, Layout, case
from scalingbook_lib.machines import Slice


class Intake(NamedTuple):
    """How many prompts a step takes in, and in how many steps all of a wave have come."""

    prompts: float
    steps: float


def tokens_per_s(run: InferenceRun, efficiency: Efficiency) -> float:
    """As `InferenceRun.tokens_per_s` counts: output tokens, or prompt tokens where nothing is generated."""
    p = planned(run)
    quick = case(run.model, p.machine, p.layout, efficiency)
    if run.kind == "serving":
        return _served(p, quick)
    B = run.B or 1
    if run.kind == "decode":
        return B / _decode_s(quick, B, run.S or 0)
    prefill_s = _gathered_s(p, efficiency) if p.gathered else quick.step_s(0, 0, B * run.P, 0, B)
    if run.kind == "prefill":
        return B * run.P / prefill_s
    return B * run.G / (prefill_s + run.G * _decode_s(quick, B, run.P + run.G / 2))


def _decode_s(quick: Case, b: float, context: float) -> float:
    """A step of b sequences, each with so many tokens in its cache, that takes no prompts in."""
    return quick.step_s(b, b * context, 0, 0, 1)


def _served(p: Planned, quick: Case) -> float:
    """All requests over the time of all waves, the last of which is smaller; or of a steady wave."""
    run = p.run
    if run.requests is None:
        return p.batch * run.G / _wave_s(p, quick, p.batch)
    waves, rest = divmod(run.requests, p.batch)
    total_s = waves * _wave_s(p, quick, p.batch) + (_wave_s(p, quick, rest) if rest else 0.0)
    idle_s = _intake(p, p.batch).steps * _decode_s(quick, 1, run.P)  # while the first come and the last go
    return run.requests * run.G / (total_s + idle_s)


def _intake(p: Planned, batch: int) -> Intake:
    """How the prompts of a wave come in.

    Groups that own their sequences all wait for the one that has prompts. If all take them in the same steps
    that is no loss, if each by itself the most: the geometric mean of both.
    """
    groups, run = p.layout.attention_dp, p.run
    room = max(p.step_tokens - batch, 1.0)
    ways = groups * p.layout.pp
    many = max(room // (ways * run.P) * ways, ways) if p.whole else room / run.P
    steps = batch / min(many, float(batch))
    if groups > 1 and steps < run.G:
        apart = (1 - (1 - steps / run.G) ** groups) * run.G
        steps = sqrt(steps * apart)
    return Intake(batch / steps, steps)


def _wave_s(p: Planned, quick: Case, batch: int) -> float:
    """Steps with prompts, and steps without; where prompts fill all steps, fewer sequences are at work."""
    run = p.run
    many, steps = _intake(p, batch)
    context, chunk = run.P + run.G / 2, many * run.P
    at_once = max(round(many / p.layout.pp), 1)
    before = max(run.P - chunk, 0.0) / 2
    together = batch if steps <= run.G else many * run.G
    mixed_s = quick.step_s(together, together * context, chunk, before, at_once)
    if steps > run.G:
        return steps * mixed_s
    return steps * mixed_s + (run.G - steps) * _decode_s(quick, batch, context)


def _gathered_s(p: Planned, efficiency: Efficiency) -> float:
    """Every chip prefills its own prompts with all weights, which it gathers once, over all axes."""
    run = p.run
    alone = Layout(weights=run.weights, kv=run.kv, compute=run.compute)
    B = ceil((run.B or 1) / run.chips)
    own = case(run.model, p.machine, alone, efficiency)
    assert isinstance(p.machine, Slice)
    nbytes = sum(w.params for w in run.model.weights() if w.matmuls) * run.weights.bytes
    gather_s = collectives.all_gather(nbytes, *p.machine.axes).total_s / efficiency.torus
    return own.step_s(0, 0, B * run.P, 0, B) + gather_s
