"""With experts spread over devices the model learns the same, and sends what the plan says."""

import pytest
from ways import STEPS, TOLERANCE, WAYS, alone, trainer

from scalingbook_lib.lab import agreement

EXPERTS = [ways for ways in WAYS if "EP" in ways]


@pytest.mark.parametrize("ways", EXPERTS)
def test_the_loss_curve_is_that_of_one_device(ways):
    spread = trainer(ways)
    assert spread.train(STEPS).losses == pytest.approx(alone(spread.model), rel=TOLERANCE)


@pytest.mark.parametrize("ways", EXPERTS)
def test_every_collective_is_predicted_in_kind_axes_count_and_bytes(ways):
    told = agreement.of(trainer(ways))
    assert told.lines
    assert not told.differ, str(told)
