"""Explorer of the Pareto front of latency and cost, searched live."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    PRICES,
    SERVING_MACHINES,
    SERVING_MODELS,
    TYPES,
    Bars,
    Cell,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    machine,
    pluralize,
    sig3,
    stored,
)
from scalingbook_lib import models, planner
from scalingbook_lib.machines.age import price_of
from scalingbook_lib.planner import Front, Option
from scalingbook_lib.planner.front import USD
from scalingbook_lib.units import count, si

RESERVE = 0.1  # of the HBM, for the runtime
_SHOWN = 6
_COLORS = {"weights": 0, "KV": 1, "matmul": 2, "prompts": 3}
_NAMES = {
    "KV": "reading the cache",
    "matmul": "the weight matmuls",
    "weights": "reading the weights",
    "prompts": "the prefill of other prompts",
}
_OTHERS = 5


@lru_cache(maxsize=8)
def front(model: str, where: str, *, weights: str, kv: str, P: int, G: int, usd: str) -> Front:
    """The front over layouts of one or two stages; of many chips not every way over experts is tried."""
    on, experts = machine(where), models.find(model).experts
    tried: dict[str, tuple[int, ...]] = {"pp": (1, 2), "attention_dp": (1,), "kv_sequence": (1,)}
    if experts:
        tried |= {"pp": (1,), "attention_dp": (1, 8)}
        if on.chips > 8:
            tried["ep"] = tuple(n for n in (1, 8, 16, 32, 64) if experts.E % n == 0)
    fixed = {"weights": stored(weights, on), "kv": stored(kv, on), "rows": 1}
    return planner.serve(
        models.find(model),
        on,
        P=P,
        G=G,
        fixed=fixed,
        reserve=RESERVE,
        policies=("interleaved",),
        tried=tried,
        usd_per_hour=None if usd == PRICES[0] else float(usd),
    )


def _pareto(
    *, model: str, where: str, weights: str, kv: str, P: int, G: int, itl_ms: float, usd: str
) -> View:
    found = front(model, where, weights=weights, kv=kv, P=P, G=G, usd=usd)
    if not found.points:
        refused = found.rejected[0]
        tried = pluralize(found.layouts, "layout")
        return View(
            f"{model} does not fit on {where}. The closest of {tried} is {_short(refused.why)}.",
            (_refused(found),),
            (Readout("layouts tried", found.layouts),),
        )
    kept = [p for p in found.points if p.itl_s <= itl_ms / 1e3]
    one = kept[-1] if kept else found.fastest
    return View(
        _verdict(found, one, bool(kept), itl_ms),
        (_chart(found, one, itl_ms), _table(found, one), _terms(one)),
        (
            Readout("layouts tried", found.layouts),
            Readout("plans tried", found.ways),
            Readout("time between two tokens", one.itl_s, "s"),
            Readout("time to first token", one.ttft_s, "s"),
            Readout("cost of a million output tokens", one.cost, "", found.price(one)),
            *_paid(found, where, usd),
            Readout("tokens/s per chip", one.serving.tokens_per_s_per_chip),
        ),
        columns=2,
    )


def _paid(found: Front, where: str, usd: str) -> tuple[Readout, ...]:
    """What is paid for a chip, and since when; nothing where chip-hours are counted."""
    price = price_of(machine(where).chip, None if usd == PRICES[0] else float(usd))
    return (
        (Readout("price per chip", price.usd_per_hour or 0.0, "", str(price)),) if found.unit == USD else ()
    )


def _short(why: str) -> str:
    """The layout and what it needs, without types and terms."""
    layout, _, rest = why.partition(";")
    return f"{layout};{rest.rpartition(' (')[0].partition(':')[2]}" if "does not fit" in rest else why


def _kind(option: Option) -> str:
    return option.bottleneck if option.bottleneck in _COLORS else "network and other"


def _chart(found: Front, one: Option, itl_ms: float) -> Chart:
    """The front, by what takes longest."""
    kinds: dict[str, list[Option]] = {}
    for p in found.points:
        kinds.setdefault(_kind(p), []).append(p)
    front = [
        Points(kind, [p.itl_s for p in some], [p.cost for p in some], (), _COLORS.get(kind, _OTHERS))
        for kind, some in kinds.items()
    ]
    line = Curve("", [p.itl_s for p in found.points], [p.cost for p in found.points], 6, dashed=True)
    chosen = Points("", [one.itl_s], [one.cost], [found.price(one)], _COLORS.get(_kind(one), _OTHERS))
    unit = "USD" if found.unit == USD else "chip-hours"
    return Chart(
        Scale("inter-token latency of a sequence", "s", "log"),
        Scale(f"{unit} per million output tokens", "", "log"),
        ([line] if len(found.points) > 1 else [])
        + [*front, chosen, RefLine(f"target: {si(itl_ms / 1e3, 's')}", itl_ms / 1e3)],
        title="The Pareto front, colored by the longest component",
    )


def _table(found: Front, one: Option) -> Grid:
    points = found.points
    at = sorted(
        {round(i * (len(points) - 1) / max(_SHOWN - 1, 1)) for i in range(_SHOWN)} | {points.index(one)}
    )
    rows = [_row(found, points[i], points[i] is one) for i in at]
    heads = ("layout", "replicas\n× B", "first\ntoken", "each\ntoken", "per\nmillion")
    return Grid(
        "From the fastest to the cheapest", ["→" if points[i] is one else "" for i in at], heads, rows
    )


def _row(found: Front, p: Option, chosen: bool) -> list[Cell]:
    texts = (
        _ways(p),
        f"{p.copies} × {count(p.sequences)}",
        si(p.ttft_s, "s"),
        si(p.itl_s, "s"),
        found.price(p),
    )
    level = 0.5 if chosen else 0.0
    return [Cell(text, _COLORS.get(_kind(p), _OTHERS), str(p.serving), level=level) for text in texts]


def _ways(p: Option) -> str:
    o = p.layout
    also = {"PP": o.pp, "EP": o.ep, "attention DP": o.attention_dp}
    named = ", ".join(f"{name} {n}" for name, n in also.items() if n > 1)
    return f"TP {o.tp}" + (f", {named}" if named else "")


def _terms(one: Option) -> Bars:
    """Where the time between two tokens goes: a decode step, and the prefills in between."""
    s = one.serving
    read = max(s.itl_s - s.step.total_s, 0.0)
    terms = {**_links(s.step.terms), "prefill of other prompts": read}
    drawn = (Series("the chosen plan", list(terms.values()), 0),)
    return Bars(Scale("time between two tokens", "s"), list(terms), drawn, title="Where the time goes")


def _links(terms: dict[str, float]) -> dict[str, float]:
    """Terms of a chip's own, and all collectives as one."""
    own = ("weights", "matmul", "KV", "attention", "activations", "launch", "bubble")
    found = {name: s for name, s in terms.items() if name in own}
    links = sum(s for name, s in terms.items() if name not in own)
    return found | ({"network": links} if links else {})


