"""docs/json.md lists every name that `--json` prints, and no other."""

import shutil

import pytest

from scalingbook_book.code_exercises import grade
from scalingbook_cli import measure, parameter_types, script
from scalingbook_lib.evidence.local_benchmark import PRODUCT, DeviceBenchmark, TimedOperation
from tests.cli.json_names import documented, names_of, sections
from tests.cli.test_cli_screens import FOLDER, KEYS
from tools.environment import ROOT

H100 = ROOT / "tests" / "core" / "profiles" / "h100" / "layer.xplane.pb.gz"
PROGRAMS = ROOT / "tests" / "core" / "inspection" / "programs"
LOOPED = "repeated-in-a-loop"
OPAQUE = """HloModule opaque, num_partitions=2

ENTRY %main (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8] parameter(0)
  %k = f32[8,8] custom-call(%p), custom_call_target="somebody_elses_kernel"
  ROOT %r = f32[8,8] all-reduce(%k), replica_groups={{0,1}}, to_apply=%add
}
"""
RECIPES = ROOT / "tests/launch/recipes"
MORE = {
    "model": ("model qwen3-next-80b-a3b", "model Qwen/Qwen3-8B-AWQ"),
    "roofline": (),
    "collective": ("collective all-gather 1G h100:1024 --mesh X=8,Y=128 --over X",),
    "plan": (
        "plan llama-3.1-405b h100 --batch 8",
        "plan llama-3-8b h100:64 --batch 512 --tp 3 --fsdp 8 --as-written",
        "plan llama-3-8b h100:64 --batch 512 --tp 16 --fsdp 4 --remat full --as-written",
        "plan mixtral-8x7b h100:64 --batch 512 --ep 8 --expert-domains 1 --emit torchtitan",
    ),
    "serve": ("serve llama-3.1-405b h100:1", "serve mixtral-8x7b h100:8 --tp 2 --as-written --emit vllm"),
    "launch": (
        "launch run.sh --machine h100",
        f"launch {RECIPES}/deepspeed_zero2_autotp.json --machine h100:8 --model llama-3-8b --batch 64 "
        "--sequence 2048",
    ),
    "score": (),
    "measure": ("measure --calibrate", "measure"),
    "conform": ("conform theirs.csv",),
    "grade": ("grade .",),
    "explain": ("explain fsdp", "explain chip"),
    "inspect": (
        "inspect opaque.hlo.txt --max-hbm 1",
        f"inspect {PROGRAMS / LOOPED}.fixed.hlo.gz --diff {PROGRAMS / LOOPED}.faulty.hlo.gz",
        f"inspect {PROGRAMS / LOOPED}.faulty.hlo.gz --diff {PROGRAMS / LOOPED}.fixed.hlo.gz",
    ),
    "profile": (
        f"profile {ROOT / 'data' / 'traces' / 'serial-before.json'} --max-idle 1%",
        "profile logs",
    ),
    "chips": ("chips h200 --instances", *(f"chips {name}" for name in parameter_types.CHIP.names)),
}
"""Questions whose answers have names that those of the screens lack, for example because there is no plan."""
OF_ALL = "Every command"


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """A table that conforms to nothing, and a benchmark record and a graded notebook that nothing ran."""
    monkeypatch.chdir(tmp_path)
    table = "model,quantity,value\nQwen/Qwen3-0.6B,parameters,1\nnobody/Unknown,parameters,1\n"
    (tmp_path / "theirs.csv").write_text(table)
    (tmp_path / "opaque.hlo.txt").write_text(OPAQUE)
    (tmp_path / "logs").mkdir()
    shutil.copy(H100, tmp_path / "logs" / "host.xplane.pb.gz")
    (tmp_path / "run.sh").write_text("vllm serve openai/gpt-oss-20b --enforce-eager --frobnicate 3\n")
    row = TimedOperation(what=PRODUCT, dtype="bf16", sizes=(8, 8, 8), seconds=1.0, predicted_s=1.0)
    record = DeviceBenchmark(device="cpu", chip="", count=1, jax="0", date="2026-11-22", rows=(row,))
    monkeypatch.setattr(measure, "_surveyed", lambda: record)
    monkeypatch.setattr(measure, "_shares", lambda _: {"matmul": 0.5})
    graded = grade.Graded("a.ipynb", (grade.Exercise("intro.a", "right", "Right."),))
    monkeypatch.setattr(grade, "folder", lambda *_, **__: [graded])


def printed(ask, command):
    """The names that a command is known to print."""
    screens = [name for name, line in KEYS.items() if line.split()[0] == command]
    names = [name for one in screens for name in (FOLDER / f"{one}.txt").read_text().splitlines()]
    return {*names, *(name for line in MORE[command] for name in names_of(ask(f"{line} --json").values))}


@pytest.mark.parametrize("command", MORE)
def test_every_printed_name_is_documented_and_every_documented_name_is_printed(ask, command):
    told, names = documented(command), printed(ask, command) - set(documented(OF_ALL))
    assert len(told) == len(set(told))
    empty = {name for name in names if {f"{name}.*", f"{name}[]"} & set(told)}  # null or no element
    assert names - empty - set(told) == set()
    assert set(told) - names == set()


def test_the_names_of_every_command_are_printed(ask):
    values = ask("roofline v5e --matmul 64x64x64 --explain --json").values
    values |= ask("collective all-gather 1G v5p-128 --json").values
    assert set(documented(OF_ALL)) <= set(names_of(values))


def test_every_command_with_json_has_a_section():
    commands = set(script.scalingbook.commands) - {"completion", "mcp"}
    titles = list(sections())
    assert commands == set(MORE) == {title for title in titles if not title.startswith(("Every", "Fields"))}
    assert all(meaning and name for rows in sections().values() for name, _, meaning in rows)
