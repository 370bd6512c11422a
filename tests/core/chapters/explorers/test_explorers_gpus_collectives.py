"""The GPU chapter's explorers of measured collectives obey the laws of what they show."""

import pytest
from looked import readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, RefLine
from scalingbook_lib.evidence.measured import RUNS
from scalingbook_lib.machines import chips

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("gpus")}
ATLAS, FABRIC, MEASURED, SHARP = (ALL[name] for name in ("atlas", "fabric", "measured", "sharp"))


def panel(view, kind, title=""):
    return next(p for p in view.panels if isinstance(p, kind) and title in p.title)


def curve(view, label, title=""):
    return next(m for m in panel(view, Chart, title).marks if isinstance(m, Curve) and m.label == label)


# Measured collectives


SWEPT = [run for run in RUNS if len(run.sizes) > 1]


@pytest.mark.parametrize("run", SWEPT, ids=lambda r: f"{r.system}, {r.collective}, {r.n}")
def test_every_published_curve_is_drawn_as_it_was_published(run):
    view = MEASURED.evaluate(system=run.system, collective=run.collective, n=str(run.n))
    seen = {
        (x, y)
        for mark in panel(view, Chart).marks
        if isinstance(mark, Points)
        for x, y in zip(mark.xs, mark.ys, strict=True)
    }
    assert seen == {(s, us / 1e6) for s, us in zip(run.sizes, run.microseconds, strict=True)}


@pytest.mark.parametrize("run", SWEPT[::5], ids=lambda r: f"{r.system}, {r.collective}, {r.n}")
def test_the_model_is_that_of_the_library(run):
    """At every size; and where the bytes take as long as alpha, the straight line says twice alpha."""
    points = {p.size: p for p in run.points()}
    for size in run.sizes[::4]:
        view = MEASURED.evaluate(
            system=run.system, collective=run.collective, n=str(run.n), nbytes=size, late=1.0
        )
        assert readout(view, "model") == points[size].model_s
        assert readout(view, "error") == points[size].error
        assert readout(view, "measured") == points[size].seconds
    half, last = readout(view, "half-bandwidth size"), points[run.sizes[-1]]
    bytes_s = half / last.size * last.model.ideal_s / last.model.share
    assert bytes_s == pytest.approx(readout(view, "α₀"))


@pytest.mark.parametrize("alpha", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("efficiency", [0.5, 1.0, 1.5])
def test_the_half_speed_size_is_alpha_times_bandwidth(alpha, efficiency):
    own, moved = MEASURED.evaluate(), MEASURED.evaluate(alpha=alpha, efficiency=efficiency)
    ratio = readout(moved, "half-bandwidth size") / readout(own, "half-bandwidth size")
    assert ratio == pytest.approx(alpha * efficiency)
    assert readout(moved, "measured") == readout(own, "measured")
    if alpha == 1 and efficiency < 1:
        assert readout(moved, "from 64 MiB") > readout(own, "from 64 MiB")


def test_what_is_there_to_discover_in_the_measured():
    assert "largest term is the fixed cost α₀" in MEASURED.evaluate(nbytes=2**12).verdict
    assert "35% too low. Its largest term is the fixed cost α₀" in MEASURED.evaluate(nbytes=2**22).verdict
    assert (
        "3.8% too low. Its largest term is the fixed cost α₀"
        in MEASURED.evaluate(nbytes=2**22, late=1.0).verdict
    )
    assert "the protocol delay" in MEASURED.evaluate(system="H100-SXM DGX", late=1.0).verdict
    assert "was measured only with an all-reduce" in MEASURED.evaluate(system="H200-SXM").verdict
    assert "512 MiB, the nearest measured size" in MEASURED.evaluate(nbytes=2**34).verdict
    assert 1e6 < readout(MEASURED.evaluate(), "half-bandwidth size") < 5e6
    with_switch = MEASURED.evaluate(system="H200-SXM", collective="all-reduce", nbytes=2**34)
    bus = next(m for m in panel(with_switch, Chart).marks if isinstance(m, RefLine))
    assert bus.at == readout(with_switch, "half-bandwidth size")
    peak = next(m.at for m in with_switch.panels[1].marks if isinstance(m, RefLine) and m.axis == "y")  # type: ignore
    assert peak == pytest.approx(2 * 7 / 9 * 450e9)


# Sums in the switch


@pytest.mark.parametrize("chip", ["H100", "H200", "B200", "B300", "GB200", "GB300"])
def test_in_theory_the_gain_is_two_n_minus_one_over_n_plus_one(chip):
    gains = curve(SHARP.evaluate(chip=chip, nbytes=2**36), "in theory")
    assert list(gains.xs) == list(range(2, (chips.find(chip).domain_chips or 0) + 1))
    assert list(gains.ys) == pytest.approx([max(2 * (n - 1) / (n + 1), 1.0) for n in gains.xs], rel=1e-4)
    small = curve(SHARP.evaluate(chip=chip, nbytes=2**12), "in theory")
    assert all(1 <= gain < 1.1 for gain in small.ys)  # as many hops


@pytest.mark.parametrize("chip", ["A100", "MI300X"])
def test_where_no_switch_sums_nothing_is_gained(chip):
    view = SHARP.evaluate(chip=chip)
    assert readout(view, "gain") == 1
    assert "not available" in view.verdict
    assert readout(view, "no in-network reduction") == readout(view, "ring")


def test_the_measured_ramp_is_the_published_one():
    """H200: no gain of four, 1.29 of eight; B200: none of five, 1.23 of eight."""
    for chip, ramp in {"H200": {4: 1.0, 5: 1.137, 6: 1.193, 7: 1.258, 8: 1.294},
                       "B200": {4: 0.999, 5: 1.0, 6: 1.148, 7: 1.192, 8: 1.228}}.items():  # fmt: skip
        marks = panel(SHARP.evaluate(chip=chip), Chart).marks
        seen = next(m for m in marks if isinstance(m, Points) and "measured" in m.label)
        assert dict(zip(seen.xs, seen.ys, strict=True)) == pytest.approx(ramp, abs=1e-3)
        for n, gain in ramp.items():
            assert readout(SHARP.evaluate(chip=chip, n=n), "measured gain") == pytest.approx(gain, abs=1e-3)
            assert gain < readout(SHARP.evaluate(chip=chip, n=n), "gain")


def test_measured_bus_bandwidths_are_the_published_ones():
    marks = [
        m for m in SHARP.evaluate(chip="H200").panels[1].marks if isinstance(m, Points) and len(m.xs) > 1
    ]  # type: ignore
    told, chosen = (dict(zip(m.xs, (y / 1e9 for y in m.ys), strict=True)) for m in marks)
    assert told == pytest.approx({4: 363.3, 5: 364.4, 6: 365.1, 7: 365.7, 8: 365.6})
    assert chosen == pytest.approx({4: 363.3, 5: 414.2, 6: 435.6, 7: 460.0, 8: 473.1})


def test_what_is_there_to_discover_in_the_sums():
    assert "1.56 times as fast. In a measurement at 8 GiB, it was 1.29 times" in SHARP.evaluate().verdict
    assert "so few GPUs" in SHARP.evaluate(n=4).verdict
    assert "No measurement of both was published for 3 H200s" in SHARP.evaluate(n=3).verdict
    assert "No measurement of both was published for the GB200" in SHARP.evaluate(chip="GB200", n=72).verdict
    assert "has only 8 GPUs, not 72" in SHARP.evaluate(n=72).verdict
    assert readout(SHARP.evaluate(chip="GB200", n=72), "gain") == pytest.approx(142 / 73, rel=2e-3)
