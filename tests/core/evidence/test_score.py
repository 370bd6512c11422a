"""Tests of `evidence.score` on tables of any software and spelling; no row stops the run."""

import random

import pytest

from scalingbook_lib import evidence
from scalingbook_lib.calibrated import bands
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.inference.planned import planned
from scalingbook_lib.evidence.measured import inference_runs, training_runs
from scalingbook_lib.evidence.memory import peak_bytes

approx = pytest.approx
ODD = "0 -1 nan inf 1e400 1e18 3.5 abc 12,5% \x00 None ١٢ 8x7B"

LLAMA = {
    "layers": "80",
    "d_model": "8192",
    "d_ff": "28672",
    "heads": "64",
    "kv_heads": "8",
    "vocab": "128256",
}
TRAINING = LLAMA | {
    "run_id": "mine",
    "name": "Llama-3-70B",
    "family": "nobody's",
    "seq": "8192",
    "global_batch": "512",
    "chip": "H100-SXM",
    "chips": "64",
    "tp": "4",
    "pp": "4",
    "dtype": "bf16",
    "step_time_s": "100",
}
SERVING = {
    "run_id": "served",
    "model": "Llama-3.3-70B",
    "phase": "continuous-batching max throughput",
    "chip": "H200",
    "chips": "2",
    "tp": "2",
    "weight_dtype": "fp8",
    "input_len": "1000",
    "output_len": "1000",
    "output_tok_s_total": "3000",
    "engine": "an engine",
}
ALL_REDUCE = {
    "system": "H100 80GB HBM3",
    "n_devices": "8",
    "collective": "all_reduce",
    "size_bytes": "1073741824",
    "time_us": "4000",
}
PRODUCT = {
    "system": "B200",
    "op": "gemm",
    "dtype": "bf16",
    "m": "4096",
    "n": "8192",
    "k": "8192",
    "latency_us": "300",
}
CONFIGURATION = {
    "model": "Qwen3-8B",
    "layers": "36",
    "d_model": "4096",
    "total_params_computed": "8190735360",
}
TABLES = [TRAINING, SERVING, ALL_REDUCE, PRODUCT, CONFIGURATION]


def one(row):
    (scored,) = evidence.score([row]).rows
    assert bool(scored.found) != bool(scored.refused)
    return scored.found or scored


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (TRAINING, "training, dense"),
        (TRAINING | {"name": "Mixtral-8x7B", **dict.fromkeys(LLAMA, "")}, "training, experts"),
        (SERVING, "serving saturated, dense"),
        (SERVING | {"model": "Qwen3-30B-A3B"}, "serving saturated, experts"),
        (SERVING | {"phase": "prefill", "ttft_ms": "400"}, "serving prefill, dense"),
        (
            SERVING | {"phase": "decode", "batch_or_concurrency": "8", "tpot_ms": "20"},
            "serving decode, dense",
        ),
        (SERVING | {"phase": "prefill+decode", "latency_s": "30"}, "serving decode, dense"),
        (SERVING | {"phase": "static batch", "batch_or_concurrency": "64"}, "serving saturated, dense"),
        (ALL_REDUCE, "collectives >= 1 MiB"),
        (ALL_REDUCE | {"size_bytes": "1024", "time_us": "14"}, "collectives < 1 MiB"),
        (PRODUCT, "products m >= 512"),
        (PRODUCT | {"m": "16", "latency_us": "40"}, "products m < 512"),
        (CONFIGURATION, "parameters"),
    ],
)
def test_each_kind_of_table_is_recognized_by_its_columns(row, kind):
    scored = one(row)
    assert scored.kind == kind
    assert scored.error == approx(scored.predicted.middle / scored.measured.middle - 1)
    assert scored.interval.low <= scored.predicted.low <= scored.predicted.high <= scored.interval.high


@pytest.mark.parametrize(("prompt", "kind"), [("context", "prompt"), ("generation", "decode")])
def test_prefill_and_decode_attention_are_separate_classes(prompt, kind):
    columns = {"op": f"{prompt}_attention", "batch": "8", "seq": "4096", "heads": "32", "head_dim": "128"}
    scored = one(PRODUCT | dict.fromkeys("mnk", "") | columns)
    assert scored.kind == f"attention {kind}"


