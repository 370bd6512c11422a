"""The text that the command line prints, compared with the committed screens.

`PYTHONPATH=. python tests/cli/test_cli_screens.py` writes the screens again; read them before you commit.
"""

import contextlib
import io
import json
import os
import re
from pathlib import Path

import pytest

import scalingbook_cli as cli
from scalingbook_cli import plan_tables, terminal
from scalingbook_cli.answer import TERMINAL_COLUMNS, Answer, TextTable
from scalingbook_cli.table_width import fitted
from scalingbook_lib.machines import chips
from tests.cli.json_names import names_of

FIGURE = re.compile(r"(?<= )[0-9.]+(?=\s)")
FOLDER = Path(__file__).with_name("screens")
RECIPES = "tests/launch/recipes"
SCREENS = {
    "help": "",
    "help_model": "model --help",
    "help_roofline": "roofline --help",
    "help_collective": "collective --help",
    "help_plan": "plan --help",
    "help_serve": "serve --help",
    "help_inspect": "inspect --help",
    "help_profile": "profile --help",
    "help_launch": "launch --help",
    "help_score": "score --help",
    "help_conform": "conform --help",
    "help_grade": "grade --help",
    "help_chips": "chips -h",
    "help_explain": "explain --help",
    "help_mcp": "mcp --help",
    "help_completion": "completion --help",
    "chips": "chips",
    "chips_instances": "chips h200 --instances",
    "explain": "explain kv cache",
    "model": "model mixtral-8x7b --sequence 4096 --tokens 1T",
    "roofline": "roofline v5e --matmul 64x8192x8192 --explain",
    "serve": "serve llama-3-70b v5e:4x4 --prompt 8192 --tp 16 --weights int8 --kv int8 --itl 60ms --explain",
    "inspect": "inspect data/programs/train_step.hlo.gz",
    "profile": "profile data/traces/serial-before.json --explain",
    "collective_torus": "collective all-to-all 2GiB v5p:4x4x8 --explain",
    "launch": f"launch {RECIPES}/vllm_qwen3_235b_mi300x.sh --machine mi300x",
    "plan_emit": "plan llama-3-8b h100:64 --batch 512 --emit torchtitan --best 2",
    "collective_cluster": "collective all-reduce 16M h100:1024 --mesh X=8,Y=128 --over XY --explain",
}

KEYS = {
    "keys_model": "model llama-3-8b --tokens 1T",
    "keys_roofline": "roofline v5e --matmul 64x8192x8192 --explain",
    "keys_collective_torus": "collective all-gather 2GiB v5p:4x4x8",
    "keys_collective_cluster": "collective all-gather 2GiB h100:1024",
    "keys_plan": "plan llama-3-8b h100:64 --batch 512 --tokens 1T --what-if",
    "keys_plan_as_written": "plan llama-3-8b h100:64 --batch 512 --fsdp 64 --tp 1 --remat full --as-written",
    "keys_serve": "serve llama-3-8b h100:8 --weights fp8 --kv fp8",
    "keys_serve_as_written": "serve llama-3-70b v5e:4x4 --tp 16 --kv-batch 2 --weights int8 --as-written",
    "keys_launch": f"launch {RECIPES}/megatron_gpt3_175b.sh --machine a100-80g:128",
    "keys_launch_serving": f"launch {RECIPES}/vllm_gpt_oss_120b_h100.sh --machine h100",
    "keys_score": "score scalingbook_lib/evidence/data/added_training_runs.csv",
    "keys_conform": "conform data/vectors/models.json",
    "keys_inspect": "inspect data/programs/train_step.hlo.gz --model llama-3-8b --tokens 8Ki",
    "keys_profile": "profile data/traces/serial-before.json",
    "keys_chips": "chips",
}
TYPICAL = (
    "plan llama-3-8b h100:64 --batch 512",
    "plan Qwen/Qwen3-8B 8xH100 --batch 1Mi",
    "plan llama-3.1-405b h100:1024 --batch 4Mi",
    "plan mixtral-8x7b h100:128 --batch 4Mi --tokens 2T",
    "plan llama-3-70b v5p:8x8x8 --batch 4Mi --what-if",
    "plan deepseek-v3 h100:2048 --batch 16Mi --sequence 4096 --pp 16 --ep 64",
    "plan llama-3-8b h100:64 --batch 512 --fsdp 64 --tp 1 --remat full --as-written",
    "serve llama-3-70b h100:8 --prompt 2000 --output 300",
    "serve deepseek-v3 h200:16 --weights fp8 --kv fp8",
    "serve llama-3-70b v5e:4x4 --prompt 8192 --weights int8 --kv int8 --itl 50ms",
    "serve llama-3-70b v5e:4x4 --tp 16 --kv-batch 2 --weights int8 --as-written",
    "plan deepseek-v3 h100:1024 --batch 8192 --sequence 4096",
    "plan mixtral-8x7b h100:64 --batch 512 --expert-skew 2",
    "serve kimi-k2 h200:64",
)
BLOCKS = {
    "plan": (
        "Best plans",
        "Nearest published",
        "What if",
        "Time of a step",
        "Memory per chip",
        "Collectives",
        "The whole run",
    ),
    "serve": ("", "One replica", "Time of a decode step", "Memory per chip", "Collectives"),
}


