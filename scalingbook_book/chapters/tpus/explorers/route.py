"""Explorer of the hops from one chip of a slice to another, and the time of a message."""

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Notation,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Switch,
    View,
    join_and,
    torus,
)
from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import Slice
from scalingbook_lib.machines.routes import Message, Place, Route
from scalingbook_lib.units import si

_SLICES = (
    "TPU v5e 4x4",
    "TPU v5e 8x8",
    "TPU v5e 8x16",
    "TPU v5e 16x16",
    "TPU v6e 8x16",
    "TPU v4 4x4x4",
    "TPU v5p 4x4x8",
    "TPU v5p 8x8x16",
    "TPU7x 8x16x16",
)
_LEAST, _MOST = 1e2, 1e10
_SIZES = [_LEAST * 10 ** (k / 4) for k in range(33)]
_HOPS, _WAY = 0, 1  # colors


def _route(*, on: str, source: str, target: str, nbytes: float, every: bool) -> View:
    here = torus(on)
    route = here.route(*(place(text, len(here.shape)) for text in (source, target)))
    paths = None if every else 1
    message = route.message(nbytes, paths=paths)
    knee = roofline.bytes_in_flight(route.bytes_per_s / (1 if every else max(route.paths, 1)), message.hops_s)
    return View(
        _verdict(route, message, knee, every),
        (_map(here, route), *([_chart(route, message, knee, paths)] if route.hops else [])),
        (
            Readout("hops", route.hops, "", f"{route.hops} (at most {here.diameter_hops} in this slice)"),
            Readout("disjoint shortest paths", route.paths),
            Readout("first byte arrives after", message.hops_s, "s"),
            Readout("time of the bytes", message.bytes_s, "s", si(message.bytes_s, "s", 4)),
            Readout("last byte arrives after", message.total_s, "s", si(message.total_s, "s", 4)),
            Readout("size at which hops and bytes take equally long", knee, "B"),
            Readout("average distance in the slice", here.mean_hops, "hops", f"{here.mean_hops:.3g} hops"),
        ),
    )


def place(text: str, axes: int) -> Place:
    """'0, 3' as (0, 3), or as (0, 0, 3) on three axes; an error that says how a chip is written."""
    try:
        given = tuple(int(part) for part in text.strip(" ()").split(","))
    except ValueError:
        raise ValueError(f"{text!r} is not a chip; write its coordinates, as in 0, 3") from None
    return (0,) * (axes - len(given)) + given


def _map(here: Slice, route: Route) -> Grid:
    """Every chip of the target's plane with its hops from the source; the way in another color."""
    *plane, rows, columns = here.shape
    at = route.target[: len(plane)]
    far, way = here.diameter_hops or 1, {*route.shortest}
    cells = [
        [_cell(here, route, (*at, r, c), far, (*at, r, c) in way) for c in range(columns)]
        for r in range(rows)
    ]
    where = f" to the plane of {route.target}" if plane else ""
    return Grid(f"Hops from {route.source}{where}", (), (), cells)


def _cell(here: Slice, route: Route, at: Place, far: int, on_way: bool) -> Cell:
    hops = here.route(route.source, at).hops
    end = at in (route.source, route.target)
    color, level = (_WAY, 1.7 if end else 1.0) if on_way else (_HOPS, 0.08 + 0.92 * hops / far)
    return Cell(str(hops), color, level=level)


def _chart(route: Route, message: Message, knee: float, paths: int | None) -> Chart:
    times = [route.message(size, paths=paths) for size in _SIZES]
    single = [route.message(size, paths=1) for size in _SIZES]
    curves = [Curve("one path", _SIZES, [t.total_s for t in single], 5, dashed=True)] * (route.paths > 1)
    return Chart(
        Scale("message", "B", "log", _LEAST, _MOST),
        Scale("time", "s", "log"),
        (
            *curves,
            Curve("your paths", _SIZES, [t.total_s for t in times], 0),
            RefLine("hops = bytes", knee),
            Points("you", [message.nbytes], [message.total_s], [si(message.total_s, "s")], 3),
        ),
    )


def _verdict(route: Route, message: Message, knee: float, every: bool) -> str:
    if not route.hops:
        return f"{route}."
    said = f"{route}. {'' if every or route.paths == 1 else 'Over one of them, '}{message}."
    if rings := _wrapped(route):
        said += (
            f" The shorter way around the ring of {rings[0]} uses its wraparound link."
            if len(rings) == 1
            else f" The shorter ways around the rings of {join_and(rings)} use their wraparound links."
        )
    if message.nbytes < knee:
        said += f" Below {si(knee, 'B')}, the hops take longer than the bytes."
    return said


def _wrapped(route: Route) -> list[str]:
    """The sizes of the rings whose wrap the way crosses."""
    moves = zip(route.axes, route.source, route.target, route.steps, strict=True)
    return [str(axis.size) for axis, at, to, step in moves if at + step != to]


ROUTE = Explorer(
    key="tpus.route",
    title="A message over several hops",
    question="How long does a message take between two chips, and when do its hops matter?",
    controls={
        "on": Choice("slice", _SLICES),
        "source": Notation("from chip", "0, 0", "its coordinates, as in 0, 3"),
        "target": Notation("to chip", "3, 3", "or 1, 0, 3 on three axes"),
        "nbytes": Slider("message", _LEAST, _MOST, 2**24, "log", "B"),
        "every": Switch("all disjoint paths", True),
    },
    view=_route,
)
