"""The command `conform`, and what `model` and `serve` say of a file's types and states."""

import json
from pathlib import Path

import pytest

from scalingbook_lib.models.conformance.vectors import published

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "models.json"
ORACLE = json.loads((VECTORS.parents[1] / "model_oracle.json").read_text(encoding="utf-8"))
CONFIGS = {row["name"]: row["config"] for row in ORACLE["models"]}
QWEN = "Qwen/Qwen3-0.6B"


def written(folder, *rows):
    path = folder / "theirs.csv"
    path.write_text("model,quantity,value\n" + "".join(f"{m},{q},{v}\n" for m, q, v in rows))
    return str(path)


@pytest.fixture
def config(tmp_path):
    """`config("openai/gpt-oss-20b")`: the path of that model's file."""

    def path(name, **more):
        (tmp_path / "config.json").write_text(json.dumps(CONFIGS[name] | more))
        return str(tmp_path / "config.json")

    return path


def test_the_vectors_conform(ask):
    told = ask("conform", str(VECTORS))
    assert told.code == 0
    assert "agree with the vectors." in told.out


def test_a_pointer_of_git_lfs_is_named(ask, tmp_path):
    path = tmp_path / "theirs.csv"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 89012\n")
    told = ask("conform", str(path))
    assert told.code == 2
    assert "is a Git LFS pointer" in told.err


def test_a_slip_is_named_and_the_exit_code_is_1(ask, tmp_path):
    right = published()[QWEN]["parameters"]["value"]
    path = written(tmp_path, (QWEN, "parameters", right + 151_936 * 1024), (QWEN, "active_parameters", right))
    told = ask("conform", path)
    assert told.code == 1
    assert "tied embeddings counted twice" in told.out
    assert max(map(len, told.out.splitlines())) <= 100
    values = ask("conform --json", path).values
    assert (values["agree"], values["differ"][0]["slip"]) == (1, "tied embeddings counted twice")


def test_a_file_of_another_form_is_told_what_to_write(ask, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    told = ask("conform", str(tmp_path / "x.csv"))
    assert told.code == 2
    assert "write a CSV with the columns model, quantity, value" in told.err


def test_a_model_shows_its_weights_as_stored(ask, config):
    told = ask("model", config("openai/gpt-oss-20b"))
    assert "Weights as the file stores them" in told.out
    assert "12.82 GiB" in told.out
    values = ask("model --json", config("openai/gpt-oss-20b")).values
    assert round(values["stored"]["total_bytes"] / 2**30, 1) == 12.8


def test_a_model_shows_its_states_beside_the_cache(ask, config):
    told = ask("model --sequence 32Ki", config("Qwen/Qwen3.5-27B"))
    assert "KV cache and recurrent states" in told.out
    values = ask("model --sequence 32Ki --json", config("Qwen/Qwen3.5-27B")).values["kv_cache"]
    assert values["bytes_by_state"]["recurrent states"] == 150_994_944
    assert "recurrent states" in ask("model --explain", config("Qwen/Qwen3.5-27B")).out


def test_the_type_of_the_cache_is_the_file_s_unless_an_option_says_another(ask, config):
    values = ask("model --json", config("deepseek-ai/DeepSeek-V3.2", kv_cache_dtype="fp8")).values
    assert values["kv_cache"]["bytes_per_token"] == 48_068
    values = ask(
        "model --cache bf16 --json", config("deepseek-ai/DeepSeek-V3.2", kv_cache_dtype="fp8")
    ).values
    assert values["kv_cache"]["bytes_per_token"] == 85_888


def test_a_server_holds_weights_as_the_file_stores_them(ask, config):
    """vLLM serves Qwen3-235B-A22B in FP8 on four H100 (vllm-project/vllm#21348)."""
    line = "--tp 4 --as-written --prompt 1024 --output 64 --json"
    told = ask(f"serve {config('Qwen/Qwen3-235B-A22B-FP8')} h100:4 {line}")
    assert told.code == 0
    wide = ask(f"serve {config('Qwen/Qwen3-235B-A22B-FP8')} h100:4 --weights bf16 {line}")
    assert wide.code == 1


def test_layers_of_several_kinds_are_served_and_trained(ask, config):
    path = config("google/gemma-4-26B-A4B")
    assert ask(f"serve {path} h100:4 --tp 4 --as-written --json").code == 0
    told = ask(f"plan {path} h100:32 --batch 64 --ep 8 --fsdp 32 --as-written")
    assert told.code == 0
    assert "FSDP 32, EP 8" in told.out


def test_context_parallelism_of_recurrent_layers_is_refused_with_what_to_do_instead(ask, config):
    told = ask(f"plan {config('Qwen/Qwen3.5-27B')} h100:64 --batch 64 --cp 8 --fsdp 8 --as-written")
    assert told.code == 1
    out = " ".join(told.out.split())
    assert "has recurrent layers, and context parallelism is modeled for softmax attention alone" in out
    assert "write cp=1" in out


def test_what_is_assumed_of_an_unknown_type_is_told(ask, config):
    told = ask("model", config("meta-llama/Meta-Llama-3.1-8B", model_type="newcomer"))
    assert told.code == 0
    assert "was read like llama" in " ".join(told.out.split())
