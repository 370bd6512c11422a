"""Tests of the report on what a new JAX version changes."""

import nbformat

from tools import renew


def test_changed_numbers_are_reported_by_cell():
    told = list(renew.figures(["a 1\nb", "same 2"], ["a 3\nc", "same 2"]))
    assert told == ["- cell 1\n      - a 1\n      + a 3"]


def test_measured_times_are_not_reported():
    def cell(text, **metadata):
        output = nbformat.v4.new_output("stream", text=text)
        return nbformat.v4.new_code_cell("x", outputs=[output], metadata=metadata)

    notebook = nbformat.v4.new_notebook(cells=[cell("1 ms", tags=["nbval-ignore-output"]), cell("2")])
    assert renew.printed(notebook) == ["", "2"]


def test_a_changed_recorded_number_is_reported_with_its_place():
    before = [{"topology": "v5e:1x1", "dtype": "bf16", "cycles": {"8": 100, "16": 200}}]
    after = [{"topology": "v5e:1x1", "dtype": "bf16", "cycles": {"8": 100, "16": 201}}]
    assert renew.changed_rows("cycles", before, before) == ""
    assert "- v5e:1x1 bf16, cycles 16: 200 → 201\n" in renew.changed_rows("cycles", before, after)


def test_a_report_is_short_however_much_changed():
    before, after = ([{"title": str(n), "bundles": n + more} for n in range(99)] for more in (0, 1))
    assert len(renew.changed_rows("bundles", before, after).splitlines()) == renew.SHOWN + 3
