"""Numbers, names and files are taken as people write them."""

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import scalingbook_cli as cli
from scalingbook_cli import reading
from scalingbook_lib import __version__, models
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import PEAK

CONFIG = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
          "tie_word_embeddings": False}  # fmt: skip
SMALL = 8_030_261_248


@pytest.mark.parametrize(
    ("written", "read"),
    [("4096", 4096), ("4,096", 4096), ("4_096", 4096), ("16M", 16_000_000), ("16Mi", 2**24), ("8k", 8000),
     ("8Ki", 8192), ("2^13", 8192), ("1e3", 1000), ("1.5k", 1500)],
)  # fmt: skip
def test_counts(written, read):
    assert reading.whole(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [("16M", 16e6), ("2TiB", 2**41), ("2 TiB", 2**41), ("3.5GB", 3.5e9), ("8b", 1), ("100", 100), ("0", 0)],
)
def test_bytes(written, read):
    assert reading.amount(written, "B") == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2048", 2048),
        ("2,048", 2048),
        ("16Mi", 2048),
        ("16Mi tokens", 2048),
        ("8192 tokens", 1),
        ("4Mitokens", 512),
    ],
)
def test_a_batch_of_sequences_or_of_tokens(written, read):
    assert reading.sequences(written, 8192) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [("h100:1024", Cluster.of(chips.H100, 1024)), ("H100", Cluster.of(chips.H100, 8)),
     ("gb200", Cluster.of(chips.GB200, 72)), ("v5p:16x20x28", Slice.of(chips.V5P, "16x20x28")),
     ("TPU v5p:16×20×28", Slice.of(chips.V5P, "16x20x28")), ("tpu-v5e:4x8", Slice.of(chips.V5E, "4x8")),
     ("trillium:16x16", Slice.of(chips.V6E, "16x16")), ("h100:1Ki", Cluster.of(chips.H100, 1024)),
     ("ironwood:4x4x4", Slice.of(chips.TPU7X, "4x4x4")), ("h100-sxm:8", Cluster.of(chips.H100, 8)),
     ("8xH100", Cluster.of(chips.H100, 8)), ("tpu7x-4x8x8", Slice.of(chips.TPU7X, "4x8x8")),
     ("v6e-8", Slice.of(chips.V6E, "2x4")), ("v5p-128", Slice.of(chips.V5P, "4x4x4")),
     ("v5litepod-8", Slice.of(chips.V5E, "2x4")), ("rtx4090", Cluster.of(chips.find("RTX 4090"), 1)),
     ("a100-40gb:4", Cluster.of(chips.A100_40GB, 4)), ("v100", Cluster.of(chips.V100, 1))],
)  # fmt: skip
def test_machines(written, read):
    assert reading.machine(written) == read


@pytest.mark.parametrize("written", ["X=8,Y=128", "X8 Y128", "X=8, Y=128", "X8,Y128"])
def test_meshes_as_the_book_writes_them(written):
    assert reading.mesh(written) == {"X": 8, "Y": 128}


def test_types_shares_and_efficiencies():
    assert reading.dtype("BF16").name == "bf16"
    assert reading.dtype_or_none("none") is None
    assert reading.overlap("none") == "none"
    assert reading.overlap("40%") == 0.4
    assert reading.efficiency("peak") is PEAK
    assert reading.efficiency("40%").matmul == 0.4
    assert reading.efficiency("calibrated") is None  # that of the chip and type


@pytest.mark.parametrize("name", ["AllGather", "all_gather", "all-gather", "ALL GATHER"])
def test_a_collective_has_many_spellings(ask, name):
    assert ask("collective", name, "1G", "h100", "--json").values["collective"] == "all-gather"


def test_a_config_is_read_from_a_file_its_folder_or_standard_input(ask, tmp_path, monkeypatch):
    folder = tmp_path / "my {model}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    for path in (folder, folder / "config.json"):
        assert ask("model --json", str(path)).values["parameters"]["total"] == SMALL
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(CONFIG)))
    assert ask("model - --json").values["parameters"]["total"] == SMALL
    monkeypatch.chdir(folder.parent)
    assert ask("model --json", folder.name).values["parameters"]["total"] == SMALL


