"""Scaling laws: the optimum is the minimum, and the published numbers follow from the published fits."""

import pytest

from scalingbook_lib.rules import scaling_laws
from scalingbook_lib.rules.scaling_laws import CHINCHILLA, CHINCHILLA_REFIT, Allocation

approx = pytest.approx
LAWS = (CHINCHILLA, CHINCHILLA_REFIT)
CHINCHILLA_FLOPS = 5.76e23  # of Gopher and of Chinchilla


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("flops", [1e19, CHINCHILLA_FLOPS, 1e26])
def test_no_other_size_of_the_same_budget_has_a_lower_loss(law, flops):
    best = law.optimum(flops)
    assert best.flops == approx(flops)
    least = law.loss(best.params, best.tokens)
    for factor in (0.25, 0.5, 0.9, 0.99, 1.01, 1.1, 2, 4):
        assert law.loss(best.params * factor, best.tokens / factor) > least


def test_the_refit_allocates_the_budget_of_chinchilla_as_the_paper_did():
    best = CHINCHILLA_REFIT.optimum(CHINCHILLA_FLOPS)
    assert best.params == approx(70e9, rel=0.04)
    assert best.tokens == approx(1.4e12, rel=0.06)
    assert best.tokens_per_param == approx(20, rel=0.1)


def test_the_printed_fit_contradicts_the_model_that_was_trained():
    assert CHINCHILLA.optimum(CHINCHILLA_FLOPS).tokens_per_param == approx(93, abs=1)
    assert round(CHINCHILLA.growth, 3) == 0.452
    assert round(CHINCHILLA_REFIT.growth, 3) == 0.513


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_tokens_for_a_loss_inverts_the_loss(law):
    assert law.tokens_for(law.loss(8e9, 15e12), 8e9) == approx(15e12, rel=1e-6)


def test_half_the_optimal_size_costs_a_quarter_more():
    half = CHINCHILLA_REFIT.same_loss(CHINCHILLA_FLOPS, 0.5)
    assert half.flops / CHINCHILLA_FLOPS == approx(1.26, abs=0.005)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("served", [1e12, 1e13, 1e15])
def test_no_other_size_as_good_has_fewer_lifetime_flops(law, served):
    best = law.lifetime_optimum(CHINCHILLA_FLOPS, served)
    target = law.loss(best.params, best.tokens)
    optimum = law.optimum(CHINCHILLA_FLOPS)
    assert target == approx(law.loss(optimum.params, optimum.tokens))
    for factor in (0.97, 0.995, 1.005, 1.03):
        other = Allocation(best.params * factor, law.tokens_for(target, best.params * factor))
        assert other.lifetime_flops(served) > best.lifetime_flops(served)


def test_without_any_served_tokens_the_lifetime_optimum_is_that_of_training():
    found, best = CHINCHILLA_REFIT.lifetime_optimum(1e24, 0), CHINCHILLA_REFIT.optimum(1e24)
    assert found.params == approx(best.params, rel=1e-6)


def test_a_model_that_is_too_small_for_a_loss_is_refused_with_the_least_size():
    with pytest.raises(ValueError, match=r"never reach a loss of 1\.9"):
        CHINCHILLA_REFIT.tokens_for(1.9, 1e9)
    with pytest.raises(ValueError, match="not above the floor"):
        CHINCHILLA_REFIT.least_params(1.8)


def test_at_the_critical_batch_both_costs_double():
    cost = scaling_laws.batch_cost(4e6, 4e6)
    assert (cost.steps, cost.tokens) == (2, 2)
    large = scaling_laws.batch_cost(4e6, 1e6)
    assert str(large) == "1.25 times the minimum number of steps, 5 times that of tokens"
    with pytest.raises(ValueError, match="batch_tokens is 0; give a number above 0"):
        scaling_laws.batch_cost(0, 1)


def test_two_batches_give_the_gradient_and_its_noise():
    squared, variance = 1.14, 123.5
    found = scaling_laws.noise_scale(32, squared + variance / 32, 2048, squared + variance / 2048)
    assert (found.gradient_squared, found.variance) == (approx(squared), approx(variance))
    assert found.examples == approx(variance / squared)
    assert str(found).startswith("noise scale 108")


def test_noise_that_hides_the_gradient_is_refused():
    with pytest.raises(ValueError, match="average each of them over more batches"):
        scaling_laws.noise_scale(10, 5.0, 100, 0.4)
    with pytest.raises(ValueError, match="must be smaller"):
        scaling_laws.noise_scale(100, 5.0, 100, 0.4)


def test_the_step_law_at_one_billion_parameters():
    found = scaling_laws.step_law(1e9, 100e9)
    assert (round(found.rate, 4), round(found.batch_tokens / 1e6, 1)) == (0.0016, 1.1)
    assert str(found) == "learning rate 0.0016, batch 1.11M tokens"


def test_an_allocation_prints_its_tokens_per_parameter():
    told = "70B parameters, 1.4T tokens (20 per parameter), 5.88e23 FLOPs"
    assert str(Allocation(70e9, 1.4e12)) == told
