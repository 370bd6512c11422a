"""The sharding chapter's explorers obey the laws of what they show."""

import itertools
import math

import pytest
from looked import marks, panels, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.sharding.explorers.painter import painting
from scalingbook_book.chapters.sharding.explorers.player import COLLECTIVES, exact, plan
from scalingbook_book.reader.explorers.view import (
    Curve,
    Grid,
    Network,
    RefLine,
    Regions,
)
from scalingbook_lib import collectives
from scalingbook_lib.collectives import schedules
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Mesh

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("sharding")}
PLAYER, PAINTER, LATENCY, TORUS = (ALL[name] for name in ("player", "painter", "latency", "torus"))
CASES, RESHARD, STRATEGIES, OVERLAP = (ALL[name] for name in ("cases", "reshard", "strategies", "overlap"))
TRANSPOSE = ALL["transpose"]


# The player


@pytest.mark.parametrize("op", COLLECTIVES)
@pytest.mark.parametrize("n", [2, 3, 8, 9])
@pytest.mark.parametrize(("wrapped", "both"), [(True, True), (False, True), (True, False)])
def test_the_last_step_ends_at_the_exact_time(op, n, wrapped, both):
    view = PLAYER.evaluate(op=op, n=n, wrapped=wrapped, both=both, nbytes=3e6, step=10**6)
    axis = chips.V5E.axis(n, wrapped=wrapped)
    assert readout(view, "elapsed") == pytest.approx(exact(op, 3e6, axis, both).total_s)
    assert readout(view, "exact total") == pytest.approx(readout(view, "elapsed"))


@pytest.mark.parametrize("op", COLLECTIVES)
@pytest.mark.parametrize("wrapped", [True, False])
def test_the_bytes_shown_on_the_links_are_those_of_the_schedule(op, wrapped):
    schedule = plan(op, 8, wrapped, True)
    view = PLAYER.evaluate(op=op, n=8, wrapped=wrapped, nbytes=schedule.pieces * 1e3, step=10**6)
    (table,) = panels(view, Grid)
    shown = [cell.note or "0 B" for row in table.cells for cell in (row[1], row[3])]
    loads = schedule.loads
    assert sum(float(text.split()[0].replace(",", "")) for text in shown) == sum(loads.values())
    assert readout(view, "busiest link carries") == max(loads.values()) * 1e3


def test_the_arrows_of_a_step_are_its_messages():
    for step in range(1, 5):
        (network,) = panels(PLAYER.evaluate(op="AllGather", n=8, step=step), Network)
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
        (network,) = panels(PLAYER.evaluate(op=op, n=8, step=step), Network)
        assert {sum(part is not None for part in node.parts) for node in network.nodes} == {held}


def test_an_all_to_all_brings_every_device_its_own_color():
    (network,) = panels(PLAYER.evaluate(op="AllToAll", n=5, step=10**6), Network)
    assert [set(node.parts) for node in network.nodes] == [{k} for k in range(5)]


def test_a_line_takes_twice_a_ring_and_says_so():
    assert "2 times as fast" in PLAYER.evaluate(wrapped=False).verdict
    assert "hardly matters" in PLAYER.evaluate().verdict
    assert "The hops take" in PLAYER.evaluate(nbytes=1e3).verdict


def test_a_line_in_one_direction_is_refused_with_a_way_out():
    painted = PLAYER.render({"wrapped": False, "both": False})
    assert painted.evaluated.error.endswith("use both directions.")


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
    view = PAINTER.evaluate(text="A[I_X, J]", X=2, Y=4, Z=2)
    assert readout(view, "replicas of each block") == 8
    assert "no subscript uses Y or Z" in view.verdict


def test_every_device_is_drawn_with_the_part_that_it_holds():
    mesh = panels(PAINTER.evaluate(text="A[I_YX, J_Z]", X=2, Y=3, Z=2, I=96, J=64), Grid)[1]
    picture = painting("A[I_YX, J_Z]", Mesh(X=2, Y=3, Z=2), 96, 64)
    drawn = {cell.text: cell.part for row in mesh.cells for cell in row}
    for device, (down, across) in picture.held.items():
        part = (down.start / 96, down.stop / 96, across.start / 64, across.stop / 64)
        assert drawn[str(picture.numbers[device])] == part


def test_the_pop_quiz_of_the_chapter():
    view = PAINTER.evaluate(text="A[I_XY, J]", X=2, Y=8, Z=2, I=128, J=2048, numbers="int8")
    assert readout(view, "bytes per device") == 16384
    assert readout(view, "all devices, total") == 524288


def test_the_order_of_subscripts_moves_blocks_to_other_devices():
    xy, yx = (PAINTER.evaluate(text=f"A[I_{axes}, J]", Z=1).panels[0] for axes in ("XY", "YX"))
    assert [row[0].text.split()[1] for row in xy.cells] == ["0", "1", "2", "3"]
    assert [row[0].text.split()[1] for row in yx.cells] == ["0", "2", "1", "3"]


def test_an_illegal_text_becomes_the_sentence_of_the_notation():
    assert "already shards I" in PAINTER.render({"text": "A[I_X, J_X]"}).evaluated.error
    assert "only one or two can be drawn" in PAINTER.render({"text": "A[I_X, J, K]"}).evaluated.error
    assert "no axis W" in PAINTER.render({"text": "A[I_W, J]"}).evaluated.error


