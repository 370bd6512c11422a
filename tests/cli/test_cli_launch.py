"""`scalingbook launch`, and `plan --emit` and `serve --emit`: the answer, its files, and its errors."""

import io
import sys

import pytest

from scalingbook_cli import parameter_types
from scalingbook_lib.launch import LAUNCHERS
from tests.launch.test_launch_recipes import HERE, RECIPES

LM = "torchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py --bf16 --seq-length 8192 --micro-batch-size 1"
VLLM = "vllm serve openai/gpt-oss-120b -tp 4 --max-num-seqs 256 --enforce-eager --frobnicate 3"
ORDER = (
    "Flags that were used", "Assumed", "Not used", "Unknown flags", "Changes that would",
    "Nearest published plan", "One replica", "Time of", "Memory per chip", "Collectives",
)  # fmt: skip


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_answered_in_three_lines_before_its_tables(ask, name):
    told = ask("launch", str(HERE / "recipes" / name), *RECIPES[name]["options"].split())
    assert not told.err
    head, *blocks = told.out.split("\n\n")
    assert len(head.splitlines()) == 3
    assert max(map(len, told.out.splitlines())) <= 100
    titles = [block.strip().splitlines()[0].strip() for block in blocks]
    assert titles[0].endswith(" launch")
    places = [next(n for n, start in enumerate(ORDER) if title.startswith(start)) for title in titles[1:]]
    assert places == sorted(places)


def test_the_command_is_the_same_as_its_file(ask, tmp_path):
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n\n{VLLM}\n")
    typed = ask("launch --machine h100 --json", VLLM).values
    filed = ask("launch --machine h100 --json", str(tmp_path / "run.sh")).values
    assert [one.pop("where") for one in typed["unused"] + typed["unknown"]] == ["line 1"] * 2
    assert [one.pop("where") for one in filed["unused"] + filed["unknown"]] == ["line 3"] * 2
    for one in (*typed["used"], *filed["used"]):
        one.pop("where")
    assert typed == filed


def test_standard_input_is_a_script(ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(VLLM))
    assert ask("launch - --machine h100 --json").values["launcher"] == "vllm"


def test_files_that_a_command_names_are_read_beside_it(ask, tmp_path):
    (tmp_path / "server.yaml").write_text("max-num-seqs: 7\n")
    (tmp_path / "run.sh").write_text("vllm serve openai/gpt-oss-20b --config server.yaml\n")
    used = ask("launch --machine h100 --json", str(tmp_path / "run.sh")).values["used"]
    assert {
        "concept": "CONC",
        "flag": "--max-num-seqs",
        "value": "7",
        "where": "line 1 of server.yaml",
    } in used


def test_the_prediction_is_that_of_the_same_plan_as_written(ask):
    flags = "--tensor-model-parallel-size 4 --use-distributed-optimizer --overlap-grad-reduce "
    flags += "--sequence-parallel"
    found = ask("launch --machine h100 --model llama-3-8b --json", f"{LM} {flags} --tp-comm-overlap").values
    line = "plan llama-3-8b h100:64 --batch 16 --tp 4 --fsdp 16 --zero 1 --gradients fp32 --as-written --json"
    plan = ask(f"{line} --emit megatron").values
    assert found["plan"] == plan["plan"]
    assert (found["step_time_s"], found["memory_bytes"]) == (plan["step_time_s"], plan["memory_bytes"])


def test_the_prediction_is_that_of_the_same_layout_as_written(ask):
    text = "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 8 --gpu-memory-utilization 0.9"
    found = ask("launch --machine h100 --concurrency 64 --json", text).values
    layout = ask("serve llama-3-70b h100:8 --tp 8 --batch 64 --policy chunked --as-written --json").values
    assert found["layout"] == layout["layout"]
    assert (found["itl_s"], found["ttft_s"]) == (layout["itl_s"], layout["ttft_s"])


def test_what_does_not_fit_is_answered_with_changes_and_exit_code_1(ask):
    told = ask("launch --machine h100 --model llama-3-70b", f"{LM} --tensor-model-parallel-size 2")
    assert told.code == 1
    assert "Changes that would make it fit" in told.out
    assert "over" in told.out.splitlines()[2]


def test_a_server_that_does_not_fit_is_answered_with_changes_that_make_it_fit(ask):
    line, text = "launch --machine v5e:2x2", "vllm serve meta-llama/Llama-3.1-8B-Instruct"
    told = ask(line, text)
    assert told.code == 1
    assert "17.8 GB does not fit in 16 GiB of TPU v5e (103%)" in " ".join(told.out.split())
    _, changes = told.out.split("Changes that would make it fit")
    assert "--tensor-parallel-size 4" in changes
    assert "help most" not in told.out
    found = ask(f"{line} --json", text).values["changes"]
    assert {(one["helps"], one["gain"]) for one in found} == {("fit", None)}
    fitting = ask(f"{line} --json", f"{text} {' '.join(found[0]['flags'])}").values
    assert fitting["itl_s"] == found[0]["itl_s"]


def test_a_server_that_nothing_makes_fit_says_so(ask):
    told = ask("launch --machine t4", "vllm serve moonshotai/Kimi-K2-Instruct --max-num-seqs 4")
    assert "No single change of the launch is predicted to make it fit." in told.out


