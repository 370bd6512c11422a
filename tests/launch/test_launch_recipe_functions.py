"""Recipes that are Python functions are read by their syntax tree, and what is not read is named."""

import json
from pathlib import Path

import pytest

from scalingbook_lib import launch
from scalingbook_lib.launch import Given, LaunchError, recipes
from scalingbook_lib.machines import machine_names

H8 = Given(machine=machine_names.read("h100:8").machine)

# NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/perf_recipes/llama/h100/llama31.py @067f987 (Apache 2.0)
BRIDGE = '''
from megatron.bridge.perf_recipes.llama.common import ConfigContainer, llama31_405b_pretrain_config

def llama31_405b_pretrain_1024gpu_h100_fp8cs_config() -> ConfigContainer:
    """Llama3.1 405B pretrain: 1024x H100, FP8 current-scaling, TP=8 PP=8 CP=2."""
    cfg = llama31_405b_pretrain_config()
    cfg.mixed_precision = _perf_precision("fp8_cs")
    cfg.tokenizer.vocab_size = 128256
    cfg.model.should_pad_vocab = True
    cfg.model.seq_length = 8192
    cfg.dataset.seq_length = 8192

    cfg.model.tensor_model_parallel_size = 8
    cfg.model.pipeline_model_parallel_size = 8
    cfg.model.context_parallel_size = 2
    cfg.model.virtual_pipeline_model_parallel_size = 8
    cfg.model.sequence_parallel = True
    cfg.model.moe_token_dispatcher_type = "alltoall"
    cfg.train.global_batch_size = 1536
    cfg.train.micro_batch_size = 1

    cfg.comm_overlap.tp_comm_overlap_cfg = userbuffers_fp8_h100_h16384_tp8_cp2_mbs1_seqlen8192

    _llama_benchmark_common(cfg)
    return cfg


def llama31_405b_pretrain_512gpu_h100_fp8cs_config() -> ConfigContainer:
    cfg = _with_global_batch_size(llama31_405b_pretrain_1024gpu_h100_fp8cs_config(), 768)
    return cfg
'''
FULL = "llama31_405b_pretrain_1024gpu_h100_fp8cs_config"

# From pytorch/torchtitan torchtitan/models/llama3/config_registry.py @b5bcd76 (BSD 3-clause)
TITAN = """
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.trainer import Trainer

STEPS = 1000

def llama3_8b() -> Trainer.Config:
    model_spec = model_registry("8B")
    return Trainer.Config(
        hf_assets_path="./assets/hf/Llama-3.1-8B",
        model_spec=model_spec,
        optimizer=default_adamw(lr=3e-4),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=2 * 8192,
            max_context_length=8192,
            steps=STEPS,
        ),
        parallelism=ParallelismConfig(tensor_parallel_degree=2),
        activation_checkpoint=FullAC.Config(),
    )


def llama3_8b_wide() -> Trainer.Config:
    config = llama3_8b()
    config.parallelism.tensor_parallel_degree = 4
    return config
"""


def test_a_recipe_of_megatron_bridge_is_read_with_its_machine_and_its_model():
    one = launch.read(BRIDGE, Given(), name=f"llama31.py:{FULL}")
    plan = one.plan
    assert (plan.tp, plan.pp, plan.cp, plan.chunks, plan.microbatch, one.batch) == (8, 8, 2, 8, 1, 1536)
    assert (one.model.name, one.machine.chips, one.machine.chip.name) == ("Llama 3.1 405B", 1024, "H100")
    assert plan.compute.name == "fp8"
    assert plan.sequence_parallel
    assert not one.account.unknown
    assert {used.where for used in one.account.used if used.flag == "train.micro_batch_size"} == {
        "line 20 of llama31.py"
    }


def test_every_line_that_is_not_written_out_is_named():
    assumed = launch.read(BRIDGE, Given(), name=f"llama31.py:{FULL}").account.assumed
    unread = [sentence for sentence in assumed if "is not read" in sentence]
    assert unread == [
        "Line 6 is not read: cfg = llama31_405b_pretrain_config()",
        (
            "Line 22 is not read: "
            "cfg.comm_overlap.tp_comm_overlap_cfg = userbuffers_fp8_h100_h16384_tp8_cp2_mb..."
        ),
        "Line 24 is not read: _llama_benchmark_common(cfg)",
    ]
    assert (
        f"The function {FULL} of llama31.py is read, not executed: only values that are written out count."
        in (assumed)
    )


