"""What a chapter promises in its first lines is what it computes later: numbers in prose, before any cell."""

import re
from pathlib import Path

import pytest

from scalingbook_book.chapters import explorers, figures
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import count, si

ROOT = Path(__file__).parents[3]


def opening(page: str) -> str:
    """The prose of a page up to its list of what one can do afterwards, on one line."""
    text = (ROOT / "chapters" / f"{page}.md").read_text(encoding="utf-8")
    return " ".join(text.partition("After this chapter you can")[0].split())


def test_training_llama3_promises_the_shares_that_its_figure_shows():
    shares = re.findall(r"(\d+)%", figures.find("training_llama3.three_mfus").caption)
    said = re.findall(r"(\d+)%", opening("training_llama3").partition("One number shrinks")[2])
    assert len(shares) == 5
    assert said == shares


def test_the_book_opens_with_a_slice_that_google_cloud_schedules_to_one_job():
    large, small = Slice.of(chips.V5P, "16x16x24"), Slice.of(chips.V5P, "4x8x8")
    assert all(axis.wrapped for part in (large, small) for axis in part.axes)
    times = [
        scaling.data_parallel(8e9, 2**21, n, chips.V5P, axes=3).total_s for n in (small.chips, large.chips)
    ]
    said = opening("intro")
    assert f"16 × 16 × 24 = {count(large.chips)} chips" in said
    assert f"is trained on {small.chips} TPU v5p chips" in said
    assert f"takes {si(times[0], 's').replace(' ms', ' milliseconds')}" in said
    assert f"is {1e3 * times[0] * small.chips / large.chips:.0f} milliseconds" in said
    assert f"the step takes {1e3 * times[1]:.0f} milliseconds." in said


@pytest.mark.parametrize("key", ["intro.add_chips", "intro.regimes"])
def test_its_explorers_start_with_that_slice_past_its_knee(key):
    start = {name: getattr(control, "start", None) for name, control in explorers.find(key).controls.items()}
    n, B = 16 * 16 * 24, 2**21
    assert (start["n"], start["B"], start["network"]) == (n, B, "all torus axes")
    knee = scaling.knee(B, chips.V5P, axes=3)
    assert round(knee - 1) == 2741
    assert 2 * knee < n < chips.V5P.topology().pod_chips


def test_more_chips_than_a_pod_are_said_to_be_several():
    see = explorers.find("intro.add_chips").evaluate
    assert "A pod has 8,960 chips" in see(n=9200).verdict
    assert "A pod" not in see(n=8900).verdict
