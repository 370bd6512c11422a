"""Who is served when? Four policies for the same requests, played out."""

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

MODEL, WHERE = "LLaMA-3 70B", "TPU v5e 4x4"
POLICIES = ("static", "prompts first", "chunked prompts", "two pools")
REQUESTS, SEED = 24, 3


def policy(name: str, slots: int, budget: int) -> serving.Policy:
    """The policy of that name; two pools are one server for prompts and one that decodes."""
    return {
        "static": serving.Static(slots),
        "prompts first": serving.Continuous(slots),
        "chunked prompts": serving.Chunked(slots, budget=slots + budget),
        "two pools": serving.Disaggregated(1, 1, slots, 3e-6),
    }[name]


@lru_cache(maxsize=16)  # a run keeps much
def played(name: str, slots: int, *, P: int, G: int, rate: float, budget: int) -> serving.ServingRun:
    """The same requests whatever the policy: prompts of like length, answers of all lengths."""
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
            Readout("first token, median", run.ttft(50), "s"),
            Readout("a token, median", run.itl(50), "s"),
            Readout("a token, 99th percentile", run.itl(99), "s"),
            Readout("tokens/s", run.tokens_per_s),
            Readout.percent("slots taken", run.occupancy),
        ),
    )


def _gantt(run: serving.ServingRun, request: int) -> Timeline:
    """Slots as lanes; the request that is looked at in its own color."""
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
    title = "Prompts in orange, answers in blue, yours in purple"
    return Timeline(list(lanes.values()), blocks, "s", run.end_s, (), title, "time")


def _lane(row: tuple[str, int, int]) -> str:
    what, server, slot = row
    return f"prompts {server + 1}" if what == "prefill" else f"slot {slot + 1}"


def _tokens(runs: dict[str, serving.ServingRun], name: str, request: int) -> Chart:
    """One request's tokens since it came, under every policy: level where somebody else's prompt is read."""
    lines = []
    for color, (other, run) in enumerate(runs.items()):
        since = [at - run.requests[request].request.arrival_s for at in run.token_times(request)]
        xs, ys = [since[0]], [1.0]
        for i, (earlier, later) in enumerate(pairwise(since)):
            if later - earlier > 1.5 * run.itl(50):  # a wait: the line goes level, then up
                xs, ys = [*xs, earlier, later], [*ys, i + 1.0, i + 2.0]
        lines.append(Curve(other, [*xs, since[-1]], [*ys, len(since)], color, dashed=other != name))
    x = Scale("time since it came", "s", "linear", 0.0)
    return Chart(x, Scale("tokens it has"), lines, title=f"Request {request + 1}, under every policy")


def _table(runs: dict[str, serving.ServingRun], name: str) -> Grid:
    heads = ("all\ndone", "tokens\n/s", "first\ntoken", "each\ntoken", "99th\npct.")
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
    rows = [other.removesuffix(" prompts") for other in runs]
    return Grid("Every policy: medians; two pools are two servers", rows, heads, cells)


def _verdict(name: str, run: serving.ServingRun) -> str:
    worst = run.itl(99) / run.itl(50)
    said = (
        f"{name[0].upper()}{name[1:]}: {REQUESTS} requests done in {si(run.end_s, 's')}, half of them with a "
        f"first token within {si(run.ttft(50), 's')}"
    )
    if worst > 3:
        times = sig3(worst, 2)
        return f"{said}; one gap in 100 between tokens is {times} times the median or more: prompts are read."
    most = "alike" if worst < 1.05 else f"at most {worst:.2g} times the median"
    return f"{said}; 99 of 100 gaps between tokens are {most}."


PLAYER = Explorer(
    key="inference.player",
    title="A server at work",
    question="Who waits for whom, and which policy gives even tokens?",
    controls={
        "name": Choice("policy", POLICIES, "prompts first"),
        "slots": Slider("slots", 1, 16, 6),
        "P": Slider("prompt tokens, mean", 128, 8192, 2048, "pow2"),
        "G": Slider("output tokens, mean", 8, 512, 64, "pow2"),
        "rate": Slider("requests/s", 0.5, 16.0, 4.0, "log"),
        "budget": Slider("tokens of a chunk", 64, 2048, 256, "pow2"),
        "request": Slider("look at request", 1, REQUESTS, 5),
    },
    view=_player,
)
