"""The explorers of low precision obey the laws of what they show."""

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.lowprecision import case
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("lowprecision")}
approx = pytest.approx


def test_an_outlier_spares_eight_bits_with_an_exponent_and_ends_four():
    assert readout(ALL["bench"].evaluate(), "error") < 0.03
    assert "all other values round to zero" in ALL["bench"].evaluate(element="E2M1").verdict
    saved = ALL["bench"].evaluate(element="E2M1", block="16 values")
    assert readout(saved, "error") < 0.16
    assert readout(saved, "bytes per element") == 0.75  # a scale of 32 bits for 16
    assert (
        readout(ALL["bench"].evaluate(element="E2M1", block="16 values", power=True), "bytes per element")
        == 0.5625
    )


def test_a_step_below_half_the_spacing_is_lost_and_a_larger_one_is_not():
    assert "every update is lost" in ALL["walk"].evaluate().verdict
    bold = ALL["walk"].evaluate(rate=0.01, rms=0.5)
    assert "of the way" in bold.verdict
    curves = {c.label: c.ys for c in panel(ALL["walk"].evaluate(), Chart).marks if isinstance(c, Curve)}
    assert set(curves["nearest"]) == {1.5}
    assert curves["fp32"][-1] == approx(1.4, abs=1e-4)


@pytest.mark.parametrize(
    ("set_to", "tokens"),
    [
        ({}, 527),
        ({"product": "bf16"}, 88),
        ({"chip": "TPU v5e", "weights": "bf16"}, 241),
        ({"chip": "B200"}, 316),
    ],
)
def test_the_batch_is_that_of_what_is_read_and_what_is_multiplied(set_to, tokens):
    assert round(readout(ALL["ladder"].evaluate(**set_to), "critical batch")) == tokens


def test_a_type_that_is_only_stored_is_said_to_be():
    assert "does not compute faster in fp4" in ALL["ladder"].evaluate(chip="H100").verdict


def test_fp8_everywhere_leaves_the_limits_of_the_network_where_they_were():
    narrow = {"gather": "fp8", "sums": "fp8", "dispatch": "fp8", "combine": "fp8"}
    assert "within 5%" in ALL["mixer"].evaluate(**narrow).verdict
    assert "On 4,096 H100s, all limits rise to 2 times" in ALL["mixer"].evaluate().verdict
    assert "the limit of EP=64 rises most, to 2 times" in ALL["mixer"].evaluate(gather="fp8").verdict
    assert "limits of FSDP and TP=8 rise most" in ALL["mixer"].evaluate(dispatch="fp8").verdict
    small = {"product": "bf16", "gather": "fp8", "sums": "fp8"}
    assert "limits of FSDP and TP=8 fall most, to 0.5 times" in ALL["mixer"].evaluate(**small).verdict
    assert panel(ALL["mixer"].evaluate(sums="fp32"), Bars).series[0].values[0] == approx(3, rel=0.01)


def test_state_is_shared_by_what_the_stage_shares():
    held = [
        readout(ALL["state"].evaluate(zero=z, n=64), "per chip")
        for z in ("no ZeRO", "ZeRO-1", "ZeRO-2", "ZeRO-3")
    ]
    params = held[0] / 12
    assert held == approx([12 * params, (4 + 8 / 64) * params, (2 + 10 / 64) * params, 12 / 64 * params])


def test_an_owner_is_fastest_and_the_share_falls_with_the_batch():
    view = ALL["layouts"].evaluate()
    assert "“one owner per matrix” is fastest" in view.verdict
    assert "replicated on all" in view.verdict
    shares = [readout(ALL["layouts"].evaluate(batch=b), "share of the step's FLOPs") for b in (1.0, 4.0)]
    assert shares[0] == approx(4 * shares[1])


def test_heavy_tails_have_values_that_a_bell_curve_never_has():
    bell, heavy = (max(map(abs, case.drawn(4096, tails))) for tails in (False, True))
    assert bell < 5 < 10 < heavy
