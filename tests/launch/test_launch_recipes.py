"""Published recipes: their settings, as `recipes.csv` says, are read without an unknown flag.

Where a time is published, the prediction is printed beside it. `factor` is by how much they may differ: a
recipe's own tuning, and for mixtures of experts the load of the experts, are not part of the prediction.
`run_id` is the row of the same run in the table of training runs.
"""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from scalingbook_lib import inference, launch, models, training
from scalingbook_lib.calibrated.memory_margin import memory_margin
from scalingbook_lib.calibrated.training_efficiency import training as efficiency_of
from scalingbook_lib.evidence import training as published
from scalingbook_lib.evidence.measured.training_runs import find
from scalingbook_lib.launch import Given, TrainingLaunch
from scalingbook_lib.launch.training import software
from scalingbook_lib.machines import chip_files, chips, machine_names
from scalingbook_lib.units import si

HERE = Path(__file__).parent
with (HERE / "recipes.csv").open(encoding="utf-8") as file:
    RECIPES = {row["file"]: row for row in csv.DictReader(file)}
SCORED = [name for name, row in RECIPES.items() if row["run_id"]]
TIMED = [name for name, row in RECIPES.items() if row["factor"]]
SERVED = ("vllm", "sglang", "tensorrt_llm")


def given(options):
    """What the options say; `--machine h100` leaves the number of chips to the recipe."""
    words = options.split()
    told = dict(zip(words[::2], words[1::2], strict=True))
    name = told.get("--machine", "")
    machine = None
    if name:
        machine = machine_names.read(name).machine if ":" in name else chips.find(name)
    if figure := told.get("--figure"):
        machine = chip_files.with_figures(machine, chip_files.assignments((figure,)))
    return Given(
        machine=machine,
        model=models.find(told["--model"]) if "--model" in told else None,
        batch=int(told["--batch"]) if "--batch" in told else None,
        sequence=int(told["--sequence"]) if "--sequence" in told else None,
    )


def read(name):
    row = RECIPES[name]
    text = (HERE / "recipes" / name).read_text("utf-8")
    return launch.read(text, given(row["options"]), name=name)


def step_of(one):
    """The predicted step of a launch."""
    return training.step(
        one.model, one.machine, one.plan, batch=one.batch, T=one.T, efficiency=one.efficiency
    )


def test_every_recipe_has_a_source():
    assert {path.name for path in (HERE / "recipes").iterdir()} == set(RECIPES)
    assert len(RECIPES) >= 10
    assert {row["launcher"] for row in RECIPES.values()} == set(launch.LAUNCHERS)
    assert all(row["source"] for row in RECIPES.values())


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_read_without_an_unknown_flag(name):
    one, row = read(name), RECIPES[name]
    assert one.launcher == row["launcher"]
    assert not one.account.unknown
    chips_used = one.plan.chips if isinstance(one, TrainingLaunch) else one.machine.chips
    assert chips_used == int(row["chips"])
    assert all(used.where.startswith("line ") for used in one.account.used)


@pytest.mark.parametrize("name", TIMED)
def test_a_published_time_is_near_the_prediction(name):
    one, row = read(name), RECIPES[name]
    step = step_of(one)
    rate = row["published_tokens_per_s_per_chip"]
    published_s = one.batch * one.T / float(rate) / one.plan.chips if rate else float(row["published_step_s"])
    factor = step.total_s / published_s
    print(f"{name}: predicted {si(step.total_s, 's')}, published {si(published_s, 's')}, factor {factor:.2f}")
    assert 1 / float(row["factor"]) < factor < float(row["factor"])


@pytest.mark.parametrize("name", SCORED)
def test_a_launch_and_its_row_of_the_training_runs_have_the_same_prediction(name):
    """A GPU's command names neither the release of its software nor the slower H100s of torchtitan's runs."""
    one, run = read(name), find(RECIPES[name]["run_id"])
    assert (one.model, one.batch, one.T) == (run.model, run.batch, run.T)
    assert one.software == run.software[: len(one.software)]
    row_s = published.seconds(run, efficiency_of(run.chip, run.precision, software=one.software)).total_s
    machine = replace(one.machine, chip=run.chip) if run.family == "torchtitan" else one.machine
    assert step_of(replace(one, machine=machine)).total_s == pytest.approx(row_s, rel=0.005)


def test_maxtext_is_predicted_as_its_recipes_ran_on_the_same_generation():
    """gpt-oss 120B on 64 TPU7x: the row offloads less than the newer recipe, and is predicted alike."""
    one, id = read("maxtext_gpt_oss_120b_tpu7x.sh"), "tpu-recipes-ironwood-tpu7x-64-bf16-05"
    run = next(run for run in published.all_runs() if run.id == id)
    assert one.software == run.software == ("MaxText", "tpu-recipes-ironwood")
    row_s = published.seconds(run, efficiency_of(run.chip, run.precision, software=run.software)).total_s
    assert step_of(one).total_s == pytest.approx(row_s, rel=0.05)
    assert any("tpu-recipes-ironwood" in told for told in one.account.assumed)


