"""Explorer: the same requests on a simulated server under four scheduling policies."""

from functools import lru_cache
from itertools import pairwise

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Readout,
    Scale,
    Slider,
    Timeline,
    View,
    machine,
    sig3,
    spread,
)
from scalingbook_book.reader.explorers.parts import Span as Block
from scalingbook_lib import inference, models, serving
from scalingbook_lib.units import si

MODEL, WHERE = "Llama 3 70B", "TPU v5e 4x4"
POLICIES = ("static batching", "interleaved prefill", "chunked prefill", "disaggregated")
REQUESTS, SEED = 24, 3


def policy(name: str, slots: int, budget: int) -> serving.Policy:
    """The scheduling policy of that name; "disaggregated" is one prefill server and one decode server."""
    return {
        "static batching": serving.Static(slots),
        "interleaved prefill": serving.Continuous(slots),
        "chunked prefill": serving.Chunked(slots, budget=slots + budget),
        "disaggregated": serving.Disaggregated(1, 1, slots, 3e-6),
    }[name]


@lru_cache(maxsize=16)  # a run holds much memory
def played(name: str, slots: int, *, P: int, G: int, rate: float, budget: int) -> serving.ServingRun:
    """The same requests under the policy `name`: lognormal prompt lengths, geometric output lengths."""
    quick = inference.case(models.find(MODEL), machine(WHERE), spread(MODEL, WHERE, "int8", "int8"))
    asked = serving.poisson(
        rate, REQUESTS, prompt=serving.lognormal(P, 0.4, 4 * P), output=serving.geometric(G), seed=SEED
    )
    return serving.simulate(asked, quick, policy(name, slots, budget))


def _player(*, name: str, slots: int, P: int, G: int, rate: float, budget: int, request: int) -> View:
    run = played(name, slots, P=P, G=G, rate=rate, budget=budget)
    runs = {other: played(other, slots, P=P, G=G, rate=rate, budget=budget) for other in POLICIES}
    return View(
        _verdict(name, run),
        (_gantt(run, request - 1), _tokens(runs, name, request - 1), _table(runs, name)),
        (
            Readout("TTFT, median", run.ttft(50), "s"),
            Readout("ITL, median", run.itl(50), "s"),
            Readout("ITL, P99", run.itl(99), "s"),
            Readout("tokens/s", run.tokens_per_s),
            Readout.percent("slots occupied", run.occupancy),
        ),
    )


def _gantt(run: serving.ServingRun, request: int) -> Timeline:
    """A timeline row per slot, with the chosen request in its own color."""
    rows = sorted({span.row for span in run.spans})
    lanes = {row: _lane(row) for row in rows}
    blocks = [
        Block(
            lanes[span.row],
            span.start_s,
            span.end_s,
            str(span.request + 1) if span.kind == "decode" else "",
            3 if span.request == request else 1 if span.kind == "prefill" else 0,
        )
        for span in run.spans
        if span.end_s > span.start_s
    ]
    title = "Orange: prefill; blue: decode; purple: the chosen request"
    return Timeline(list(lanes.values()), blocks, "s", run.end_s, (), title, "time")


def _lane(row: tuple[str, int, int]) -> str:
    what, server, slot = row
    return f"prefill {server + 1}" if what == "prefill" else f"slot {slot + 1}"


def _tokens(runs: dict[str, serving.ServingRun], name: str, request: int) -> Chart:
    """Tokens of one request since its arrival, under every policy; level where it waits for a prefill."""
    lines = []
    for color, (other, run) in enumerate(runs.items()):
        since = [at - run.requests[request].request.arrival_s for at in run.token_times(request)]
        xs, ys = [since[0]], [1.0]
        for i, (earlier, later) in enumerate(pairwise(since)):
            if later - earlier > 1.5 * run.itl(50):  # a wait: the line goes level, then up
                xs, ys = [*xs, earlier, later], [*ys, i + 1.0, i + 2.0]
        lines.append(Curve(other, [*xs, since[-1]], [*ys, len(since)], color, dashed=other != name))
    x = Scale("time since arrival", "s", "linear", 0.0)
    return Chart(x, Scale("tokens generated"), lines, title=f"Request {request + 1} under every policy")


def _table(runs: dict[str, serving.ServingRun], name: str) -> Grid:
    heads = ("all\ndone", "tokens\n/s", "TTFT,\nP50", "ITL,\nP50", "ITL,\nP99")
    cells = [
        [
            Cell(text, 3 if other == name else 5, str(run), level=0.4 if other == name else 0.1)
            for text in (
                si(run.end_s, "s"),
                sig3(run.tokens_per_s),
                si(run.ttft(50), "s"),
                si(run.itl(50), "s"),
                si(run.itl(99), "s"),
            )
        ]
        for other, run in runs.items()
    ]
    rows = [other.removesuffix(" prefill").removesuffix(" batching") for other in runs]
    return Grid("All policies (disaggregated uses two servers)", rows, heads, cells)


def _verdict(name: str, run: serving.ServingRun) -> str:
    worst = run.itl(99) / run.itl(50)
    said = (
        f"{name[0].upper()}{name[1:]}: {REQUESTS} requests take {si(run.end_s, 's')}, and the median "
        f"TTFT is {si(run.ttft(50), 's')}"
    )
    if worst > 3:
        times = sig3(worst, 2)
        return f"{said}. The P99 ITL is {times} times the median, because decode waits for prefills."
    most = "equal to the median" if worst < 1.05 else f"{worst:.2g} times the median"
    return f"{said}. The P99 ITL is {most}."


PLAYER = Explorer(
    key="inference.player",
    title="Scheduling policies: static, interleaved, chunked, disaggregated",
    question="Which policy has the shortest TTFT, and which has the most even inter-token latency?",
    controls={
        "name": Choice("policy", POLICIES, "interleaved prefill"),
        "slots": Slider("slots", 1, 16, 6),
        "P": Slider("mean prompt length", 128, 8192, 2048, "pow2"),
        "G": Slider("mean output length", 8, 512, 64, "pow2"),
        "rate": Slider("requests/s", 0.5, 16.0, 4.0, "log"),
        "budget": Slider("chunk size in tokens", 64, 2048, 256, "pow2"),
        "request": Slider("chosen request (purple)", 1, REQUESTS, 5),
    },
    view=_player,
)
