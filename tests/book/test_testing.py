"""No scope of a test run leaves out what it shall run."""

import pytest

from tools.environment import ROOT
from tools.testing import changes, run, scope

SLOW, FAST = "tests/lab/test_slow.py::test_a", "tests/core/test_fast.py::test_b"
BROWSER = "tests/browser/test_x.py::test_c"


@pytest.fixture(autouse=True)
def one_slow_test(monkeypatch):
    monkeypatch.setattr(scope, "slow", lambda: frozenset({SLOW}))


@pytest.mark.parametrize(
    ("test", "marks", "wanted"),
    [
        (FAST, set(), {"quick", "all"}),
        (SLOW, set(), {"all"}),
        (FAST, {"sampled"}, {"quick", "all"}),
        (SLOW, {"sampled"}, {"quick", "all"}),
        (BROWSER, set(), {"all"}),
        (BROWSER, {"smoke"}, {"quick", "all"}),
        (BROWSER, {"quick_only"}, {"quick"}),
    ],
)
def test_a_test_belongs_to_the_scopes_that_its_duration_and_markers_say(monkeypatch, test, marks, wanted):
    found = set()
    for name in scope.SCOPES:
        monkeypatch.setenv("TEST_SCOPE", name)
        if scope.wanted(test, marks):
            found.add(name)
    assert found == wanted


def test_only_the_quick_scope_takes_samples(monkeypatch):
    monkeypatch.delenv("TEST_SCOPE", raising=False)
    assert scope.examples(500) == 500
    assert scope.sample(range(100)) == range(100)
    monkeypatch.setenv("TEST_SCOPE", "quick")
    assert scope.examples(500) == 50
    assert len(set(scope.sample(range(100)))) == 10
    assert scope.sample(range(100)) == scope.sample(range(100))
    monkeypatch.setenv("TEST_SCOPE", "fast")
    with pytest.raises(ValueError, match="write one of quick, all"):
        scope.current()


def test_without_a_change_the_canaries_run():
    assert changes.chosen(set()) == (sorted(changes.CANARIES), 0)


def test_a_changed_source_runs_its_notebook():
    names, _ = changes.chosen({"chapters/intro.md", "README.md"})
    assert set(names) == {*changes.CANARIES, "chapters/intro"}


def test_a_changed_module_runs_notebooks_that_import_it_through_others():
    modules = changes.affected({"scalingbook_lib/roofline/stages.py"})
    assert "scalingbook_lib.roofline" in modules
    assert "scalingbook_lib.units" not in modules
    names, left_out = changes.chosen({"scalingbook_lib/units.py"}, most=3)
    assert len(names) == len(changes.CANARIES) + 3
    assert left_out > 20


def test_a_base_that_is_no_commit_is_refused(monkeypatch):
    monkeypatch.setenv("BASE", "no-such-commit")
    with pytest.raises(SystemExit, match="no commit of this repository"):
        changes.base()


def test_every_step_of_a_run_names_a_command_and_the_browser_comes_after_the_site():
    names = [step.name for step in run.steps("all")]
    assert names.index("site") < names.index("browser")
    assert len(names) == len(set(names))


def test_the_contributors_guide_names_the_successor_of_nbval_and_all_files_to_change():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "its successor is `pytest-notebook`" in guide
    programs = [ROOT / "conftest.py", *(ROOT / "tools").rglob("*.py")]
    named = [one.relative_to(ROOT).as_posix() for one in programs if "nbval" in one.read_text("utf-8")]
    assert [name for name in named if f"`{name}`" not in guide] == []
