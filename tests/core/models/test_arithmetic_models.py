"""FLOPs and bytes of models: the parts sum to the total, and known models have known figures."""

from dataclasses import replace
from fractions import Fraction

import pytest

from scalingbook_lib import models
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.units import BF16, FP32, INT8

TINY = Transformer(name="tiny", D=64, L=3, V=512, N=8, K=2, H=16, F=96)
LLAMA_8B, LLAMA_70B, LLAMA_405B, GEMMA_27B, MIXTRAL, DEEPSEEK = (
    models.find(name)
    for name in ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Gemma-2 27B", "Mixtral 8x22B", "DeepSeek-V3")
)
ALL = (TINY, *models.CATALOG)
named = pytest.mark.parametrize("model", ALL, ids=lambda m: m.name)


@named
def test_parts_sum_to_the_whole(model):
    p = arithmetic.params(model)
    assert (p.total, sum(t.value for t in p.active_terms)) == (model.params, model.active_params)
    for causal in (False, True):
        f = arithmetic.flops(model, 2, 100, causal=causal)
        assert sum(term.value for term in f.terms) == f.total == f.weights + f.attention
        assert f.tokens == 200
        assert f.per_token * 200 == pytest.approx(f.total)
    cache = arithmetic.kv_cache(model, 100)
    assert cache.nbytes == 100 * cache.bytes_per_token


@named
def test_products_with_weights_cost_two_flops_for_each_weight_and_token(model):
    per_token = sum(w.flops_per_token for w in model.weights())
    assert arithmetic.flops(model, 3, 50).weights == 150 * per_token


@named
def test_training_is_three_times_the_forward_pass(model):
    forward = arithmetic.flops(model, 2, 64)
    training = arithmetic.flops(model, 2, 64, training=True)
    assert {t.name: t.value for t in training.terms} == {t.name: 3 * t.value for t in forward.terms}
    assert training.softmax == forward.softmax


@named
def test_the_rule_of_thumb_is_off_by_what_its_terms_say(model):
    run = arithmetic.training_flops(model, 10**9, 4096, causal=True)
    difference = run.six_nd - run.total
    assert sum(Fraction(t.value) for t in run.six_nd_terms) == pytest.approx(Fraction(difference), rel=1e-9)
    assert run.six_nd_error == pytest.approx(difference / run.total)


def test_a_dense_layer_by_hand():
    B, T, m = 2, 32, TINY
    f = arithmetic.flops(m, B, T)
    layer = {
        "attention projections": 4 * B * T * m.D * (m.N + m.K) * m.H,
        "mlp": 6 * B * T * m.D * m.F,
        "scores": 2 * B * T * T * m.N * m.H,
        "weighted values": 2 * B * T * T * m.N * m.H,
    }
    for name, flops in layer.items():
        assert f[name] == m.L * flops
    assert f["unembedding"] == 2 * B * T * m.D * m.V
    assert f.total == m.L * sum(layer.values()) + f["unembedding"]
    assert f.softmax == 5 * B * T * T * m.N * m.L
    assert arithmetic.flops(m, B, T, logits=1)["unembedding"] == 2 * B * m.D * m.V
    with pytest.raises(KeyError, match="there are"):
        f["router"]


@pytest.mark.parametrize("absorbed", [False, True])
def test_latent_attention_by_hand(absorbed):
    T, S, m = 4, 1000, DEEPSEEK
    f = arithmetic.flops(m, 1, T, S=S, absorbed=absorbed)
    up = m.L * 2 * 512 * 128 * (128 + 128)
    assert f["latent up-projection"] == up * (T if absorbed else S)
    query, value = (576, 512) if absorbed else (192, 128)
    assert (f["scores"], f["weighted values"]) == tuple(m.L * 2 * T * S * 128 * w for w in (query, value))
    rest = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 128 * 128 * 7168
    assert f["attention projections"] == m.L * T * 2 * rest


def test_absorbing_pays_in_decoding_and_costs_in_a_prompt():
    decode = [arithmetic.flops(DEEPSEEK, 1, 1, S=8192, absorbed=a).total for a in (False, True)]
    prompt = [arithmetic.flops(DEEPSEEK, 1, 8192, absorbed=a).total for a in (False, True)]
    assert decode[1] < decode[0] / 5
    assert prompt[1] > prompt[0]


def test_only_the_chosen_experts_cost_flops():
    f, T = arithmetic.flops(MIXTRAL, 1, 128), 128
    assert f["experts"] == MIXTRAL.L * 2 * 6 * T * 6144 * 16384
    assert f["router"] == MIXTRAL.L * 2 * T * 6144 * 8
    assert arithmetic.flops(DEEPSEEK, 1, T)["shared experts"] == 58 * 6 * T * 7168 * 2048


