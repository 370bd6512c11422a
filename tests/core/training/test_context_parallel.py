"""The price of context parallelism: the ring, what hides it, merged partial outputs, and measured runs."""

from dataclasses import replace
from math import exp, log
from statistics import mean

import pytest

from scalingbook_lib import calibrated, evidence, models, training
from scalingbook_lib.evidence import resources
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.training import PEAK, Plan

B405, B70 = models.find("Llama 3.1 405B"), models.find("Llama 3 70B")
H100 = clusters.Cluster.of(chips.H100, 256)
T = 8192
approx = pytest.approx


def step(cp, efficiency=PEAK, model=B70, T=T, **fields):
    plan = Plan(cp=cp, fsdp=256 // cp // fields.get("tp", 1), **fields)
    return training.step(model, H100, plan, batch=256, T=T, efficiency=efficiency)


def ring(one, when="fwd"):
    return next(row for row in one.traffic if row.what == "ring" and row.when == when)


def test_a_ring_that_leaves_a_node_crosses_a_single_nic_per_piece():
    inside, across = ring(step(8)), ring(step(16))
    kv = 2 * B70.K * B70.H * 2  # bytes of a token's keys and values in one layer
    assert H100.nic_bytes_per_s
    assert inside.each_s == approx(7 * ((T / 8) * kv / 450e9 + 1e-6))  # and a hop each
    assert across.each_s == approx(15 * ((T / 16) * kv / H100.nic_bytes_per_s + 3e-6))


def test_starting_a_transfer_is_paid_in_every_step_of_the_ring_but_once_for_both_gradients():
    late = replace(PEAK, ring_launch_s=1e-3)
    more = {
        (row.what, row.when): row.each_s - plain.each_s
        for row, plain in zip(step(16, late).traffic, step(16).traffic, strict=True)
        if row.axes == "C"
    }
    assert more == {
        ("ring", "fwd"): approx(15e-3),
        ("ring", "bwd"): approx(15e-3),
        ("ring of sums", "bwd"): approx(0, abs=1e-9),
    }


def test_only_attention_hides_a_ring():
    """405B with 256 tokens on each chip: the matmuls of a layer could hide its ring, attention cannot."""
    one = training.step(B405, H100, Plan(cp=32, fsdp=8), batch=256, T=T)
    rows = [row for row in one.traffic if row.axes == "C"]
    attention_s = one.seconds.math.attention
    assert sum(row.seconds for row in rows) < one.seconds.math.matmul
    # scores are computed again inside the backward kernel, which hides a little more
    exposed_s = sum(row.seconds for row in rows) - one.exposed["context parallelism"]
    assert attention_s * 31 / 32 < exposed_s < 1.5 * attention_s


def test_long_pieces_hide_their_ring():
    assert "context parallelism" not in step(8, T=131072).exposed


def test_merging_partial_outputs_reads_and_writes_them_for_every_further_piece():
    bandwidth = chips.H100.hbm_bytes_per_s
    assert step(8).seconds.memory_s > step(8, context="gather").seconds.memory_s
    more_s = step(8).seconds.memory_s - step(8, context="gather").seconds.memory_s
    outputs = B70.L * B70.N * B70.H * 2  # bytes of a token, all layers
    tokens = 8 * T / 8  # of a chip in one step: 8 microbatches
    assert more_s == approx(3 * 3 * (25 / 4 - 1) * tokens * outputs / bandwidth)


def test_context_parallelism_never_makes_a_step_of_the_same_chips_faster_than_its_tokens_allow():
    """With the same tokens on each chip, a longer ring takes longer."""
    table = calibrated.training(chips.H100)
    times = [step(cp, table, microbatch=cp, T=T).total_s for cp in (1, 2, 4, 8, 16)]
    assert times == sorted(times)


def test_steps_of_fine_tuning_at_8192_tokens_are_predicted_at_every_degree():
    """MLPerf's Llama 2 70B with LoRA on B200 and GB200: nothing was fitted to these rows."""
    rows = [
        row
        for row in resources.rows("added_training_runs")
        if "lora" in row["run_id"] and row["chip"] in ("B200", "GB200")
    ]
    found = evidence.score(rows).rows
    errors: dict[bool, list[float]] = {}
    for row in found:
        assert row.found
        assert row.row
        errors.setdefault(int(row.row["cp"] or 1) >= 4, []).append(log(1 + row.found.error))
    assert {many: len(ones) for many, ones in errors.items()} == {False: 5, True: 4}
    assert all(abs(error) < 0.15 for ones in errors.values() for error in ones)
    assert exp(mean(errors[True]) - mean(errors[False])) == approx(1, abs=0.06)


def test_only_gpus_launch_a_kernel_for_each_step_of_the_ring():
    assert calibrated.training(chips.V5P, "bf16").ring_launch_s == 0
    assert 0 < calibrated.training(chips.H100, "bf16").ring_launch_s < 1e-3
