"""Tests that every row of published training runs is read correctly, and that FLOPs match the sources."""

from collections import Counter
from dataclasses import replace

import pytest

from scalingbook_lib import training
from scalingbook_lib.calibrated.overhead import chip_hour_overhead
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.training_runs import (
    CONVENTIONS,
    HELD_OUT,
    REFUSED,
    RUNS,
    by_series,
    counted,
    find,
)
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS, WHOLE_RUNS
from scalingbook_lib.models import arithmetic

approx = pytest.approx

TIMED = {run.id: next((what for what in run.bases if what != "rate"), None) for run in RUNS}
TWICE = [run for run in RUNS if run.rate and run.convention and TIMED[run.id]]
"""Runs of which the source prints a time and a rate: each follows from the other by its convention."""


ROWS = {row["run_id"]: row for row in resources.rows("training_runs")}


def test_every_row_of_the_table_is_used_or_held_out_or_refused_with_a_reason():
    refused = [id for ids in REFUSED.values() for id in ids]
    assert sorted([*refused, *(run.id for run in (*RUNS, *HELD_OUT))]) == sorted(ROWS)
    assert (len(RUNS), len(HELD_OUT), len(refused)) == (402, 3, 85)
    assert {reason: len(ids) for reason, ids in REFUSED.items()} == {
        "the shapes of the model are not given": 50,
        "batch or sequence length is not given": 13,
        "fine-tuning by adapters, not a whole step": 5,
        "the model is not named": 4,
        "only a rate is given, and how it counts FLOPs is not": 4,
        "time follows from FLOPs, and head width and MLP are not certain": 4,
        "the source contradicts itself": 2,
        "how it was parallelized is not given": 2,
        "fp8 or int8: the precision is not certain": 1,
    }


def test_rows_with_a_data_quality_note_are_refused():
    warned = [
        id for id, row in ROWS.items() if "DATA-QUALITY" in row["notes"] or "do not use" in row["notes"]
    ]
    assert len(warned) == 6
    assert not {run.id for run in RUNS} & set(warned)


@pytest.mark.parametrize("run", [*RUNS, *HELD_OUT], ids=lambda run: run.id)
def test_a_run_has_the_values_of_its_row(run):
    row = ROWS[run.id]
    assert (run.chips, run.precision, run.T, run.batch) == (
        int(row["chips"]), row["dtype"], int(row["seq"]), int(row["global_batch"]),
    )  # fmt: skip
    assert run.family == row["family"]
    assert (run.tp, run.pp, run.cp, run.ep) == tuple(int(row[name] or 1) for name in ("tp", "pp", "cp", "ep"))
    assert run.chunks == (int(row["vp"]) if row["vp"] else run.chunks)
    assert run.dcn * run.dp * run.fsdp * run.tp * run.cp * run.pp == run.chips
    for kind, column in (("s", "step_time_s"), ("tok", "tokens_per_s_per_chip"), ("tf", "tflops_per_chip")):
        if kind in run.printed:
            assert float(run.printed[kind]) == float(row[column])
    shapes_are_those_of(run.model, row)


def shapes_are_those_of(model, row):
    columns = {"layers": "L", "d_model": "D", "heads": "N", "kv_heads": "K", "vocab": "V"}
    for column, letter in columns.items():
        if row[column] and "Gemma" not in model.name:  # its table of words is padded to 262,208
            assert getattr(model, letter) == int(row[column])
    if row["d_ff"] and model.experts is None:
        assert int(row["d_ff"]) == model.F
    if row["params"]:
        rounded = row["params"].endswith("00000000") or row["family"] == "megatron-sc21"
        exact = 0.03 if rounded else 1e-3  # Mistral's vocabulary by version; a router's bias
        assert model.params == approx(int(row["params"]), rel=exact)


@pytest.mark.parametrize("run", TWICE, ids=lambda run: run.id)
def test_flops_from_shapes_reproduce_the_printed_rates(run):
    """To the last printed digit, and 0.05%: a time and a rate of one row are one count of FLOPs."""
    kind = TIMED[run.id]
    time_s = run.seconds(kind)
    rate = run.counted / time_s / run.chips
    rounding = last_digit(run.printed[kind]) + last_digit(run.printed.get("tf") or run.printed["mfu"])
    rounding += 0.005 / time_s if run.family.startswith("mbridge") else 0  # times to the hundredth
    assert rate == approx(run.rate, rel=rounding + ALLOWED.get(run.family, 0.0005))


