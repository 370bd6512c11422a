"""Who hides the exchange of experts, what do two microbatches leave of it, and how long do stages wait?"""

from scalingbook_book.chapters.machines.case import EIGHT, balance
from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Span,
    Timeline,
    View,
    join_and,
    sig3,
)
from scalingbook_lib.steps import overlap, pipelines
from scalingbook_lib.steps.overlap import Stages, two_microbatches
from scalingbook_lib.units import BF16, FP8, count, percent, si

_TYPES = {"fp8": FP8, "bf16": BF16}


def _balance(*, width: int, product: str, out: str, back: str) -> View:
    kind, moved = _TYPES[product], _TYPES[out].bytes + _TYPES[back].bytes
    needs = {chip.name: balance(chip, kind) for chip in EIGHT}
    most = 6 * width / moved
    hidden = [name for name, need in needs.items() if need <= most]
    bars = Bars(
        Scale("FLOPs for a byte into the domain", ""),
        list(needs),
        [Series("", list(needs.values()), 0)],
        refs=(RefLine("what the expert has", most),),
    )
    verdict = f"hide it on {join_and(hidden)}" if hidden else "hide it on none of them"
    return View(
        f"Experts of {width:,} columns do {count(most)} FLOPs for each byte moved: products {verdict}.",
        (bars,),
        (
            Readout("FLOPs a byte", most, "", count(most)),
            Readout("machines", len(hidden), "", str(len(hidden))),
        ),
    )


BALANCE = Explorer(
    key="machines.balance",
    title="Experts on eight machines",
    question="On which machines do the products of an expert take as long as the way there and back?",
    controls={
        "width": Slider("columns of an expert", 512, 16384, 3072, step=512),
        "product": Choice("products in", tuple(_TYPES), "fp8"),
        "out": Choice("tokens out in", tuple(_TYPES), "fp8"),
        "back": Choice("and back in", tuple(_TYPES), "bf16"),
    },
    view=_balance,
)

COLORS = {overlap.ATTENTION: 1, overlap.EXPERTS: 3, overlap.DISPATCH: 2, overlap.COMBINE: 2}


def spans(layer: Stages, layers: int = 3) -> list[Span]:
    """What cores and network do; a letter for the microbatch."""
    return [
        Span(
            "cores" if turn.part in (overlap.ATTENTION, overlap.EXPERTS) else "network",
            turn.start,
            turn.end,
            f"{'AB'[turn.microbatch]} {turn.part}",
            COLORS[turn.part],
        )
        for turn in overlap.turns(layer, layers)
        if turn.end > turn.start
    ]


def _turns(*, attention: float, experts: float, dispatch: float, combine: float, taken: int) -> View:
    layer = Stages(
        attention_s=attention * 1e-6,
        dispatch_s=dispatch * 1e-6,
        experts_s=experts * 1e-6,
        combine_s=combine * 1e-6,
    )
    found = two_microbatches(layer, taken=taken, cores=132)
    free = two_microbatches(layer)
    lost = (
        "which is more than it saves" if found.gain < 1 else f"{sig3(found.gain)} times as fast as in a row"
    )
    return View(
        f"Two microbatches take {si(found.total_s, 's')} a layer, {lost}: {si(found.exposed_s, 's')} of "
        f"exchange stay exposed, and {taken} SMs cost {si(found.cores_s, 's')}.",
        (Timeline(("cores", "network"), spans(layer.slowed(taken, 132)), title="Three layers"),),
        (
            Readout("a layer, both", found.total_s, "s"),
            Readout("in a row", found.alone_s, "s"),
            Readout("exposed", found.exposed_s, "s"),
            Readout("with no SM taken", free.total_s, "s"),
        ),
    )


TURNS = Explorer(
    key="machines.turns",
    title="Two microbatches",
    question="What is left of the exchange, and do the SMs that move tokens pay for themselves?",
    controls={
        "attention": Slider("attention, µs", 0.0, 1000.0, 300.0, step=10.0),
        "experts": Slider("experts, µs", 0.0, 1000.0, 250.0, step=10.0),
        "dispatch": Slider("dispatch, µs", 0.0, 1000.0, 170.0, step=10.0),
        "combine": Slider("combine, µs", 0.0, 1000.0, 310.0, step=10.0),
        "taken": Slider("SMs taken, of 132", 0, 64, 20, step=1),
    },
    view=_turns,
)

_SCHEDULES = {"1F1B": "1f1b", "ZB": "zero-bubble", "DualPipe": "dualpipe"}


def _bubble(*, stages: int, microbatches: int, exchange: float, hidden: float) -> View:
    f, b = 1 + exchange, 2 + exchange  # an exchange out and one back, each way
    both = 3 + 2 * exchange - min(2 * hidden * exchange, 2 * exchange)
    found = {
        name: pipelines.bubble(
            schedule, stages, microbatches, forward_s=f, backward_s=b, weight_s=1,
            both_s=both if schedule == "dualpipe" else None,
        )
        for name, schedule in _SCHEDULES.items()
    }  # fmt: skip
    series = [
        Series("products", [3.0 * microbatches] * len(found), 1),
        Series("exchange", [float(one.work_s) - 3.0 * microbatches for one in found.values()], 2),
        Series("bubble", [float(one.idle_s) for one in found.values()], 5),
    ]
    best = min(found, key=lambda name: found[name].total_s)
    dual, plain = found["DualPipe"], found["ZB"]
    return View(
        f"{best} is the fastest. DualPipe's bubble is {sig3(float(dual.idle_s))}, "
        f"ZB's {sig3(float(plain.idle_s))}; what it hides of the exchange is "
        f"{sig3(float(plain.work_s - dual.work_s))}.",
        (Bars(Scale("forward passes without exchange", ""), list(found), series, stacked=True),),
        tuple(
            Readout(f"{name}: idle", float(one.share), "", percent(float(one.share)))
            for name, one in found.items()
        ),
    )


BUBBLE = Explorer(
    key="machines.bubble",
    title="A bubble, or an exchange",
    question="What does a schedule save: time that stages wait, or exchange that it hides?",
    controls={
        "stages": Slider("stages", 4, 32, 16, step=4),
        "microbatches": Slider("microbatches", 64, 256, 64, step=16),
        "exchange": Slider("exchange, over a forward pass's products", 0.0, 1.0, 0.8, step=0.1),
        "hidden": Slider("of it hidden in pairs", 0.0, 1.0, 1.0, step=0.1),
    },
    view=_bubble,
)