def test_a_recipe_of_torchtitan_is_read_through_the_keyword_arguments_of_its_configs():
    one = launch.read(TITAN, H8, name="config_registry.py:llama3_8b")
    assert (one.model.name, one.T, one.plan.tp, one.plan.fsdp, one.plan.remat) == (
        "Llama 3 8B",
        8192,
        2,
        4,
        "full",
    )
    assert one.plan.microbatch == 2
    assert any(
        "Line 12 is not read: optimizer=default_adamw(lr=3e-4)" in text for text in one.account.assumed
    )
    assert not one.account.unknown


def test_a_recipe_starts_from_another_one_of_its_file():
    assert launch.read(TITAN, H8, name="config_registry.py:llama3_8b_wide").plan.tp == 4


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (BRIDGE, "llama31.py", rf"has 2 recipes; write which, as in llama31.py:{FULL}: {FULL}, "),
        (BRIDGE, "llama31.py:other", rf"llama31.py has no function 'other'; write one of {FULL}, "),
        (BRIDGE, "llama31.py:llama31_405b_pretrain_512gpu_h100_fp8cs_config",
         "line 28 of .* does not write out model.tensor_model_parallel_size, .*; set them in its lines"),
        ("import torch\n", "train.py", "is a Python program, which is not executed here, and not a recipe"),
        ("def f(:\n", "train.py", "line 1: train.py is not valid Python; correct it"),
        ("import torchtitan\n", "a.py", "has no function that returns a recipe; give the file that has one"),
        ("import torchtitan\ndef f():\n  c = f()\n  return c\n", "a.py", "starts from itself; give another"),
        ("import torchtitan\nx = " + "(" * 5000, "a.py", "is not valid Python|nested|correct it"),
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_be_read_is_refused_with_the_reason(text, name, said):
    with pytest.raises(LaunchError, match=said) as told:
        launch.read(text, H8, name=name)
    assert "\n" not in str(told.value)


def test_nothing_in_a_recipe_is_executed(tmp_path):
    marker = tmp_path / "executed"
    text = (
        f"import torchtitan\nopen({str(marker)!r}, 'w').write('x')\n"
        f"def f(a=open({str(marker)!r}, 'w')):\n  cfg = g()\n"
        "  cfg.training.seq_len = __import__('os').getpid()\n"
        "  cfg.training.local_batch_size = 2 ** 10 ** 10\n  return cfg\n"
    )
    found = recipes.read(text, "a.py")
    assert not Path(marker).exists()
    assert found.settings == ()
    assert [note for note in found.notes if "not read" in note][1:] == [
        "Line 5 is not read: cfg.training.seq_len = __import__('os').getpid()",
        "Line 6 is not read: cfg.training.local_batch_size = 2 ** 10 ** 10",
    ]


def test_the_command_reads_a_recipe_by_file_and_function(ask_launch):
    told = ask_launch(f"llama31.py:{FULL}", BRIDGE)
    assert "Llama 3.1 405B" in told
    assert "Line 24 is not read" in told


@pytest.fixture
def ask_launch(tmp_path, monkeypatch, capsys):
    import scalingbook_cli as cli

    def asked(source, text):
        (tmp_path / source.partition(":")[0]).write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "140")
        cli.main(["launch", source])
        return capsys.readouterr().out

    return asked


