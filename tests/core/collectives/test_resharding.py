"""Every move delivers the right blocks and no more, and the cheapest sequence is found."""

import itertools

import pytest
from data_mover import Machine

from scalingbook_lib import collectives
from scalingbook_lib.collectives import resharding
from scalingbook_lib.collectives.resharding import Moves, Rings, layout, reshard, routing
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.notation import NotationError, parse
from scalingbook_lib.units import BF16

approx = pytest.approx
CUBE = chips.Slice(chips.V5P, (4, 4, 4)).mesh(X=4, Y=4, Z=4)
SIZES = {"I": 8192, "J": 8192}
NAMES = {"all-gather": "AllGather", "all-to-all": "AllToAll"}


def seconds(*moves):
    return approx(sum(move.total_s for move in moves))


# --- every move does what it says ---------------------------------------------------------------------------


def neighbourhood(text, machine, sizes):
    """Every layout that can be reached, each with all its moves."""
    array = parse(text)
    moves = Moves(array, machine, sizes, BF16, frozenset(machine.sizes))
    known, ahead = set(), [layout(array)]
    while ahead:
        at = ahead.pop()
        if at not in known:
            known.add(at)
            ahead += [edge.after for edge in moves.edges(at)]
            yield at, [moves.move(edge) for edge in moves.edges(at)]


@pytest.mark.parametrize("text", ["A[I_X, J]", "A[I_X, J]{U_Y}", "A[I, J]{U_XY}"])
@pytest.mark.parametrize("mesh", [{"X": 2, "Y": 2}, {"X": 2, "Y": 3}])
def test_every_move_from_every_sharding_brings_each_device_exactly_its_block(text, mesh):
    sizes = {"I": 6, "J": 12} if mesh["Y"] == 3 else {"I": 4, "J": 8}
    machine, rings = Machine(mesh, sizes), Rings(chips.V5P, **mesh)
    count = 0
    for at, moves in neighbourhood(text, rings, sizes):
        data = machine.place(
            Moves(parse(text), rings, sizes, BF16, frozenset(mesh)).named(at), lambda i: hash(i)
        )
        for move in moves:
            after, received = machine.move(move, data)
            total(machine, move.after, after)
            n = collectives.chips(*rings.axes(move.axes))
            for kind, name in NAMES.items():
                if move.kind == name:
                    least = collectives.bytes_received(kind, move.nbytes, n) / BF16.bytes
                    assert set(received.values()) == {least}, move
            count += 1
    assert count > 10


def total(machine, array, data):
    """Summed over the axes of its partial sum, every element is the true one."""
    for device in machine.devices:
        group = machine.group(device, array.partial)
        for i in data[device]:
            assert sum(data[other][i] for other in group) == hash(i)


def test_three_axes_of_different_sizes_permute_correctly():
    mesh, sizes = {"X": 2, "Y": 4, "Z": 3}, {"I": 24, "J": 24}
    machine, start = Machine(mesh, sizes), layout(parse("A[I_XYZ, J]"))
    moves = Moves(parse("A[I_XYZ, J]"), Rings(chips.V5P, **mesh), sizes, BF16, frozenset(mesh))
    permutes = [moves.move(edge) for edge in moves.edges(start) if edge.kind == "CollectivePermute"]
    assert {move.after.axes for move in permutes} == set(itertools.permutations("XYZ")) - {("X", "Y", "Z")}
    for move in permutes:
        machine.move(move, machine.place(move.before, hash))


# --- the cheapest sequence ----------------------------------------------------------------------------------

whole = 2 * 8192 * 8192
x, y, z = (CUBE.axes(name) for name in "XYZ")


@pytest.mark.parametrize(
    ("before", "after", "says", "took"),
    [
        ("A[I, J]", "A[I_X, J_Y]", "slice A over X, slice A over Y", []),
        ("A[I_X, J]", "A[I, J]", "gather A over X", [collectives.all_gather(whole, *x)]),
        ("A[I_XY, J]", "A[I_X, J]", "gather A over Y", [collectives.all_gather(whole / 4, *y)]),
        ("A[I_XY, J]", "A[I, J]", "gather A over XY", [collectives.all_gather(whole, *x, *y)]),
        ("A[I_X, J_Y]", "A[I, J_Y]", "gather A over X", [collectives.all_gather(whole / 4, *x)]),
        ("A[I_X, J]", "A[I, J_X]", "all-to-all A over X", [collectives.all_to_all(whole, *x)]),
        ("A[I, J]{U_X}", "A[I_X, J]", "reduce-scatter A over X", [collectives.reduce_scatter(whole, *x)]),
        ("A[I, J]{U_X}", "A[I, J]", "all-reduce A over X", [collectives.all_reduce(whole, *x)]),
        ("A[I, J_Z]{U_X}", "A[I, J_Z]", "all-reduce A over X", [collectives.all_reduce(whole / 4, *x)]),
        ("A[I, J]{U_XY}", "A[I, J]{U_Y}", "all-reduce A over X", [collectives.all_reduce(whole, *x)]),
    ],
)
def test_between_two_shardings(before, after, says, took):
    found = reshard(before, after, CUBE, SIZES)
    assert found.best.description == says
    assert found.best.total_s == seconds(*took)


def test_to_swap_an_axis_slice_permute_and_gather():
    found = reshard("A[I_X, J]", "A[I_Y, J]", CUBE, SIZES)
    assert [move.kind for move in found.best.moves] == ["slice", "CollectivePermute", "AllGather"]
    assert found.best.total_s < collectives.all_gather(whole, *x).total_s / 2
    assert found.rejected[0].total_s >= found.best.total_s