def test_unknown_software_is_predicted_and_reported():
    found = one(TRAINING)
    assert found.stack == "unknown"
    assert "software not known" in found.assumed
    assert {"microbatch not given", "chunks not given", "remat not given"} <= set(found.assumed)
    assert one(TRAINING | {"family": "our fork of Megatron-LM"}).stack == "Megatron"


@pytest.mark.parametrize(
    ("engine", "stack", "fitted"),
    [
        ("SGLang 0.5", "SGLang", True),
        ("vLLM 0.8", "vLLM", False),
        ("LMDeploy", "LMDeploy", False),
        ("TGI 2.0", "TGI", False),
        ("DeepSpeed-FastGen", "DeepSpeed-MII", False),
    ],
)
def test_serving_software_has_its_own_name_and_says_whether_the_fit_has_runs_of_it(engine, stack, fitted):
    found, sglang = one(SERVING | {"engine": engine}), one(SERVING | {"engine": "SGLang 0.5"})
    assert found.stack == stack
    assert "software not known" not in found.assumed
    assert ("software not in the fit" not in found.assumed) == fitted
    assert found.predicted.high == sglang.predicted.high  # the same factors


@pytest.mark.parametrize(
    ("named", "seen"),
    [
        ({"family": "torchtitan"}, "release"),  # as rows of the fit name their release
        ({"family": "", "software": "torchtitan"}, "software"),
        ({"family": "", "software": "PyTorch FSDP"}, ""),  # read by the rules of torchtitan
    ],
)
def test_only_a_row_of_a_fitted_release_has_the_band_of_its_release(named, seen):
    found = one(TRAINING | named)
    assert found.factor == bands.training_band(experts=False, seen=seen).widened(found.assumed)
    assert ("software not known" in found.assumed) == (not seen)


@pytest.mark.parametrize("engine", ["vLLM 0.11", "llama.cpp"])
def test_software_that_no_fitted_run_used_has_the_band_of_unknown_software(engine):
    found = one(SERVING | {"engine": engine})
    assert "software not in the fit" in found.assumed
    band = bands.serving_band(experts=False)
    assert found.factor >= band.widened()


def test_what_a_row_leaves_open_widens_its_interval():
    said = one(TRAINING | {"micro_batch": "1", "vp": "5", "remat": "none", "fsdp": "0"})
    band, wider = said.interval, one(TRAINING).interval
    assert wider.high / wider.low > band.high / band.low


def test_an_unknown_chip_is_refused_and_an_unfitted_one_has_a_wider_interval():
    scored = one(TRAINING | {"chip": "Z9000"})
    assert scored.found is None
    assert "no chip 'Z9000' is known" in scored.refused
    kin = one(TRAINING | {"chip": "MI300X"})
    assert "chip by its kin" in kin.assumed
    assert kin.factor > one(TRAINING).factor


def test_the_most_reliable_printed_quantity_is_used():
    known = one(TRAINING | {"tokens_per_s_per_chip": "1", "mfu": "0.01"})
    assert known.measured.middle == 100
    rate = {"step_time_s": "", "flops_convention": "causal half", "peak_tflops_used": "989"}
    share = one(TRAINING | rate | {"mfu": "0.4"})
    assert one(TRAINING | rate | {"mfu": "40%"}).measured.middle == approx(share.measured.middle)
    assert one(TRAINING | rate | {"tflops_per_chip": "395.6", "mfu": "0.9"}).measured == approx(
        share.measured
    )
    assert one(TRAINING | rate | {"mfu": "2.5"}).measured.middle == approx(16 * share.measured.middle)
    again = one(TRAINING | rate | {"mfu": "0.4", "flops_convention": "HARDWARE FLOPs"})
    assert again.measured.middle > 1.1 * share.measured.middle
    open_count = one(TRAINING | rate | {"mfu": "0.4", "flops_convention": ""})
    assert open_count.measured.high > open_count.measured.low
    assert one(TRAINING | {"step_time_s": "", "step_time_derived_s": "90"}).measured.middle == 90


