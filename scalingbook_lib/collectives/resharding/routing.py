"""The busiest link when every chip of a torus sends its shard to another chip.

A ring collective has a formula. An arbitrary permutation of shards on a torus has none, so its messages are
routed and counted. Routes go axis after axis in the shorter direction. A message travels in as many equal
parts as there are axes, each part starting on another axis, and a message to the antipode is split over both
directions.

A `DeviceMesh` is all that a cost model needs to know about the machine: its mesh axes, the torus axes under
them, and the chip. Chapter: Sharding.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from scalingbook_lib.collectives import Transfer
from scalingbook_lib.collectives.transfer import Collective
from scalingbook_lib.machines import Axis, Chip, SliceMesh
from scalingbook_lib.machines.routes import Place, Route
from scalingbook_lib.notation import axis_names
from scalingbook_lib.units import Result

type Shuffle = Mapping[Place, Place]  # the destination of each chip's shard
type Roles = Sequence[str]  # mesh axes, the slowest first


def shuffle(nbytes: float, axes: tuple[Axis, ...], goals: Shuffle) -> Transfer:
    """The time for every chip to send `nbytes` to its goal.

    The bandwidth term is that of the busiest link, the latency term that of the longest route.
    """
    loads = busiest_links(axes, goals)
    # the busiest link finishes last
    bandwidth_s = max(
        (load * nbytes / axis.link_bytes_per_s for load, axis in zip(loads, axes, strict=True)), default=0.0
    )
    latency_s = max((Route(axes, start, goal).first_byte_s for start, goal in goals.items()), default=0.0)
    return Transfer(Collective.PERMUTE, bandwidth_s, latency_s, bandwidth_s)


def busiest_links(axes: tuple[Axis, ...], goals: Shuffle) -> tuple[float, ...]:
    """For each axis, the number of whole messages on its busiest link."""
    d = len(axes)
    loads: Counter[tuple[int, int, Place]] = Counter()  # in halves of a part
    for start, goal in goals.items():
        for first in range(d):
            order = [(first + k) % d for k in range(d)]  # part `first` of d starts on that axis
            for link, halves in _route(axes, start, goal, order):
                loads[link] += halves
    most = [0] * d
    for (axis, _, _), load in loads.items():
        most[axis] = max(most[axis], load)
    return tuple(load / (2 * d) for load in most)  # from halves of a d-th to whole messages


def _route(
    axes: tuple[Axis, ...], start: Place, goal: Place, order: Iterable[int]
) -> Iterator[tuple[tuple[int, int, Place], int]]:
    """Every link on the route and the halves that it carries: 2, or 1 if both directions are used."""
    here, steps = list(start), Route(axes, start, goal).steps
    for a in order:
        size, step = axes[a].size, steps[a]
        antipode = axes[a].wrapped and 2 * abs(step) == size  # both directions are equally long
        directions = (1, -1) if antipode else (1 if step > 0 else -1,)
        for way, k in itertools.product(directions, range(abs(step))):
            at = (*here[:a], (here[a] + way * k) % size, *here[a + 1 :])
            yield (a, way, at), 2 // len(directions)
        here[a] = goal[a]


def relabel(nbytes: float, torus: Mapping[str, tuple[Axis, ...]], before: Roles, after: Roles) -> Transfer:
    """The time to change the roles of mesh axes: shards indexed by `before` become indexed by `after`.

    `relabel(nbytes, torus, "XY", "YX")`: the shard of chip (x, y), number x · Y + y, goes to the chip with y
    · X + x equal to that number. `torus` gives the torus axes under each mesh axis.
    """
    one_byte = _relabel(tuple(torus.items()), tuple(before), tuple(after))
    bandwidth_s = nbytes * one_byte.bandwidth_s
    return replace(one_byte, bandwidth_s=bandwidth_s, textbook_s=bandwidth_s)


@lru_cache(maxsize=1024)
def _relabel(torus: tuple[tuple[str, tuple[Axis, ...]], ...], before: Roles, after: Roles) -> Transfer:
    flat = tuple(axis for _, axes in torus for axis in axes)
    places = list(itertools.product(*(range(axis.size) for axis in flat)))
    by_number = {_number(place, torus, after): place for place in places}
    return shuffle(1, flat, {place: by_number[_number(place, torus, before)] for place in places})


def _number(place: Place, torus: tuple[tuple[str, tuple[Axis, ...]], ...], roles: Roles) -> int:
    """The index of a chip's shard: its coordinates as digits, the mesh axes in the order of their roles."""
    digits, number = iter(place), 0
    spread = {name: [(next(digits), axis.size) for axis in axes] for name, axes in torus}
    for name in roles:
        for digit, size in spread[name]:
            number = number * size + digit  # Horner's rule, the slowest axis first
    return number


class Rings(Result):
    """A hypothetical mesh in which each axis is a separate ring, or any given `Axis`."""

    __slots__ = ("_axes", "chip")

    def __init__(self, chip: Chip, /, **axes: int | Axis) -> None:
        self.chip = chip
        self._axes = {
            name: a if isinstance(a, Axis) else Axis(a, True, chip.link_bytes_per_s, chip.hop_s)
            for name, a in axes.items()
        }

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each mesh axis, in order."""
        return {name: axis.size for name, axis in self._axes.items()}

    def axes(self, names: str) -> tuple[Axis, ...]:
        """The ring under each of these mesh axes."""
        return tuple(self._axes[name] for name in axis_names(names))

    def __str__(self) -> str:
        shapes = (f"{'ring' if a.wrapped else 'line'} {name} of {a.size}" for name, a in self._axes.items())
        return f"{self.chip.name}: {', '.join(shapes)}"


type DeviceMesh = SliceMesh | Rings
"""Chips connected along named mesh axes."""
