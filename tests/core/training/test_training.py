"""Plans of a training step: memory, collectives and time, against the closed forms and published figures."""

from dataclasses import replace

import pytest

from scalingbook_lib import models, rules, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import Plan, effective_width
from scalingbook_lib.units import FP32, GB

B70, B405 = models.find("Llama 3 70B"), models.find("Llama 3.1 405B")
H100 = clusters.Cluster.of(chips.H100, 16384)
CUBE = Slice.of(chips.V5P, "16x16x16")


@pytest.mark.parametrize(
    ("name", "width"), [("Llama 3 70B", 26112), ("Llama 3.1 405B", 48640), ("Llama 2 13B", 15488)]
)
def test_the_effective_width_of_a_real_layer(name, width):
    assert effective_width(models.find(name)) == pytest.approx(width, rel=1e-3)


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_table_of_the_zero_paper(zero, gigabytes):
    state = training.states(7.5e9, Plan(fsdp=64, zero=zero))
    assert state.total / GB == pytest.approx(gigabytes, abs=0.05)


def test_the_reference_run_of_70b():
    pod = Slice.of(chips.V5P, "16x20x28")
    run = training.run_at(70e9, pod, 15e12, mfu=0.4)
    assert run.days == pytest.approx(44.3, abs=0.05)
    assert run.usd == pytest.approx(pod.chips * run.days * 24 * chips.V5P.usd_per_hour)
    assert run.tokens_per_s_per_chip == pytest.approx(0.4 * 459e12 / (6 * 70e9))
    assert training.run_at(70.4e9, pod, 15e12, mfu=0.4).days == pytest.approx(44.6, abs=0.1)
    held = rules.pooled(B70, 4e6, arrays=4, params=70e9)
    assert held.total / pod.chips / GB == pytest.approx(2.42, abs=0.005)
    assert held.chips(96e9) == pytest.approx(225.7, abs=0.1)


def test_the_terms_of_a_step_sum_to_it():
    plan = Plan(tp=8, fsdp=128, pp=16, zero=1, schedule="interleaved", chunks=4)
    step = training.step(B405, H100, plan, batch=2048, T=8192)
    assert sum(step.terms.values()) == pytest.approx(step.total_s)
    assert step.memory.total == sum(step.memory.terms.values())
    assert "interleaved" in str(step)
    assert "MFU" in str(step)


def test_logits_and_a_layer_done_again_are_never_together():
    plan, asked = Plan(fsdp=8, remat="full"), {"batch": 8, "T": 8192}
    at_logits = training.memory(models.find("Llama 3 8B"), plan, **asked)
    assert at_logits["logits"] == 8192 * 128256 * 8  # one sequence; 6 of more
    more = training.memory(models.find("Llama 3 8B"), replace(plan, microbatch=2), batch=16, T=8192)
    assert more["logits"] == 2 * 8192 * 128256 * 6
    assert at_logits["recomputed layer"] == 0 < at_logits.other < at_logits["logits"]
    in_layer = training.memory(models.find("Llama 2 7B"), replace(plan, logit_bytes=1.0), batch=8, T=4096)
    assert in_layer.moment == "in a layer"
    assert in_layer.other == 4096 * 32000
    assert in_layer["logits"] == 0
    assert "(in a layer; at the logits 131 MB in its place)" in str(in_layer)


def test_gradients_are_there_at_the_logits_only_as_sums_over_microbatches():
    plan = Plan(fsdp=8, remat="full")
    one, two = (training.memory(models.find("Llama 3 8B"), plan, batch=b, T=8192) for b in (8, 16))
    assert one.moment == two.moment == "at the logits"
    assert one["gradients"] == 0 < two["gradients"]
    assert one.state == two.state == one["weights"] + one["optimizer"] + two["gradients"]


def test_an_unembedding_and_its_gradient_are_whole_where_tokens_are_few():
    B8, plan = models.find("Llama 3 8B"), Plan(fsdp=64, remat="full", logit_bytes=2.0)
    held = training.memory(B8, plan, batch=64, T=512)
    assert held["buffers"] == held["gathered weights"] == 2 * 128256 * 4096
    chunks = training.memory(B8, replace(plan, logit_bytes=0.5), batch=64, T=512)
    assert chunks.moment == "in a layer"  # each chunk's gradient is scattered


