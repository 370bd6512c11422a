"""Addresses of explorers and their tables of numbers hold the values of every explorer."""

import csv
import io
import json

import pytest

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.controls import Slider


@pytest.mark.parametrize("key", explorers.catalog())
def test_every_value_of_a_slider_is_found_again(key):
    """An address keeps values: each leads back to a position that has it."""
    for name, control in explorers.find(key).controls.items():
        if not isinstance(control, Slider):
            continue
        first, last, step = control.stops
        for at in range(round((last - first) / step) + 1):
            value = control.read(f"{min(first + at * step, last):.12g}").value
            place = json.loads(explorers.place_json(key, json.dumps({name: value})))[name]
            assert control.read(place).value == value, (name, at)


@pytest.mark.parametrize("key", explorers.catalog())
def test_the_numbers_behind_every_view_are_a_table(key):
    file = json.loads(explorers.table_json(key, "{}"))["csv"]
    head, *rows = csv.reader(io.StringIO(file))
    assert head == ["panel", "series", "at", "at unit", "value", "unit"]
    assert {len(row) for row in rows} == {6}
    view = explorers.find(key).evaluate()
    assert {row[4] for row in rows if row[0] == "verdict"} == {view.verdict}
    assert len(rows) >= len(explorers.find(key).controls) + len(view.readouts) + len(view.panels)


def test_the_table_of_an_error_is_its_sentence():
    told = json.loads(explorers.table_json("rooflines.roofline", '{"level": "VMEM", "left": "H100"}'))
    assert "H100 has no documented VMEM bandwidth" in told["error"]
