"""The explorer of the last chapter obeys the laws of what it shows."""

import math

import pytest

from scalingbook_lib.chapters.conclusion.explorers import errors
from scalingbook_lib.evidence import training
from scalingbook_lib.machines import chips

START = (67.0, 89.0, 90.0, 90.0)
CASES = tuple(errors.CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_parts_are_the_step_and_it_fits(case):
    for given in (None, START):
        found = errors.step(case, given)
        assert math.isclose(sum(errors.parts(found)), found.total_s)
        assert found.memory.fits


@pytest.mark.parametrize("case", CASES)
def test_a_worse_share_never_shortens_a_step_and_peaks_are_the_earliest(case):
    assert all(span >= 0 for span in errors.spans(case, START, 10).values())
    assert errors.step(case, None).total_s <= errors.step(case, (100.0,) * 4).total_s


def test_nothing_uncertain_is_no_interval_and_the_start_is_the_calibrated_line():
    assert set(errors.spans(CASES[0], START, 0).values()) == {0.0}
    found = training.calibrated(chips.V6E)
    shares = found.matmul, found.memory, found.torus, found.overlap
    assert tuple(round(100 * share) for share in shares) == START


@pytest.mark.parametrize(
    ("links", "widest"), [(90.0, "products"), (58.0, "products"), (56.0, "overlap"), (50.0, "links")]
)
def test_what_has_to_be_known_well_changes_with_the_links(links, widest):
    spans = errors.spans(CASES[0], (67.0, 89.0, links, 90.0), 10)
    assert max(spans, key=lambda name: spans[name]) == widest
