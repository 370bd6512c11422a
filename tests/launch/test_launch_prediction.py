"""The short answer to a launch command in Python: the same numbers as those of the command line."""

import json

import pytest

import scalingbook_cli as cli
from scalingbook_lib import launch
from scalingbook_lib.launch import LaunchError, RequestLoad
from scalingbook_lib.units import percent

TRAINING = (
    "torchrun --nproc_per_node 8 --nnodes 2 -m torchtitan.train --model.name llama3 --model.flavor 8B "
    "--training.seq_len 8192 --training.local_batch_size 1 --activation_checkpoint.mode none"
)
SERVER = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 64 --max-model-len 4096 --enforce-eager"


def told(capsys, *words):
    """The values of the command line."""
    cli.main(["launch", *words, "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_training_command_has_the_numbers_of_the_command_line(capsys):
    found, values = launch.predict(TRAINING, machine="h100"), told(capsys, TRAINING, "--machine", "h100")
    assert found.step.total_s == values["step_time_s"]
    assert found.step.memory.total == values["memory_bytes"]
    assert found.band_factor == values["band_factor"]
    assert [one.what for one in found.changes] == [one["change"] for one in values["changes"]]
    assert found.fits is values["fits"]


def test_a_serving_command_has_the_numbers_of_the_command_line(capsys):
    load = RequestLoad(prompt=2048, output=256, concurrency=32, prefix_cache_hit=0.5)
    found = launch.predict(SERVER, machine="h100", load=load)
    words = "--machine h100 --prompt 2048 --output 256 --concurrency 32 --prefix-cache-hit 0.5"
    values = told(capsys, SERVER, *words.split())
    assert found.itl_s == values["itl_s"]
    assert found.served.ttft_s == values["ttft_s"]
    assert found.memory.total == values["memory_bytes"]
    assert found.band_factor == values["band_factor"]
    assert [one.what for one in found.changes] == [one["change"] for one in values["changes"]]


def test_speculative_decoding_has_the_numbers_of_the_command_line(capsys):
    drafts = f'{SERVER} --speculative-config \'{{"method": "ngram", "num_speculative_tokens": 3}}\''
    found = launch.predict(drafts, machine="h100", load=RequestLoad(acceptance_length=2.0))
    values = told(capsys, drafts, "--machine", "h100", "--acceptance-length", "2")
    assert found.itl_s == values["itl_s"] < launch.predict(SERVER, machine="h100").itl_s


def test_the_short_answer_says_what_binds_what_would_help_and_what_was_not_used():
    first, *rest = str(launch.predict(SERVER, machine="h100")).splitlines()
    assert first.startswith("Layout: one device; 1 replica with batch size 64")
    starts = ("TTFT ", "Memory ", "Bound by ", "Would help: ", "Not used: --enforce-eager")
    assert all(any(line.startswith(start) for line in rest) for start in starts)
    assert max(map(len, (first, *rest))) <= 88


def test_what_does_not_fit_says_so_in_the_short_answer():
    alone = TRAINING.replace("--nnodes 2", "--nnodes 1").replace("_batch_size 1", "_batch_size 8")
    found = launch.predict(alone, machine="h100")
    assert not found.fits
    assert "over; our count is off by up to" in str(found)
    assert "Would make it fit, or nearly: " in str(found)
    server = launch.predict(SERVER, machine="v5e:2x2")
    assert server.served is None
    assert "does not fit" in str(server)


def test_a_load_that_exceeds_the_context_is_refused():
    with pytest.raises(LaunchError, match="exceed the context of 4,096 tokens"):
        launch.predict(SERVER, machine="h100", load=RequestLoad(prompt=4096))


@pytest.mark.parametrize("machine", ["h100:16", "h100", "p5.48xlarge:2"])
def test_a_machine_is_a_chip_or_a_machine_by_name(machine):
    assert launch.predict(TRAINING, machine=machine).launch.machine.chips == 16


def test_the_model_and_the_batch_that_a_config_leaves_open_are_arguments():
    text = '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}'
    given = {"machine": "h100:16", "model": "llama-3-8b", "batch": 32, "sequence": 4096}
    found = launch.predict(text, name="ds.json", **given)
    assert found.launch.model.name == "Llama 3 8B"
    assert percent(found.step.mfu) in str(found)


def test_a_draft_model_takes_memory_in_the_prediction_of_a_launch():
    drafted = (
        "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --speculative-config.num_speculative_tokens 4 "
        "--speculative-config.model meta-llama/Llama-3.1-405B-Instruct"
    )
    load = RequestLoad(acceptance_length=3.0, concurrency=1)
    found = launch.predict(drafted, machine="h100:4", load=load)
    assert not found.fits
    assert found.memory.total > found.memory.chip.hbm_bytes
    assert "draft weights 203 GB" in " ".join(str(found).split())
