"""Explorer that maps by batch and width what is faster: AllGather the weights, or AllReduce the result."""

import math
from functools import lru_cache
from itertools import pairwise

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Regions,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul import SplitWeight, SplitWeightStrategy
from scalingbook_lib.units import count, si

_LABELS = ("1. gather W", "2. slice A, reduce Z", "3. all-to-all W, gather Z", "4. slice B, gather W and Z")
_KINDS = {  # two strategies by what limits them, and their colors
    (0, "network"): 1,
    (0, "compute"): 4,
    (1, "network"): 2,
    (1, "compute"): 0,
    (0, "memory"): 5,
    (1, "memory"): 3,
}
_TEXTBOOK, _EXACT, _ALL = "1 and 2, simple formulas", "1 and 2, exact", "all four, exact"
_LOW_B, _HIGH_B, _LOW_D, _HIGH_D = 16, 65536, 64, 262144
_COLUMNS, _ROWS = 44, 36


def product(chip: str, n: int, F: int, exact: bool) -> SplitWeight:
    """The matmul on a ring of n chips."""
    on = chips.find(chip)
    return SplitWeight(on, on.axis(n, wrapped=True), F, exact=exact)


@lru_cache(maxsize=64)
def regions(split: SplitWeight, among: int) -> Regions:
    """The fastest strategy in the middle of every cell of the map; of two, also what limits it."""
    xs, ys = _edges(_LOW_B, _HIGH_B, _COLUMNS), _edges(_LOW_D, _HIGH_D, _ROWS)
    middles = [math.sqrt(a * b) for a, b in pairwise(xs)]
    found = split.fastest_of_all(middles, [math.sqrt(a * b) for a, b in pairwise(ys)], among)
    if among > 2:
        return Regions(_LABELS, xs, ys, [[way for way, _ in row] for row in found], colors=(1, 2, 0, 3))
    kinds = list(_KINDS)[: 6 if split.exact else 4]
    labels = [f"{('gather', 'reduce')[way]}, {bound}-bound" for way, bound in kinds]
    cells = [[kinds.index(kind) for kind in row] for row in found]
    return Regions(labels, xs, ys, cells, colors=[_KINDS[kind] for kind in kinds])


def _edges(low: float, high: float, cells: int) -> list[float]:
    return [low * (high / low) ** (k / cells) for k in range(cells + 1)]


def _strategies(*, B: int, D: int, F: int, n: int, count_as: str, chip: str) -> View:
    split = product(chip, n, F, count_as != _TEXTBOOK)
    among = 4 if count_as == _ALL else 2
    ways = split.ways(B, D)[:among]
    return View(
        _verdict(split, B, D, ways),
        (_map(split, among, B, D), _bars(ways, split.exact)),
        (
            Readout("r = C / W", split.r, "", count(round(split.r))),
            Readout("gather W", ways[0].lower_s, "s"),
            Readout("reduce Z", ways[1].lower_s, "s"),
            Readout("boundary of 1 and 2", 2 * min(B, split.r), "", f"D = {2 * min(B, split.r):,.0f}"),
        ),
    )


def _map(split: SplitWeight, among: int, B: int, D: int) -> Chart:
    n, r = split.axis.size, split.r
    border = [_LOW_B, min(r, _HIGH_B), _HIGH_B]
    return Chart(
        Scale("tokens B", "", "log", _LOW_B, _HIGH_B),
        Scale("width D", "", "log", _LOW_D, _HIGH_D),
        (
            regions(split, among),
            Curve("D = 2 · min(B, r)", border, [2 * min(b, r) for b in border], 5),
            RefLine("B = r", r),
            RefLine("D = 2rn", 2 * r * n, "y"),
            Points("you", [B], [D], ["you"], 5),
        ),
    )


def _bars(ways: tuple[SplitWeightStrategy, ...], exact: bool) -> Bars:
    return Bars(
        Scale("time of each term", "s"),
        _LABELS[: len(ways)],
        (
            Series("math", [w.math_s for w in ways], 2),
            *((Series("HBM", [w.hbm_s for w in ways], 3),) if exact else ()),
            Series("network", [w.comms_s for w in ways], 1),
        ),
    )


def _verdict(split: SplitWeight, B: int, D: int, ways: tuple[SplitWeightStrategy, ...]) -> str:
    order = sorted(range(len(ways)), key=lambda k: ways[k].lower_s)
    best, other = order[0], order[1]
    ratio = ways[other].lower_s / ways[best].lower_s
    said = f"At {count(B)} tokens and width {count(D)} on {split.axis.size} chips"
    if ratio < 1.001:
        return (
            f"{said}, strategies {best + 1} and {other + 1} take equally long: {si(ways[best].lower_s, 's')}."
        )
    below = f"Below B = r = {split.r:,.0f}, gathering is network-bound, and reducing is faster if D > 2B"
    above = f"Above B = r = {split.r:,.0f}, gathering is compute-bound, and reducing is faster if D > 2r"
    rule = f"{below if split.r > B else above} = {2 * min(B, split.r):,.0f} (by the simple formulas)."
    first = f"strategy {best + 1} wins with {si(ways[best].lower_s, 's')}"
    return f"{said}, {first}; strategy {other + 1} takes {si(ways[other].lower_s, 's')}. {rule}"


STRATEGIES = Explorer(
    key="sharding.strategies",
    title="AllGather the weights or AllReduce the result",
    question="A[B, D] · W[D_X, F] → Z[B, F]: for what batch sizes and widths is it faster to gather the "
    "weights?",
    controls={
        "B": Slider("tokens B", _LOW_B, _HIGH_B, 1024, "log"),
        "D": Slider("width D", _LOW_D, _HIGH_D, 8192, "log"),
        "F": Slider("width F", 256, 131072, 16384, "pow2"),
        "n": Slider("chips n", 2, 64, 4, "pow2"),
        "count_as": Choice("strategies", (_TEXTBOOK, _EXACT, _ALL)),
        "chip": Chips("chip", TORI, "TPU v5p"),
    },
    view=_strategies,
)
