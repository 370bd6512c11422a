"""Explorer of the links of a slice and the cost of its shape: a torus, drawn and compared."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Choice,
    Explorer,
    Grid,
    Link,
    Network,
    Node,
    Notation,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib import collectives
from scalingbook_lib.machines import Chip, Slice, chips
from scalingbook_lib.machines.torus import Shape, write_shape
from scalingbook_lib.units import MiB, si

_DRAWN = 128  # chips; a larger slice is drawn in blocks
_GRAINS = (1, 2, 4)  # chips along each side of a block
_RIVALS = 7
_SLANT = 0.36  # of the picture, for the axis that runs back
_FLATTEST, _TALLEST = 0.3, 0.56
_NAMES = "ABC"
_START = 3  # color of the chip where the arrows begin

type Place = tuple[int, ...]


def _slices(*, chip: str, shape: str, nbytes: float) -> View:
    here = Slice.of(chips.find(chip), shape)
    start = (0,) * len(here.shape)
    route = here.route(start, tuple(axis.diameter_hops for axis in here.axes))
    message = route.message(nbytes)
    return View(
        _verdict(here, nbytes),
        (_picture(here), _bars(here, nbytes), _rivals(here, nbytes)),
        (
            Readout("chips", here.chips),
            Readout("hosts", here.hosts),
            Readout("links", here.links),
            Readout("farthest chip", here.diameter_hops, "hops"),
            Readout("average distance", here.mean_hops, "hops", f"{here.mean_hops:.3g} hops"),
            Readout("bisection bandwidth, one direction", here.bisection_bytes_per_s, "B/s"),
            Readout("disjoint paths to the farthest chip", route.paths),
            Readout("time to send the array to it", message.total_s, "s", si(message.total_s, "s", 4)),
        ),
    )


# The picture


def _picture(here: Slice) -> Network:
    """Boxes of chips and their links, and in color the way to a farthest chip; of three axes, the surface."""
    grain = next((g for g in _GRAINS if here.chips / g ** len(here.shape) <= _DRAWN), _GRAINS[-1])
    sides = tuple(-(-n // grain) for n in here.shape)
    places = [place for place in itertools.product(*map(range, sides)) if _seen(place, sides)]
    index = {place: i for i, place in enumerate(places)}
    first = {way(here, range(len(sides)))[0]: (_START,)} if grain == 1 and here.chips > 1 else {}
    nodes = [Node("", *_spot(p, sides), first.get(p, ()), _box(grain, p)) for p in places]
    links = [
        *_links(sides, index),
        *_wraps(here, sides, index),
        *(_arrows(here, index) if grain == 1 else ()),
    ]
    return Network(nodes, links, _title(here, grain), _aspect(sides))


def _title(here: Slice, grain: int) -> str:
    if grain > 1:
        return f"{here.name}: each box is {grain ** len(here.shape)} chips"
    said = f"{here.name}: each box is a chip" + "; front, top and right side in view" * (len(here.shape) == 3)
    return said + "; arrows lead from the filled chip to the farthest one" * (here.chips > 1)


def _seen(place: Place, sides: Shape) -> bool:
    """Of a torus of three axes the front, the top and the right side are in sight."""
    return len(place) < 3 or place[0] == 0 or place[1] == 0 or place[2] == sides[2] - 1


def _box(grain: int, place: Place) -> str:
    return f"chip {place}" if grain == 1 else f"chips from {tuple(grain * at for at in place)}"


def _spot(place: Place, sides: Shape) -> tuple[float, float]:
    """Where a box stands, 0 to 1: the last axis runs right, the one before it down, a first of three back."""
    shares = (at / (side - 1) if side > 1 else 0.5 for at, side in zip(place, sides, strict=True))
    back, down, right = (0.0, *shares)[-3:]
    slant = _SLANT if len(sides) == 3 and sides[0] > 1 else 0.0
    return right * (1 - slant) + slant * back, down * (1 - slant) + slant * (1 - back)


def _aspect(sides: Shape) -> float:
    deep, rows, columns = (0, *sides)[-3:]
    return min(max((rows + 0.6 * deep) / (columns + 0.6 * deep), _FLATTEST), _TALLEST)


def _links(sides: Shape, index: dict[Place, int]) -> list[Link]:
    """A line between any two neighbors in sight."""
    pairs = [
        (i, index.get((*place[:k], place[k] + 1, *place[k + 1 :])))
        for place, i in index.items()
        for k in range(len(sides))
    ]
    return [Link(i, next_) for i, next_ in pairs if next_ is not None]


def _wraps(here: Slice, sides: Shape, index: dict[Place, int]) -> list[Link]:
    """Wraps as stubs at both ends of a row: all rows of two axes, one of each of three, at the rim."""
    links = []
    for k, axis in enumerate(here.axes):
        if axis.wrapped and sides[k] > 1:
            ends = [place for place in index if place[k] == 0 and _at_rim(k, place, sides)]
            links += [Link(index[(*p[:k], sides[k] - 1, *p[k + 1 :])], index[p], wrap=True) for p in ends]
    return links


def _at_rim(k: int, place: Place, sides: Shape) -> bool:
    if len(place) < 3:
        return True
    rim = (0, sides[1] - 1, sides[2] - 1) if k == 0 else (0, sides[1] - 1, 0)
    return all(place[i] == rim[i] for i in range(3) if i != k)


def _arrows(here: Slice, index: dict[Place, int]) -> list[Link]:
    """A way to a farthest chip, crossing the last axis first to stay in sight; of two axes, both ways."""
    rank = len(here.shape)
    orders = ((1, 0), (0, 1)) if rank == 2 else ((2, 0, 1),)
    return [
        Link(index[a], index[b], color=color)
        for color, order in enumerate(orders, 1)
        for a, b in itertools.pairwise(way(here, order))
    ]


def way(here: Slice, order: Sequence[int]) -> list[Place]:
    """A shortest way between two chips as far apart as any, crossing the axes in that order."""
    *firsts, last = here.axes
    at: Place = (*(0 for _ in firsts), last.size - 1 - last.diameter_hops)
    places: list[Place] = [at]
    for k in order:
        to = (*at[:k], at[k] + here.axes[k].diameter_hops, *at[k + 1 :])
        places += here.route(at, to).shortest[1:]
        at = to
    return places


# Its shape, in seconds


def _bars(here: Slice, nbytes: float) -> Bars:
    """An all-gather along each axis, and along all of them at once."""
    times = {
        f"{_NAMES[k]}, {'ring' if axis.wrapped else 'line'} of {axis.size}": collectives.all_gather(
            nbytes, axis
        )
        for k, axis in enumerate(here.axes)
        if axis.size > 1
    }
    if len(times) > 1:
        times["all axes"] = collectives.all_gather(nbytes, *here.axes)
    if not times:
        times["one chip"] = collectives.NOTHING
    return Bars(
        Scale("AllGather of the array", "s"),
        tuple(times),
        (
            Series("bytes", [t.bandwidth_s for t in times.values()], 0),
            Series("hops", [t.latency_s for t in times.values()], 3),
        ),
        stacked=True,
    )


@lru_cache(maxsize=64)
def rivals(chip: Chip, shape: Shape) -> tuple[Shape, ...]:
    """Other shapes of as many chips, or else those of the nearest sizes; the shape itself among them."""
    n, every = math.prod(shape), [s for s in chip.topology().shapes() if sorted(s) != sorted(shape)]
    alike = [s for s in every if math.prod(s) == n]
    others = sorted(alike or every, key=lambda s: (abs(math.log2(math.prod(s) / n)), max(s)))
    return tuple(sorted([shape, *others[: _RIVALS - 1]], key=lambda s: (math.prod(s), max(s))))


def _rivals(here: Slice, nbytes: float) -> Grid:
    others = [Slice(here.chip, shape) for shape in rivals(here.chip, here.shape)]
    same = {other.chips for other in others} == {here.chips}
    return Grid(
        f"Slices of {here.chips:,} chips" if same else "Slices of nearby sizes",
        [write_shape(other.shape) for other in others],
        ("rings", "bisection", "farthest", "AllGather"),
        [
            [Cell(text, 0 if other == here else None, level=0.5) for text in _row(other, nbytes)]
            for other in others
        ],
    )


def _row(other: Slice, nbytes: float) -> tuple[str, ...]:
    rings = sum(axis.wrapped for axis in other.axes)
    cut = si(other.bisection_bytes_per_s, "B/s") if other.chips > 1 else "none"
    return (
        f"{rings} of {sum(axis.size > 1 for axis in other.axes)}",
        cut,
        f"{pluralize(other.diameter_hops, 'hop')}",
        si(_gather(other, nbytes).total_s, "s"),
    )


def _gather(here: Slice, nbytes: float) -> collectives.Transfer:
    return collectives.all_gather(nbytes, *here.axes)


def _verdict(here: Slice, nbytes: float) -> str:
    time = _gather(here, nbytes)
    if here.chips == 1:
        return f"{here}: a single chip has no neighbors."
    said = f"{here}. An AllGather of {si(nbytes, 'B')} over the whole slice takes {si(time.total_s, 's')}"
    best = min(
        (Slice(here.chip, s) for s in rivals(here.chip, here.shape) if math.prod(s) == here.chips),
        key=lambda s: _gather(s, nbytes).total_s,
    )
    ratio = time.total_s / _gather(best, nbytes).total_s
    if ratio > 1.001:
        return f"{said}, {ratio:.3g} times as long as on {write_shape(best.shape)}."
    twisted = " This shape is also offered as a twisted torus." * here.chip.topology().twistable(here.shape)
    return f"{said}.{twisted}"


SLICES = Explorer(
    key="tpus.slices",
    title="Slice shapes: rings, distances and bisection bandwidth",
    question="Which axes of a slice are rings, and what does its shape cost?",
    controls={
        "chip": Choice("generation", tuple(chip.name for chip in chips.TPUS), "TPU v5p"),
        "shape": Notation("shape", "4x4x8", "two axes as in 4x8, or three (v4, v5p, TPU7x)"),
        "nbytes": Slider("array", MiB, 2**36, 2**24, "pow2", "B"),
    },
    view=_slices,
)
