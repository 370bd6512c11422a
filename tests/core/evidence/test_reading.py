"""Tests that rows are read in any spelling of chips, models, software and conventions."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from scalingbook_lib import calibrated, models
from scalingbook_lib.evidence import resources, training
from scalingbook_lib.evidence.measured import inference_runs
from scalingbook_lib.evidence.measured.training_runs.read import FLOPS_CONVENTIONS, read
from scalingbook_lib.evidence.reading.cells import UnpredictedRow, first, precision
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import model, model_from_config_row
from scalingbook_lib.evidence.reading.stacks import software_of
from scalingbook_lib.evidence.training.candidate_plans import candidates
from scalingbook_lib.units import FP16

approx = pytest.approx
DATA = Path(__file__).parents[3] / "data"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("H100SXM5", "H100"),
        ("8xH100", "H100"),
        ("A100-SXM4-40GB", "A100 40GB"),
        ("A100-80G (330W)", "A100, 330 W"),
        ("TPU v5 lite", "TPU v5e"),
        ("v5p-128", "TPU v5p"),
        ("trillium", "TPU v6e"),
        ("TPU7x (per device = half chip)", "half a TPU7x"),
        ("AMD Instinct MI300X", "MI300X"),
        ("GB300 NVL72", "GB300"),
        ("RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 SE"),
        ("H200-NVL", "H200 NVL"),
        ("L40S", "L40S"),
        ("Gaudi 2", "Gaudi2"),
        ("trn1.32xlarge", "Trainium1"),
        ("H100 PCIe, 310 W", "H100 PCIe, 310 W"),
    ],
)
def test_chips_are_known_however_they_are_spelled(written, name):
    assert chip(written).name == name


@pytest.mark.parametrize("written", ["H1000", "A10000", "EFA single adapter 200Gbps", "", "v5"])
def test_names_that_only_resemble_a_chip_are_refused(written):
    with pytest.raises(UnpredictedRow, match="no chip"):
        chip(written)


@pytest.mark.parametrize(
    ("row", "params"),
    [
        ({"name": "meta-llama/Llama-3.1-70B-Instruct"}, 70_553_706_496),
        ({"name": "Qwen3 MoE 30B", "params": "30532122624"}, 30_532_122_624),
        (
            {"name": "GPT-22B", "layers": "48", "d_model": "6144", "heads": "64", "params": "22000000000"},
            22_074_273_792,
        ),
        (
            {
                "name": "MPT-7b",
                "layers": "32",
                "d_model": "4096",
                "heads": "32",
                "vocab": "50368",
                "d_ff": "16384",
                "params": "6658859008",
            },
            6_658_859_008,
        ),
    ],
)
def test_a_model_is_known_by_name_shape_or_parameters(row, params):
    assert model(row, T=2048).params == params


def test_a_name_is_not_trusted_if_its_size_disagrees():
    assert model({"name": "OPT-1.3B"}) is models.find("OPT 1.3B")
    assert model({"name": "OPT-13B"}).params == approx(13e9, rel=0.05)  # by size alone
    with pytest.raises(UnpredictedRow, match="has no shapes"):
        model({"name": "Nemotron_3_Super"})
    with pytest.raises(UnpredictedRow, match="shapes make"):
        model({"name": "ours", "layers": "80", "d_model": "8192", "heads": "64", "params": "7e9"})


@pytest.mark.parametrize(
    "name", ["Qwen3-14B", "Qwen/Qwen3-14B", "Qwen/Qwen3-14B-FP8", "deepseek-llm-7b-chat"]
)
def test_a_row_names_every_model_of_the_catalog(name):
    assert model({"model": name}) == replace(models.find_as_stored(name), quantization=None)


def test_a_configuration_is_known_by_name_unless_its_biases_differ():
    row = {"model": "Qwen2.5-7B", "d_model": "3584", "attention_bias": "True", "mlp_bias": "False"}
    assert model_from_config_row(row) is models.find("Qwen2.5 7B")
    shapes = {"layers": "28", "heads": "28", "kv_heads": "4", "d_ff": "18944"}
    assert model_from_config_row(row | shapes | {"attention_bias": "False"}).biases == ()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (
            "model FLOPs with causal attention halved (6*L*d*s per token); no recompute; logits counted",
            "half",
        ),
        ("model FLOPs incl. full (non-causal) attention 12*L*d*s per token; no recompute", "full"),
        ("12*L*d*s full attention + 6*(N minus input embedding)", "full"),
        ("HARDWARE FLOPs: counts activation recompute", "hardware"),
        ("6*N (all params incl. tied embedding + learned pos-emb) + 12*L*d*s full attention", "6P"),
        ("6N+6Lds causal half, no recompute", "half"),
        ("LoRA: 4N+6Lds (no weight gradient of the frozen matrices)", "frozen"),
        ("6ND", "6N"),
        ("not stated", None),
    ],
)
def test_counting_conventions_are_recognized_in_prose(written, name):
    assert first(FLOPS_CONVENTIONS, written) == name


def test_every_stack_has_a_valid_pattern_and_an_existing_family():
    known = {
        row["family"] for what in ("training", "inference") for row in resources.rows(f"{what}_families")
    }
    for row in resources.rows("stacks"):
        assert row["family"] in known | {"", "megatron"}
        assert software_of(row["what"], {"name": "nobody has heard of this"}).known is False
    assert [precision(word) for word in ("bfloat16", "", "FP8 (e4m3)")] == ["bf16", "bf16", "fp8"]


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("none", "none"),
        ("selective", "selective"),
        ("selective op", "selective_op"),
        ("selective layer", "full:16"),
        ("recompute every 3rd layer", "full:10"),
        ("every other layer", "full:16"),
        ("12 of 32 layers", "full:12"),
        ("full (32 of 32 layers)", "full"),
        ("selective: mla_up_proj, mlp", "recompute:mla_up_proj,mlp"),
        ("recompute:moe_act,layernorm", "recompute:layernorm,moe_act"),
    ],
)
def test_the_layers_and_modules_that_are_recomputed_are_read(written, policy):
    row = {"name": "Llama 3 8B", "chip": "H100", "chips": "8", "seq": "4096", "step_time_s": "1"}
    assert read(row | {"global_batch": "8", "remat": written}).remat == policy


@pytest.mark.parametrize(
    ("engine", "stack", "measured"),
    [
        ("gpt-fast", "gpt-fast", True),
        ("llama.cpp", "gpt-fast", False),
        ("SGLang 0.5.9", "SGLang", True),
        ("vLLM 0.11.0", "vLLM", False),
        ("vLLM ROCm 0.10", "vLLM on ROCm", True),
    ],
)
def test_software_without_a_run_in_the_fit_is_read_like_its_stack_but_not_called_measured(
    engine, stack, measured
):
    found = software_of("inference", {"engine": engine})
    assert (found.name, found.known, found.measured) == (stack, True, measured)


@pytest.mark.parametrize("column", ["software", "framework", "engine", "family", "notes"])
def test_a_column_names_the_software(column):
    row = {"name": "Llama 3 8B", column: "torchtitan v0.2"}
    assert software_of("training", row).name == "torchtitan"


def test_parameter_counts_from_columns_are_exact(monkeypatch):
    monkeypatch.setattr("scalingbook_lib.evidence.reading.model._by_name", lambda name, params: iter(()))
    with (DATA / "model_configs.csv").open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["d_model"] and row["total_params_computed"]]
    wrong = [
        row["model"] for row in rows if model_from_config_row(row).params != int(row["total_params_computed"])
    ]
    assert wrong == ["gpt-oss-20b"]  # whose sinks and biases of experts have no column


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("deepseek-ai/DeepSeek-V2", 235_741_434_880),
        ("DeepSeekMoE-16B", 16_375_728_128),
        ("Moonlight-16B-A3B", 15_960_108_544),
        ("OLMoE-1B-7B", 6_919_096_320),
        ("Qwen1.5-MoE-A2.7B", 14_315_784_192),
        ("DBRX", 131_596_523_520),
        ("MiniMax-M2", 228_689_304_576),
        ("tencent/Hunyuan-A13B-Instruct", 80_393_175_040),
    ],
)
def test_expert_models_outside_the_catalog_have_their_published_parameters(name, params):
    found = model({"model": name})
    assert found.experts
    assert found.params == params


STEP = {
    "chip": "V100",
    "chips": "8",
    "seq": "2048",
    "global_batch": "64",
    "model": "GPT-3 6.7B",
    "step_time_s": "9",
}


def test_a_chip_without_bf16_trains_in_fp16():
    run = read(STEP | {"dtype": "bf16"})
    assert training.planned(run).plan.activations == FP16
    assert training.seconds(run, calibrated.training(run.chip, run.precision)).total_s > 0


@pytest.mark.parametrize(("written", "share"), [("0.4", 0.4), ("40%", 0.4), ("1.5", 1.5), ("1.6", 0.016)])
def test_a_utilization_above_1_5_is_read_as_percent(written, share):
    assert float(read(STEP | {"step_time_s": "", "mfu": written}).printed["mfu"]) == approx(share)


@pytest.mark.parametrize(
    ("chips", "global_batch", "batch"), [("8", "64", 64), ("8", "60", 64), ("8", "", 8), ("1", "", 1)]
)
def test_a_batch_is_rounded_to_a_multiple_of_the_ranks(chips, global_batch, batch):
    row = {"step_time_s": "", "tokens_per_s_per_chip": "100", "chips": chips, "global_batch": global_batch}
    assert read(STEP | row).batch == batch


def test_the_step_time_is_scaled_to_the_rounded_batch():
    assert float(read(STEP | {"global_batch": "60"}).printed["s"]) / 64 == approx(9 / 60)


@pytest.mark.parametrize(
    ("mfu", "used", "peak"), [("0.4", "100", 1e14), ("0.4", "", 125e12), ("", "100", 125e12)]
)
def test_a_utilization_refers_to_the_peak_that_its_row_gives(mfu, used, peak):
    assert read(STEP | {"mfu": mfu, "peak_tflops_used": used}).peak_flops_per_s == peak


@pytest.mark.parametrize(("chips", "shared"), [("1", {1}), ("8", {1, 3})])
def test_a_single_rank_has_no_zero_stage_to_choose(chips, shared):
    row = STEP | {"chips": chips, "chip": "H100"}
    assert {run.zero for run in candidates(row, read(row))} == shared


@pytest.mark.parametrize(
    ("phase", "columns", "works"),
    [
        ("decode", {"context_len": "3000"}, (0, 0, 3000)),
        ("decode", {"input_len": "2000"}, (2000, 0, 2000)),
        ("decode", {"input_len": "2000", "output_len": "500"}, (2000, 500, 2250)),
        ("prefill", {"input_len": "2000"}, (2000, 0, 2000)),
        ("serving", {"input_len": "2000", "output_len": "500"}, (2000, 500, 2250)),
        ("decode", {"output_len": "500"}, None),
        ("prefill", {"output_len": "500", "context_len": "3000"}, None),
        ("serving", {"input_len": "2000"}, None),
        ("", {"input_len": "2000", "output_len": "500", "context_len": "3000"}, None),
    ],
)
def test_a_phase_needs_its_lengths_and_a_decode_step_is_half_way_through_the_answer(phase, columns, works):
    row = {"model": "Llama 3 8B", "chip": "H100", "phase": phase, "tpot_ms": "9", "latency_s": "9"} | columns
    row |= {"output_tok_s_total": "900"}
    if works is None:
        with pytest.raises(UnpredictedRow, match="the row does not say phase, and the lengths"):
            inference_runs.read(row)
    else:
        run = inference_runs.read(row)
        assert works == (run.P, run.G, run.S)


def test_a_row_without_a_printed_result_is_refused_with_its_reason():
    with pytest.raises(UnpredictedRow, match="the shapes of the model are not given"):
        read(STEP | {"printed": "", "use": "the shapes of the model are not given"})
    with pytest.raises(UnpredictedRow, match="printed"):
        read(STEP | {"printed": ""})


def test_parameters_beyond_a_dense_model_are_experts():
    names = ("layers", "d_model", "d_ff", "heads", "kv_heads", "vocab")
    shapes = dict(zip(names, ("32", "4096", "14336", "32", "8", "32000"), strict=True))
    dense = model({"name": "mine", **shapes, "params": "7.24e9"}, 4096)
    assert dense.experts is None
    mixed = model({"name": "mine", **shapes, "params": "46.7e9"}, 4096)  # those of Mixtral 8x7B
    assert (mixed.experts.E, mixed.experts.k, mixed.experts.F) == (8, 2, 14336)
