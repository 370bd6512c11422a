"""The report of a renewal says which printed numbers changed, and ignores times of this machine."""

import nbformat

from tools import renew


def test_figures_that_changed_are_told_by_cell_and_others_are_not():
    told = list(renew.figures(["a 1\nb", "same 2"], ["a 3\nc", "same 2"]))
    assert told == ["- cell 1\n      - a 1\n      + a 3"]


def test_times_of_this_machine_are_no_change():
    def cell(text, **metadata):
        output = nbformat.v4.new_output("stream", text=text)
        return nbformat.v4.new_code_cell("x", outputs=[output], metadata=metadata)

    notebook = nbformat.v4.new_notebook(cells=[cell("1 ms", tags=["nbval-ignore-output"]), cell("2")])
    assert renew.printed(notebook) == ["", "2"]


def test_a_recorded_figure_that_changed_is_told_with_its_place():
    before = [{"topology": "v5e:1x1", "dtype": "bf16", "cycles": {"8": 100, "16": 200}}]
    after = [{"topology": "v5e:1x1", "dtype": "bf16", "cycles": {"8": 100, "16": 201}}]
    assert renew.changed_rows("cycles", before, before) == ""
    assert "- v5e:1x1 bf16, cycles 16: 200 → 201\n" in renew.changed_rows("cycles", before, after)


def test_a_report_is_a_page_however_much_changed():
    before, after = ([{"title": str(n), "bundles": n + more} for n in range(99)] for more in (0, 1))
    assert len(renew.changed_rows("bundles", before, after).splitlines()) == renew.SHOWN + 3