def keys(line):
    """The paths of all names in the JSON; programs rely on them."""
    return "".join(f"{path}\n" for path in names_of(json.loads(screen(f"{line} --json"))))


def screen(line):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert cli.main(line.split()) == 0
    return "".join(f"{row.rstrip()}\n" for row in out.getvalue().splitlines())


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_it_was_read(name):
    assert screen(SCREENS[name]) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KEYS)
def test_a_program_finds_the_names_that_it_knows(name):
    assert keys(KEYS[name]) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_fits_100_columns(name):
    assert max(map(len, screen(SCREENS[name]).splitlines())) <= 100


@pytest.mark.parametrize("line", TYPICAL)
def test_a_plan_or_layout_is_told_in_three_lines_before_its_tables(line):
    """The answer comes first, then the alternatives, the time, the memory and the collectives."""
    printed = screen(line)
    head, *blocks = printed.split("\n\n")
    assert len(head.splitlines()) == 3
    assert head.startswith(("Plan: ", "Layout: "))
    assert max(map(len, printed.splitlines())) <= 100
    titles = [block.strip().splitlines()[0] for block in blocks]
    order = BLOCKS[line.split()[0]]
    places = [
        next(n for n, title in enumerate(order) if one.startswith(title) and (title or "Pareto" in one))
        for one in titles
    ]
    assert places == sorted(places)
    assert "rejected" not in printed.lower()


@pytest.mark.parametrize("rows", [(("1", "a", "TP"), ("12,000", "b", "FSDP")), (), (("", "", ""),)])
def test_a_table_is_as_wide_as_it_says(capsys, rows):
    table = TextTable("", ("", "name", "largest"), rows, words=(1,))
    terminal.show(Answer(summary="", tables=(table,), values={}), as_json=False, explain=False)
    assert table.width == max(map(len, capsys.readouterr().out.splitlines()))


WIDE = TextTable(
    "Wide",
    ("row", "step time", "largest overhead", "cause", "flags"),
    (
        ("llama-3.1-70b-h100-512", "26.4 s", "weights and gradients", "chip by its kin, no remat", "--tp 8"),
        ("mixtral-8x7b-a100-64", "1.27 M tokens/s", "bubble", "", "--pp 4"),
    ),
    words=(0, 2, 3, 4),
    optional=("largest overhead",),
)


def pieces(text):
    return {piece for piece in text.split() if not set(piece) <= {"─"}}


