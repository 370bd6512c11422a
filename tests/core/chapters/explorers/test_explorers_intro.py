"""The introduction's explorers show what the text says they show."""

import math

import pytest
from looked import curve, marks

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.intro.explorers.book_map import CHAPTERS, PATHS
from scalingbook_book.reader.explorers.view import Band, Bars, Grid, RefLine
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import GiB

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("intro")}


def readout(view, label):
    return next(r for r in view.readouts if r.label == label)


def test_the_hero_comes_first():
    assert next(iter(ALL)) == "add_chips"


@pytest.mark.parametrize("chip", ALL["add_chips"].controls["chip"].options)
def test_the_drawn_curves_cross_at_the_knee(chip):
    view = ALL["add_chips"].evaluate(chip=chip)
    knee = next(line.at for line in marks(view, RefLine))
    backward, reduce = curve(view, "backward pass"), curve(view, "AllReduce")
    waits = [n for n, ar in zip(reduce.xs, reduce.ys, strict=True) if ar > backward.ys[backward.xs.index(n)]]
    assert min(waits) > knee
    assert max(n for n in reduce.xs if n not in waits) <= knee


def test_adding_chips_beyond_the_knee_is_called_network_bound():
    assert "Compute-bound" in ALL["add_chips"].evaluate(n=2700).verdict
    assert "Network-bound" in ALL["add_chips"].evaluate(n=2800).verdict


def test_the_model_does_not_move_the_knee_and_the_batch_does():
    knees = {P: readout(ALL["add_chips"].evaluate(P=P), "knee").value for P in (1, 70, 1000)}
    assert len(set(knees.values())) == 1
    wider = readout(ALL["add_chips"].evaluate(B=2**22), "knee").value
    assert wider == pytest.approx(2 * knees[1], rel=1e-3)


def test_all_axes_move_the_knee_by_their_number_on_a_tpu_and_not_on_a_gpu():
    def tokens(chip, network):
        return readout(ALL["regimes"].evaluate(chip=chip, network=network), "tokens needed per chip").value

    assert tokens("TPU v5p", "one torus axis") == pytest.approx(3 * tokens("TPU v5p", "all torus axes"))
    assert tokens("TPU v5e", "one torus axis") == pytest.approx(2 * tokens("TPU v5e", "all torus axes"))
    assert tokens("H100", "one torus axis") == tokens("H100", "all torus axes")


def test_the_step_is_inside_its_band_whatever_the_overlap():
    for overlap in (0, 30, 100):
        view = ALL["add_chips"].evaluate(n=2048, overlap=overlap)
        band = marks(view, Band)[0]
        at = band.xs.index(2048)
        assert band.low[at] <= readout(view, "step").value * (1 + 1e-12)
        assert readout(view, "step").value <= band.high[at] * (1 + 1e-12)


def test_what_a_chip_must_store_is_compared_with_its_memory():
    assert (
        readout(ALL["add_chips"].evaluate(P=8, chip="TPU v5p"), "memory per chip").text
        == "96 GB of 102 GB: fits (12 bytes per parameter)"
    )
    assert "does not fit" in readout(ALL["add_chips"].evaluate(P=8, chip="TPU v5e"), "memory per chip").text


@pytest.mark.parametrize(
    ("gain", "loss", "share", "says"),
    [
        (20, 20, 100, "0.96, a loss of 4%"),
        (25, 20, 100, "gains nothing and loses nothing"),
        (20, 20, 50, "a gain of 6.67%"),
        (0, 0, 100, "gains nothing and loses nothing"),
    ],
)
def test_break_even(gain, loss, share, says):
    assert says in ALL["break_even"].evaluate(gain=gain, loss=loss, share=share).verdict


@pytest.mark.parametrize("share", [20, 50, 100])
def test_the_point_is_worth_it_exactly_below_the_curve(share):
    for gain in range(0, 51, 5):
        for loss in range(0, 51, 5):
            view = ALL["break_even"].evaluate(gain=gain, loss=loss, share=share)
            even = curve(view, "break-even").ys[gain]
            if math.isfinite(even) and abs(loss - even) > 0.1:  # else off the chart
                assert ("a gain" in view.verdict) == (loss < even)


