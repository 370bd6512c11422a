"""Which parts of a line can be drawn? Those between its gaps, cut to the plot's box."""

import math
from collections.abc import Sequence
from itertools import groupby

Line = tuple[list[float], list[float]]  # pixels
Box = tuple[float, float, float, float]  # left, top, right, bottom


def pieces(xs: Sequence[float], ys: Sequence[float]) -> list[Line]:
    """The stretches of a curve between its gaps, which are values that are inf or nan."""
    runs = groupby(zip(xs, ys, strict=True), key=lambda p: math.isfinite(p[0]) and math.isfinite(p[1]))
    stretches = [list(run) for drawn, run in runs if drawn]
    return [([x for x, _ in s], [y for _, y in s]) for s in stretches]


def within(xs: list[float], ys: list[float], box: Box) -> list[Line]:
    """The parts of a line within the box; the line itself where all of it is."""
    left, top, right, bottom = box[0] - 0.05, box[1] - 0.05, box[2] + 0.05, box[3] + 0.05
    if min(xs) >= left and max(xs) <= right and min(ys) >= top and max(ys) <= bottom:
        return [(xs, ys)]
    lines: list[Line] = []
    for i in range(len(xs) - 1):
        cut = _segment(xs[i], ys[i], xs[i + 1], ys[i + 1], (left, top, right, bottom))
        if cut is None:
            continue
        x0, y0, x1, y1 = cut
        if not (lines and lines[-1][0][-1] == x0 and lines[-1][1][-1] == y0):
            lines.append(([x0], [y0]))
        lines[-1][0].append(x1)
        lines[-1][1].append(y1)
    return lines


def _segment(
    x0: float, y0: float, x1: float, y1: float, box: Box
) -> tuple[float, float, float, float] | None:
    """The part of a segment within the box (Liang and Barsky); None where there is none."""
    enter, leave, dx, dy = 0.0, 1.0, x1 - x0, y1 - y0
    for run, room in ((-dx, x0 - box[0]), (dx, box[2] - x0), (-dy, y0 - box[1]), (dy, box[3] - y0)):
        if run == 0 and room < 0:
            return None
        if run < 0:
            enter = max(enter, room / run)
        elif run > 0:
            leave = min(leave, room / run)
    if enter > leave:
        return None
    start = (x0, y0) if enter == 0 else (x0 + enter * dx, y0 + enter * dy)
    end = (x1, y1) if leave == 1 else (x0 + leave * dx, y0 + leave * dy)
    return (*start, *end)