def test_a_plan_that_does_not_divide_says_why_beside_what_was_read(ask):
    told = ask("launch --machine h100 --model llama-3-8b", f"{LM} --tensor-model-parallel-size 64")
    assert told.code == 1
    assert "are not divisible by tp=64" in told.out
    assert "Flags that were used" in told.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["launch"], "Missing argument 'FILE_OR_COMMAND'"),
        (["launch", "nothing.sh"], "'nothing.sh' cannot be read; write the path of a text file"),
        (["launch", "ls"], "'ls' starts no launcher that is known here"),
        (["launch", VLLM], "does not say which; add --machine, as in --machine h100:4"),
        (["launch", VLLM, "--machine", "h9000"], "no chip 'h9000' in the catalog"),
        (["launch", VLLM, "--machine", "h100:6"], "and 6 H100 has 6; write a machine of 4, or a multiple"),
        (["launch", VLLM, "--machine", "h100", "--efficiency", "fast"], "'fast' is not an efficiency; write"),
        (["launch", LM, "--machine", "h100", "--launcher", "slurm"], "'slurm' is not one of 'maxtext'"),
        (["plan", "gpt-2", "v5p:4x4x4", "--batch", "64", "--emit", "megatron"], "does not run on TPU v5p"),
        (["plan", "llama-3-8b", "h100:8", "--batch", "64", "--emit", "torchtitan", "--offload-layers", "4"],
         "torchtitan cannot express offload_layers=4 of this plan, and that changes time or memory"),
        (["serve", "llama-3-8b", "h100:8", "--emit", "sglang", "--kv-sequence", "2", "--tp", "8"],
         "SGLang cannot express kv_sequence=2 of this layout"),
    ],
)  # fmt: skip
def test_an_error_is_one_sentence_that_says_what_to_write(ask, words, said):
    told = ask(words[0], *words[1:])
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert said in told.err


@pytest.mark.parametrize(
    "text", ["vllm serve m; touch {}", "vllm serve $(touch {})", "vllm serve `touch {}`"]
)
def test_nothing_is_executed(ask, tmp_path, text):
    ask("launch --machine h100", text.format(tmp_path / "made"))
    assert not (tmp_path / "made").exists()


def emitted(told):
    """The command in an answer, as one would copy it."""
    return told.values["emitted"]["command"]


@pytest.mark.parametrize(
    ("line", "machine", "model"),
    [
        ("plan llama-3-70b v5p:8x8x8 --batch 1024 --emit maxtext", "v5p:8x8x8", "llama-3-70b"),
        ("plan llama-3.1-405b h100:512 --batch 512 --emit megatron", "h100:512", "llama-3.1-405b"),
        ("plan mixtral-8x7b h100:64 --batch 512 --emit torchtitan", "h100:64", "mixtral-8x7b"),
        ("plan llama-3-8b h100:64 --batch 512 --emit megatron --tp 2 --fsdp 32 --zero 1 --as-written",
         "h100:64", "llama-3-8b"),
    ],
)  # fmt: skip
def test_an_emitted_command_launches_the_plan_of_the_answer(ask, line, machine, model):
    told = ask(f"{line} --json")
    back = ask(f"launch --machine {machine} --model {model} --json", emitted(told)).values
    assert back["unused"] == back["unknown"] == []
    assert back["step_time_s"] == pytest.approx(told.values["step_time_s"], rel=1e-9)
    assert back["memory_bytes"] == pytest.approx(told.values["memory_bytes"], rel=1e-9)
    shown = ask(line).out
    assert all(word in " ".join(shown.split()) for word in emitted(told).replace("\\\n", " ").split())


@pytest.mark.parametrize(
    ("line", "machine"),
    [
        ("serve meta-llama/Llama-3.1-70B-Instruct h100:8 --emit vllm", "h100:8"),
        ("serve meta-llama/Llama-3.1-70B-Instruct h100:8 --emit sglang --kv fp8", "h100:8"),
        ("serve deepseek-ai/DeepSeek-R1 h200:8 --weights fp8 --emit vllm", "h200:8"),
        ("serve Qwen/Qwen3-8B h100:2 --tp 2 --batch 32 --as-written --emit vllm", "h100:2"),
    ],
)
def test_an_emitted_server_has_the_layout_of_the_answer(ask, line, machine):
    told = ask(f"{line} --json").values
    back = ask(f"launch --machine {machine} --json", told["emitted"]["command"]).values
    same = [name for name, value in told["layout"].items() if back["layout"][name] != value]
    assert set(same) <= {"outer", "experts", "experts_compute", "dispatch"}  # None says the same as the type
    assert back["policy"] == told["policy"]
    assert back["itl_s"] == pytest.approx(told["itl_s"], rel=0.02)


@pytest.mark.parametrize("server", ["vllm", "sglang"])
@pytest.mark.parametrize("draft", ["", " --draft-model llama-3-8b"])
def test_an_emitted_server_drafts_as_the_answer_does(ask, server, draft):
    line = "serve llama-3-70b h100:8 --as-written --tp 8 --batch 64 --draft-tokens 3 --acceptance-length 2"
    told = ask(f"{line}{draft} --emit {server} --json").values
    command = told["emitted"]["command"]
    how = "launch --machine h100:8 --model llama-3-70b --concurrency 64 --acceptance-length 2 --json"
    back = ask(how, command).values
    assert back["itl_s"] == pytest.approx(told["itl_s"], rel=1e-9)
    assert back["draft_tokens"] == 3
    assert back["unknown"] == []


def test_a_chip_alone_is_a_chip_and_a_machine_is_a_machine(ask):
    kind = parameter_types.MACHINE_OR_CHIP
    assert kind.convert("h100", None, None).name == "H100"
    assert kind.convert("h100:16", None, None).chips == 16
    values = ask("launch --machine h100 --figure hbm_bytes=96GiB --json", VLLM).values
    assert values["hbm_bytes"] == 96 * 2**30


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_help_names_every_launcher(ask, launcher):
    assert LAUNCHERS[launcher] in " ".join(ask("launch --help").out.split())
