"""Whatever the layout: laws of what a chip holds, of critical batches, and of experts."""

from dataclasses import replace
from math import ceil

import pytest
from inference_drawn import CONTEXTS, MODELS, SETTINGS, SIZES, cases

from scalingbook_lib import inference, models, rules
from scalingbook_lib.inference import Layout, LayoutError
from scalingbook_lib.inference.passes import Load, passed
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, FP8, INT8

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS)
def test_sharding_the_cache_never_changes_its_useful_bytes(case, B, S):
    """All chips of a copy hold the cache once, times the copies of heads, where sequences divide."""
    model, machine, layout, _ = case
    B *= layout.attention_dp * layout.kv_batch * layout.cp
    hypothesis.assume(model.L % layout.pp == 0 and not model.linear)
    heads = 1 if model.latent else model.K
    copies = ceil(heads / layout.kv_heads) * layout.kv_heads / heads
    held = inference.memory(model, layout, machine, batch=B, S=S).kv * layout.chips
    useful = arithmetic.kv_cache(model, S, layout.kv, sequences=B).nbytes
    assert held == pytest.approx(useful * copies)


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 100), CONTEXTS, st.sampled_from(("tp", "pp", "cp")))
def test_a_chip_holds_less_of_weights_and_cache_with_more_ways(case, B, S, name):
    model, _, layout, _ = case
    wider = replace(layout, **{name: 2 * getattr(layout, name)})
    machine = Cluster(chip=chips.H100, chips=1024)
    try:
        more = inference.memory(model, wider, machine, batch=B, S=S)
    except LayoutError:
        more = None
    hypothesis.assume(more)
    assert more
    one = inference.memory(model, layout, machine, batch=B, S=S)
    assert more.weights <= one.weights * (1 + 1e-12)
    assert more.kv <= one.kv * (1 + 1e-12)


@pytest.mark.parametrize("name", ["Llama 3 70B", "Gemma-3 27B", "DeepSeek-V3"])
def test_the_cache_of_a_chip_falls_with_ways_until_the_heads_run_out(name):
    model, machine = models.find(name), Cluster.of(chips.H100, 64)
    heads = 1 if model.latent else model.K
    kv = {n: inference.memory(model, Layout(tp=n), machine, batch=8, S=4096).kv for n in (1, 2, 4, 8, 16, 32)}
    for n in (1, 2, 4, 8, 16):
        expected = kv[n] / 2 if 2 * n <= heads else kv[n]
        assert kv[2 * n] == pytest.approx(expected)


@SETTINGS
@hypothesis.given(
    st.sampled_from([m for m in MODELS if not m.experts]), st.sampled_from((chips.V5E, chips.H100)),
    st.sampled_from((BF16, INT8)), st.sampled_from((BF16, INT8)),
)  # fmt: skip
def test_the_critical_batch_is_the_knee(model, chip, weights, compute):
    """Below it every product waits for its weights, above it none does."""
    hypothesis.assume(weights.bytes <= compute.bytes)
    knee = rules.critical_batch(chip, sparsity=model.sparsity, weights=weights, compute=compute).tokens
    machine = Slice.of(chip, "1x1") if chip.torus else Cluster.of(chip, 1)
    layout = Layout(weights=weights, compute=compute)
    below = inference.decode(model, machine, layout, batch=knee * 0.999, S=10)
    above = inference.decode(model, machine, layout, batch=knee * 1.001, S=10)
    assert below.times.one.matmul_s == 0
    assert below.times.one.head_waits
    assert above.times.one.weights_s == 0
    assert not above.times.one.head_waits


@pytest.mark.parametrize("name", ["Mixtral 8x7B", "DeepSeek-V3", "Qwen3 30B-A3B"])
def test_experts_need_their_sparsity_times_the_batch(name):
    model = models.find(name)
    found = rules.critical_batch(chips.H100, sparsity=model.sparsity, weights=FP8, compute=FP8)
    assert model.experts
    assert found.sparsity == model.experts.E / model.experts.k
    k = inference.case(model, Cluster.of(chips.H100, 1), Layout(weights=FP8, compute=FP8)).constants
    assert found.tokens * k.routed.token_s == pytest.approx(k.routed.read_s)
    assert found.dense_tokens * k.mlp.token_s == pytest.approx(k.mlp.read_s)


@SETTINGS
@hypothesis.given(st.sampled_from([m for m in MODELS if m.experts]), st.integers(1, 3000))
def test_a_step_reads_the_experts_that_its_tokens_visit(model, B):
    """B tokens visit E (1 - (1 - k/E)^B) of them in the mean: never more than k B, nor than E."""
    k = inference.case(model, Cluster.of(chips.H100, 8), Layout(tp=8)).constants
    x = model.experts
    visited = x.E * (1 - (1 - x.k / x.E) ** B)
    waited = max(k.routed.read_s * visited / x.E, k.routed.token_s * B)
    one = passed(k, Load(batch=B))
    assert one.weights_s + one.matmul_s >= waited * (1 - 1e-12)
    assert visited <= min(x.E, x.k * B) * (1 + 1e-12)


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 50_000))
def test_the_largest_batch_fits_and_one_more_does_not(case, S):
    model, machine, layout, _ = case
    B = inference.largest_batch(model, layout, machine, S=S, reserve=0.05)
    if B:
        assert inference.memory(model, layout, machine, batch=B, S=S, reserve=0.05).fits
    assert not inference.memory(model, layout, machine, batch=B + 1, S=S, reserve=0.05).fits
