"""Whatever the layout: laws that memory, steps and throughput of serving must keep."""

from dataclasses import replace
from math import ceil

import pytest

from scalingbook_lib import inference, models
from scalingbook_lib.inference import Efficiency, Layout, LayoutError, by_type
from scalingbook_lib.inference.passes import Load, passed
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, FP8, INT4, INT8

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SETTINGS = hypothesis.settings(max_examples=80, deadline=None, derandomize=True)
_NAMES = ("LLaMA-3 8B", "LLaMA-3 70B", "Gemma-3 27B", "GPT-2 XL", "Mixtral 8x7B", "DeepSeek-V3",
          "gpt-oss 120B", "Qwen3-Next 80B-A3B", "Falcon 40B")  # fmt: skip
MODELS = [models.find(name) for name in _NAMES]
MACHINES = [
    Cluster.of(chips.H100, 8), Cluster.of(chips.GB200, 72), Cluster.of(chips.H200, 64),
    Slice.of(chips.V5E, "4x4"), Slice.of(chips.V5P, "4x4x4"), Slice.of(chips.V6E, "16x16"),
]  # fmt: skip
POWERS = [1, 2, 4, 8, 16, 32, 64]
SIZES = st.integers(1, 2000)
CONTEXTS = st.integers(1, 100_000)
ROUGH = Efficiency(
    matmul=by_type(0.8, int8=0.7), weights=by_type(0.9, int8=0.7), kv=0.8, attention=0.6, experts=0.5,
    memory=0.7, torus=0.8, domain=0.7, network=0.6, overlap=0.3, ramp=20.0, dequantize_s=1e-13, layer_s=3e-6,
    expert_layer_s=5e-6, collective_s=4e-6, fixed_s=1e-3, sequence_s=3e-6, host_s=2e-5,
)  # fmt: skip
EFFICIENCIES = [inference.PEAK, ROUGH, Efficiency(overlap=1.0)]


