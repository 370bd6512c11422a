"""Explorers of how to hide the all-to-all of experts: wide experts, two microbatches, a pipeline schedule."""

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
    pluralize,
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
        Scale("FLOPs per byte into the domain", ""),
        list(needs),
        [Series("", list(needs.values()), 0)],
        refs=(RefLine("the expert performs", most),),
    )
    verdict = f"is hidden on {join_and(hidden)}" if hidden else "is exposed on all eight machines"
    return View(
        f"Experts of {width:,} columns perform {count(most)} FLOPs per byte moved. "
        f"Their all-to-all {verdict}.",
        (bars,),
        (
            Readout("FLOPs per byte", most, "", count(most)),
            Readout("machines that hide it", len(hidden), "", str(len(hidden))),
        ),
    )


BALANCE = Explorer(
    key="machines.balance",
    title="Expert width and hidden all-to-all",
    question="On which machines does an expert compute for at least as long as dispatch and combine take?",
    controls={
        "width": Slider("columns F of an expert", 512, 16384, 3072, step=512),
        "product": Choice("matmuls in", tuple(_TYPES), "fp8"),
        "out": Choice("dispatch in", tuple(_TYPES), "fp8"),
        "back": Choice("combine in", tuple(_TYPES), "bf16"),
    },
    view=_balance,
)

COLORS = {overlap.ATTENTION: 1, overlap.EXPERTS: 3, overlap.DISPATCH: 2, overlap.COMBINE: 2}


def spans(layer: Stages, layers: int = 3) -> list[Span]:
    """When cores and network are busy; A and B are the two microbatches."""
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
        "slower than without overlap"
        if found.gain < 1
        else f"{sig3(found.gain)} times as fast as without overlap"
    )
    return View(
        f"Two overlapped microbatches take {si(found.total_s, 's')} per layer, {lost}. "
        f"{si(found.exposed_s, 's')} of communication is exposed, and the {pluralize(taken, 'SM')} that "
        f"it occupies cost{'s' * (taken == 1)} {si(found.cores_s, 's')}.",
        (Timeline(("cores", "network"), spans(layer.slowed(taken, 132)), title="Timeline of three layers"),),
        (
            Readout("layer, both microbatches", found.total_s, "s"),
            Readout("without overlap", found.alone_s, "s"),
            Readout("exposed communication", found.exposed_s, "s"),
            Readout("time if no SM were occupied", free.total_s, "s"),
        ),
    )


TURNS = Explorer(
    key="machines.turns",
    title="Dual-microbatch overlap",
    question="How much communication remains exposed, and are the SMs that move tokens worth their cost?",
    controls={
        "attention": Slider("attention, µs", 0.0, 1000.0, 300.0, step=10.0),
        "experts": Slider("experts, µs", 0.0, 1000.0, 250.0, step=10.0),
        "dispatch": Slider("dispatch, µs", 0.0, 1000.0, 170.0, step=10.0),
        "combine": Slider("combine, µs", 0.0, 1000.0, 310.0, step=10.0),
        "taken": Slider("SMs for communication, of 132", 0, 64, 20, step=1),
    },
    view=_turns,
)

_SCHEDULES = {"1F1B": "1f1b", "ZB": "zero-bubble", "DualPipe": "dualpipe"}


def _bubble(*, stages: int, microbatches: int, exchange: float, hidden: float) -> View:
    f, b = 1 + exchange, 2 + exchange  # a dispatch and a combine in each pass
    both = 3 + 2 * exchange - min(2 * hidden * exchange, 2 * exchange)
    found = {
        name: pipelines.bubble(
            schedule, stages, microbatches, forward_s=f, backward_s=b, weight_s=1,
            both_s=both if schedule == "dualpipe" else None,
        )
        for name, schedule in _SCHEDULES.items()
    }  # fmt: skip
    series = [
        Series("compute", [3.0 * microbatches] * len(found), 1),
        Series(
            "exposed communication", [float(one.work_s) - 3.0 * microbatches for one in found.values()], 2
        ),
        Series("bubble", [float(one.idle_s) for one in found.values()], 5),
    ]
    best = min(found, key=lambda name: found[name].total_s)
    dual, plain = found["DualPipe"], found["ZB"]
    return View(
        f"{best} is the fastest schedule. In forward passes, DualPipe's bubble takes "
        f"{sig3(float(dual.idle_s))}, and that of zero-bubble takes {sig3(float(plain.idle_s))}. The "
        f"communication that DualPipe hides takes {sig3(float(plain.work_s - dual.work_s))}.",
        (Bars(Scale("time, in forward passes", ""), list(found), series, stacked=True),),
        tuple(
            Readout(f"{name}: idle", float(one.share), "", percent(float(one.share)))
            for name, one in found.items()
        ),
    )


BUBBLE = Explorer(
    key="machines.bubble",
    title="DualPipe: bubble or hidden communication?",
    question="What does each pipeline schedule save: idle time in the bubble, or exposed communication?",
    controls={
        "stages": Slider("stages", 4, 32, 16, step=4),
        "microbatches": Slider("microbatches", 64, 256, 64, step=16),
        "exchange": Slider("communication over compute, forward pass", 0.0, 1.0, 0.8, step=0.1),
        "hidden": Slider("fraction hidden in paired passes", 0.0, 1.0, 1.0, step=0.1),
    },
    view=_bubble,
)