def test_the_alternatives_are_slower_and_say_by_how_much():
    found = reshard("A[I, J]{U_X}", "A[I_X, J]", CUBE, SIZES)
    slower = {way.description: way.why for way in found.rejected}
    assert slower["all-reduce A over X, slice A over X"] == "2 times as long"
    assert all(way.total_s >= found.best.total_s for way in found.rejected)


def test_an_all_reduce_and_its_two_halves_take_as_long():
    found = reshard("A[I, J]{U_X}", "A[I, J]", CUBE, SIZES)
    assert "equally long, with more or different steps" in [way.why for way in found.rejected]


def test_replicas_may_fetch_over_links_that_would_be_idle():
    alone = reshard("A[I_X, J]", "A[I, J]", CUBE, SIZES)
    helped = reshard("A[I_X, J]", "A[I, J]", CUBE, SIZES, idle_links=True)
    assert helped.best.description == "slice A over Y, slice A over Z, gather A over XYZ"
    assert helped.best.total_s == seconds(collectives.all_gather(whole, *x, *y, *z))
    assert helped.best.total_s < alone.best.total_s / 2


def test_an_axis_of_one_chip_splits_nothing():
    one = Rings(chips.V5P, X=4, Y=1)
    assert reshard("A[I_Y, J]", "A[I, J]", one, SIZES).best.description == "nothing to move"
    assert reshard("A[I_X, J]{U_Y}", "A[I, J_YX]", one, SIZES).best.description == "all-to-all A over X"


def test_resharding_to_the_same_layout_is_free():
    found = reshard("A[I_X, J]", "A[I_X, J]", CUBE, SIZES)
    assert (found.best.total_s, found.best.description) == (0, "nothing to move")


def test_the_cheapest_never_takes_longer_than_gathering_everything_and_slicing():
    for before, after in itertools.permutations(
        ["A[I_X, J]", "A[I, J_X]", "A[I_XY, J]", "A[I_X, J_Y]", "A[I_Y, J]"], 2
    ):
        gathered = reshard(before, "A[I, J]", CUBE, SIZES).best.total_s
        assert reshard(before, after, CUBE, SIZES).best.total_s <= gathered * (1 + 1e-12)


# --- shuffles ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_shuffle_that_is_a_shift_takes_as_long_as_a_permute(n, wrapped):
    axis = Axis(n, wrapped, 7.0, 0.5)
    shift = 1 if wrapped else 0
    goals = {(i,): ((i + shift) % n,) for i in range(n)}
    assert routing.shuffle(70, (axis,), goals).total_s == approx(collectives.permute(70, axis, shift).total_s)


def test_a_transposition_of_a_torus_loads_its_links_as_counted_by_hand():
    """Half of each message takes this axis first: to the diagonal come a neighbour and half an antipode."""
    axes = (Axis(4, True, 1.0, 0.0), Axis(4, True, 1.0, 0.0))
    goals = {(i, j): (j, i) for i in range(4) for j in range(4)}
    assert routing.busiest_links(axes, goals) == (0.75, 0.75)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8])
def test_reversing_a_line_sends_half_of_it_over_the_middle_link(n):
    """The bisection's bound, met exactly, whatever lies beside the line."""
    line, beside = Axis(n, False, 1.0, 0.0), Axis(3, False, 1.0, 0.0)
    turned = {(i,): (n - 1 - i,) for i in range(n)}
    assert routing.busiest_links((line,), turned) == (n // 2,)
    both = {(i, j): (n - 1 - i, j) for i in range(n) for j in range(3)}
    assert routing.busiest_links((line, beside), both) == (n // 2, 0)


# --- refusals ---------------------------------------------------------------------------------------------


def test_what_does_not_split_evenly_is_refused_with_a_size_that_does():
    with pytest.raises(
        ValueError, match=r"I = 10 does not divide evenly over the 4 chips of X; pad it to 12"
    ):
        reshard("A[I_X, J]", "A[I, J]", CUBE, {"I": 10, "J": 8})


def test_resharding_into_a_partial_sum_is_refused():
    with pytest.raises(ValueError, match="not a partial sum over X"):
        reshard("A[I, J]", "A[I, J]{U_X}", CUBE, SIZES)


def test_resharding_between_different_dimensions_is_refused():
    with pytest.raises(ValueError, match="different dimensions"):
        reshard("A[I, J]", "A[I, K]", CUBE, SIZES)


def test_an_axis_that_the_mesh_lacks_is_a_notation_error():
    with pytest.raises(NotationError, match="no axis W"):
        reshard("A[I_W, J]", "A[I, J]", CUBE, SIZES)


def test_results_print_as_one_line():
    found = reshard("A[I_X, J]", "A[I, J_X]", CUBE, SIZES)
    assert str(found.best.moves[0]) == "AllToAll over X: A[I_X, J] → A[I, J_X], 134 MB, 170 µs"
    assert str(found) == (
        "A[I_X, J] → A[I, J_X]: all-to-all A over X: 170 µs; "
        "next best: gather A over X, slice A over X: 505 µs (2.98 times as long)"
    )
    assert str(Rings(chips.V5P, X=4)) == "TPU v5p: ring X of 4"
    assert str(resharding.Sequence(())) == "nothing to move: free"
