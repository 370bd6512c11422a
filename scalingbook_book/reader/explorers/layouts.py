"""Compute positions of the devices of a network in rings, lines and grids, as (x, y) from 0 to 1."""

import math

Spots = list[tuple[float, float]]


def ring(n: int) -> Spots:
    """Return n devices on a circle, clockwise from the top."""
    angles = [2 * math.pi * i / n - math.pi / 2 for i in range(n)]
    return [(round(0.5 + 0.5 * math.cos(a), 6), round(0.5 + 0.5 * math.sin(a), 6)) for a in angles]


def line(n: int, y: float = 0.5) -> Spots:
    """Return n devices from left to right."""
    return [(i / max(n - 1, 1) if n > 1 else 0.5, y) for i in range(n)]


def grid(rows: int, columns: int) -> Spots:
    """Return rows of devices from top to bottom, each from left to right."""
    xs = [x for x, _ in line(columns)]
    ys = [y for y, _ in line(rows)]
    return [(x, y) for y in ys for x in xs]
