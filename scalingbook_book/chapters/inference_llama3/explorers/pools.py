"""Explorer of the number of prefill servers per decode server: balanced by the formula, then simulated."""

from functools import lru_cache
from typing import NamedTuple

from scalingbook_book.reader.explorers.parts import (
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    machine,
    pluralize,
    refused,
    sig3,
    spread,
)
from scalingbook_lib import inference, models, serving
from scalingbook_lib.units import count, percent, si

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B")
MACHINES = ("TPU v5e 4x4", "TPU v5e 8x8", "TPU v5p 2x2x2", "TPU v6e 2x4", "H100 × 8", "B200 × 8")
REQUESTS, SEED, MOST = 240, 11, 8


class Balance(NamedTuple):
    """The batch of one decode server, the times of a prefill and a step, and the balanced pools."""

    quick: inference.ServingCase
    B: int
    prefill_s: float
    step_s: float
    move_s: float  # seconds a token
    pools: inference.Pools


@lru_cache(maxsize=64)
def balance(model: str, where: str, P: int, G: int, B: int) -> Balance | None:
    """int8 weights and cache; at most B sequences to a decode server; None where nothing fits."""
    m, on, o = models.find(model), machine(where), spread(model, where, "int8", "int8")
    B = min(B, inference.largest_batch(m, o, on, S=P + G, reserve=0.1))
    if B < 1:
        return None
    read = inference.prefill(m, on, o, P=P).total_s
    step = inference.decode(m, on, o, batch=B, S=P + G / 2).total_s
    moved = inference.transfer(m, P=P, chip=on.chip, chips=on.chips, kv=o.kv).seconds / P
    return Balance(inference.case(m, on, o), B, read, step, moved, inference.pools(read, step, batch=B, G=G))


@lru_cache(maxsize=16)  # a run keeps much
def played(found: Balance, P: int, G: int, prefill: int, decode: int) -> serving.ServingRun:
    """More requests than both pools together can serve, so that the slower pool sets the pace."""
    rate = 1.2 * found.pools.rate_per_s(prefill, decode)
    asked = serving.poisson(rate, REQUESTS, prompt=P, output=serving.geometric(G), seed=SEED)
    return serving.simulate(asked, found.quick, serving.Disaggregated(prefill, decode, found.B, found.move_s))


def _pools(*, model: str, where: str, P: int, G: int, B: int, prefill: int, decode: int) -> View:
    found = balance(model, where, P, G, B)
    if found is None:
        return refused(model, where)
    run = played(found, P, G, prefill, decode)
    idle = idle_of(found.pools, prefill, decode)
    return View(
        _verdict(found, prefill, decode, idle),
        (_rates(found, run, G, prefill, decode), _queue(run)),
        (
            Readout("prefill of one prompt", found.prefill_s, "s"),
            Readout(
                "decode step",
                found.step_s,
                "s",
                f"{si(found.step_s, 's')} with {pluralize(found.B, 'sequence')}",
            ),
            Readout("KV transfer of one prompt", found.move_s * P, "s"),
            Readout("prefill servers per decode server", found.pools.ratio, "", sig3(found.pools.ratio)),
            Readout.percent("prefill servers idle", idle[0]),
            Readout.percent("decode servers idle", idle[1]),
        ),
        columns=2,
    )


def idle_of(pools: inference.Pools, prefill: int, decode: int) -> tuple[float, float]:
    """Idle shares of prefill and decode servers, without rounding errors."""
    first, second = pools.idle(prefill, decode)
    return (first if first > 1e-9 else 0.0, second if second > 1e-9 else 0.0)


def served(run: serving.ServingRun, G: int) -> float:
    """Requests/s of a run, without its first and last fifth."""
    return run.tokens_per_s_between(0.2 * run.end_s, 0.8 * run.end_s) / G


def _rates(found: Balance, run: serving.ServingRun, G: int, prefill: int, decode: int) -> Chart:
    sizes = [1 + k / 4 for k in range(4 * MOST - 3)]
    balanced = found.pools.ratio * decode
    marks = [
        Curve(f"formula, {decode} decode", sizes, [found.pools.rate_per_s(p, decode) for p in sizes], 0),
        Points("simulated", [prefill], [served(run, G)], [f"{sig3(served(run, G))} simulated"], 1),
        *([RefLine("balanced", balanced)] if 1 <= balanced <= MOST else []),
    ]
    return Chart(
        Scale("prefill servers"), Scale("requests/s"), marks, title="The slower pool limits the throughput"
    )


def _queue(run: serving.ServingRun) -> Chart:
    """Requests that wait for their prefill, and requests in service."""
    every = max(len(run.queue) // 120, 1)
    moments = run.queue[::every]
    xs = [m.time_s for m in moments]
    marks = (
        Curve("waiting", xs, [m.waiting for m in moments], 1),
        Curve("in service", xs, [m.running for m in moments], 0),
    )
    return Chart(Scale("time", "s"), Scale("requests"), marks, title=f"{count(REQUESTS)} requests, simulated")


def _verdict(found: Balance, prefill: int, decode: int, idle: tuple[float, float]) -> str:
    ratio = found.pools.ratio
    balance = sig3(max(ratio, 1 / ratio), 2)
    said = f"Each {'decode server needs' if ratio >= 1 else 'prefill server feeds'} {balance} "
    said += "prefill servers" if ratio >= 1 else "decode servers"
    have = f"With {prefill} prefill and {pluralize(decode, 'decode server')}"
    if max(idle) < 0.1:
        return f"{said}. {have}, both pools are busy nearly all the time."
    who, share = ("decode", idle[1]) if idle[1] > idle[0] else ("prefill", idle[0])
    return f"{said}. {have}, the {who} servers are idle for {percent(share)} of the time."


POOLS = Explorer(
    key="inference_llama3.pools",
    title="Balancing prefill and decode pools",
    question="How many prefill servers does each decode server need?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "where": Choice("machine of each server", MACHINES, "TPU v5e 4x4"),
        "P": Slider("prompt tokens", 256, 32768, 8192, "pow2"),
        "G": Slider("output tokens, mean", 32, 2048, 512, "pow2"),
        "B": Slider("sequences per decode server", 1, 128, 32, "log"),
        "prefill": Slider("prefill servers", 1, MOST, 3),
        "decode": Slider("decode servers", 1, MOST, 1),
    },
    view=_pools,
)
