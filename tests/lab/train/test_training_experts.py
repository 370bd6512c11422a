"""With experts or Ulysses, the loss curve is the same and the collectives are as planned."""

import pytest
from ways import STEPS, TOLERANCE, WAYS, alone, trainer

from scalingbook_lab.train import agreement
from scalingbook_lab.train.trainer import SMALL, Trainer

EXPERTS = [ways for ways in WAYS if "EP" in ways]


@pytest.mark.parametrize("ways", EXPERTS)
def test_the_loss_curve_is_that_of_one_device(ways):
    spread = trainer(ways)
    assert spread.train(STEPS).losses == pytest.approx(alone(spread.model), rel=TOLERANCE)


@pytest.mark.parametrize("ways", EXPERTS)
def test_every_collective_is_predicted_in_kind_axes_count_and_bytes(ways):
    told = agreement.of(trainer(ways))
    assert told.lines
    assert not told.differences, str(told)


def test_ulysses_gives_the_same_loss_curve():
    spread = Trainer(SMALL, {"C": 4, "R": 2}, context="ulysses")
    assert spread.train(STEPS).losses == pytest.approx(alone(SMALL), rel=TOLERANCE)
    found = spread.program.collectives.over_axes()
    assert found["all-to-all C"] == SMALL.L * 4 * 3  # forward, done again, and backward
    told = agreement.of(spread)
    assert not told.differences, str(told)
