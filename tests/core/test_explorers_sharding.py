"""The sharding chapter's explorers obey the laws of what they show."""

import itertools
import math
import random

import pytest

from scalingbook_lib import collectives
from scalingbook_lib.chapters import explorers
from scalingbook_lib.chapters.sharding.explorers.painter import painting
from scalingbook_lib.chapters.sharding.explorers.player import COLLECTIVES, exact, plan
from scalingbook_lib.chapters.sharding.explorers.reshard import resharding
from scalingbook_lib.chapters.sharding.explorers.strategies import product
from scalingbook_lib.chapters.sharding.explorers.transpose import gather_matrix, transposed
from scalingbook_lib.collectives import schedules
from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Mesh
from scalingbook_lib.reader.explorers.controls import Notation, Steps
from scalingbook_lib.reader.explorers.view import (
    Bars,
    Chart,
    Curve,
    Grid,
    Network,
    RefLine,
    Regions,
    Timeline,
    View,
)
from scalingbook_lib.sharded_matmul import SplitWeight, solve

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("sharding")}
PLAYER, PAINTER, LATENCY, TORUS = (ALL[name] for name in ("player", "painter", "latency", "torus"))
CASES, RESHARD, STRATEGIES, OVERLAP = (ALL[name] for name in ("cases", "reshard", "strategies", "overlap"))
TRANSPOSE = ALL["transpose"]
BASES = {"reshard": {"idle": {"after": "A[I, J]"}}}  # where a control has nothing to say at the start


def panels[T](view: View, kind: type[T]) -> list[T]:
    return [p for p in view.panels if isinstance(p, kind)]


def marks[T](view: View, kind: type[T]) -> list[T]:
    return [m for p in panels(view, Chart) for m in p.marks if isinstance(m, kind)]


def readout(view, label):
    return next(r.value for r in view.readouts if r.label == label)


def values(control):
    """Both ends and the start of a control; all of its options."""
    if isinstance(control, Steps):
        return [0, 1, 10**6]
    if isinstance(control, Notation):
        return [control.start]
    ends = getattr(control, "options", None) or (
        getattr(control, "low", False),
        getattr(control, "high", True),
    )
    return list(dict.fromkeys([control.start or ends[0], *ends]))


# Laws of all of them


@pytest.mark.parametrize("name", ALL)
def test_every_pair_of_settings_paints_or_says_why_not(name):
    explorer = ALL[name]
    for (a, first), (b, second) in itertools.combinations(explorer.controls.items(), 2):
        for one, other in itertools.product(values(first), values(second)):
            state = {a: first.position(one), b: second.position(other)}
            painted = explorer.paint(state)
            assert painted.verdict or len(painted.error) > 20
            assert explorer.paint(state, wide=False).figure.count("<svg") == painted.figure.count("<svg")


@pytest.mark.parametrize("name", ALL)
def test_every_control_changes_something(name):
    explorer = ALL[name]
    for control_name, control in explorer.controls.items():
        base = BASES.get(name, {}).get(control_name, {})
        start = explorer.paint(base)
        if not isinstance(control, Notation):
            others = [explorer.paint(base | {control_name: control.position(v)}) for v in values(control)[1:]]
            assert any((p.figure, p.readouts) != (start.figure, start.readouts) for p in others), control_name


# The player


@pytest.mark.parametrize("op", COLLECTIVES)
@pytest.mark.parametrize("n", [2, 3, 8, 9])
@pytest.mark.parametrize(("wrapped", "both"), [(True, True), (False, True), (True, False)])
def test_the_last_step_ends_at_the_exact_time(op, n, wrapped, both):
    view = PLAYER.see(op=op, n=n, wrapped=wrapped, both=both, nbytes=3e6, step=10**6)
    axis = chips.V5E.axis(n, wrapped=wrapped)
    assert readout(view, "elapsed") == pytest.approx(exact(op, 3e6, axis, both).total_s)
    assert readout(view, "exact total") == pytest.approx(readout(view, "elapsed"))