def test_an_id_of_hugging_face_is_a_name_where_no_file_has_that_path(ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ask("model Qwen/Qwen3-8B --json").values["model"] == "Qwen3 8B"
    (tmp_path / "Qwen" / "Qwen3-8B").mkdir(parents=True)
    (tmp_path / "Qwen" / "Qwen3-8B" / "config.json").write_text(json.dumps(CONFIG))
    assert ask("model Qwen/Qwen3-8B --json").values["parameters"]["total"] == SMALL
    assert "is not in the catalog" in ask("model nobody/Unknown-8B").err


def test_a_name_of_the_catalog_comes_before_a_folder_of_that_name(ask, tmp_path, monkeypatch):
    (tmp_path / "llama-3-8b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert ask("model llama-3-8b --json").values["model"] == "Llama 3 8B"


@pytest.mark.parametrize("text", ["", "nothing", "{", '{"model_type": "llama"}', "[1]", "\x00"])
def test_standard_input_that_is_no_config_is_refused(ask, monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    told = ask("model -")
    assert told.code == 2
    assert told.err.count("\n") == 1


def test_bytes_that_are_no_text_are_refused(ask, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{}")
    assert ask("model", str(tmp_path / "config.json")).code == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe{}"), encoding="utf-8"))
    assert "is not UTF-8 text" in ask("model -").err


@pytest.mark.parametrize("model", models.CATALOG, ids=lambda model: model.name)
def test_every_completed_name_is_read_back(model):
    from scalingbook_cli import parameter_types

    typed = [parameter_types.MODEL.names[i] for i, m in enumerate(models.CATALOG) if m is model]
    assert replace(reading.model(typed[0]), quantization=None) == model
    assert " " not in typed[0]


def test_every_completed_chip_is_read_back():
    from scalingbook_cli import parameter_types

    assert [reading.chip(name) for name in parameter_types.CHIP.names] == list(chips.ALL.values())


@pytest.mark.parametrize(
    ("line", "offered"),
    [("", {"model", "roofline", "collective", "plan", "serve", "launch", "measure", "score", "conform",
          "grade", "chips", "explain", "inspect", "profile", "mcp", "completion"}),
     ("model llama-3-", {"llama-3-8b", "llama-3-70b"}), ("model llama-3.1", {"llama-3.1-405b"}),
     ("roofline v5", {"v5e", "v5p"}), ("roofline H1", {"h100", "h100-pcie", "h100-nvl"}),
     ("collective all-", {"all-gather", "all-reduce", "all-to-all"}),
     ("collective all-gather 1G v5", {"v5e:", "v5p:"}),
     ("roofline v5e --dtype fp", {"fp32", "fp16", "fp8", "fp4"}),
     ("plan llama-3-8b h100 --schedule z", {"zero-bubble"}),
     ("plan llama-3-8b h100 --remat f", {"full"}), ("serve llama-3-8b h100 --policy c", {"chunked"})],
)  # fmt: skip
def test_a_shell_completes_commands_chips_and_models(monkeypatch, capsys, line, offered):
    monkeypatch.setenv("_SCALINGBOOK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"scalingbook {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
    with pytest.raises(SystemExit):
        cli.main([])
    words = {word.partition(",") for word in capsys.readouterr().out.split()}
    assert {name for kind, _, name in words if kind == "plain"} == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_asks_this_command(ask, shell):
    told = ask("completion", shell)
    assert told.code == 0
    assert f"_SCALINGBOOK_COMPLETE={shell}_complete" in told.out.replace("env ", "")


def test_the_installed_script_is_this_one():
    import subprocess

    script = Path(sys.executable).with_name("scalingbook")
    for command in ([script], [sys.executable, "-m", "scalingbook_cli"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"scalingbook {__version__}\n"


@pytest.mark.parametrize(
    "line",
    ["model {}", "plan gpt-2 {} --batch 8", "plan gpt-2 h100 --batch 8 --efficiency {}",
     "serve gpt-2 h100 --efficiency {}", "score {}"],
)  # fmt: skip
def test_what_never_ends_is_refused_before_it_is_read(ask, tmp_path, line):
    pipe, sparse = tmp_path / "pipe.json", tmp_path / "large.json"
    os.mkfifo(pipe)
    with sparse.open("wb") as large:
        large.truncate(2**33)
    for path in (pipe, sparse):
        told = ask(line.format(path))
        assert (told.code, told.err.count("\n")) == (2, 1)
        assert "is not a regular file of at most 64 MiB; write the path of one" in told.err


def test_a_folder_whose_configuration_is_a_pipe_is_refused(ask, tmp_path):
    os.mkfifo(tmp_path / "config.json")
    assert "not a regular file" in ask(f"model {tmp_path}").err
    assert "not a regular file" in ask("model /dev/zero").err