@pytest.mark.parametrize("limit", range(42, 130))
def test_a_table_breaks_no_word_and_loses_only_optional_columns(capsys, monkeypatch, limit):
    monkeypatch.setenv("COLUMNS", f"{limit}")
    terminal.show(Answer(summary="", tables=(WIDE,), values={}), as_json=False, explain=False)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= limit
    cells = (cell for row in (WIDE.columns, *WIDE.rows) for cell in row)
    kept = (cell for row in WIDE.without("largest overhead").by_column for cell in (row[0], *row[1]))
    assert pieces(" ".join(kept)) <= pieces(printed) - {"Wide"} <= pieces(" ".join(cells))
    assert {"26.4 s", "1.27 M tokens/s", "--tp 8", "--pp 4"} <= set(
        re.findall(r"26\.4 s|1\.27 M tokens/s|--tp 8|--pp 4", printed)
    )


def test_a_table_that_cannot_be_narrower_continues_with_its_first_column():
    parts = list(fitted(WIDE, 50))
    assert [part.columns[0] for part in parts] == ["row"] * len(parts)
    assert [part.title for part in parts] == ["Wide", *[""] * (len(parts) - 1)]
    assert len(parts) > 1
    assert list(fitted(WIDE, WIDE.width)) == [WIDE]
    assert "largest overhead" not in next(fitted(WIDE, WIDE.width - 20)).columns


def test_a_word_longer_than_a_line_is_broken(capsys):
    table = TextTable("", ("", "name", "saves"), (("1", "x" * 190, "2 s"),), words=(0, 1))
    (part,) = fitted(table, 100)
    assert part.width <= 100
    assert part.rows[0][1].replace("\n", "") == "x" * 190


def test_a_note_on_the_machine_follows_a_long_summary_as_a_table():
    head, note, *_ = screen("serve llama-3.1-8b l4").split("\n\n")
    assert len(head.splitlines()) == 3
    assert note.splitlines() == ["Machine", " l4 is one PCIe board; write l4:4 for four of them in a host"]


def test_the_types_that_do_not_fit_the_first_line_are_in_the_table_of_a_replica():
    printed = screen("serve kimi-k2 h200:64")
    assert "compute fp8" not in printed.splitlines()[0]
    assert re.search(r"One replica\n types +weights fp8, KV bf16, compute fp8", printed)
    assert " types " not in screen("serve llama-3-8b h100:8")


def test_a_table_without_a_column_keeps_the_alignment_of_the_others():
    table = TextTable("title", ("a", "b", "c"), (("1", "2", "3"), ("4", "5", "6")), words=(0, 1, 2))
    assert table.without("b") == TextTable("title", ("a", "c"), (("1", "3"), ("4", "6")), words=(0, 1))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plan llama-3-8b h100:64 --batch 512", True),
        ("plan Qwen/Qwen3-8B 8xH100 --batch 1Mi", False),
        ("plan Qwen/Qwen3-8B 8xH100 --batch 1Mi --best 1", True),
    ],
)
def test_the_largest_overhead_is_listed_if_the_table_of_plans_stays_narrow(line, shown):
    title, header, *_ = screen(line).split("\n\n")[1].splitlines()
    assert title.startswith("Best plans")
    assert (plan_tables.OVERHEAD in header) == shown
    assert "microbatch" not in header
    assert len(header) <= TERMINAL_COLUMNS


def test_every_screen_belongs_to_a_command():
    assert {path.stem for path in FOLDER.glob("*.txt")} == {*SCREENS, *KEYS}


def test_every_chip_has_one_line_at_100_columns():
    _, _, _, *lines = screen("chips").splitlines()
    assert len(lines) == len(chips.ALL) + 2  # and the rest of the header


def test_a_narrow_terminal_loses_no_figure(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    narrow = screen("chips")
    assert max(map(len, narrow.splitlines())) <= 80
    wide = (FOLDER / "chips.txt").read_text(encoding="utf-8")
    assert set(FIGURE.findall(wide)) <= set(FIGURE.findall(narrow))


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    FOLDER.mkdir(exist_ok=True)
    for name, line in SCREENS.items():
        (FOLDER / f"{name}.txt").write_text(screen(line), encoding="utf-8")
    for name, line in KEYS.items():
        (FOLDER / f"{name}.txt").write_text(keys(line), encoding="utf-8")