@pytest.mark.parametrize("op", COLLECTIVES)
@pytest.mark.parametrize("wrapped", [True, False])
def test_the_bytes_shown_on_the_links_are_those_of_the_schedule(op, wrapped):
    schedule = plan(op, 8, wrapped, True)
    view = PLAYER.see(op=op, n=8, wrapped=wrapped, nbytes=schedule.pieces * 1e3, step=10**6)
    (table,) = panels(view, Grid)
    shown = [cell.note or "0 B" for row in table.cells for cell in (row[1], row[3])]
    loads = schedule.loads
    assert sum(float(text.split()[0].replace(",", "")) for text in shown) == sum(loads.values())
    assert readout(view, "busiest link carries") == max(loads.values()) * 1e3


def test_the_arrows_of_a_step_are_its_messages():
    for step in range(1, 5):
        (network,) = panels(PLAYER.see(op="AllGather", n=8, step=step), Network)
        arrows = [link for link in network.links if link.color is not None]
        sends = plan("AllGather", 8, True, True).steps[step - 1].sends
        assert [(a.start, a.end, a.value) for a in arrows] == [
            (s.link.source, s.target, len(s.pieces)) for s in sends
        ]
        assert [a.color for a in arrows] == [s.pieces[0].block % 5 for s in sends]


@pytest.mark.parametrize(
    ("op", "start", "end"), [("AllGather", 1, 8), ("ReduceScatter", 8, 1), ("AllReduce", 8, 8)]
)
def test_a_collective_starts_and_ends_with_the_chunks_that_it_should(op, start, end):
    for step, held in ((0, start), (10**6, end)):
        (network,) = panels(PLAYER.see(op=op, n=8, step=step), Network)
        assert {sum(part is not None for part in node.parts) for node in network.nodes} == {held}


def test_an_all_to_all_brings_every_device_its_own_color():
    (network,) = panels(PLAYER.see(op="AllToAll", n=5, step=10**6), Network)
    assert [set(node.parts) for node in network.nodes] == [{k} for k in range(5)]


def test_a_line_takes_twice_a_ring_and_says_so():
    assert "1/2 of the time" in PLAYER.see(wrapped=False).verdict
    assert "hardly matters" in PLAYER.see().verdict
    assert "The hops take" in PLAYER.see(nbytes=1e3).verdict


def test_a_line_in_one_direction_is_refused_with_a_way_out():
    painted = PLAYER.paint({"wrapped": False, "both": False})
    assert painted.error.endswith("use both ways.")


# The painter


@pytest.mark.parametrize(
    "text", ["A[I, J]", "A[I_X, J_Y]", "A[I_XY, J_Z]", "A[I_ZYX, J]", "x[D_Y]", "A[I_X, J]{U_Y}"]
)
@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 1), (1, 8, 4)])
def test_the_blocks_cover_the_array_once(text, sizes):
    picture = painting(text, Mesh(**dict(zip("XYZ", sizes, strict=True))), 128, 64)
    covered = [cell for block in picture.holders for cell in itertools.product(*block)]
    shape = picture.array.shape(**picture.sizes)
    assert sorted(covered) == list(itertools.product(*map(range, shape)))
    assert sum(len(who) for who in picture.holders.values()) == picture.mesh.devices


def test_every_block_is_on_as_many_devices_as_there_are_replicas():
    view = PAINTER.see(text="A[I_X, J]", X=2, Y=4, Z=2)
    assert readout(view, "copies of each block") == 8
    assert "names Y or Z" in view.verdict


def test_every_device_is_drawn_with_the_part_that_it_holds():
    mesh = panels(PAINTER.see(text="A[I_YX, J_Z]", X=2, Y=3, Z=2, I=96, J=64), Grid)[1]
    picture = painting("A[I_YX, J_Z]", Mesh(X=2, Y=3, Z=2), 96, 64)
    drawn = {cell.text: cell.part for row in mesh.cells for cell in row}
    for device, (down, across) in picture.held.items():
        part = (down.start / 96, down.stop / 96, across.start / 64, across.stop / 64)
        assert drawn[str(picture.number(device))] == part


def test_the_pop_quiz_of_the_chapter():
    view = PAINTER.see(text="A[I_XY, J]", X=2, Y=8, Z=2, I=128, J=2048, numbers="int8")
    assert readout(view, "bytes per device") == 16384
    assert readout(view, "all devices together") == 524288


