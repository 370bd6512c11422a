"""The ten mysteries: their files, the numbers of their checks, and the tools that find their faults."""

import csv
import re
from statistics import mean, median

import pytest

from scalingbook_book import mysteries
from scalingbook_book.chapters import checks
from scalingbook_book.chapters.profiling.checks import mysteries as asked
from scalingbook_lib import inspection, profiles
from scalingbook_lib.steps import expert_load
from tools.environment import ROOT

FOLDER = ROOT / "data" / "mysteries"
RULES = {
    "tight-memory.hlo.gz": "replicated state",
    "eight-nodes.hlo.gz": "axis across nodes",
    "one-layer.hlo.gz": "padded matmuls",
    "twelve-layers.hlo.gz": "calls to the host",
}
SERIOUS = {"tight-memory.hlo.gz", "eight-nodes.hlo.gz", "one-layer.hlo.gz"}


def near(value, rel=1e-4):
    return pytest.approx(value, rel=rel)


def test_there_are_ten_small_files_and_ten_checks():
    assert len(mysteries.names()) == len(asked.MYSTERIES) == 10
    assert {path.name for path in FOLDER.iterdir()} == set(mysteries.names())
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000
    assert len({check.key for check in asked.MYSTERIES}) == 10


def test_a_file_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(FileNotFoundError, match=r"no mystery 'rank.csv'; the files are: .*ranks.csv"):
        mysteries.path("rank.csv")


@pytest.mark.parametrize("name", RULES)
def test_the_inspector_finds_the_fault_of_a_program(name):
    found = [one.rule for one in inspection.inspect(mysteries.text(name)).findings]
    assert RULES[name] in found
    if name in SERIOUS:
        assert found[0] == RULES[name]


def test_the_numbers_of_the_losses():
    rows = mysteries.rows("loss-by-rank.csv")
    each = [{row["loss"] for row in rows if row["step"] == n} for n in range(30)]
    assert {len(losses) for losses in each} == {1}
    assert {row["tokens"] for row in rows} == {asked.TOKENS}
    assert len({row["rank"] for row in rows}) == asked.DATA * asked.MODEL
    assert all(row["local_grad_norm"] == row["grad_norm"] for row in rows)


def test_the_numbers_of_the_idle_chip():
    trace = profiles.load(mysteries.path("idle-chip.json"))
    batches = [m.duration_s for m in trace.host if m.name == "next batch"]
    steps = [m.duration_s for m in trace.host if m.name == "step"]
    assert mean(batches) == near(asked.BATCH_S)
    assert median(batches) == near(asked.MEDIAN_BATCH_S)
    assert mean(steps) == near(asked.STEP_S)


def test_the_numbers_of_the_compilations():
    log = mysteries.text("compile-log.txt")
    steps, evaluations = (
        [float(s) for s in re.findall(rf"compilation of jit\({name}\) in ([\d.]+)", log)]
        for name in ("step", "evaluate")
    )
    assert (sum(steps), steps[0], sum(evaluations)) == near(
        (asked.COMPILED_S, asked.FIRST_S, asked.EVALUATION_S)
    )
    assert sum(float(s) for s in re.findall(r"tokens in ([\d.]+) s", log)) == near(asked.RUN_S)


def test_the_numbers_of_the_ranks():
    rows = mysteries.rows("ranks.csv")
    steps = [[row for row in rows if row["step"] == n] for n in range(20)]
    compute = [max(row["compute_ms"] for row in step) for step in steps]
    slow = [max(row["ring_ms"] for row in step) for step in steps]
    healthy = [max(row["ring_ms"] for row in step if row["rank"] % 8 != 3) for step in steps]
    assert mean(compute) + mean(slow) == near(asked.STEP_MS)
    assert mean(compute) + mean(healthy) == near(asked.REPAIRED_MS)
    assert (mean(slow), mean(healthy)) == near((asked.SLOW_RING_MS, asked.RING_MS))


def test_the_numbers_of_the_experts():
    rows = mysteries.rows("experts.csv")
    loads = [[tokens for name, tokens in row.items() if name != "layer"] for row in rows]
    found = [expert_load.balance(layer, 16, rebalanced=False) for layer in loads]
    assert tuple(max(one.chips) for one in found) == near(asked.BUSIEST)
    hottest = [one.hottest_expert for one in found]
    assert (max(hottest), mean(hottest)) == near((asked.HOTTEST, asked.HOTTEST_ON_AVERAGE))


def test_the_numbers_of_the_programs():
    found = {name: inspection.inspect(mysteries.text(name)) for name in RULES}
    memory, nodes, layer = (found[f"{name}.hlo.gz"] for name in ("tight-memory", "eight-nodes", "one-layer"))
    assert sum(a.nbytes for a in memory.program.arguments if a.replicated) == asked.REPLICATED
    assert nodes.program.run_s == near(asked.RUN_ESTIMATE_S, 2e-3)
    assert nodes.findings[0].saved_s == near(asked.ORDER_S, 2e-3)
    data = next(row for row in nodes.transfers if row.first.collective.axes == "data")
    assert data.seconds == near(asked.DATA_AXIS_S, 0.01)
    assert layer.program.work.flops == near(asked.FLOPS, 2e-3)
    assert layer.program.work.padded == near(asked.PADDING, 2e-3)
    calls = next(one for one in found["twelve-layers.hlo.gz"].findings if one.rule == "calls to the host")
    assert f"{checks.find('profiling.mystery-twelve').answer():,} times" in calls.message


def test_no_file_and_no_section_names_its_fault():
    page = (ROOT / "chapters" / "profiling_mysteries.md").read_text(encoding="utf-8")
    titles = " ".join(re.findall(r"^## (.*)$", page, re.M)).lower() + " ".join(mysteries.names())
    for word in (
        "seed",
        "input",
        "recompil",
        "nic",
        "replicat",
        "hot",
        "innermost",
        "balanc",
        "padd",
        "callback",
    ):
        assert word not in titles


def test_each_table_is_numeric_and_complete():
    for name in mysteries.names():
        if name.endswith(".csv"):
            lines = [*csv.reader(mysteries.text(name).splitlines())]
            assert {len(line) for line in lines} == {len(lines[0])}
            assert len(mysteries.rows(name)) == len(lines) - 1