def test_frozen_weights_need_no_gradient():
    tuned = one(TRAINING | {"name": "Llama-3-70B LoRA"})
    assert 0.6 < tuned.predicted.middle / one(TRAINING).predicted.middle < 0.75


def test_the_rates_of_replicas_add_up():
    twice = SERVING | {"chips": "4", "output_tok_s_total": "6000"}
    assert one(twice).predicted == approx([2 * end for end in one(SERVING).predicted])


@pytest.mark.parametrize("note", ["DATA-QUALITY: int8", "a guess; do not use without checking"])
def test_rows_with_a_warning_note_are_refused_with_the_note(note):
    assert note[:12].lower() in one(TRAINING | {"notes": note}).refused.lower()


def test_an_unknown_table_raises_an_error_that_lists_the_columns(tmp_path):
    with pytest.raises(ValueError, match="training_runs has seq, chip, chips"):
        evidence.score([{"a": "1", "b": "2"}])
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b'\x00\xff\xfe,,\n"')
    with pytest.raises(ValueError, match="table"):
        evidence.score(broken)
    with pytest.raises(ValueError, match="cannot be read"):
        evidence.score(tmp_path / "none.csv")


def test_a_csv_file_with_a_bom_and_ragged_rows_is_read(tmp_path):
    path = tmp_path / "mine.csv"
    head = ",".join(TRAINING)
    path.write_text(
        f"\ufeff{head}\n{','.join(TRAINING.values())}\nshort\n{','.join(TRAINING.values())},more,and more\n"
    )
    told = evidence.score(path)
    assert [bool(row.found) for row in told.rows] == [True, False, True]


def test_a_local_batch_is_one_data_rank_s():
    """64 chips in tp 4 and pp 4 are 4 data ranks; MaxText counts the sequences of each chip."""
    whole = one(TRAINING)
    bare = TRAINING | {"global_batch": ""}
    assert one(bare | {"local_batch_size": "128"}).predicted == whole.predicted
    assert one(bare | {"notes": "local batch size 128, bf16"}).predicted == whole.predicted
    assert one(bare | {"per_device_batch": "8"}).predicted == whole.predicted
    assert "global_batch not given" not in one(bare | {"local_batch_size": "128"}).assumed


def test_known_doubts_widen_the_band():
    plain = one(TRAINING)
    guessed = one(TRAINING | dict.fromkeys(LLAMA, "") | {"name": "a model of 61B", "params": "61e9"})
    assert "shapes by size alone" in guessed.assumed
    assert guessed.factor > plain.factor


def test_chip_hours_are_a_kind_of_table():
    row = {"name": "LLaMA-7B", "params": "6738415616", "tokens": "1e12", "accelerator": "A100-80G",
           "accel_count": "1024", "accel_hours": "82432", "batch": "2048", "seq": "2048"}  # fmt: skip
    found = one(row)
    assert (found.kind, found.unit, found.chip) == ("chip-hours", "h", "A100")
    assert abs(found.error) < 0.4
    assert "band not calibrated" in found.assumed
    assert one(row | {"tokens": ""}).refused == "the row does not say tokens"


def test_a_printed_peak_memory_is_compared():
    row = TRAINING | {"micro_batch": "1", "remat": "full"}
    assert one(row).peak_memory is None
    peak = one(row | {"peak_mem_gib": "40"}).peak_memory
    assert peak.measured == 40 * 2**30
    known = next(run for run in training_runs.RUNS if run.memory_bytes)
    own = {row["run_id"]: row for row in resources.rows("training_runs")}[known.id]
    scored = one(own).peak_memory
    assert scored.predicted.low <= peak_bytes(known) <= scored.predicted.high
    assert scored.error == scored.predicted.middle / known.memory_bytes - 1


def test_frozen_weights_of_an_fp8_run_are_stored_in_fp8():
    rows = {row["run_id"]: row for row in resources.rows("added_training_runs")}
    found = one(rows["mlperf-v5.0-llama2-70b-lora-b200-64-fp8-01"])
    assert "frozen weights" in found.assumed
    assert abs(found.peak_memory.error) < 0.1, "138 GB of bf16 weights alone exceed the printed 88 GB"