@pytest.mark.parametrize("chip", [chips.V5P, chips.V6E, chips.TPU7X], ids=lambda chip: chip.name)
def test_a_release_of_maxtext_has_published_runs_on_its_chip(chip):
    release = software("maxtext", chip)
    assert any(run.chip is chip and run.software == release for run in published.all_runs())


def test_torchtitan_on_hopper_is_predicted_with_flash_attention_2():
    """Llama 3 8B on 128 H100: 2.52 s were measured, and FlashAttention-3 would save a fifth of the step."""
    one = read("torchtitan_llama31_8b_h100.sh")
    newer = efficiency_of(one.machine.chip, "bf16", "attention", one.software)
    assert one.efficiency == efficiency_of(one.machine.chip, "bf16", "flash2", one.software)
    assert one.efficiency.attention == pytest.approx(0.52 * newer.attention)
    assert any("FlashAttention-2" in told for told in one.account.assumed)
    with_newer = training.step(one.model, one.machine, one.plan, batch=256, T=8192, efficiency=newer)
    assert 0.1 < 1 - with_newer.total_s / step_of(one).total_s < 0.2


@pytest.mark.parametrize(
    ("named", "kernel", "like"),
    [
        ("", None, "flash2"),
        ("--attn_implementation sdpa", "flash2", "flash2"),
        ("--attn_implementation flash_attention_2", "flash2", "flash2"),
        ("--attn_implementation flash_attention_3", "attention", "attention"),
    ],
)
def test_the_trainer_names_the_attention_kernel(named, kernel, like):
    command = (
        "accelerate launch --num_processes 8 --use_fsdp train.py --model_name_or_path Qwen/Qwen3-4B "
        f"--bf16 --max_length 2048 --per_device_train_batch_size 1 {named}"
    )
    one = launch.read(command, Given(machine=chips.H100))
    assert one.kernel == kernel
    assert one.efficiency == efficiency_of(chips.H100, "bf16", like, ("PyTorch",))
    assert not one.account.unused
    eager = launch.read(
        command.replace(named, "") + " --attn_implementation eager", Given(machine=chips.H100)
    )
    assert [each.flag for each in eager.account.unused] == ["--attn_implementation"]


@pytest.mark.parametrize(
    "name", [name for name in TIMED if "bridge_llama" in name or name.startswith("maxtext")]
)
def test_what_ran_fits_within_the_error_of_the_memory_count(name):
    one = read(name)
    left = -memory_margin(one.machine.chip).error
    assert training.feasible(one.model, one.machine, one.plan, batch=one.batch, T=one.T, headroom=left) == ()


@pytest.mark.parametrize("name", [name for name, row in RECIPES.items() if row["launcher"] in SERVED])
def test_a_server_that_ran_holds_requests(name):
    one = read(name)
    most = inference.largest_batch(one.model, one.layout, one.machine, S=1280, reserve=one.reserve)
    assert most >= 16


def test_the_ironwood_recipe_of_llama_405b():
    """Offloading by tensor, a batch for half a chip, and tiles of the loss: 98.34 s were measured."""
    one = read("maxtext_llama31_405b_tpu7x.sh")
    plan = one.plan
    assert (plan.fsdp, plan.microbatch, one.batch, plan.loss_tiles) == (256, 6, 1536, 4)
    assert plan.remat == "save:k,v;offload:in,down"
    assert {each.flag for each in one.account.unused} == {
        "sa_block_q", "sa_block_kv", "use_tokamax_splash", "$LIBTPU_INIT_ARGS",
    }  # fmt: skip


def test_the_example_of_gpt3_names_the_batch_that_grows():
    one = read("megatron_gpt3_175b.sh")
    assert (one.plan.tp, one.plan.pp, one.accumulation, one.model.V) == (8, 16, 1536, 51_200)
    assert [each.flag for each in one.account.unused] == ["--rampup-batch-size"]
    assert one.account.unused[0].where == "line 22"


def test_the_server_of_gpt_oss_has_a_cap_of_length_and_not_a_load():
    one = read("vllm_gpt_oss_120b_h100.sh")
    assert (one.max_length, one.max_sequences, one.fraction, one.chunk) == (131072, 128, 0.85, 10240)
    assert inference.largest_batch(one.model, one.layout, one.machine, S=1280, reserve=one.reserve) > 128
