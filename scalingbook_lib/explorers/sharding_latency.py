"""When does a collective wait for its hops? Time over size, on rings and lines of several lengths."""

from dataclasses import replace

from scalingbook_lib import chips, collectives
from scalingbook_lib.explorers.controls import Choice, Slider, Switch
from scalingbook_lib.explorers.explorer import Explorer
from scalingbook_lib.explorers.view import Chart, Curve, Points, Readout, RefLine, Scale, View
from scalingbook_lib.torus import Axis
from scalingbook_lib.units import percent, si

_FORMULAS = {
    "AllGather": collectives.all_gather,
    "AllReduce": collectives.all_reduce,
    "AllToAll": collectives.all_to_all,
}
_LEAST, _MOST = 1e2, 1e9
_SIZES = [_LEAST * 10 ** (k / 5) for k in range(36)]
_OTHERS = (4, 16, 64)
_CHIPS = ("TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x")


def _latency(op: str, n: int, wrapped: bool, nbytes: float, hop: float, chip: str) -> View:
    formula = _FORMULAS[op]
    link = replace(chips.find(chip).axis(n, wrapped=wrapped), hop_s=hop)
    now = formula(nbytes, link)
    knee = collectives.latency_bound_below(link, collective=formula)
    curves = (
        _curve(f"{_shape(link)} of {n}", formula, link, 0),
        _curve(f"{_shape(_other(link))} of {n}", formula, _other(link), 1, dashed=True),
        *(_curve(f"ring of {m}", formula, replace(link, size=m, wrapped=True), 5) for m in _OTHERS if m != n),
    )
    chart = Chart(
        Scale("array M", "B", "log", _LEAST, _MOST),
        Scale("time", "s", "log", low=0.7 * min(curve.ys[0] for curve in curves)),
        (
            *curves,
            RefLine("hops = bytes", knee),
            Points("you", [nbytes], [now.total_s], [si(now.total_s, "s")], 2),
        ),
    )
    return View(
        _verdict(op, nbytes, link, now, knee),
        (chart,),
        (
            Readout("bytes take", now.bandwidth_s, "s"),
            Readout("hops take", now.latency_s, "s"),
            Readout("textbook's form", now.textbook_s, "s"),
            Readout("hops = bytes at", knee, "B"),
            Readout("that is per device", knee / n, "B"),
        ),
    )


def _curve(label: str, formula, axis: Axis, color: int, *, dashed: bool = False) -> Curve:
    return Curve(label, _SIZES, [formula(size, axis).total_s for size in _SIZES], color, dashed)


def _other(axis: Axis) -> Axis:
    return replace(axis, wrapped=not axis.wrapped)


def _shape(axis: Axis) -> str:
    return "ring" if axis.wrapped else "line"


def _verdict(op: str, nbytes: float, axis: Axis, now: collectives.Transfer, knee: float) -> str:
    ten = _FORMULAS[op](10 * nbytes, axis).total_s / now.total_s
    said = f"{op} of {si(nbytes, 'B')} on a {_shape(axis)} of {axis.size}: {si(now.total_s, 's')}"
    share = percent(now.latency_s / now.total_s)
    if nbytes < knee:
        return (
            f"{said}, of which the hops take {share}; ten times the bytes take only {ten:.3g} times as long."
        )
    return f"{said}, of which the hops take {share}; ten times the bytes take {ten:.3g} times as long."


LATENCY = Explorer(
    key="sharding.latency",
    title="Hops or bytes",
    question="Below which size does a collective take as long however small the array is?",
    controls={
        "op": Choice("collective", tuple(_FORMULAS)),
        "n": Slider("devices n", 2, 64, 16, "pow2"),
        "nbytes": Slider("array M", _LEAST, _MOST, 3.2e4, "log", "B"),
        "hop": Slider("one hop \N{GREEK SMALL LETTER ALPHA}", 1e-7, 1e-5, 1e-6, "log", "s"),
        "chip": Choice("chip", _CHIPS, "TPU v5e"),
        "wrapped": Switch("ring (off: a line)", True),
    },
    view=_latency,
)
