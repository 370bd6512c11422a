"""Explorer of the load of every link of a torus, by shape and wraparound."""

import itertools
import math
from collections.abc import Sequence

from scalingbook_book.reader.explorers.parts import (
    LINKED,
    Bars,
    Chart,
    Chips,
    Choice,
    Explorer,
    Readout,
    Regions,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib import collectives
from scalingbook_lib.collectives import schedules
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.units import si

_OPS = {
    "AllToAll": (collectives.all_to_all, schedules.all_to_all_shares),
    "AllGather": (collectives.all_gather, schedules.all_gather_shares),
}
_WRAPS = {"all axes": lambda n: True, "axes of 16 (v5e, v6e)": lambda n: n == 16, "none": lambda n: False}
_LEVELS = 5
_KEYS = [f"{100 * k // _LEVELS}%" for k in range(1, _LEVELS + 1)]
_HALF = 0.17  # of a chip's side, where 1 is the distance of two chips


def _torus(*, op: str, A: int, B: int, C: int, wraps: str, nbytes: float, chip: str) -> View:
    shape = (A, B, C)
    axes = [chips.find(chip).axis(n, wrapped=_WRAPS[wraps](n) and n > 1) for n in shape]
    formula, shares_of = _OPS[op]
    shares = shares_of(*axes)
    busiest = [nbytes * max(links, default=0.0) for links in shares]
    named = [k for k, n in enumerate(shape) if n > 1] or [0]
    bars = Bars(
        Scale("busiest link, one direction", "B"),
        [f"along {'ABC'[k]}, {shape[k]} chips" for k in named],
        (Series("bytes", [busiest[k] for k in named], 0),),
    )
    return View(
        _verdict(op, axes, nbytes, busiest),
        (_plane(shares[0], shares[1], A=A, B=B, most=max(busiest) / nbytes, C=C), bars),
        (
            Readout("time by the formula", formula(nbytes, *axes).total_s, "s"),
            Readout("time of the busiest link", max(busiest) / axes[0].link_bytes_per_s, "s"),
            Readout("hops take", formula(nbytes, *axes).latency_s, "s"),
            Readout("in all", math.prod(shape), "chips"),
            Readout("each chip holds", nbytes / math.prod(shape), "B"),
        ),
    )


def _plane(down: Sequence[float], across: Sequence[float], *, A: int, B: int, most: float, C: int) -> Chart:
    """One plane of the torus as a lattice: chips at the crossings, links between them, strong where busy."""
    links = [[_level(_on(down, across, r=r, c=c), most) for c in range(2 * B)] for r in range(2 * A)]
    spots = [[0 if r % 2 == 0 and c % 2 == 0 else None for c in range(2 * B)] for r in range(2 * A)]
    xs, ys = _edges(B), _edges(A)
    return Chart(
        Scale("coordinate along B", "", "linear", -0.5, B - 0.1),
        Scale("coordinate along A", "", "linear", -0.5, A - 0.1),
        (Regions(_KEYS, xs, ys, links, ramp=True), Regions(["chip"], xs, ys, spots, colors=[5])),
        f"Load of each link, relative to the busiest{f' (one of {C} planes)' if C > 1 else ''}",
    )


def _on(down: Sequence[float], across: Sequence[float], *, r: int, c: int) -> float:
    """The share on the link at row r, column c of the lattice; 0 on chips, in holes, and past the last."""
    if r % 2 == c % 2:
        return 0.0
    return _both(across, c // 2) if c % 2 else _both(down, r // 2)


def _both(loads: Sequence[float], i: int) -> float:
    """The busier direction of a link: downwards a line carries the mirror of what it carries upwards."""
    return 0.0 if i >= len(loads) else max(loads[i], loads[len(loads) - 1 - i])


def _level(load: float, most: float) -> int | None:
    return min(math.ceil(_LEVELS * load / most - 1e-9), _LEVELS) - 1 if load > 0 else None


def _edges(n: int) -> list[float]:
    """Where chips and links begin along one axis: a wrap is the stub behind the last chip."""
    return [*itertools.chain.from_iterable((i - _HALF, i + _HALF) for i in range(n)), n - _HALF]


def _verdict(op: str, axes: Sequence[Axis], nbytes: float, busiest: Sequence[float]) -> str:
    formula, _ = _OPS[op]
    time = formula(nbytes, *axes)
    sizes = [axis.size for axis in axes]
    n = math.prod(sizes)
    if n == 1:
        return "A single chip does not communicate. Make an axis longer."
    said = f"{op} of {si(nbytes, 'B')} on {_written(sizes)} chips takes {si(time.total_s, 's')}."
    tops = [name for name, load in zip("ABC", busiest, strict=True) if load > 0.999 * max(busiest)]
    said += f" The links along {' and '.join(tops)} carry the most traffic, "
    said += f"up to {si(max(busiest), 'B')} in each direction."
    closed = [Axis(a.size, True, a.link_bytes_per_s, a.hop_s) for a in axes]
    if any(not a.wrapped and a.size > 1 for a in axes):
        ratio = time.bandwidth_s / formula(nbytes, *closed).bandwidth_s
        return f"{said} With wraparound on all axes, the bytes would move {ratio:.3g} times as fast."
    square = _squarest(n, sum(size > 1 for size in sizes))
    ratio = (
        time.bandwidth_s
        / formula(
            nbytes, *(Axis(s, True, axes[0].link_bytes_per_s, axes[0].hop_s) for s in square)
        ).bandwidth_s
    )
    if ratio > 1.001:
        return (
            f"{said} With the same number of chips in the shape {_written(square)}, the bytes would move "
            f"{ratio:.3g} times as fast."
        )
    return f"{said} No other shape with {n:,} chips and as many axes is faster."


def _squarest(n: int, axes: int) -> list[int]:
    """n chips, a power of two, on that many axes as equal as can be."""
    bits = round(math.log2(n))
    return [2 ** ((bits + k) // axes) for k in range(axes)]


def _written(sizes: Sequence[int]) -> str:
    return " × ".join(str(size) for size in sizes if size > 1)


TORUS = Explorer(
    key="sharding.torus",
    title="Link loads on a torus",
    question="Which links carry the most traffic, and how does the shape of the torus affect the time?",
    controls={
        "op": Choice("collective", tuple(_OPS)),
        "A": Slider("axis A", 1, 16, 4, "pow2", "chips"),
        "B": Slider("axis B", 1, 16, 16, "pow2", "chips"),
        "C": Slider("axis C", 1, 16, 1, "pow2", "chips"),
        "wraps": Choice("wraparound", tuple(_WRAPS)),
        "nbytes": Slider("whole array M", 1e6, 1e10, 6.4e7, "log", "B"),
        "chip": Chips("chip", LINKED, "TPU v5e"),
    },
    view=_torus,
)
