"""Whatever the layout: laws that steps and throughput of serving must keep."""

from dataclasses import replace

import pytest
from inference_drawn import CONTEXTS, ROUGH, SETTINGS, SIZES, cases, decode

from scalingbook_lib import inference
from scalingbook_lib.units import BF16, INT8

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies


@SETTINGS
@hypothesis.given(cases(), SIZES, CONTEXTS, st.integers(0, 3000), CONTEXTS, st.integers(1, 40))
def test_the_seconds_of_a_case_are_those_of_the_step(case, B, S, chunk, context, prompts):
    model, machine, layout, efficiency = case
    on = inference.case(*case)
    told = inference.mixed(
        model, machine, layout, batch=B, S=S, chunk=chunk, chunk_context=context, prompts=prompts,
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
    step = inference.mixed(model, machine, layout, batch=B, S=S, chunk=0, efficiency=efficiency)
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
    assert step.bottleneck in step.terms
    assert step.remedy
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
    assert batch >= found.batch or G == 1
    if G > 1:
        assert found.requests_per_s * (G - 1) * found.itl_s == pytest.approx(found.batch)  # Little's law
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
    found = inference.pools(prefill_s, step_s, batch=B, G=G)
    rate = found.rate_per_s(found.ratio, 1)
    assert rate == pytest.approx(found.requests_per_s)
    assert found.idle(found.ratio, 1) == pytest.approx((0, 0), abs=1e-9)
    prefill, decode = found.best(16)
    assert min(found.idle(prefill, decode)) == pytest.approx(0, abs=1e-9)