def test_the_order_of_subscripts_moves_blocks_to_other_devices():
    xy, yx = (PAINTER.see(text=f"A[I_{axes}, J]", Z=1).panels[0] for axes in ("XY", "YX"))
    assert [row[0].text.split()[1] for row in xy.cells] == ["0", "1", "2", "3"]
    assert [row[0].text.split()[1] for row in yx.cells] == ["0", "2", "1", "3"]


def test_an_illegal_text_becomes_the_sentence_of_the_notation():
    assert "already splits I" in PAINTER.paint({"text": "A[I_X, J_X]"}).error
    assert "write one or two" in PAINTER.paint({"text": "A[I_X, J, K]"}).error
    assert "no axis W" in PAINTER.paint({"text": "A[I_W, J]"}).error


def test_an_uneven_split_tells_its_padding():
    view = PAINTER.see(text="A[I_X, J]", X=3, I=8, Y=1, Z=1)
    assert "11 % padding" in view.verdict  # 9 rows stored for 8
    assert readout(view, "all devices together") == pytest.approx(9 / 8 * readout(view, "one whole array"))


# Hops or bytes


@pytest.mark.parametrize("wired", ["ring", "line", "torus"])
@pytest.mark.parametrize("op", ["AllGather", "AllReduce", "AllToAll"])
def test_at_the_marked_size_hops_and_bytes_take_equally_long(op, wired):
    (knee,) = marks(LATENCY.see(op=op, wired=wired), RefLine)
    view = LATENCY.see(op=op, wired=wired, nbytes=knee.at)
    assert readout(view, "bytes take") == pytest.approx(readout(view, "hops take"))


def test_large_arrays_take_equally_long_on_every_large_ring_and_twice_as_long_on_a_line():
    curves = {c.label: c for c in marks(LATENCY.see(n=16), Curve)}
    assert curves["ring of 64"].ys[-1] == pytest.approx(curves["ring of 16"].ys[-1], rel=0.06)
    assert curves["line of 16"].ys[-1] == pytest.approx(2 * curves["ring of 16"].ys[-1], rel=0.01)
    assert curves["torus of 16"].ys[-1] == pytest.approx(curves["ring of 16"].ys[-1] / 2, rel=0.01)
    assert curves["ring of 64"].ys[0] == pytest.approx(4 * curves["ring of 16"].ys[0], rel=0.01)