ALLOWED = {
    "dgxc-llama3-8b": 0.0015, "dgxc-llama3-70b": 0.0015, "dgxc-gpt3-175b": 0.002,  # a rounded constant
    "mbridge-25.09": 0.002, "mbridge-25.11": 0.002, "mbridge-26.02": 0.002, "mbridge-26.02.01": 0.002,
    "mbridge-26.04": 0.001, "mbridge-26.04.01": 0.025, "mbridge-26.06.01": 0.006, "mbridge-26.08": 0.005,
}  # fmt: skip
"""Beyond the last digit, by family: releases .01 and 26.08 print whole samples/s."""


def last_digit(text):
    """Half a unit of the last printed digit, as a share of the number."""
    digits = len(text.split(".")[1]) if "." in text else 0
    return 0.5 * 10**-digits / float(text)


def test_most_runs_confirm_the_flop_counts():
    assert len(TWICE) == 345
    times = {run: run.seconds(TIMED[run.id]) for run in TWICE}
    off = sorted(abs(run.counted / time_s / run.chips / run.rate - 1) for run, time_s in times.items())
    assert off[len(off) // 2] < 5e-4
    assert off[int(0.95 * len(off))] < 3e-3


def test_counting_conventions_are_ordered():
    """Half of the pairs counts less, a second forward pass more; 6P needs only the parameters."""
    run = find("korthikanti22-a100-80g-64-fp16-01")
    ask = {name: counted(name, run.model, run.tokens, run.T) for name in CONVENTIONS}
    B, s, L, h, V = run.batch, run.T, run.model.L, run.model.D, run.model.V
    assert ask["full"] == approx(72 * B * s * L * h**2 * (1 + s / (6 * h) + V / (12 * L * h)))
    assert ask["hardware"] == approx(96 * B * s * L * h**2 * (1 + s / (6 * h) + V / (16 * L * h)))
    assert ask["full"] == arithmetic.training_flops(run.model, run.tokens, run.T).total
    assert ask["half"] < ask["full"] < ask["hardware"]
    assert ask["half"] == approx(run.flops, rel=1e-4)
    longer = counted("bridge", replace(run.model, L=L + 1), run.tokens, run.T)
    joined = (V + 2 * h) * h  # weights: of the second unembedding, and of two vectors made one
    assert ask["bridge+MTP"] - longer == approx(6 * run.tokens * joined)
    with pytest.raises(ValueError, match="'6ND' is no convention here; write one of full, half"):
        counted("6ND", run.model, 1, 1)


def test_the_step_time_is_printed_or_follows_from_the_rate():
    """A printed time is used as is; without one, tokens/s, or FLOP/s by the source's convention."""
    assert find("dgxc-llama3-8b-h100-sxm-8-bf16-01").step_s == 12.91
    assert find("torchtitan-h100-96g-hbm2e-500w-8-bf16-01").step_s == approx(16 * 8192 / 8 / 5762)
    sc21 = find("megatron-sc21-a100-80g-1536-fp16-01")
    assert sc21.step_s == approx(24.817, abs=5e-4)
    assert Counter(run.bases[0] for run in RUNS) == {"tok": 252, "s": 86, "rate": 64}


def test_times_and_throughputs_of_one_row_agree():
    for run in RUNS:
        printed = run.printed
        if {"s", "tok"} <= printed.keys():
            assert run.tokens / float(printed["s"]) / run.chips == approx(float(printed["tok"]), rel=2e-3)


def test_hfu_and_mfu_are_distinguished():
    """The 52% of Megatron's largest run of 2021 count the recomputed forward pass."""
    run = find("megatron-sc21-a100-80g-2520-fp16-01")
    assert run.rate / 312e12 == approx(0.52, abs=0.005)
    assert run.mfu == approx(0.39, abs=0.005)


def test_tpu_slice_names_give_the_number_of_chips():
    """v5p-128 counts TensorCores, two a chip; v5e-256 counts chips; a TPU7x chip is two devices."""
    for name, chips in (("maxtext-v5p-tpuv5p-64-bf16-01", 64), ("maxtext-v5e-tpuv5e-256-bf16-01", 256)):
        assert find(name).chips == chips
        assert str(chips * (2 if "v5p" in name else 1)) in ROWS[name]["name"].split("-")[-1]
    assert find("tpu-recipes-ironwood-tpu7x-64-bf16-06").microbatch == 4  # 2.0 a device


def test_no_run_beats_its_chip():
    """At documented peaks of the dtype in which weight matmuls are computed."""
    shares = {run.id: run.mfu for run in RUNS}
    assert max(shares.values()) < 0.72
    assert min(shares.values()) > 0.03


def test_runs_of_a_series_differ_only_in_chips_sequence_or_batch():
    series = by_series()
    assert len(series) == 51
    for group in series.values():
        assert len({(run.chips, run.T, run.batch) for run in group}) >= 1
        assert len({(run.tp, run.pp, run.cp, run.remat, run.precision, run.chip.name) for run in group}) == 1


def test_unknown_ids_raise_an_error():
    with pytest.raises(KeyError, match="the source contradicts itself"):
        find(REFUSED["the source contradicts itself"][0])
    with pytest.raises(KeyError, match="the table has no such row"):
        find("gpt-5")


def test_a_run_prints_as_a_sentence():
    assert str(find("dgxc-llama3-70b-h100-sxm-256-bf16-01")) == (
        "Llama 3 70B on 256 H100, bf16, fsdp 8 tp 4 cp 2 pp 4, 512 sequences of 8,192: 14.8 s a step, MFU 50%"
    )
    assert RUNS[0].family == "megatron-sc21"


def test_whole_runs_have_the_published_utilization():
    """`training_gpu_hours.csv`: its MFU is 6 · P · tokens over hours at the peak."""
    table = resources.rows("training_gpu_hours")
    assert len(table) == len(WHOLE_RUNS) == 18
    for run, row in zip(WHOLE_RUNS, table, strict=True):
        assert (run.name, str(run.chips or "")) == (row["name"], row["accel_count"])
        assert (run.params, run.tokens) == (float(row["params"]), float(row["tokens"]))
        assert run.chip_hours == float(row["accel_hours"])
        assert run.utilization.share == approx(float(row["mfu_6nd"]), abs=6e-5)


def test_interruptions_have_the_published_mtbf():
    (row,) = resources.rows("interruptions")
    stops = LLAMA3_INTERRUPTIONS
    assert (stops.name, stops.chips, stops.days) == (row["run"], int(row["chips"]), float(row["days"]))
    assert (stops.planned, stops.unexpected) == (int(row["planned"]), int(row["unexpected"]))
    assert str(stops).endswith("419 unexpected interruptions in 54 days, one every 3.1 hours")
    assert f"{stops.mtbf_s * stops.chips / (365.25 * 86400):.1f}" == "5.8"  # years for each chip


def test_held_out_runs_are_not_fitted_and_can_be_found():
    assert not {run.family for run in HELD_OUT} & {run.family for run in RUNS}
    assert all(find(run.id) is run for run in HELD_OUT)


def test_a_whole_run_prints_as_a_sentence():
    (run,) = (run for run in WHOLE_RUNS if run.name == "Llama-3.1-405B")
    assert str(run).startswith(
        "Llama-3.1-405B: 15.6 T tokens in 30.8 M hours of H100, 78.4 days on 16,384; MFU 34."
    )
    assert "days" not in str(WHOLE_RUNS[0])


def test_published_peak_memory_is_read_in_bytes():
    held = {run.id: run.memory_bytes for run in RUNS if run.memory_bytes}
    assert held == {id: float(ROWS[id]["peak_mem_gib"]) * 2**30 for id in held}
    assert len(held) == 10
    assert all(find(id).memory_bytes < find(id).chip.hbm_bytes for id in held)


def test_whole_runs_take_more_chip_hours_than_their_plans():
    told, run = chip_hour_overhead(), training.PlannedRun(1e12, 64, 3.6e6, 2.0)
    assert 1.2 < told.factor < 2.5
    assert told.factor == approx(told.slower_steps * told.other_overheads, rel=2e-3)
    assert 1 < told.other_overheads < told.slower_steps < told.factor
    assert told.leave_one_out_error < 0.25
    billed = told.of(run)
    assert billed.chip_hours == approx(told.factor * run.chip_hours)
    assert billed.usd == approx(2 * billed.chip_hours)
    assert f"{told.factor:.2f}" in str(told)
    assert f"within a factor of {told.interval_factor:.2f}" in str(told)