def test_units_keep_the_prefixes_apart():
    assert ALL["units"].evaluate().verdict == "16 GiB = 17.18 GB: a GiB is 7.4% larger than a GB."
    assert "4.9%" in ALL["units"].evaluate(unit="MiB").verdict
    assert "4.6% smaller" in ALL["units"].evaluate(unit="MB").verdict


@pytest.mark.parametrize("unit", ALL["units"].controls["unit"].options)
def test_the_table_names_what_was_given(unit):
    view = ALL["units"].evaluate(amount=100, unit=unit)
    grid = next(p for p in view.panels if isinstance(p, Grid))
    pairs = [(row[i].text, row[i + 1].text) for row in grid.cells for i in (0, 2)]
    assert dict(pairs)[unit] == "100"
    assert len(pairs) == len(ALL["units"].controls["unit"].options)


def test_a_full_v5e_is_sixteen_gibibytes():
    assert readout(ALL["units"].evaluate(amount=16, unit="GiB"), "chips needed to hold it").value == 1
    assert (
        readout(ALL["units"].evaluate(amount=16, unit="GiB"), "time to read from HBM").value
        == 16 * GiB / 819e9
    )


def test_strong_falls_where_weak_holds():
    view = ALL["regimes"].evaluate(n=16384)
    strong, weak = curve(view, "strong").ys, curve(view, "weak").ys
    assert strong[-1] < 25
    assert weak[-1] == pytest.approx(100)
    assert strong[0] == weak[0] == pytest.approx(100)


def test_the_two_regimes_meet_where_their_batches_are_equal():
    view = ALL["regimes"].evaluate(n=1024, B=2**22, per_chip=2**12)
    bars = next(p for p in view.panels if isinstance(p, Bars))
    strong, weak = bars.lengths()
    assert strong == pytest.approx(weak)


def test_the_map_walks_every_path_once_and_begins_with_the_wall():
    for name, path in PATHS.items():
        seen = [ALL["map"].evaluate(path=name, step=s).verdict for s in range(len(path))]
        assert len(set(seen)) == len(path)
        assert path[0].stem == "intro"
        assert ALL["map"].evaluate(path=name, step=99).verdict == seen[-1]


@pytest.mark.parametrize("name", ["in order", "hardware first", "Transformer first"])
def test_whole_paths_leave_no_chapter_out(name):
    assert sorted(c.stem for c in PATHS[name]) == sorted(c.stem for c in CHAPTERS)


@pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
def test_rooflines_and_sharding_come_before_training_and_inference(path):
    place = {c.stem: i for i, c in enumerate(path)}
    later = [place[stem] for stem in ("training", "inference") if stem in place]
    assert max(place["rooflines"], place["sharding"]) < min(later, default=99)


def test_the_map_promises_numbers_from_the_catalog():
    numbers = {c.stem: c.number for c in CHAPTERS}
    assert f"{rules.data_parallel_tokens(chips.V5P, axes=3):,.0f} tokens" in numbers["intro"]
    assert numbers["rooflines"].startswith("240.5 ")
    assert numbers["training_llama3"].startswith("44.3 days")
    assert numbers["inference_llama3"].startswith("10.7 ms")


@pytest.mark.parametrize("name", PATHS)
def test_the_map_lists_a_path_in_its_order_with_the_formula_of_each_chapter(name):
    grid = ALL["map"].evaluate(path=name).panels[0]
    assert [row[0].text for row in grid.cells] == [c.title for c in PATHS[name]]
    for step, chapter in enumerate(PATHS[name]):
        formula, number = ALL["map"].evaluate(path=name, step=step).readouts
        assert (formula.text, number.text) == (chapter.formula, chapter.number)
    assert list(grid.rows) == [str(1 + CHAPTERS.index(c)) for c in PATHS[name]]
