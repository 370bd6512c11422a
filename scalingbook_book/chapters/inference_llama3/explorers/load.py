"""Explorer of the load that a server sustains within its latency targets, simulated request by request."""

from functools import lru_cache
from math import ceil
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
    refused,
    spread,
)
from scalingbook_lib import inference, models, serving
from scalingbook_lib.inference.serve import serve as steady
from scalingbook_lib.units import count, percent, si

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B")
MACHINES = (
    "TPU v5e 2x4",
    "TPU v5e 4x4",
    "TPU v5e 8x8",
    "TPU v5p 2x2x2",
    "TPU v6e 2x4",
    "H100 × 8",
    "B200 × 8",
)
POLICIES = ("interleaved prefill", "chunked prefill")
LOADS = (0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2)
REQUESTS, SEED, SLOTS = 150, 7, 128
_LOADED = Scale("load, as a fraction of saturation")


class ServerSetting(NamedTuple):
    """What is served where, and how."""

    model: str
    where: str
    policy: str
    P: int
    G: int


class LoadedServer(NamedTuple):
    """A model on a machine with its layout and policy; `most` is the saturation throughput in requests/s."""

    quick: inference.ServingCase
    policy: serving.Policy
    most: float


@lru_cache(maxsize=64)
def server(asked: ServerSetting) -> LoadedServer | None:
    """int8 weights and cache, slots for as many as fit; chunks of 512 or an eighth of a prompt; or None."""
    model, where, policy, P, G = asked
    m, on, o = models.find(model), machine(where), spread(model, where, "int8", "int8")
    slots = min(inference.largest_batch(m, o, on, S=ceil(P + G), reserve=0.1), SLOTS)
    if not slots:
        return None
    chunked = policy == POLICIES[1]
    chunk = max(512, P // 8)
    how = serving.Chunked(slots, budget=slots + chunk) if chunked else serving.Continuous(slots)
    kind = "chunked" if chunked else "interleaved"
    full = steady(m, on, o, P=P, G=G, batch=slots, policy=kind, chunk=chunk)
    return LoadedServer(inference.case(m, on, o), how, full.requests_per_s)


@lru_cache(maxsize=32)  # a run keeps much
def played(asked: ServerSetting, found: LoadedServer, load: float) -> serving.ServingRun:
    """The same requests at another rate: lengths spread around their means, arrivals at random."""
    prompts = serving.lognormal(asked.P, 0.5, 4 * asked.P)
    outputs = serving.lognormal(asked.G, 0.5, 4 * asked.G)
    requests = serving.poisson(load * found.most, REQUESTS, prompt=prompts, output=outputs, seed=SEED)
    return serving.simulate(requests, found.quick, found.policy)


def _load(
    *, model: str, where: str, policy: str, P: int, G: int, load: float, ttft_s: float, itl_ms: float
) -> View:
    asked = ServerSetting(model, where, policy, P, G)
    found = server(asked)
    if found is None:
        return refused(model, where)
    runs = [played(asked, found, x) for x in LOADS]
    run, wanted = played(asked, found, load), {"ttft_s": ttft_s, "itl_s": itl_ms / 1e3}
    share = run.slo_attainment(**wanted)
    good = [x * one.slo_attainment(**wanted) for x, one in zip(LOADS, runs, strict=True)]
    return View(
        _verdict(run, load, share),
        (_waits(runs, load, run, ttft_s), _good(good, load, share)),
        (
            Readout("saturation throughput", found.most, "", f"{found.most:.3g} requests/s"),
            Readout("TTFT, median", run.ttft(50), "s"),
            Readout("TTFT, 99th percentile", run.ttft(99), "s"),
            Readout("ITL, median", run.itl(50), "s"),
            Readout("ITL, 99th percentile", run.itl(99), "s"),
            Readout.percent("slots in use", run.occupancy),
        ),
        columns=2,
    )


def _waits(runs: list[serving.ServingRun], load: float, run: serving.ServingRun, ttft_s: float) -> Chart:
    marks = (
        Curve("median", LOADS, [one.ttft(50) for one in runs], 0),
        Curve("99th percentile", LOADS, [one.ttft(99) for one in runs], 1),
        Points("", [load], [run.ttft(99)], [si(run.ttft(99), "s")], 1),
        RefLine("target", ttft_s, axis="y"),
    )
    return Chart(_LOADED, Scale("time to first token", "s", "log"), marks, title="Time to first token (TTFT)")


def _good(good: list[float], load: float, share: float) -> Chart:
    marks = (
        Curve("all requests", LOADS, LOADS, 5, dashed=True),
        Curve("within the SLO", LOADS, good, 2),
        Points("", [load], [load * share], [percent(share)], 2),
    )
    return Chart(_LOADED, Scale("rate within the SLO, as a fraction of saturation"), marks, title="Goodput")


def _verdict(run: serving.ServingRun, load: float, share: float) -> str:
    return (
        f"At {percent(load)} of saturation, half of the users get their first token within "
        f"{si(run.ttft(50), 's')}, and 99% get it within {si(run.ttft(99), 's')}. {percent(share)} of "
        f"the {count(REQUESTS)} requests meet both latency targets."
    )


LOAD = Explorer(
    key="inference_llama3.load",
    title="Latency and SLO attainment under load",
    question="How close to saturation can a server run and still meet its latency targets?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "where": Choice("machine", MACHINES, "TPU v5e 4x4"),
        "policy": Choice("policy", POLICIES),
        "P": Slider("prompt tokens, mean", 128, 16384, 2048, "pow2"),
        "G": Slider("output tokens, mean", 32, 2048, 256, "pow2"),
        "load": Slider("load", 0.1, 1.2, 0.8, step=0.05),
        "ttft_s": Slider("TTFT target, s", 0.1, 20, 2.0, "log"),
        "itl_ms": Slider("ITL target, ms", 5, 500, 100, "log"),
    },
    view=_load,
)