@st.composite
def layouts(draw, chips_there):
    """Any division of a number of chips."""
    tp = draw(st.sampled_from([n for n in POWERS if chips_there % n == 0]))
    cp = draw(st.sampled_from([n for n in (1, 2, 4) if chips_there % (n * tp) == 0]))
    pp = draw(st.sampled_from([n for n in (1, 2, 4) if chips_there % (n * cp * tp) == 0]))
    below = [n for n in POWERS if tp % n == 0]
    groups = draw(st.sampled_from(below))
    rows = draw(st.sampled_from(below)) if groups == 1 else 1
    ep = draw(st.sampled_from(below)) if rows == 1 else 1
    left = tp // groups
    kv_batch = draw(st.sampled_from([n for n in POWERS if left % n == 0]))
    kv_sequence = draw(st.sampled_from([n for n in POWERS if (left // kv_batch) % n == 0]))
    return Layout(
        tp=tp, cp=cp, pp=pp, rows=rows, ep=ep, attention_dp=groups, kv_batch=kv_batch,
        kv_sequence=kv_sequence, weights=draw(st.sampled_from((BF16, INT8, INT4))),
        kv=draw(st.sampled_from((BF16, INT8))),
    )  # fmt: skip


@st.composite
def cases(draw, which=MODELS, efficiencies=EFFICIENCIES):
    """A model on a machine in a layout that can be."""
    model, machine = draw(st.sampled_from(which)), draw(st.sampled_from(MACHINES))
    layout, efficiency = draw(layouts(machine.chips)), draw(st.sampled_from(efficiencies))
    try:
        inference.case(model, machine, layout, efficiency)
    except LayoutError:
        hypothesis.assume(False)
    return model, machine, layout, efficiency


def decode(case, B, S, **more):
    model, machine, layout, efficiency = case
    return inference.decode(model, machine, layout, B=B, S=S, efficiency=efficiency, **more)


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS, st.integers(0, 3000), CONTEXTS, st.integers(1, 40))
def test_the_seconds_of_a_case_are_those_of_the_step(case, B, S, chunk, context, prompts):
    model, machine, layout, efficiency = case
    on = inference.case(*case)
    told = inference.mixed(
        model, machine, layout, B=B, S=S, chunk=chunk, chunk_context=context, prompts=prompts,
        efficiency=efficiency,
    )  # fmt: skip
    assert on.step_s(B, B * S, chunk, context, prompts) == told.total_s
    assert sum(told.terms.values()) == pytest.approx(told.total_s, rel=1e-9)


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 9000), st.integers(1, 40), st.integers(0, 9000))
def test_a_prefill_is_a_chunk_of_whole_prompts(case, P, prompts, cached):
    model, machine, layout, efficiency = case
    step = inference.prefill(
        model, machine, layout, P=P + cached, prompts=prompts, cached=cached, efficiency=efficiency
    )
    assert sum(step.terms.values()) == pytest.approx(step.total_s, rel=1e-9)
    if layout.pp == 1:
        chunk_s = inference.case(*case).step_s(0, 0, P * prompts, cached, prompts)
        assert step.total_s == pytest.approx(chunk_s, rel=1e-9)


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS)
def test_a_mixed_step_without_a_chunk_is_a_decode_step(case, B, S):
    model, machine, layout, efficiency = case
    step = inference.mixed(model, machine, layout, B=B, S=S, chunk=0, efficiency=efficiency)
    assert step.terms == decode(case, B, S).terms


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS, st.integers(1, 500), st.integers(1, 5000))
def test_steps_grow_with_sequences_contexts_and_chunks(case, B, S, more, tokens):
    on = inference.case(*case)
    step = on.step_s(B, B * S)
    slack = 1 + 1e-12
    assert step <= on.step_s(B + more, (B + more) * S) * slack
    assert step <= on.step_s(B, B * (S + tokens)) * slack
    if case[2].pp == 1:
        assert step <= on.step_s(B, B * S, tokens) * slack
        assert on.step_s(B, B * S, tokens) <= on.step_s(B, B * S, tokens + more) * slack
    assert step <= decode(case, B, S, T=1 + more).total_s * slack


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 200), CONTEXTS)
def test_throughput_of_a_chip_grows_with_the_batch_and_saturates(case, B, S):
    """Doubling a batch that divides evenly at least keeps tokens/s, and never doubles what memory allows."""
    layout = case[2]
    B *= layout.pp * layout.cp * layout.attention_dp * layout.kv_batch
    once, twice = decode(case, B, S), decode(case, 2 * B, S)
    assert twice.tokens_per_s >= once.tokens_per_s * (1 - 1e-9)
    assert twice.tokens_per_s <= 2 * once.tokens_per_s * (1 + 1e-9)
    one = once.case.shape
    read_s = sum(k.elements * min(S, k.window) for k in one.kinds) * layout.kv.bytes / layout.kv_sequence
    ways = layout.attention_dp * layout.kv_batch * layout.pp * layout.cp
    limit = ways * case[1].chip.hbm_bytes_per_s / read_s
    assert twice.tokens_per_s <= limit * (1 + 1e-9)


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS)
def test_sharding_the_cache_never_changes_its_useful_bytes(case, B, S):
    """All chips of a copy hold the cache once, times the copies of heads, where sequences divide."""
    model, machine, layout, _ = case
    B *= layout.attention_dp * layout.kv_batch * layout.cp
    hypothesis.assume(model.L % layout.pp == 0 and not model.linear)
    heads = 1 if model.latent else model.K
    copies = ceil(heads / layout.kv_heads) * layout.kv_heads / heads
    held = inference.memory(model, layout, machine, B=B, S=S).kv * layout.chips
    useful = arithmetic.kv_cache(model, S, layout.kv, sequences=B).nbytes
    assert held == pytest.approx(useful * copies)


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS)
def test_half_the_bytes_of_weights_are_half_of_their_reading(case, B, S):
    model, machine, layout, _ = case
    wide = decode((model, machine, replace(layout, weights=BF16), inference.PEAK), B, S)
    narrow = decode((model, machine, replace(layout, weights=INT8), inference.PEAK), B, S)
    k, h = wide.case.constants, narrow.case.constants
    for name in ("projections", "mlp", "routed", "head"):
        assert getattr(h, name).read_s == pytest.approx(getattr(k, name).read_s / 2)
        assert getattr(h, name).token_s == getattr(k, name).token_s
    assert narrow.total_s <= wide.total_s * (1 + 1e-12)


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 100), CONTEXTS, st.sampled_from(("tp", "pp", "cp")))
def test_a_chip_holds_less_of_weights_and_cache_with_more_ways(case, B, S, name):
    model, _, layout, _ = case
    wider = replace(layout, **{name: 2 * getattr(layout, name)})
    machine = Cluster(chip=chips.H100, chips=1024)
    try:
        more = inference.memory(model, wider, machine, B=B, S=S)
    except LayoutError:
        more = None
    hypothesis.assume(more)
    assert more
    one = inference.memory(model, layout, machine, B=B, S=S)
    assert more.weights <= one.weights * (1 + 1e-12)
    assert more.kv <= one.kv * (1 + 1e-12)


@pytest.mark.parametrize("name", ["LLaMA-3 70B", "Gemma-3 27B", "DeepSeek-V3"])
def test_the_cache_of_a_chip_falls_with_ways_until_the_heads_run_out(name):
    model, machine = models.find(name), Cluster.of(chips.H100, 64)
    heads = 1 if model.latent else model.K
    kv = {n: inference.memory(model, Layout(tp=n), machine, B=8, S=4096).kv for n in (1, 2, 4, 8, 16, 32)}
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
    knee = inference.critical_batch(model, chip, weights=weights, compute=compute).tokens
    machine = Slice.of(chip, "1x1") if chip.torus else Cluster.of(chip, 1)
    layout = Layout(weights=weights, compute=compute)
    below = inference.decode(model, machine, layout, B=knee * 0.999, S=10)
    above = inference.decode(model, machine, layout, B=knee * 1.001, S=10)
    assert below.one.matmul_s == 0
    assert below.one.head_waits
    assert above.one.weights_s == 0
    assert not above.one.head_waits