def test_stages_hold_many_microbatches_or_the_logits():
    plan = Plan(pp=8, fsdp=8, zero=1, remat="full", logit_bytes=14)
    few, many = (training.memory(B70, replace(plan, tp=tp), batch=128, T=8192) for tp in (1, 8))
    assert few["logits"] > 0 == few["recomputed layer"]
    assert few.other == many.other == 0
    assert few["activations"] == 10 * 8192 * 8192 * 2
    in_layer = training.memory(B70, Plan(pp=8, fsdp=8, remat="full", logit_bytes=2), batch=128, T=8192)
    assert in_layer["activations"] == 8 * few["activations"]


def test_gathered_keys_and_values_are_those_of_whole_sequences():
    ring, gather = (
        training.memory(B70, Plan(fsdp=8, cp=16, context=context, logit_bytes=0), batch=32, T=4096)
        for context in ("ring", "gather")
    )
    gradients = gather["recomputed layer"] / 2 - ring["recomputed layer"]
    assert gradients == 4096 * 2 * 8 * 128 * 2


def test_a_compiled_loop_gathers_no_layer_ahead():
    plan = Plan(fsdp=256, remat="full", logit_bytes=1, weights=FP32)
    ahead, loop = (training.memory(B70, plan, batch=256, T=8192, loop=loop) for loop in (None, True))
    layer = 2 * 8192 * (2 * (64 + 8) * 128 + 3 * 28672 + 2)
    assert ahead["gathered weights"] == pytest.approx(2 * layer)
    assert loop["gathered weights"] == pytest.approx(layer + 80 * layer / 256)  # all rounded before the loop
    assert loop["buffers"] == 2 * 2 * 8192 * 28672 < ahead["buffers"]
    assert ahead.state == loop.state
    machine = Slice.of(chips.V5P, "4x8x8")
    assert training.memory(B70, plan, batch=256, T=8192, machine=machine).total == loop.total


def test_a_loop_that_does_nothing_again_keeps_what_fusion_would_spare():
    for loop, same in ((True, "all"), (False, "none")):
        plans = (Plan(fsdp=256, remat=remat) for remat in ("none", "all"))
        first, second = (training.memory(B70, plan, batch=256, T=512, loop=loop) for plan in plans)
        assert first.total == second.total
        kept = training.memory(B70, Plan(fsdp=256, remat=same), batch=256, T=512)
        assert first["activations"] == kept["activations"]


def test_what_real_chips_lose_beside_a_lower_rate():
    plan, cluster = Plan(fsdp=8), clusters.Cluster.of(chips.H100, 8)

    def after(**lost: float) -> training.TrainingStep:
        return training.step(
            models.find("Llama 3 8B"),
            cluster,
            plan,
            batch=16,
            T=8192,
            efficiency=training.TrainingEfficiency(**lost),
        )

    best, L, M = after(), 32, 2
    assert after(layer_s=1e-3).total_s == pytest.approx(best.total_s + 3 * L * M * 1e-3)
    assert after(fixed_s=0.25).total_s == pytest.approx(best.total_s + 0.25)
    slow = after(ramp=8192.0).seconds
    assert slow.math.attention == pytest.approx(2 * best.seconds.math.attention)
    operands = 2 * 8192 * M * L * (7 * 4096 + 53248) * 3 / chips.H100.hbm_bytes_per_s
    assert after(operands=1.0).seconds.memory_s == pytest.approx(best.seconds.memory_s + operands)
    waits = sum(row.seconds for row in best.traffic)
    assert after(overlap=0.5).total_s == pytest.approx(best.total_s + waits / 2, rel=1e-3)


def test_what_is_lost_is_never_negative():
    with pytest.raises(ValueError, match=r"ramp=-1.*at least 0"):
        training.TrainingEfficiency(ramp=-1)
