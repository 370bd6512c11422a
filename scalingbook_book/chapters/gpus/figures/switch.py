"""Figures of in-network reduction: an AllReduce in a ring and in the switch, in theory and as measured."""

from scalingbook_book.chapters.gpus.figures.node import EIGHT, chips_at, ring
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import collectives
from scalingbook_lib.evidence.measured import RUNS
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import GB200, H200

AT_8_GIB = 33  # the runs at 2^33 bytes, with and without sums in the switch


def sums() -> Figure:
    """An AllReduce in a ring and with in-network reduction, with the theoretical and measured speedup."""
    promised, measured = _promised(), _measured()
    return Figure(
        key="gpus.sums",
        alt=f"A ring of eight GPUs, in which each sends 7/4 of the array to its neighbor, beside eight GPUs around a switch that adds, in which each sends and receives 9/8 of "
        f"it. Bars: {promised:.2f} times as fast in theory, {measured:.2f} measured.",
        caption="An AllReduce in a ring and with in-network reduction. In a ring, each GPU sends almost "
        "twice the array; with in-network reduction, it sends the array and its own part of "
        f"the sum. In theory, that is {promised:.2f} times as fast for eight GPUs; the measured speedup is {measured:.2f}. "
        "(AllReduce of 8 GiB on eight H200s.)",
        parts=lambda wide: [_ways(wide), _gains(wide, promised, measured)],
    )


def _promised() -> float:
    levels = Cluster.of(GB200, EIGHT).levels
    once = collectives.all_reduce(1e9, *levels, in_switch=True).bandwidth_s
    return collectives.all_reduce(1e9, *levels).bandwidth_s / once


def _measured() -> float:
    """8 GiB over eight H200s: the seconds of a ring over those of sums in the switch."""
    took = {
        run.algorithm: run.microseconds[0]
        for run in RUNS
        if (run.chip, run.n, run.first) == (H200, EIGHT, AT_8_GIB)
    }
    return took["Ring (NCCL_NVLS_ENABLE=0)"] / took["NVLS"]


def _ways(wide: float) -> Sketch:
    left, right = wide / 4, 3 * wide / 4
    circle, star = ring(left, 92, 58), ring(right, 92, 58)
    shapes: list[Shape] = [
        Words(x=left, y=16, text="ring: the GPUs add", bold=True),
        Words(x=right, y=16, text="the switch adds", bold=True),
    ]
    for k in range(EIGHT):
        (x0, y0), (x1, y1) = circle[k], circle[(k + 1) % EIGHT]
        shapes.append(
            Arrow(
                x0=x0 + (x1 - x0) * 0.26,
                y0=y0 + (y1 - y0) * 0.26,
                x1=x0 + (x1 - x0) * 0.74,
                y1=y0 + (y1 - y0) * 0.74,
                color=NETWORK,
            )
        )
        x, y = star[k]
        shapes.append(
            Arrow(
                x0=x + (right - x) * 0.16,
                y0=y + (92 - y) * 0.16,
                x1=x + (right - x) * 0.68,
                y1=y + (92 - y) * 0.68,
                color=NETWORK,
                heads=2,
            )
        )
    shapes += [*chips_at(circle), *chips_at(star)]
    shapes += [
        Area(x=right - 15, y=80, wide=30, high=24, text="+", color=NETWORK, shade=0.5),
        Words(x=left, y=92, text="2 (1 − 1/8) M\nper GPU"),
        Words(x=right, y=178, text="9/8 M up, 9/8 M down", quiet=True),
        Words(x=left, y=178, text="7 steps, then 7", quiet=True),
    ]
    return Sketch(wide, 188, shapes)


def _gains(wide: float, promised: float, measured: float) -> Sketch:
    left, most = 126.0, wide - 126 - 60
    rows = (
        ("ring", 1.0, IDLE),
        ("switch, theory", promised, NETWORK),
        ("switch, measured", measured, NETWORK),
    )
    bars: list[Shape] = [Words(x=4, y=14, text="speed relative to the ring", align="start", quiet=True)]
    bars += [
        Area(
            x=left,
            y=26 + 28 * k,
            wide=most * gain / promised,
            high=20,
            color=color,
            left=name,
            right=f"{gain:.2f} ×",
            dashed="theory" in name,
        )
        for k, (name, gain, color) in enumerate(rows)
    ]
    return Sketch(wide, 26.0 + 28 * len(rows), bars)