def _refused(found: Front) -> Bars:
    kinds = found.rejected[:6]
    return Bars(
        Scale("layouts rejected", ""),
        [one.kind for one in kinds],
        (Series("rejected", [one.count for one in kinds], 5),),
        title="Why no layout fits",
    )


def _verdict(found: Front, one: Option, kept: bool, itl_ms: float) -> str:
    best, fast = found.best, found.fastest
    if not kept:
        return (
            f"No plan delivers a token every {itl_ms:g} ms. The fastest, {_ways(fast)}, takes "
            f"{si(fast.itl_s, 's')} per token, at {found.price(fast)} per million tokens."
        )
    said = (
        f"Within {itl_ms:g} ms per token, a million tokens cost {found.price(one)}, with {_ways(one)} "
        f"and {pluralize(one.sequences, 'sequence')} per replica. The longest component is "
        f"{_NAMES.get(one.bottleneck, one.bottleneck)}"
    )
    if best is not one:
        return f"{said}. The cheapest plan costs {found.price(best)}, at {si(best.itl_s, 's')} per token."
    share = fast.cost / best.cost
    return (
        f"{said}. No plan is cheaper. The fastest, at {si(fast.itl_s, 's')} per token, costs "
        f"{sig3(share)} times as much."
    )


PARETO = Explorer(
    key="inference_llama3.pareto",
    title="The Pareto front of latency and cost",
    question="How cheap can a token be within a latency target?",
    controls={
        "model": Choice("model", SERVING_MODELS, "Llama 3 70B"),
        "where": Chips("machine", SERVING_MACHINES, "TPU v5e 4x4"),
        "weights": Choice("weights", tuple(TYPES), "int8"),
        "kv": Choice("cache", tuple(TYPES), "int8"),
        "P": Slider("prompt tokens", 128, 131072, 2048, "pow2"),
        "G": Slider("output tokens", 16, 8192, 512, "pow2"),
        "itl_ms": Slider("ITL target, ms", 1, 500, 50, "log"),
        "usd": Choice("USD per chip-hour", PRICES),
    },
    view=_pareto,
)