@pytest.mark.parametrize("name", ["Mixtral 8x7B", "DeepSeek-V3", "Qwen3 30B-A3B"])
def test_experts_need_their_sparsity_times_the_batch(name):
    model = models.find(name)
    found = inference.critical_batch(model, chips.H100, weights=FP8, compute=FP8)
    assert model.experts
    assert found.sparsity == model.experts.E / model.experts.k
    k = inference.case(model, Cluster.of(chips.H100, 1), Layout(weights=FP8, compute=FP8)).constants
    assert found.tokens * k.routed.token_s == pytest.approx(k.routed.read_s)
    assert found.dense * k.mlp.token_s == pytest.approx(k.mlp.read_s)


@SETTINGS
@hypothesis.given(st.sampled_from([m for m in MODELS if m.experts]), st.integers(1, 3000))
def test_a_step_reads_the_experts_that_its_tokens_visit(model, B):
    """B tokens visit E (1 - (1 - k/E)^B) of them in the mean: never more than k B, nor than E."""
    k = inference.case(model, Cluster.of(chips.H100, 8), Layout(tp=8)).constants
    x = model.experts
    visited = x.E * (1 - (1 - x.k / x.E) ** B)
    waited = max(k.routed.read_s * visited / x.E, k.routed.token_s * B)
    one = passed(k, Load(B=B))
    assert one.weights_s + one.matmul_s >= waited * (1 - 1e-12)
    assert visited <= min(x.E, x.k * B) * (1 + 1e-12)


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 50_000))
def test_the_largest_batch_fits_and_one_more_does_not(case, S):
    model, machine, layout, _ = case
    B = inference.largest_batch(model, layout, machine, S=S, reserve=0.05)
    if B:
        assert inference.memory(model, layout, machine, B=B, S=S, reserve=0.05).fits
    assert not inference.memory(model, layout, machine, B=B + 1, S=S, reserve=0.05).fits


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS)
def test_nothing_is_quicker_than_the_peak(case, B, S):
    model, machine, layout, _ = case
    peak = decode((model, machine, layout, inference.PEAK), B, S)
    rough = decode((model, machine, layout, replace(ROUGH, overlap=0.0)), B, S)
    assert rough.total_s >= peak.total_s


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 300), CONTEXTS)
def test_a_step_tells_itself(case, B, S):
    step = decode(case, B, S)
    assert case[0].name in str(step)
    assert step.binds in step.terms
    assert step.unbind
    assert step.usd_per_million(2.0) == pytest.approx(2e6 * step.chips * step.total_s / (3600 * B))


@SETTINGS
@hypothesis.given(cases(), st.integers(1, 4000), st.integers(1, 2000), st.integers(1, 300),
                  st.sampled_from(("interleaved", "chunked")), st.integers(16, 4096))  # fmt: skip
def test_the_steady_state_conserves_tokens(case, P, G, batch, policy, chunk):
    model, machine, layout, efficiency = case
    found = inference.serve(
        model, machine, layout, P=P, G=G, batch=batch, policy=policy, chunk=chunk, efficiency=efficiency
    )
    assert found.tokens_per_s == pytest.approx(found.requests_per_s * G)
    assert 0 <= found.prefill_share <= 1
    assert batch >= found.B or G == 1
    if G > 1:
        assert found.requests_per_s * (G - 1) * found.itl_s == pytest.approx(found.B)  # Little's law
        assert found.itl_s >= found.step.total_s * (1 - 1e-9)
    if policy == "chunked" and G > 1:  # prompt tokens never pass faster than chunks bring them
        assert found.requests_per_s * P * found.reading.total_s <= found.reading.load.chunk * (1 + 1e-9)


@SETTINGS
@hypothesis.given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 12))
def test_drafts_give_between_one_token_and_all(p, cost, K):
    one = inference.speculative(p, K, cost=cost)
    assert 1 <= one.tokens <= K + 1
    assert one.tokens == pytest.approx(sum(p**i for i in range(K + 1)))
    assert inference.best_draft(p, cost=cost, most=12).speed_up >= max(one.speed_up, 1) * (1 - 1e-12)


@SETTINGS
@hypothesis.given(st.floats(0.01, 10), st.floats(1e-3, 1), st.integers(1, 200), st.integers(1, 2000))
def test_the_balanced_pools_leave_nobody_idle(prefill_s, step_s, B, G):
    found = inference.pools(prefill_s, step_s, B=B, G=G)
    rate = found.rate_per_s(found.ratio, 1)
    assert rate == pytest.approx(found.requests_per_s)
    assert found.idle(found.ratio, 1) == pytest.approx((0, 0), abs=1e-9)
    prefill, decode = found.best(16)
    assert min(found.idle(prefill, decode)) == pytest.approx(0, abs=1e-9)