def test_the_json_values_have_exactly_these_keys():
    values = evidence.score([TRAINING, TRAINING | {"chip": "Z9000", "run_id": "other"}]).values
    assert set(values) == {"summary", "rows"}
    assert set(values["summary"][0]) == {"class", "n", "mean", "median", "p90", "bias", "in_band"}
    known, other = values["rows"]
    figures = {"predicted", "measured", "error", "low", "high", "unit"}
    about = {"class", "chip", "software", "cause", "findings", "factor", "in_band"}
    memory = {"predicted_peak_bytes", "measured_peak_bytes", "peak_error"}
    assert set(known) == set(other) == {"id", *figures, *memory, *about, "refused"}
    assert (known["class"], known["chip"], known["software"]) == ("training, dense", "H100", "unknown")
    assert "microbatch not given" in known["cause"]
    assert known["factor"] > 1
    assert known["id"] == "mine"
    assert known["refused"] is None
    assert other["predicted"] is None
    assert "Z9000" in other["refused"]


def test_rows_that_cannot_be_right_are_scored_with_a_finding():
    right = one(SERVING)
    assert right.findings == ()
    fast = one(SERVING | {"output_tok_s_total": "3e6"})
    assert fast.findings == ("faster than the roofline",)
    assert fast.predicted == right.predicted
    large = one(SERVING | {"model": "Llama 3.1 405B", "output_tok_s_total": "5"})
    assert large.findings == ("fits no chip by the count of memory",)
    assert large.factor > right.factor
    assert one(TRAINING).findings == ()
    assert one(TRAINING | {"step_time_s": "0.001"}).findings == ("faster than the roofline",)
    report = evidence.score([SERVING, SERVING | {"output_tok_s_total": "3e6", "run_id": "fast"}])
    assert report.findings == {"faster than the roofline": ["fast"]}
    assert not report.refused


def test_the_librarys_own_tables_are_scored_too():
    for table, runs in (("training_runs", training_runs.RUNS), ("inference_runs", inference_runs.RUNS)):
        told = {row.id: row for row in evidence.score(resources.rows(table)).rows}
        for run in runs:
            assert told[run.id].found, told[run.id].refused


@pytest.mark.parametrize(
    "table", TABLES, ids=lambda row: row.get("op") or row.get("collective") or row.get("model")
)
def test_two_hundred_corrupted_rows_never_stop_the_run(table):
    chance = random.Random(20261122)
    odd = ["", *ODD.split(), "9" * 400]
    rows = []
    for _ in range(200):
        row = dict(table)
        for column in chance.sample(sorted(row), chance.randint(1, 3)):
            row[column] = chance.choice(odd) if chance.random() < 0.8 else chance.choice(sorted(row.values()))
        rows.append(row)
    told = evidence.score(rows)
    assert len(told.rows) == 200
    assert all(row.found or row.refused for row in told.rows)
    assert all(found.predicted.low > 0 for found in told.found)


def test_the_report_prints_its_summary():
    told = evidence.score([TRAINING, TRAINING | {"chip": "Z9000"}])
    assert str(told).startswith("2 rows of training_runs: 1 predicted, 1 refused")
    assert [group.errors.name for group in told.by(lambda found: [found.chip])] == ["training, dense, H100"]
    assert list(told.refused.values()) == [["mine"]]


@pytest.mark.parametrize("tp", ["72", "", "1"])
def test_expert_parallelism_beyond_the_divisors_has_redundant_experts(tp):
    """SGLang's EP 72 holds 288 experts for DeepSeek-V3's 256, however a row counts the attention's ways."""
    row = {
        "phase": "decode", "chip": "H100", "chips": "144", "model": "deepseek-ai/DeepSeek-V3", "tp": tp,
        "input_len": "2000", "output_len": "100", "context_len": "2000", "ep": "72", "engine": "SGLang",
        "weight_dtype": "fp8", "output_tok_s_total": "401076", "batch_or_concurrency": "36864",
    }  # fmt: skip
    run = inference_runs.read(row)
    assert (run.chips, run.B) == (72, 18432)
    layout = planned(run).layout
    assert (layout.tp, layout.ep, layout.attention_dp, layout.redundant_experts) == (72, 72, 72, 32)
    assert not one(row).findings
