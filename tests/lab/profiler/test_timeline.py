"""Draws a trace as a timeline."""

import pytest

from scalingbook_book import profile_timeline as timeline
from tests.core.profiles.test_traces import TRACE


def test_a_timeline_has_rows_for_compute_communication_and_compilation():
    line = timeline.view(TRACE, run=None).panels[0]
    assert line.lanes == ("host compiles", "computes", "moves")
    assert {span.label for span in line.spans} == {"up", "all-reduce over X", "compile"}
    first = timeline.view(TRACE, run=0).panels[0]
    assert first.end == pytest.approx(10e-6)
    assert "host compiles" not in first.lanes
    with pytest.raises(ValueError, match="there is no run 7"):
        timeline.view(TRACE, run=7)


def test_a_timeline_is_drawn_as_svg():
    shown = timeline.picture(TRACE)._repr_mimebundle_()
    assert "<svg" in shown["text/html"]
    assert shown["text/plain"].startswith("made up: of 7 µs a run")