@pytest.mark.parametrize("n", [4, 8, 32])
def test_ring_line_and_torus_have_the_hops_of_as_many_chips(n):
    hops = {wired: round(readout(LATENCY.see(n=n, wired=wired), "hops take") / 1e-6)
            for wired in ("ring", "line", "torus")}  # fmt: skip
    sides = {4: (2, 2), 8: (2, 4), 32: (4, 8)}[n]
    assert hops == {"ring": n // 2, "line": n - 1, "torus": sum(side // 2 for side in sides)}


def test_the_curve_is_the_formula():
    axis = chips.V5P.axis(16, wrapped=True)
    curve = marks(LATENCY.see(n=16, chip="TPU v5p"), Curve)[0]
    for nbytes, seconds in zip(curve.xs, curve.ys, strict=True):
        assert seconds == collectives.all_gather(nbytes, axis).total_s


# The torus


@pytest.mark.parametrize("sizes", [(4,), (5,), (2, 4), (3, 4), (2, 2, 3), (1, 4)])
@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("op", ["all_gather", "all_to_all"])
def test_the_loads_of_all_links_are_those_of_the_steps(op, sizes, wrapped):
    schedule = getattr(schedules, op)(sizes, wrapped)
    axes = [chips.V5E.axis(n, wrapped=wrapped) for n in sizes]
    shares = getattr(schedules, f"{op}_shares")(*axes)
    for link, load in schedule.loads.items():
        stride = math.prod(sizes[link.axis + 1 :])
        place = link.source // stride % sizes[link.axis]
        if link.way < 0:  # the link from i down to i - 1 mirrors the one up from n - 1 - i
            place = sizes[link.axis] - 1 - place
        assert shares[link.axis][place] == pytest.approx(load / schedule.pieces)


@pytest.mark.parametrize("sizes", [(4, 16, 1), (8, 8, 1), (4, 4, 4), (16, 1, 1)])
@pytest.mark.parametrize("wraps", ["all axes", "none"])
def test_the_busiest_link_of_an_all_to_all_sets_its_time(sizes, wraps):
    view = TORUS.see(wraps=wraps, **dict(zip("ABC", sizes, strict=True)))
    by_formula = readout(view, "time, by the formula") - readout(view, "hops take")
    assert readout(view, "busiest link takes") == pytest.approx(by_formula)


def test_the_longest_axis_is_the_bottleneck_and_a_cut_wrap_doubles():
    view = TORUS.see(A=4, B=16)
    assert "along B carry most" in view.verdict
    assert "As 8 × 8, the bytes would take 1/2" in view.verdict
    cut = TORUS.see(A=4, B=16, wraps="none")
    assert readout(cut, "busiest link takes") == 2 * readout(view, "busiest link takes")
    assert "1/2 of the time" in cut.verdict


def test_the_lattice_has_a_stub_where_an_axis_wraps_and_none_where_not():
    for wraps, stubs in (("all axes", True), ("axes of 16 (v5e, v6e)", True), ("none", False)):
        links = marks(TORUS.see(A=4, B=16, wraps=wraps), Regions)[0]
        assert [row[-1] is not None for row in links.cells] == [stubs, False] * 4


@pytest.mark.parametrize("op", ["AllToAll", "AllGather"])
def test_on_a_line_the_busier_direction_of_a_link_is_shown_so_both_ends_look_alike(op):
    links = marks(TORUS.see(op=op, A=1, B=16, wraps="none"), Regions)[0]
    across = list(links.cells[0])[1:-1:2]
    assert across == across[::-1]
    assert max(cell or 0 for cell in across) == 4  # the darkest of five levels


# The four cases


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]", 1),
        ("A[I, J_X] * B[J, K] -> C[I, K]", 2),
        ("A[I, J_X] @ B[J_X, K] → C[I, K]", 3),
        ("A[I_X, J] · B[J, K_X] -> C[I, K_X]", 4),
    ],
)
def test_every_case_is_recognized_and_its_bars_are_the_solver_s(text, case):
    view = CASES.see(text=text)
    machine = Rings(chips.V5P, X=chips.V5P.axis(4), Y=chips.V5P.axis(4))
    solution = solve(text, machine, {"I": 2048, "J": 8192, "K": 2048})
    assert readout(view, "case") == case == solution.case
    (bars,) = panels(view, Bars)
    shown = solution.strategies[: len(bars.labels)]
    assert [label.partition(". ")[2] for label in bars.labels] == [s.name for s in shown]
    terms = [(s.math_s, s.hbm_s, s.comms_s) for s in shown]
    assert list(zip(*(series.values for series in bars.series), strict=True)) == terms
    assert readout(view, "fastest") == solution.best.lower_s
    assert solution.best.name in view.verdict


def test_a_larger_k_makes_another_strategy_win():
    assert "all-reduce C" in CASES.see(K=2048).verdict
    assert "Fastest: exchange A over Y" in CASES.see(K=8192).verdict
    assert "gather A over Y" in CASES.see(J=64).verdict


def test_what_cannot_be_solved_is_said():
    refused = CASES.see(text="A[I_X, J_Y] · B[J_Y, K_X] -> C[I_X, K_Y]", X=16, Y=16, I=64)
    assert "I = 64 does not split evenly over XY" in panels(refused, Grid)[-1].cells[0][0].text
    assert "4 dimensions" in CASES.paint({"text": "A[B, I, J] · B[B, J, K] -> C[B, I, K]"}).error
    assert "no axis Z" in CASES.paint({"text": "A[I_Z, J] · B[J, K] -> C[I, K]"}).error
    assert "does not split evenly" in CASES.paint({"text": "A[I_XY, J] · B[J, K] -> C[I, K]", "I": 6, "X": 4,
                                                   "Y": 4}).error  # fmt: skip


# Gather or sum


