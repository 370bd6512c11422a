"""Explorer of when a collective is latency-bound: time against size, on rings, lines and tori."""

from collections.abc import Callable
from dataclasses import replace

from scalingbook_book.chapters.sharding.explorers.player import for_many_devices
from scalingbook_book.reader.explorers.parts import (
    LINKED,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
)
from scalingbook_lib import collectives
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.units import percent, si

type Axes = tuple[Axis, ...]
type Formula = Callable[..., collectives.Transfer]

_FORMULAS = {
    "AllGather": collectives.all_gather,
    "AllReduce": collectives.all_reduce,
    "AllToAll": collectives.all_to_all,
}
_LEAST, _MOST = 1e2, 1e9
_SIZES = [_LEAST * 10 ** (k / 4) for k in range(29)]
_OTHERS = (4, 64)


def _latency(*, op: str, n: int, wired: str, nbytes: float, hop: float, chip: str) -> View:
    formula = _FORMULAS[op]
    link = replace(chips.find(chip).axis(n, wrapped=True), hop_s=hop)
    here = _WIRED[wired](link)
    now = formula(nbytes, *here)
    knee = collectives.latency_bound_below(*here, collective=formula)
    curves = [
        *(
            _curve(f"{name} of {n}", formula, make(link), color)
            for color, (name, make) in enumerate(_WIRED.items())
            if name != "torus" or n > 2
        ),
        *(
            _curve(f"ring of {m}", formula, _ring(replace(link, size=m)), 5, dashed=True)
            for m in _OTHERS
            if m != n
        ),
    ]
    chart = Chart(
        Scale("array M", "B", "log", _LEAST, _MOST),
        Scale("time", "s", "log", low=0.7 * min(curve.ys[0] for curve in curves)),
        (
            *curves,
            RefLine("hops = bytes", knee),
            Points("you", [nbytes], [now.total_s], [si(now.total_s, "s")], 3),
        ),
    )
    return View(
        _verdict(f"{op} of {si(nbytes, 'B')} on a {wired} of {n}", formula, nbytes, here),
        (chart,),
        (
            Readout("time of the bytes", now.bandwidth_s, "s"),
            Readout("time of the hops", now.latency_s, "s"),
            Readout("approximation without hops", for_many_devices(now, n).bandwidth_s, "s"),
            Readout("hops and bytes take equally long at", knee, "B"),
            Readout("the same, per device", knee / n, "B"),
        ),
    )


def _ring(axis: Axis) -> Axes:
    return (axis,)


def _line(axis: Axis) -> Axes:
    return (replace(axis, wrapped=False),)


def _torus(axis: Axis) -> Axes:
    """As many chips, a power of two, on two wrapped axes as equal as can be."""
    bits = axis.size.bit_length() - 1
    return replace(axis, size=2 ** (bits // 2)), replace(axis, size=2 ** (bits - bits // 2))


_WIRED = {"ring": _ring, "line": _line, "torus": _torus}


def _curve(label: str, formula: Formula, axes: Axes, color: int, *, dashed: bool = False) -> Curve:
    return Curve(label, _SIZES, [formula(size, *axes).total_s for size in _SIZES], color, dashed)


def _verdict(said: str, formula: Formula, nbytes: float, axes: Axes) -> str:
    now, ten = formula(nbytes, *axes), formula(10 * nbytes, *axes)
    latency = now.bound == "latency"
    more = ten.total_s / now.total_s
    times = f"{'only ' if latency else ''}{more:.3g} times as long" if more > 1.01 else "hardly any longer"
    return (
        f"{'Latency' if latency else 'Bandwidth'}-bound. {said} takes {si(now.total_s, 's')}, of which "
        f"the hops take {percent(now.latency_s / now.total_s)}. Ten times the bytes would take "
        f"{times}."
    )


LATENCY = Explorer(
    key="sharding.latency",
    title="Latency-bound and bandwidth-bound collectives",
    question="Below what size is a collective latency-bound, so that a smaller array takes just as long?",
    controls={
        "op": Choice("collective", tuple(_FORMULAS)),
        "n": Slider("devices n", 2, 64, 16, "pow2"),
        "wired": Choice("topology", tuple(_WIRED)),
        "nbytes": Slider("array M", _LEAST, _MOST, 3.2e4, "log", "B"),
        "hop": Slider("one hop \N{GREEK SMALL LETTER ALPHA}", 1e-7, 1e-5, 1e-6, "log", "s"),
        "chip": Chips("chip", LINKED, "TPU v5e"),
    },
    view=_latency,
)