def test_an_uneven_split_tells_its_padding():
    view = PAINTER.evaluate(text="A[I_X, J]", X=3, I=8, Y=1, Z=1)
    assert "11% padding" in view.verdict  # 9 rows stored for 8
    assert readout(view, "all devices, total") == pytest.approx(9 / 8 * readout(view, "whole array"))


# Latency or bandwidth


@pytest.mark.parametrize("wired", ["ring", "line", "torus"])
@pytest.mark.parametrize("op", ["AllGather", "AllReduce", "AllToAll"])
def test_at_the_marked_size_hops_and_bytes_take_equally_long(op, wired):
    (knee,) = marks(LATENCY.evaluate(op=op, wired=wired), RefLine)
    view = LATENCY.evaluate(op=op, wired=wired, nbytes=knee.at)
    assert readout(view, "time of the bytes") == pytest.approx(readout(view, "time of the hops"))


@pytest.mark.parametrize("nbytes", [1e3, 3.2e4, 1e9])
@pytest.mark.parametrize(("wired", "links"), [("ring", 2), ("line", 1), ("torus", 4)])
def test_the_approximation_without_hops_is_the_array_over_the_bandwidth(wired, links, nbytes):
    into_chip = links * chips.V5E.link_bytes_per_s
    for op, seconds in (("AllGather", nbytes / into_chip), ("AllReduce", 2 * nbytes / into_chip)):
        view = LATENCY.evaluate(op=op, wired=wired, nbytes=nbytes, hop=1e-5)
        assert readout(view, "approximation without hops") == pytest.approx(seconds)
    exchange = LATENCY.evaluate(op="AllToAll", wired=wired, nbytes=nbytes)
    assert readout(exchange, "approximation without hops") == readout(exchange, "time of the bytes")


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_player_leaves_the_hops_of_a_small_array_out_of_its_approximation(wrapped):
    links = 2 if wrapped else 1
    view = PLAYER.evaluate(op="ReduceScatter", n=16, nbytes=1e3, wrapped=wrapped)
    assert readout(view, "approximation without hops") == pytest.approx(20e-9 / links)


def test_large_arrays_take_equally_long_on_every_large_ring_and_twice_as_long_on_a_line():
    curves = {c.label: c for c in marks(LATENCY.evaluate(n=16), Curve)}
    assert curves["ring of 64"].ys[-1] == pytest.approx(curves["ring of 16"].ys[-1], rel=0.06)
    assert curves["line of 16"].ys[-1] == pytest.approx(2 * curves["ring of 16"].ys[-1], rel=0.01)
    assert curves["torus of 16"].ys[-1] == pytest.approx(curves["ring of 16"].ys[-1] / 2, rel=0.01)
    assert curves["ring of 64"].ys[0] == pytest.approx(4 * curves["ring of 16"].ys[0], rel=0.01)


@pytest.mark.parametrize("n", [4, 8, 32])
def test_ring_line_and_torus_have_the_hops_of_as_many_chips(n):
    hops = {wired: round(readout(LATENCY.evaluate(n=n, wired=wired), "time of the hops") / 1e-6)
            for wired in ("ring", "line", "torus")}  # fmt: skip
    sides = {4: (2, 2), 8: (2, 4), 32: (4, 8)}[n]
    assert hops == {"ring": n // 2, "line": n - 1, "torus": sum(side // 2 for side in sides)}


def test_the_curve_is_the_formula():
    axis = chips.V5P.axis(16, wrapped=True)
    curve = marks(LATENCY.evaluate(n=16, chip="TPU v5p"), Curve)[0]
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
        if link.direction < 0:  # the link from i down to i - 1 mirrors the one up from n - 1 - i
            place = sizes[link.axis] - 1 - place
        assert shares[link.axis][place] == pytest.approx(load / schedule.pieces)


@pytest.mark.parametrize("sizes", [(4, 16, 1), (8, 8, 1), (4, 4, 4), (16, 1, 1)])
@pytest.mark.parametrize("wraps", ["all axes", "none"])
def test_the_busiest_link_of_an_all_to_all_sets_its_time(sizes, wraps):
    view = TORUS.evaluate(wraps=wraps, **dict(zip("ABC", sizes, strict=True)))
    by_formula = readout(view, "time by the formula") - readout(view, "hops take")
    assert readout(view, "time of the busiest link") == pytest.approx(by_formula)


def test_the_longest_axis_is_the_bottleneck_and_a_cut_wrap_doubles():
    view = TORUS.evaluate(A=4, B=16)
    assert "along B carry the most" in view.verdict
    assert "in the shape 8 × 8, the bytes would move 2 times as fast" in view.verdict
    cut = TORUS.evaluate(A=4, B=16, wraps="none")
    assert readout(cut, "time of the busiest link") == 2 * readout(view, "time of the busiest link")
    assert "2 times as fast" in cut.verdict


def test_the_lattice_has_a_stub_where_an_axis_wraps_and_none_where_not():
    for wraps, stubs in (("all axes", True), ("axes of 16 (v5e, v6e)", True), ("none", False)):
        links = marks(TORUS.evaluate(A=4, B=16, wraps=wraps), Regions)[0]
        assert [row[-1] is not None for row in links.cells] == [stubs, False] * 4


@pytest.mark.parametrize("op", ["AllToAll", "AllGather"])
def test_on_a_line_the_busier_direction_of_a_link_is_shown_so_both_ends_look_alike(op):
    links = marks(TORUS.evaluate(op=op, A=1, B=16, wraps="none"), Regions)[0]
    across = list(links.cells[0])[1:-1:2]
    assert across == across[::-1]
    assert max(cell or 0 for cell in across) == 4  # the darkest of five levels
