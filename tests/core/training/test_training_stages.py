"""What a stage of a pipeline has, and what a causal mask, late weights and frozen ones cost."""

from dataclasses import replace

import pytest

from scalingbook_lib import models, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models.parts import Experts
from scalingbook_lib.training import Plan
from scalingbook_lib.training.stages import _by_hand, stages

B8, B70, B405 = (models.find(f"Llama 3 {size}") for size in ("8B", "70B", "405B"))
H100 = clusters.Cluster.of(chips.H100, 128)


@pytest.mark.parametrize(
    ("L", "p", "head", "dealt"),
    [
        (126, 16, 0.66, [7, *14 * [8], 7]),  # Llama 3's
        (62, 4, 2.9, [16, 16, 16, 14]),  # of DeepSeek-V3 with the token after the next, as Megatron-Bridge's
        (62, 2, 2.9, [32, 30]),
        (61, 8, 1.5, [7, *6 * [8], 6]),
    ],
)
def test_layers_that_do_not_divide_are_dealt_by_hand(L, p, head, dealt):
    assert _by_hand(L, p, head) == dealt


def test_126_layers_in_8_stages_of_15_chunks_are_stages_of_16():
    """Chunks of two layers made one of 30."""
    plan = Plan(tp=2, fsdp=8, pp=8, schedule="interleaved", chunks=15, zero=1)
    step = training.step(B405, H100, plan, batch=128, T=8192)
    assert stages(B405, 8192, True, 8, 15).layers == 16
    layers_s = step.seconds.math.total - step.seconds.math.head
    assert step.terms["uneven stages"] < 0.03 * layers_s
    whole = training.memory(B405, replace(plan, chunks=1, schedule="1f1b"), batch=128, T=8192)
    assert step.memory.state == whole.state


def test_every_second_layer_with_experts_makes_stages_of_three_unequal():
    E = Experts(E=8, k=2, F=B8.F, every=2)
    sparse = replace(B8, L=24, experts=E)
    found = stages(sparse, 8192, True, 8, 1)
    assert (found.layers, found.experts) == (3, 2)
    assert found.longest > 3 / 24
    assert stages(sparse, 8192, True, 4, 1).longest == 1 / 4  # of six layers, three have
    windows = replace(B8, L=24, windows=(1024, 1024, 1024, None))
    wide = stages(windows, 32_768, True, 24, 1)
    assert wide.longest > 1.3 / 24  # one in four sees all


def test_without_a_zigzag_the_end_of_a_causal_sequence_does_nearly_twice_the_mean():
    plan = Plan(fsdp=16, cp=8)
    even, ring = (
        training.step(B8, H100, replace(plan, zigzag=zigzag), batch=16, T=65_536).seconds.math
        for zigzag in (True, False)
    )
    assert ring.attention / even.attention == pytest.approx(2 - 1 / 8, rel=1e-4)
    assert ring.matmul == even.matmul
    ulysses = replace(plan, context="ulysses", zigzag=False)
    assert training.step(B8, H100, ulysses, batch=16, T=65_536).seconds.math == even
    windows = replace(B8, windows=(1024,))
    near = training.step(windows, H100, replace(plan, zigzag=False), batch=16, T=65_536).seconds.math
    far = training.step(windows, H100, plan, batch=16, T=65_536).seconds.math
    assert near.attention / far.attention == pytest.approx(1, rel=0.02)


def test_weights_asked_for_late_are_waited_for():
    plan = Plan(fsdp=128)
    soon, late = (
        training.step(B8, H100, replace(plan, prefetch=prefetch), batch=128, T=8192)
        for prefetch in (True, False)
    )
    gathered = sum(row.seconds for row in late.traffic if row.name == "weights" and row.when == "bwd")
    assert late.total_s == pytest.approx(soon.total_s + gathered)


def test_weights_are_not_gathered_between_pods():
    pod = Slice.of(chips.V5P, "4x4x8")
    said = training.feasible(B8, pod, Plan(fsdp=256), 256, 8192)
    assert any("write dcn=2" in why for why in said)
    assert training.feasible(B8, pod, Plan(fsdp=128, dcn=2), 256, 8192) == ()


def test_frozen_weights_have_no_gradients():
    """LoRA's backward pass is as long as the forward pass, but for attention; no sums, no optimizer."""
    plan = Plan(fsdp=128)
    whole, frozen = (
        training.step(B70, H100, replace(plan, frozen=some), batch=128, T=8192) for some in (False, True)
    )
    assert frozen.seconds.math.matmul == pytest.approx(whole.seconds.math.matmul * 2 / 3)
    assert frozen.seconds.math.attention == whole.seconds.math.attention
    assert frozen.useful_flops == pytest.approx(
        frozen.tokens * (2 * frozen.work.forward.total + frozen.work.forward.attention)
    )
    assert frozen.seconds.optimizer_s == frozen.memory.state - frozen.memory["weights"] == 0
    assert {row.name for row in frozen.traffic} == {"weights"}
    assert sum(frozen.terms.values()) == pytest.approx(frozen.total_s)
    once = training.step(B70, H100, replace(plan, frozen=True, zero=1, pp=16, fsdp=8), batch=128, T=8192)
    assert {row.axes for row in once.traffic} == {"P"}
