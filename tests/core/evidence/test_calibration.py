"""Tests of the least-squares fit, of error summaries, and of prediction intervals."""

import random
from math import exp, log

import pytest

from scalingbook_lib.evidence.fitting import Prior, fitted, least, pseudo_huber, without
from scalingbook_lib.evidence.scores import Summary, prediction_interval, quantile

approx = pytest.approx


@pytest.mark.parametrize(("a", "b"), [(0, 0), (3, -3), (-2.5, 0.01), (1e-6, 2)])
def test_a_fit_recovers_the_line_that_generated_the_points(a, b):
    points = [(x, a + b * x) for x in range(5)]
    found = least(lambda p: [p[0] + p[1] * x - y for x, y in points], [0.0, 0.0], [(-9.0, 9.0)] * 2, 50)
    assert found == approx([a, b], abs=1e-3)


def test_a_fit_stays_within_its_limits():
    (found,) = least(lambda p: [p[0] - 5], [0.0], [(-1.0, 2.0)], 50)
    assert found == approx(2.0)


def test_a_fit_never_evaluates_values_outside_its_limits():
    tried = []

    def errors(values):
        tried.append(values["share"])
        return [10 * log(values["share"] / 2)]

    assert fitted({"share": Prior(0.5, 1.0, 0.1, 0.95)}, errors) == {"share": 0.95}
    assert 0.1 <= min(tried) < 0.6 < max(tried) <= 0.95


@pytest.mark.parametrize("error", [-100, -3.0, -1e-9, 0, 0.5, 1, 40.0])
def test_the_loss_is_quadratic_for_small_errors_and_linear_for_large_ones(error):
    assert pseudo_huber(error, 1.0) ** 2 <= error**2 + 1e-9
    assert pseudo_huber(error, 1.0) * error >= 0
    assert pseudo_huber(1e-3, 1.0) == approx(1e-3, rel=1e-5)
    assert pseudo_huber(100, 1.0) ** 2 < 200


def test_leave_one_out_values_equal_a_new_fit():
    asked = {name: Prior(1.0, 1.0, 0.1, 10.0) for name in ("a", "b", "alone")}
    points = [("a", 2.0), ("a", 2.2), ("b", 0.5), ("b", 0.6), ("alone", 3.0)]

    def errors(values, left=points):
        return [10 * log(values[name] / measured) for name, measured in left]

    whole = fitted(asked, errors)
    parts = [{1}, {4}]
    for part, found in zip(parts, without(asked, errors, whole, parts), strict=True):
        left = [point for k, point in enumerate(points) if k not in part]
        assert found == approx(fitted(asked, lambda values, left=left: errors(values, left)), rel=1e-3)
    assert found["alone"] == approx(1.0)  # nothing is left but what is expected


def test_a_source_with_n_runs_has_weight_sqrt_n_in_an_interval():
    assert log(prediction_interval({"a": [0.1], "b": [0.2], "c": [0.3]}, 0.6)) == approx(0.2)
    assert log(prediction_interval({"a": [0.1] * 4, "b": [0.2] * 4, "c": [0.3]}, 0.8)) == approx(0.2)
    assert log(prediction_interval({"a": [-0.4]}, 0.8)) == approx(0.4)


def test_an_interval_covers_its_share_of_many_sources():
    draw = random.Random(1)
    errors = {str(k): [draw.gauss(0, 0.1) for _ in range(5)] for k in range(200)}
    width = log(prediction_interval(errors, 0.8))
    held = [abs(draw.gauss(0, 0.1)) <= width for _ in range(20000)]
    assert sum(held) / len(held) == approx(0.8, abs=0.02)


def test_summaries_have_the_right_means_and_quantiles():
    found = Summary.of("three", [-0.1, 0.2, 0.3])
    assert (found.runs, found.mean, found.median, found.bias) == (3, approx(0.2), 0.2, approx(0.4 / 3))
    assert str(found).endswith("90 in 100 within 28%, bias +13.3%")
    assert quantile([0.0, 1.0], 0.25) == 0.25
    assert exp(0.0) == quantile([1.0], 0.9)