@pytest.mark.parametrize("n", [2, 4, 16])
@pytest.mark.parametrize("chip", [chips.V5P, chips.V5E])
def test_the_four_ways_take_what_the_solver_says(n, chip):
    dice = random.Random(n)
    axis = chip.axis(n)
    for _ in range(8):
        B, D, F = (2 ** dice.randint(4, 13) for _ in range(3))
        sizes = {"B": B, "D": D, "F": F}
        solution = solve("X[B, D] · W[D_X, F] -> Z[B, F]", Rings(chip, X=axis), sizes)
        split = SplitWeight(chip, axis, F)
        for way in split.ways(B, D):
            strategy = solution.named(way.name)
            assert (way.math_s, way.hbm_s) == pytest.approx((strategy.math_s, strategy.hbm_s))
            assert way.comms_s == pytest.approx(strategy.comms_s)
        best, bound = split.fastest(B, D)
        assert split.ways(B, D)[best].lower_s == pytest.approx(solution.best.lower_s)
        assert bound == split.ways(B, D)[best].bound


def test_the_map_of_all_four_is_the_solver_s_at_random_cells():
    regions = marks(STRATEGIES.see(count_as="all four, exact", F=4096), Regions)[0]
    dice = random.Random(3)
    for _ in range(12):
        i, j = dice.randrange(len(regions.xs) - 1), dice.randrange(len(regions.ys) - 1)
        sizes = {"B": round(math.sqrt(regions.xs[i] * regions.xs[i + 1]) / 4) * 4,
                 "D": round(math.sqrt(regions.ys[j] * regions.ys[j + 1]) / 4) * 4, "F": 4096}  # fmt: skip
        ring = Rings(chips.V5P, X=chips.V5P.axis(4, wrapped=True))
        solution = solve("X[B, D] · W[D_X, F] -> Z[B, F]", ring, sizes)
        painted = product("TPU v5p", 4, 4096, True).ways(sizes["B"], sizes["D"])[regions.cells[j][i] or 0]
        assert solution.named(painted.name).lower_s == pytest.approx(solution.best.lower_s, rel=0.02)


def test_the_borders_of_the_textbook_are_the_analytic_ones():
    split = product("TPU v5p", 4, 16384, False)
    r = split.r
    assert r == chips.V5P.bf16_flops_per_s / (2 * chips.V5P.link_bytes_per_s) == 2295
    for B, D in ((100, 200), (1000, 2000), (8000, 2 * r), (60000, 2 * r)):
        assert split.fastest(B, 0.99 * D, 2)[0] == 0
        assert split.fastest(B, 1.01 * D, 2)[0] == 1
    assert split.fastest(r * 0.99, r, 2) == (0, "network")
    assert split.fastest(r * 1.01, r, 2) == (0, "compute")
    assert split.fastest(100, 2 * r * 4 * 0.99, 2) == (1, "network")
    assert split.fastest(100, 2 * r * 4 * 1.01, 2) == (1, "compute")


def test_the_map_is_painted_by_the_middle_of_each_cell_and_its_border_is_drawn():
    view = STRATEGIES.see()
    regions, (border,) = marks(view, Regions)[0], marks(view, Curve)
    assert list(border.ys) == [32, 4590, 4590]
    for j, i in itertools.product(range(0, len(regions.ys) - 1), range(0, len(regions.xs) - 1, 5)):
        B, D = (math.sqrt(e[k] * e[k + 1]) for e, k in ((regions.xs, i), (regions.ys, j)))
        label = regions.labels[regions.cells[j][i] or 0]
        assert label.startswith("sum" if 2 * min(B, 2295) < D else "gather")
        assert ("compute" in label) == (D > 2 * 2295 * 4 if label.startswith("sum") else B > 2295)


def test_the_verdict_names_the_winner_on_both_sides_of_the_border():
    assert "way 1 wins" in STRATEGIES.see(B=4096, D=2048).verdict
    assert "way 2 wins" in STRATEGIES.see(B=1024, D=8192).verdict
    assert "way 3 wins" in STRATEGIES.see(B=4096, D=8192, count_as="all four, exact").verdict


