"""How many cycles does a systolic array need, and which share of its cells works in them?

Side t, M rows streamed past every tile of weights. The formulas are those that `array.simulate` counts.
"""

from scalingbook_lib.units import at_least


def cycles(M: int, t: int, tiles: int = 1, double_buffered: bool = True) -> int:
    """From the first multiplication to the last result, once the first tile's weights are in place.

    M + 2t - 2 for one tile: a row enters every cycle, and the last one crosses t - 1 cells to the right and
    t - 1 down after its first. Every tile before the last costs one more period.
    """
    at_least(1, M=M, t=t, tiles=tiles)
    return (tiles - 1) * tile_period(M, t, double_buffered) + M + 2 * t - 2


def tile_period(M: int, t: int, double_buffered: bool = True) -> int:
    """Cycles from one tile's first row to the next tile's.

    New weights take t cycles to enter. With a second register in every cell they do so while M rows pass,
    max(M, t); with one register a cell either loads or multiplies, M + t.
    """
    at_least(1, M=M, t=t)
    return max(M, t) if double_buffered else M + t


def utilization(M: int, t: int, tiles: int = 1, double_buffered: bool = True) -> float:
    """The share of cell-cycles that multiply, from the first multiplication to the last result."""
    return tiles * M / cycles(M, t, tiles, double_buffered)


def rows_for(share: float, t: int) -> float:
    """The rows M at which one isolated tile reaches this utilization: M / (M + 2t - 2) = share."""
    at_least(1, t=t)
    if not 0 < share < 1:
        raise ValueError(f"share={share}: one tile keeps between none and all cells busy; write 0.9")
    return share * (2 * t - 2) / (1 - share)
