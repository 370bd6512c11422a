"""The page on launch commands shows what the command line prints, and the times of the recipes."""

import contextlib
import io
import re
import shlex

import pytest

import scalingbook_cli as cli
from scalingbook_book import show
from scalingbook_book.show.switches import FlagTable
from scalingbook_lib.launch import table
from scalingbook_lib.units import si
from tests.launch.test_launch_recipes import RECIPES, TIMED, read, step_of
from tools.environment import ROOT

PAGE = (ROOT / "launch.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|text|python)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


def recipe_row(name):
    """The row of a recipe: published and predicted step times."""
    one, row = read(name), RECIPES[name]
    step = step_of(one)
    rate = row["published_tokens_per_s_per_chip"]
    published_s = one.batch * one.T / float(rate) / one.plan.chips if rate else float(row["published_step_s"])
    cells = (
        one.model.name,
        one.machine.name.partition(" with ")[0],
        table(one.launcher).name,
        si(published_s, "s"),
        si(step.total_s, "s"),
        f"{step.total_s / published_s:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def _shown(cell):
    """What a notebook shows below a cell: the text of its last expression."""
    *lines, last = cell.splitlines()
    names = {}
    exec("\n".join(lines), names)
    return str(eval(last, names))


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Everything that the commands of the page print."""
    folder = tmp_path_factory.mktemp("launch")
    (script, *commands) = [text for kind, text in BLOCKS if kind == "sh"]
    (folder / "run.sh").write_text(f"{script}\n")
    out = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "84")
        for line in commands:
            with contextlib.redirect_stdout(io.StringIO()) as told:
                assert cli.main(shlex.split(line)[1:]) == 0
            out.append("\n".join(row.rstrip() for row in told.getvalue().splitlines()))
        out += [_shown(cell) for kind, cell in BLOCKS if kind == "python"]
    return "\n".join(out)


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "text"])
def test_the_page_shows_what_is_printed(printed, text):
    assert text in printed


@pytest.mark.parametrize("name", TIMED)
def test_a_published_time_stands_beside_its_prediction(name):
    assert recipe_row(name) in PAGE


def test_the_ratios_are_as_the_text_says():
    ratios = [(row.split(" | ")[0], float(row.split(" | ")[-1][:-2])) for row in map(recipe_row, TIMED)]
    dense = [ratio for name, ratio in ratios if "Llama" in name]
    experts = [ratio for name, ratio in ratios if "Llama" not in name]
    assert all(abs(ratio - 1) < 0.1 for ratio in dense)
    assert round(max(abs(ratio - 1) for ratio in experts), 2) == 0.17
    assert f"Dense models are within {0.1:.0%}." in " ".join(PAGE.split())
    assert f"the errors are up to {0.17:.0%}," in " ".join(PAGE.split())


def test_the_last_row_of_a_table_dates_its_flags():
    shown = show.launcher_flags("training", "training", title="The plan in launcher flags")
    assert shown.rows[-1] == (
        "version, date",
        "e591f30, 2026-08-22",
        "d98e8a6 (core 0.20.0), 2026-08-22",
        "v0.2.2, 2026-02-20",
        "edaa722 (0.19.6), 2026-08-22",
    )
    assert "<code" in shown._repr_html_()
    assert "<code" not in repr(shown)


def test_a_folded_table_names_its_launchers():
    def flags(*, folded: bool) -> FlagTable:
        return show.launcher_flags("training", "training", title="The plan in launcher flags", folded=folded)

    line = "Show the flags of MaxText, Megatron-LM, torchtitan and DeepSpeed"
    table = flags(folded=False)._repr_html_()
    assert flags(folded=True)._repr_html_() == f"<details><summary>{line}</summary>{table}</details>"
    assert line not in repr(flags(folded=True))