# Resharding


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A[I_X, J]", "A[I, J_Y]"),
        ("A[I_X, J]", "A[I, J_X]"),
        ("A[I, J]{U_XY}", "A[I_XY, J]"),
        ("A[I, J]", "A[I_X, J]"),
    ],
)
def test_the_cheapest_way_ends_where_it_should(before, after):
    found = resharding(before, after, chip="TPU v5p", X=4, Y=4, I=4096, J=8192, numbers="bf16", idle=False)
    assert found.steps[0].before.canonical() == before
    assert found.steps[-1].after.canonical() == after
    assert all(found.total_s <= way.total_s for way in found.rejected)
    (bars,) = panels(RESHARD.see(before=before, after=after), Bars)
    assert bars.lengths()[0] == pytest.approx(found.total_s)


def test_free_and_idle_and_impossible_resharding():
    assert "is free" in RESHARD.see(before="A[I, J]", after="A[I_X, J]").verdict
    assert "nothing to do" in RESHARD.see(after="A[I_X, J]").verdict
    assert "no partial sum" in RESHARD.paint({"before": "A[I, J]", "after": "A[I, J]{U_X}"}).error
    assert "different dimensions" in RESHARD.paint({"after": "A[I, K]"}).error
    assert "sliders for two" in RESHARD.paint({"before": "A[I, J, K]", "after": "A[I, J, K]"}).error
    plain, helped = (RESHARD.see(after="A[I, J]", idle=idle) for idle in (False, True))
    assert readout(helped, "cheapest") < readout(plain, "cheapest")


# Copying and adding


@pytest.mark.parametrize("p", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 3])
def test_the_matrix_gathers_and_its_transpose_reduces_and_scatters(p, n):
    gather = gather_matrix(p, n)
    x = list(range(1, p * n + 1))
    assert apply(gather, x) == x * p
    y = [k * k + 1 for k in range(p * p * n)]  # a vector of p · n numbers on each of p chips
    assert apply(transposed(gather), y) == [sum(y[k :: p * n]) for k in range(p * n)]
    inner = sum(a * b for a, b in zip(apply(gather, x), y, strict=True))
    assert inner == sum(a * b for a, b in zip(x, apply(transposed(gather), y), strict=True))


def apply(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def test_the_grids_are_transposes_of_each_other():
    down, over = panels(TRANSPOSE.see(p=3, n=2), Grid)
    ones = [[cell.text for cell in row] for row in down.cells]
    assert [row[k % 6].color for k, row in enumerate(down.cells)] == [0, 0, 1, 1, 2, 2] * 3  # from whom
    assert [[c.color for c in row[k::6]] for k, row in enumerate(over.cells)] == [[0, 1, 2]] * 6
    assert [list(column) for column in zip(*ones, strict=True)] == [
        [c.text for c in row] for row in over.cells
    ]


# Overlap


def test_chunks_hide_the_shorter_lane_and_never_beat_the_longer():
    curve = marks(OVERLAP.see(), Curve)[0]
    assert list(curve.ys) == sorted(curve.ys, reverse=True)
    view = OVERLAP.see(chunks=1)
    longest = max(readout(view, "matrix unit"), readout(view, "network"))
    assert curve.ys[0] == pytest.approx(readout(view, "one after the other"))
    assert longest < curve.ys[-1] < 1.02 * longest


@pytest.mark.parametrize(("chunks", "K"), [(1, 32768), (4, 32768), (4, 256), (32, 256)])
def test_no_chunk_is_multiplied_before_it_arrives_and_no_lane_does_two_things(chunks, K):
    view = OVERLAP.see(chunks=chunks, K=K)
    (gantt,) = panels(view, Timeline)
    lanes = {lane: [s for s in gantt.spans if s.lane == lane] for lane in gantt.lanes}
    for arrived, worked in zip(lanes["link"], lanes["matrix unit"], strict=True):
        assert worked.start >= arrived.end * (1 - 1e-12)
    for spans in lanes.values():
        assert all(a.end <= b.start * (1 + 1e-12) for a, b in itertools.pairwise(spans))
    for spans in lanes.values():
        assert [s.label for s in spans] == [str(k) for k in range(1, chunks + 1)]
    assert max(s.end for s in gantt.spans) == pytest.approx(readout(view, "in chunks"))


def test_the_chapter_s_product_in_four_chunks():
    assert "3.04 ms instead of 3.8 ms" in OVERLAP.see().verdict