def test_windows_bound_the_pairs_and_the_cache():
    T, wide = 10_000, replace(GEMMA_27B, windows=(None,))
    narrow = arithmetic.flops(GEMMA_27B, 1, T)
    assert narrow["scores"] / arithmetic.flops(wide, 1, T)["scores"] == pytest.approx((4096 + T) / (2 * T))
    cache = arithmetic.kv_cache(GEMMA_27B, T)
    assert cache["window 4096"] == 23 * 4096 * 2 * 16 * 128 * 2
    assert cache["full layers"] == 23 * T * 2 * 16 * 128 * 2


def test_causal_counts_the_pairs_of_the_mask():
    whole, half = (arithmetic.flops(TINY, 1, 63, causal=c) for c in (False, True))
    assert half["scores"] / whole["scores"] == pytest.approx(64 / (2 * 63))
    assert half.weights == whole.weights


@pytest.mark.parametrize(
    ("model", "tokens"), [(LLAMA_8B, 26.6e3), (LLAMA_70B, 52.2e3), (LLAMA_405B, 97.3e3), (GEMMA_27B, 69.1e3)]
)
def test_attention_crosses_over_where_it_is_known_to(model, tokens):
    at = arithmetic.crossover(model, windows=False)
    assert at == pytest.approx(tokens, rel=2e-3)
    assert arithmetic.crossover(model, windows=False, causal=True) == 2 * at


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("model", [LLAMA_8B, GEMMA_27B, MIXTRAL, DEEPSEEK], ids=lambda m: m.name)
def test_at_the_crossover_attention_costs_what_the_layers_weights_cost(model, causal):
    f = arithmetic.flops(model, 1, round(arithmetic.crossover(model, causal=causal)), causal=causal)
    assert f.attention == pytest.approx(f.weights - f["unembedding"], rel=1e-4)


def test_the_textbook_s_crossover_holds_for_its_model_alone():
    plain = Transformer(name="4D", D=1024, F=4096, L=2, N=8, K=8, H=128, V=100)
    assert arithmetic.crossover(plain) == 8 * 1024
    assert arithmetic.crossover(replace(plain, windows=(512,))) == float("inf")


@pytest.mark.parametrize(
    ("model", "per_token"),
    [
        (LLAMA_8B, 131072),
        (LLAMA_70B, 327680),
        (LLAMA_405B, 516096),
        (GEMMA_27B, 376832),
        (DEEPSEEK, 2 * 35136),
    ],
)
def test_kv_caches_of_known_models_have_the_published_sizes(model, per_token):
    assert arithmetic.kv_cache(model, 1).bytes_per_token == per_token


def test_the_textbook_s_cache_of_8_gib():
    wide = Transformer(name="wide", D=8192, F=32768, L=64, N=64, K=64, H=128, V=32000)
    assert arithmetic.kv_cache(wide, 8192, INT8).nbytes == 8 * 2**30


@pytest.mark.parametrize("causal", [False, True])
def test_six_nd_of_a_70b_leaves_out_attention(causal):
    run = arithmetic.training_flops(LLAMA_70B, 15e12, 8192, causal=causal)
    assert run.six_nd == 6 * LLAMA_70B.params * 15 * 10**12
    assert run.exact.attention_share == pytest.approx(0.0713 if causal else 0.1331, abs=1e-3)
    assert "off by" in str(run)


def test_deepseek_s_run_on_the_chips_it_ran_on():
    h800 = 1.979e15  # fp8, the SXM board
    assert arithmetic.mfu(6 * 37e9 * 14.8e12, 2.788e6 * 3600, h800).share == pytest.approx(0.1654, abs=1e-3)
    assert arithmetic.mfu(1.97e14, 1, chips.V5E).share == 1
    with pytest.raises(ValueError, match="positive"):
        arithmetic.mfu(1, 0, chips.V5E)


def test_training_keeps_sixteen_bytes_for_a_parameter():
    state = arithmetic.training_state(TINY)
    assert state.bytes_per_parameter == 2 + 2 + 4 + 4 + 4
    assert state.total == 16 * TINY.params
    lean = arithmetic.training_state(1e9, gradients=None, master=None)
    assert lean.bytes_per_parameter == 10
    with pytest.raises(ValueError, match="no memory"):
        arithmetic.training_state(0)


def test_results_print_as_one_line():
    assert str(arithmetic.kv_cache(LLAMA_70B, 8192)).startswith(
        "Llama 3 70B, 1 × 8,192 positions in bf16: 2.5 GiB"
    )
    assert "e24 FLOPs" in str(arithmetic.training_flops(LLAMA_70B, 15e12, 8192))
    assert str(arithmetic.params(TINY)).startswith("tiny, ")
    assert arithmetic.params(LLAMA_70B).share("mlp") == pytest.approx(0.80, abs=0.005)
    assert arithmetic.params(LLAMA_70B).nbytes(FP32) == 2 * arithmetic.params(LLAMA_70B).nbytes(BF16)
