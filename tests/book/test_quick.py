"""The short check runs what a change touches, and the report of a renewal says what is printed otherwise."""

import nbformat

from tools import quick, renew
from tools.environment import ROOT


def test_a_changed_module_runs_the_tests_of_its_room():
    chosen = list(quick.tests({"scalingbook_lib/roofline/stages.py"}))
    assert any("test_roofline" in name for name in chosen)
    assert not any("test_notation" in name for name in chosen)
    assert all((ROOT / name).exists() for name in chosen)


def test_a_changed_test_or_source_runs_itself():
    assert list(quick.tests({"tests/book/test_quick.py"})) == ["tests/book/test_quick.py"]
    assert list(quick.tests({"chapters/intro.md", "README.md"})) == ["chapters/intro.ipynb"]


def test_a_helper_of_tests_runs_those_that_use_it_and_leads_to_what_it_uses():
    assert "tests/core/inference/test_fuzz_inference.py" in quick.tests({"tests/core/inference_drawn.py"})
    assert "tests/lab/test_exercises_jax.py" in quick.tests({"tests/lab/programs.py"})
    assert "tests/lab/test_exercises_jax.py" in quick.tests({"scalingbook_lib/lab/compiler/sharding.py"})


def test_a_room_is_every_folder_above_a_module():
    assert quick.rooms("scalingbook_lib/steps/limits/parallel.py") == {
        "scalingbook_lib.steps",
        "scalingbook_lib.steps.limits",
        "scalingbook_lib.steps.limits.parallel",
    }


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
