"""Tests that every row of published inference runs is used or refused, and read correctly."""

import json
from collections import Counter

import pytest

from scalingbook_lib import models
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.inference.planned import layout
from scalingbook_lib.evidence.measured.inference_runs import COMPUTES, KINDS, REFUSED, RUNS, TYPES, find
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP4, FP8

approx = pytest.approx


ROWS = {row["run_id"]: row for row in resources.rows("inference_runs")}
WEIGHTS = {"nvfp4": "fp4", "int4 in groups of 32": "int4-g32"}
CHIPS = {"A100, 330 W": "A100-80G (330W)", "A100": "A100-80G", "H100": "H100-SXM", "H200": "H200-SXM",
         "TPU v4": "TPUv4", "TPU v6e": "TPUv6e"}  # fmt: skip


def test_every_row_of_the_table_is_used_or_refused_with_a_reason():
    refused = [id for ids in REFUSED.values() for id in ids]
    assert sorted([*refused, *(run.id for run in RUNS)]) == sorted(ROWS)
    assert (len(RUNS), len(refused)) == (201, 3)
    assert Counter(run.kind for run in RUNS) == {"serving": 182, "decode": 9, "batch": 6, "prefill": 4}
    assert all(row["source"] for row in ROWS.values())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_a_run_has_the_values_of_its_row(run):
    row = ROWS[run.id]
    assert run.chips == run.tp * run.pp == int(row["chips"] or 2)  # four devices of TPU7x: two chips
    assert CHIPS.get(run.chip.name, run.chip.name) == row["chip"]
    assert WEIGHTS.get(run.weights.name, run.weights.name) == (row["weight_dtype"] or "bf16")
    for column, value in (("batch_or_concurrency", run.B), ("tp", run.tp), ("pp", run.pp)):
        if row[column] and "TPU7x" not in row["chip"]:
            assert value == int(row[column])
    if row["kv_dtype"]:
        assert run.kv.name in row["kv_dtype"]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_a_run_has_the_work_and_the_rate_of_its_row(run):
    row, printed = ROWS[run.id], run.printed
    random = run.family == "vllm-tpu-fp8"  # from 0.8 of the longest to the longest
    if row["input_len"] and run.kind != "decode":
        assert approx(int(row["input_len"]) * (0.9 if random else 1), abs=1) == run.P
    if row["output_len"] and run.kind in ("serving", "batch"):
        assert approx(int(row["output_len"]) * (0.9 if random else 1), abs=1) == run.G
    assert (int(row["S"]) if row["S"] else None) == run.S
    if row["output_tok_s_total"]:
        assert run.tokens_per_s == float(row["output_tok_s_total"]) == float(printed["tok"])
    if row["latency_s"] and "s" in printed:
        tokens = run.P if run.kind == "prefill" else run.G
        assert run.B * tokens / run.tokens_per_s == approx(float(row["latency_s"]))
    if row["tpot_ms"] and run.kind == "decode":
        assert run.B / run.tokens_per_s * 1e3 == approx(float(row["tpot_ms"]), rel=1e-3)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_models_of_runs_have_the_published_parameters(run):
    published = ROWS[run.id]["params"]
    if not published:
        return
    extra = 118 * 16 * 2 * 18432 * 256 if "64 heads" in run.model.name else 0  # heads added to PaLM's 48
    known = {"Llama-2-70B": 68976648192, "Qwen3-Embedding-8B": 8190735360}
    assert run.model.params - extra == approx(float(published), rel=2e-3)
    assert ROWS[run.id]["model"] not in known or float(published) == known[ROWS[run.id]["model"]]


def test_quantized_weights_are_stored_with_their_scales():
    assert TYPES["fp4"].bytes == 0.5625
    assert TYPES["int4-g32"].bytes == 0.625
    assert (COMPUTES["fp4"], COMPUTES["fp8"], COMPUTES["int8"]) == (FP4, FP8, BF16)


def test_no_run_reads_its_weights_faster_than_its_memory_allows():
    """A step of batch 1 reads every weight once; the implied bandwidth is below the documented one."""
    for run in RUNS:
        if run.kind == "decode" and run.B == 1:
            read = (run.model.params - run.model.V * run.model.D) * run.weights.bytes
            rate = read * run.tokens_per_s_per_chip
            assert 0.25 < rate / run.chip.hbm_bytes_per_s < 0.8


def test_quantization_speeds_up_decode_by_less_than_the_bytes_it_saves():
    """gpt-fast on one A100: int8 halves the bytes read, and tokens/s rise by less than 50%."""
    whole, half = find("inf-0019"), find("inf-0020")
    assert whole.weights.bytes / half.weights.bytes == 2
    assert half.tokens_per_s / whole.tokens_per_s == approx(1.483, abs=1e-3)


def test_pcie_cards_have_no_nvlink():
    card = chips.find("RTX PRO 6000 SE")
    assert card is chips.RTX_PRO_6000
    assert card.flops_per_s(FP4) == 4 * card.flops_per_s(BF16) == 2 * card.flops_per_s(FP8)
    assert card.domain_bytes_per_s() == card.pcie_bytes_per_s == 63e9
    assert {name for name in card.figures() if name not in card.sources} == set()


def test_shapes_of_models_that_only_these_runs_name():
    palm = find("inf-0001").model
    assert palm.K == 1
    assert models.find("Llama 3 70B").kv_elements_per_token == 2 * 80 * 8 * 128
    assert find("inf-0015").model.params == approx(530e9, rel=0.002)


def test_unknown_ids_raise_an_error():
    with pytest.raises(KeyError, match="how many requests ran at once"):
        find("inf-0337")
    with pytest.raises(KeyError, match="the table has no such row"):
        find("gpt-5")


def test_a_run_prints_as_a_sentence():
    assert str(find("inf-0092")) == (
        "Llama 3 70B on 1 H200, fp8, requests of 128 + 128 tokens: 3,800 tokens/s"
    )
    assert set(KINDS) == {run.kind for run in RUNS}
    assert json.dumps(find("inf-0001").note)


def test_tensorrt_llm_serves_experts_with_attention_dp():
    runs = [r for r in RUNS if r.model.experts and r.tp > 1 and not r.model.latent and r.family != "palm"]
    for run in runs:
        grouped = run.software[0] == "TensorRT-LLM"
        assert layout(run).attention_dp == (run.tp if grouped else 1)
    assert {run.software[0] == "TensorRT-LLM" for run in runs} >= {True}
