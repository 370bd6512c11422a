"""Hops, edge-disjoint paths and message times agree with a search over every link."""

import itertools
from collections import Counter, deque

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Slice, SliceError
from scalingbook_lib.machines.routes import Route
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.units import KB

TORI = {
    "line": [(5, False)],
    "ring": [(6, True)],
    "odd ring": [(5, True)],
    "mesh": [(3, False), (4, False)],
    "torus": [(4, True), (4, True)],
    "mixed": [(3, False), (4, True)],
    "cube": [(4, True), (4, True), (4, True)],
    "small cube": [(2, False), (2, False), (3, True)],
}
EVERY = pytest.mark.parametrize("name", TORI)


def axes_of(name):
    return [Axis(size, wrapped, 50e9, 1e-6) for size, wrapped in TORI[name]]


def pairs(axes):
    """Every two chips; on a ring all starts are alike, so one is enough."""
    starts = itertools.product(*(range(1 if axis.wrapped else axis.size) for axis in axes))
    return list(itertools.product(starts, itertools.product(*(range(axis.size) for axis in axes))))


def neighbors(axes, at):
    """Every chip at the other end of a link, as often as there are links to it."""
    for k, axis in enumerate(axes):
        for way in (1, -1):
            to = (at[k] + way) % axis.size if axis.wrapped else at[k] + way
            if 0 <= to < axis.size and to != at[k]:
                yield (*at[:k], to, *at[k + 1 :])


def distances(axes, source):
    far, waiting = {source: 0}, deque([source])
    while waiting:
        at = waiting.popleft()
        for to in neighbors(axes, at):
            if to not in far:
                far[to] = far[at] + 1
                waiting.append(to)
    return far


def disjoint(axes, source, target):
    """How many shortest ways share no link: augmenting paths over links that lead away."""
    far, home = distances(axes, source), distances(axes, target)
    room = Counter((at, to) for at in far for to in neighbors(axes, at)
                   if far[at] + 1 + home[to] == far[target])  # fmt: skip
    found = 0
    while way := _augment(room, source, target):
        for link in itertools.pairwise(way):
            room[link] -= 1
            room[link[::-1]] += 1
        found += 1
    return found


def _augment(room, source, target):
    came, waiting = {source: source}, deque([source])
    while waiting:
        at = waiting.popleft()
        for (start, to), free in room.items():
            if start == at and free > 0 and to not in came:
                came[to] = at
                waiting.append(to)
    if target not in came or source == target:
        return None
    way = [target]
    while way[-1] != source:
        way.append(came[way[-1]])
    return way[::-1]


@EVERY
def test_hops_equal_a_breadth_first_search_and_the_path_is_shortest(name):
    axes = axes_of(name)
    for source, target in pairs(axes):
        route = Route.between(axes, source, target)
        assert route.hops == distances(axes, source)[target]
        way = route.shortest
        assert (way[0], way[-1], len(way)) == (source, target, route.hops + 1)
        assert all(b in neighbors(axes, a) for a, b in itertools.pairwise(way))


@EVERY
def test_edge_disjoint_paths_are_as_many_as_a_search_finds(name):
    axes = axes_of(name)
    for source, target in pairs(axes)[:200]:
        assert Route.between(axes, source, target).paths == disjoint(axes, source, target), (source, target)


@pytest.mark.parametrize(
    ("chip", "shape"), [(chips.V5E, "8x16"), (chips.V5E, "4x4"), (chips.V5P, "4x4x4"), (chips.V4, "2x2x4")]
)
def test_mean_and_diameter_of_a_slice_are_those_of_its_routes(chip, shape):
    slice_ = Slice.of(chip, shape)
    places = list(itertools.product(*map(range, slice_.shape)))
    hops = [slice_.route(a, b).hops for a, b in itertools.product(places, repeat=2)]
    assert max(hops) == slice_.diameter_hops
    assert sum(hops) / len(hops) == pytest.approx(slice_.mean_hops)


def test_corner_to_corner_of_a_v5e_4x4():
    """Worked problem of the TPU chapter: bf16[8, 128, 8192] from (0, 0) to (3, 3), 45 GB/s a link.

    At the documented 50 GB/s it is 167.8 µs and 6 µs; at the book's 45, 186.4 and 6: 192.4 µs.
    """
    route = Slice.of(chips.V5E, "4x4").route((0, 0), (3, 3))
    assert (route.hops, route.paths, route.first_byte_s) == (6, 2, pytest.approx(6e-6))
    message = route.message(2 * 8 * 128 * 8192)
    assert (message.nbytes, message.bytes_s) == (16_777_216, pytest.approx(167.8e-6, rel=1e-3))
    assert message.total_s == pytest.approx(173.8e-6, rel=1e-3)
    achieved = Route(tuple(Axis(4, False, 45e9, 1e-6) for _ in range(2)), (0, 0), (3, 3))
    assert achieved.message(16_777_216).bytes_s == pytest.approx(186.4e-6, rel=1e-3)
    assert achieved.message(16_777_216).total_s == pytest.approx(192.4e-6, rel=1e-3)
    assert achieved.message(16_777_216, paths=1).bytes_s == pytest.approx(372.8e-6, rel=1e-3)


def test_a_ring_halves_the_distance_and_its_antipode_has_two_paths():
    ring = Slice.of(chips.V5E, "16x16")
    assert ring.route((0, 0), (15, 0)).hops == 1
    assert ring.route((0, 0), (15, 0)).steps == (-1, 0)
    assert (ring.route((0, 0), (8, 0)).paths, ring.route((0, 0), (8, 8)).paths) == (2, 4)
    assert ring.route((0, 0), (8, 8)).hops == ring.diameter_hops == 16


def test_the_time_of_a_small_message_is_its_hops():
    message = Slice.of(chips.V5E, "16x16").route((0, 0), (8, 8)).message(1 * KB)
    assert message.hops_s == pytest.approx(16e-6)
    assert message.bytes_s == pytest.approx(5e-9)


def test_a_message_to_its_own_chip_takes_no_time():
    here = Slice.of(chips.V5E, "4x4").route((1, 1), (1, 1))
    assert (here.hops, here.paths, here.shortest, here.message(1e9).total_s) == (0, 0, ((1, 1),), 0)
    assert str(here) == "(1, 1) to itself: no hops"


def test_a_route_and_a_message_print_as_one_line():
    route = Slice.of(chips.V5E, "4x4").route((0, 0), (3, 3))
    assert str(route) == (
        "(0, 0) to (3, 3): 6 hops, 2 disjoint shortest paths, first byte after 6 µs, then 100 GB/s"
    )
    assert str(route.message(16_777_216)) == "16.8 MB in 173.8 µs: hops 6 µs, bytes 167.8 µs"


@pytest.mark.parametrize("place", [(4, 0), (0, -1), (0,), (0, 0, 0)])
def test_a_route_to_a_chip_that_does_not_exist_is_refused(place):
    with pytest.raises(SliceError, match=r"chips go from \(0, 0\) to \(3, 3\)"):
        Slice.of(chips.V5E, "4x4").route((0, 0), place)


@pytest.mark.parametrize(
    ("nbytes", "paths", "said"),
    [(-1, None, "nbytes=-1: write a number of at least 0"), (1, 3, "from 1 to 2"), (1, 0, "1 to 2")],
)
def test_an_impossible_message_is_refused(nbytes, paths, said):
    with pytest.raises(ValueError, match=said):
        Slice.of(chips.V5E, "4x4").route((0, 0), (3, 3)).message(nbytes, paths=paths)