# The layout of Megatron-Bridge, whose recipes for benchmarks start from imported ones under another name
CHECKOUT = {
    "pyproject.toml": "",
    "src/megatron/bridge/perf_recipes/llama/h100/llama31.py": """
from megatron.bridge.perf_recipes.llama.common import _benchmark_common, _with_global_batch_size, base_config

def llama31_8b_pretrain_16gpu_h100_bf16_config():
    cfg = base_config()
    cfg.train.micro_batch_size = 1
    cfg.dataset.seq_length = cfg.model.seq_length
    _benchmark_common(cfg, overlap=True)
    return cfg


def llama31_8b_pretrain_8gpu_h100_bf16_config():
    cfg = _with_global_batch_size(llama31_8b_pretrain_16gpu_h100_bf16_config(), 64)
    return cfg
""",
    "src/megatron/bridge/perf_recipes/llama/common.py": """
from megatron.bridge.recipes.llama3 import llama3_base_config as base_config
from .missing import _tuned

def _with_global_batch_size(cfg, global_batch_size):
    cfg.train.global_batch_size = global_batch_size
    return cfg


def _benchmark_common(cfg, overlap=False, fused=False):
    other = _tuned(cfg)
    other.width = 3
    if overlap:
        cfg.ddp.overlap_grad_reduce = True
    if fused:
        cfg.model.tensor_model_parallel_size = 8
    if hasattr(cfg.model, "graphs"):
        cfg.model.graphs = True
""",
    "src/megatron/bridge/recipes/llama3.py": """
from ..constants import *

def llama3_base_config():
    cfg = ConfigContainer(model=None, train=TrainingConfig(global_batch_size=128, micro_batch_size=2))
    cfg.model = AutoBridge.from_hf_pretrained("meta-llama/Llama-3.1-8B").to_megatron_provider()
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.pipeline_model_parallel_size = 1
    cfg.model.context_parallel_size = 1
    cfg.model.seq_length = LENGTH
    return cfg
""",
    "src/megatron/bridge/constants.py": "LENGTH: int = 4 * 1024\nopen('executed', 'w')\n",
    "src/megatron/bridge/unrelated.py": "def f(:\n",
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in CHECKOUT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_recipe_is_read_through_the_files_of_its_checkout(checkout, monkeypatch, capsys):
    import scalingbook_cli as cli

    monkeypatch.chdir(checkout)
    monkeypatch.setenv("COLUMNS", "160")
    file = "src/megatron/bridge/perf_recipes/llama/h100/llama31.py"
    cli.main(["launch", f"{file}:llama31_8b_pretrain_8gpu_h100_bf16_config", "--json"])
    told = json.loads(capsys.readouterr().out)
    used = {one["flag"]: (one["value"], one["where"]) for one in told["used"]}
    assert told["model"] == "Llama 3 8B"  # the same shape
    assert used["train.global_batch_size"] == ("64", "line 6 of megatron/bridge/perf_recipes/llama/common.py")
    assert used["train.micro_batch_size"] == ("1", "line 6 of llama31.py")
    assert used["model.tensor_model_parallel_size"] == ("2", "line 7 of megatron/bridge/recipes/llama3.py")
    assert used["model.seq_length"][0] == "4096"
    assert used["ddp.overlap_grad_reduce"][0] == "true"
    assert (
        "Files of the same checkout that are read, not executed: "
        "megatron/bridge/perf_recipes/llama/common.py, megatron/bridge/recipes/llama3.py, "
        "megatron/bridge/constants.py."
    ) in told["assumed"]
    unread = [one for one in told["assumed"] if "is not read" in one]
    assert unread == [
        "Line 17 of megatron/bridge/perf_recipes/llama/common.py is not read: "
        'if hasattr(cfg.model, "graphs"):'
    ]
    assert not (checkout / "executed").exists()


def test_a_recipe_whose_base_is_not_there_is_refused(checkout, monkeypatch, capsys):
    import scalingbook_cli as cli

    (checkout / "src/megatron/bridge/recipes/llama3.py").unlink()
    monkeypatch.chdir(checkout)
    file = "src/megatron/bridge/perf_recipes/llama/h100/llama31.py"
    assert cli.main(["launch", f"{file}:llama31_8b_pretrain_16gpu_h100_bf16_config"]) == 2
    told = capsys.readouterr().err
    assert "does not write out model.tensor_model_parallel_size" in told
    assert "give the path of the recipe within a checkout" in told


def test_adapters_freeze_the_weights():
    text = BRIDGE.replace("    cfg.model.should_pad_vocab = True\n", "    cfg.peft = 'lora'\n", 1)
    one = launch.read(text, Given(), name=f"llama31.py:{FULL}")
    assert one.plan.frozen
    assert "The base weights are frozen, and the adapters are not counted." in one.account.assumed


def test_racks_of_72_gpus_are_used_in_part():
    text = BRIDGE.replace("1024gpu_h100", "1024gpu_gb300")
    one = launch.read(text, Given(), name=f"llama31.py:{FULL.replace('h100', 'gb300')}")
    assert (one.machine.chips, one.machine.domain) == (1024, 64)
    assert "Of each NVLink domain of 72 GPUs, the run uses 64." in one.account.assumed


def test_main_grads_need_the_precision_aware_optimizer():
    lines = "    cfg.optimizer.main_grads_dtype = torch.float32\n    cfg.ddp.grad_reduce_in_fp32 = False\n"
    text = BRIDGE.replace("    cfg.model.should_pad_vocab = True\n", lines, 1)
    assert launch.read(text, Given(), name=f"llama31.py:{FULL}").plan.gradients.name == "bf16"
