"""Explorer: hit rate and TTFT of agent sessions, by their number, their context and the size of the pool."""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_book.chapters.inference.figures.agents import PAUSES_S
from scalingbook_book.reader.explorers.parts import (
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    machine,
)
from scalingbook_lib import calibrated, inference, models, serving
from scalingbook_lib.inference import Layout, Tier
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import FP8, GiB, percent, si

MODELS = ("Llama 3 70B", "Qwen3 235B-A22B", "DeepSeek-V3")
MACHINES = ("H100 × 8", "H200 × 8")
HOST = {"none": 0, "512 GiB": 512, "1,024 GiB": 1024, "2,048 GiB": 2048}
WAYS = ("as recorded", "at random", "regularly")
NEW = 2276  # new prompt tokens of a turn


@dataclass(frozen=True, slots=True)
class Server:
    """A model on a machine: tokens per pool, and the TTFT of a turn without a queue."""

    pool: float  # tokens that fit in HBM
    token_bytes: float
    found_s: float  # the history is in HBM
    loaded_s: float  # it is in host memory
    lost_s: float  # it is computed again


@lru_cache(maxsize=256)
def server(model: str, where: str, context: int) -> Server:
    """Return the pool and the TTFTs of a model in 8 bits, with calibrated efficiencies."""
    m, on = models.find(model), machine(where)
    layout = Layout(tp=8, ep=8 if m.experts else 1, weights=FP8, compute=FP8, kv=FP8)
    reached = calibrated.serving(on.chip, FP8)
    host = Tier(name="host memory", bytes_per_s=8 * (on.chip.pcie_bytes_per_s or 0.0))
    one = inference.load(m, on, layout, host, P=context + NEW, cached=context, efficiency=reached)
    return Server(
        pool=inference.largest_batch(m, layout, on, S=8192) * 8192,
        token_bytes=arithmetic.kv_cache(m, context, FP8).nbytes / context,
        found_s=one.prefix.rest_s,
        loaded_s=one.overlapped_ttft_s,
        lost_s=one.prefix.whole_s,
    )


@lru_cache(maxsize=64)
def gaps(way: str, pause_s: float) -> tuple[float, ...]:
    """Return gaps with this mean, distributed in one of three ways."""
    if way == "regularly":
        return (pause_s,)
    sample = PAUSES_S if way == "as recorded" else serving.erlang_gaps(1, sample=400)
    mean = sum(sample) / len(sample)
    return tuple(gap * pause_s / mean for gap in sample)


def reuse(
    on: Server, sessions: int, context: int, memory: int, pauses: tuple[float, ...]
) -> tuple[serving.Reuse, float]:
    """Return the reuse in HBM, and the fraction found in HBM or host memory, which holds copies of all."""
    working = sessions * context
    near = serving.lru_reuse(on.pool / working, pauses)
    copies = memory * GiB / on.token_bytes
    far = serving.lru_reuse(copies / working, pauses).hit_rate if copies else 0.0
    return near, max(near.hit_rate, far)


def _mean(on: Server, near: float, far: float) -> float:
    return near * on.found_s + (far - near) * on.loaded_s + (1 - far) * on.lost_s


def _sessions(
    *, model: str, where: str, sessions: int, context: int, way: str, pause: float, host: str
) -> View:
    on, pauses, memory = server(model, where, context), gaps(way, pause), HOST[host]
    in_hbm, far = reuse(on, sessions, context, memory, pauses)
    near, age = in_hbm.hit_rate, in_hbm.eviction_age_s
    ttft_s = _mean(on, near, far)
    busy = sessions * ttft_s / (pause + ttft_s)
    return View(
        _verdict(on, near, far, sessions * context, busy),
        (_curves(on, sessions, context, memory, pauses, host != "none"), _bars(on, near, far)),
        (
            Readout("pool in HBM", on.pool, "tokens"),
            Readout("working set", sessions * context, "tokens"),
            Readout("evicted after", age if age < 1e9 else 0.0, "s", "" if age < 1e9 else "never"),
            Readout.percent("found in HBM", near),
            Readout.percent("found or loaded", far),
            Readout("mean TTFT without a queue", ttft_s, "s"),
            Readout("prefills at once", busy, "", f"{busy:.2f}"),
        ),
        columns=2,
    )


def _curves(on: Server, here: int, context: int, memory: int, pauses: tuple[float, ...], both: bool) -> Chart:
    numbers = [2**e for e in range(10)]
    found = [reuse(on, n, context, memory, pauses) for n in numbers]
    lines = [Curve("found in HBM", numbers, [near.hit_rate for near, _ in found], 0)]
    if both:
        lines.append(Curve("found or loaded", numbers, [far for _, far in found], 2, dashed=True))
    return Chart(
        Scale("sessions", "", "pow2"),
        Scale("hit rate", "", "linear", 0.0, 1.0),
        (*lines, RefLine("", here)),
        title="Returning sessions whose history is found",
    )


def _bars(on: Server, near: float, far: float) -> Bars:
    return Bars(
        Scale("TTFT", "s"),
        ("found in HBM", "loaded", "computed again", "mean"),
        (Series("", [on.found_s, on.loaded_s, on.lost_s, _mean(on, near, far)], 1),),
        title="Time to first token of a turn, without a queue",
    )


def _verdict(on: Server, near: float, far: float, working: float, busy: float) -> str:
    fits = on.pool / working
    said = (
        "All sessions fit in HBM. "
        if fits >= 1
        else f"Only {percent(fits)} of the working set fits in HBM, and {percent(near)} of the turns find "
        "their history there. "
    )
    if far - near > 0.005:
        said += f"Host memory raises this to {percent(far)}, at {si(on.loaded_s, 's', 2)} per load. "
    if busy > 1:
        return f"{said}The prefills need {busy:.1f} times the time that there is: the server is overloaded."
    return f"{said}Prefills keep the server busy for {percent(busy)} of the time."


SESSIONS = Explorer(
    key="inference.sessions",
    title="How many agents fit on a server?",
    question="How many agent sessions can a server hold before their turns stop finding their history?",
    controls={
        "model": Choice("model, in 8 bits", MODELS),
        "where": Choice("server", MACHINES),
        "sessions": Slider("sessions", 1, 512, 64, "pow2"),
        "context": Slider("tokens per session", 2**13, 2**17, 2**16, "pow2", "tokens"),
        "way": Choice("sessions return", WAYS),
        "pause": Slider("mean pause between turns", 5.0, 300.0, 60.0, "log", "s"),
        "host": Choice("host memory for copies", tuple(HOST)),
    },
    view=_sessions,
)
