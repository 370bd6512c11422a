"""FLOPs of einsums, attention and experts agree with hand counts and with counts pair by pair."""

import itertools
import math
import random

import pytest

from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Latent, arithmetic
from scalingbook_lib.models.arithmetic import SoftmaxState, merge, online_softmax
from scalingbook_lib.units import BF16, FP8, INT8

SIZES = {"B": 2, "T": 3, "D": 5, "N": 7, "H": 4, "S": 6, "F": 8}
PRODUCTS = (
    "BTD,DF->BTF",
    "BTNH,BSNH->BNTS",
    "BNTS,BSNH->BTNH",
    "D,DF->F",
    "BTD,BTD->BTD",
    "B,D->BD",
    "D,D->",
)


def by_hand(text, sizes):
    """Every assignment of the indices is one multiply, and one add where several meet in one output."""
    inputs, out = text.split("->")
    indices = "".join(dict.fromkeys(inputs.replace(",", "")))
    terms = list(itertools.product(*(range(sizes[i]) for i in indices)))
    summed = any(i not in out for i in indices)
    return len(terms) * (2 if summed else 1)


@pytest.mark.parametrize("text", PRODUCTS)
def test_an_einsum_costs_what_its_terms_cost_one_by_one(text):
    used = {i: SIZES[i] for i in text if i.isalpha()}
    e = arithmetic.einsum(text, **used)
    assert e.flops == by_hand(text, used)
    assert set(e.contracting + e.batching + e.free) == set(used)
    assert e.total_elements == sum(
        math.prod(used[i] for i in array) for array in text.replace("->", ",").split(",")
    )


@pytest.mark.parametrize("text", PRODUCTS)
def test_a_gradient_is_two_products_over_the_same_indices(text):
    e = arithmetic.einsum(text, **{i: SIZES[i] for i in text if i.isalpha()})
    left, right = e.backward
    assert (left.out, right.out) == (e.left, e.right)
    assert left.multiplies == right.multiplies == e.multiplies
    assert e.backward_flops == by_hand(left.text, e.size) + by_hand(right.text, e.size)


def test_the_backward_pass_costs_twice_the_forward_pass_where_both_inputs_have_a_free_index():
    e = arithmetic.einsum("BTNH,BSNH->BNTS", **{i: SIZES[i] for i in "BTNHS"})
    assert e.backward_flops == 2 * e.flops
    assert e.training_flops == 3 * e.flops
    row = arithmetic.einsum("D,DF->F", D=5, F=8)  # the weight's gradient is an outer product: no sum
    assert row.backward_flops == (2 + 1) * 5 * 8


def test_letters_may_be_of_either_case_and_are_two_where_the_text_has_both():
    assert arithmetic.einsum("btd, df -> btf", B=2, T=3, D=5, F=8).flops == 2 * 2 * 3 * 5 * 8
    assert arithmetic.einsum("BKk,Kk->BK", B=2, K=3, k=5).flops == 2 * 2 * 3 * 5
    with pytest.raises(ValueError, match="size for k"):
        arithmetic.einsum("BKk,Kk->BK", B=2, K=3)


def test_indices_have_roles_and_print_as_one_line():
    e = arithmetic.einsum("btkgh,bskh->bkgts", b=1, t=1, k=8, g=4, h=128, s=1024)
    assert (e.contracting, e.batching, e.free) == ("h", "bk", "gts")
    assert e.role("h") == "contracting"
    assert "contracting h" in str(e)
    with pytest.raises(ValueError, match="not an index"):
        e.role("z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BD,DF", "two inputs and an output"),
        ("BD->B", "two inputs and an output"),
        ("BD,DF,FG->BG", "two inputs and an output"),
        ("BDD,DF->BF", "twice"),
        ("BD,DF->BZ", "no input has"),
        ("BDT,DF->BF", "in one input alone"),
        ("B1,1F->BF", "a letter for each"),
    ],
)
def test_a_malformed_einsum_is_refused_with_what_to_write(text, message):
    with pytest.raises(arithmetic.EinsumError, match=message):
        arithmetic.einsum(text, B=2, D=3, F=4, T=5)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "8"])
def test_a_size_is_a_whole_number(size):
    with pytest.raises(ValueError, match="whole number"):
        arithmetic.einsum("BD,DF->BF", B=2, D=3, F=size)


def test_a_size_for_an_index_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="T is not an index"):
        arithmetic.einsum("BD,DF->BF", B=2, D=3, F=4, T=5)


@pytest.mark.parametrize("window", [None, 1, 3, 7, 20])
@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 9), (4, 9), (9, 9)])
def test_pairs_are_those_of_the_mask(T, S, window):
    within = window or S
    mask = [[s <= S - T + t and S - T + t - s < within for s in range(S)] for t in range(T)]
    assert arithmetic.pairs(T, S, causal=True, window=window) == sum(map(sum, mask))
    assert arithmetic.pairs(T, S, window=window) == T * min(S, within)


@pytest.mark.parametrize(("T", "S"), [(0, 4), (5, 4)])
def test_more_new_positions_than_positions_are_refused(T, S):
    with pytest.raises(ValueError, match="1 ≤ T ≤ S"):
        arithmetic.pairs(T, S)


@pytest.mark.parametrize(("T", "S", "G"), [(1, 8192, 8), (512, 512, 1), (100, 3000, 4)])
def test_attention_intensity_is_the_textbook_s(T, S, G):
    assert arithmetic.attention_intensity(T, S, G).flops_per_byte == pytest.approx(T * S * G / (T * G + S))


def test_decoding_reads_a_cache_that_only_g_queries_share():
    assert arithmetic.attention_intensity(1, 10**7, 8).flops_per_byte == pytest.approx(8, rel=1e-5)
    assert arithmetic.attention_intensity(1, 10**7, 8, cache=INT8).flops_per_byte == pytest.approx(
        16, rel=1e-5
    )


@pytest.mark.parametrize(("G", "tokens"), [(1, 480), (4, 300), (8, 270)])
def test_prefill_attention_is_compute_bound_above_the_closed_form(G, tokens):
    ridge = 240
    at = arithmetic.prefill_tokens(ridge, G)
    assert at == tokens
    assert arithmetic.attention_intensity(tokens, tokens, G).flops_per_byte == pytest.approx(ridge)


def test_blocks_of_queries_read_keys_and_values_again_for_each():
    once = arithmetic.attention_intensity(8192, 8192, 4)
    assert arithmetic.attention_intensity(8192, 8192, 4, block=8192) == once
    blocked = arithmetic.attention_intensity(8192, 8192, 4, block=64)
    assert blocked.cache_bytes == 128 * once.cache_bytes
    assert blocked.flops == once.flops
    block = arithmetic.query_block(240, 4)
    assert block * 4 == 240
    long = arithmetic.attention_intensity(6 * 10**6, 6 * 10**6, 4, block=int(block))
    assert long.flops_per_byte == pytest.approx(240, rel=1e-3)


def test_causal_attention_of_a_prompt_has_half_the_flops():
    whole, half = (arithmetic.attention_intensity(999, 999, 2, causal=c) for c in (False, True))
    assert half.flops == pytest.approx(4 * arithmetic.pairs(999, 999, causal=True) * 2 * 128)
    assert half.bytes == whole.bytes


def test_deepseek_s_decoding_is_near_the_ridge_of_a_chip():
    latent = Latent(q_rank=1536, kv_rank=512, nope=128, rope=64, v=128)
    for cache, intensity in ((FP8, 278528 / 576), (BF16, 278528 / 1152)):
        found = arithmetic.latent_intensity(latent, 128, 10**9, cache=cache)
        assert found.flops_per_byte == pytest.approx(intensity, rel=1e-4)
    two = arithmetic.latent_intensity(latent, 128, 1000, T=2, cache=FP8)
    assert (two.query_bytes, two.cache_bytes) == (2 * 2 * 128 * (576 + 512), 1000 * 576)


def test_a_flash_block_holds_its_tiles_twice_and_its_sums_in_fp32():
    nbytes = arithmetic.block_bytes(128, 256, 1)
    assert nbytes == 2 * (128 * 128 + 2 * 2 * 256 * 128) + 4 * (128 * 256 + 128 * 128 + 2 * 128)


@pytest.mark.parametrize(("E", "k", "weights"), [(256, 8, INT8), (256, 8, BF16), (8, 2, BF16), (1, 1, BF16)])
def test_experts_break_even_where_reading_them_takes_as_long_as_multiplying(E, k, weights):
    chip, D, F = chips.V5E, 7168, 2048
    at = rules.critical_batch(chip, sparsity=E / k, weights=weights)
    read_s = E * 3 * D * F * weights.bytes / chip.hbm_bytes_per_s
    math_s = 2 * at.tokens * k * 3 * D * F / chip.bf16_flops_per_s
    assert read_s == pytest.approx(math_s)
    assert at.tokens == at.dense_tokens * E / k


def test_each_all_to_all_carries_every_token_to_k_experts():
    r = arithmetic.routing(4096, 256, 8, 7168, chips=64, dtype=FP8)
    assert r.dispatch_bytes == 4096 * 8 * 7168 == arithmetic.all_to_all_bytes(4096, 8, 7168, FP8)
    assert r.tokens_per_expert * 256 == 4096 * 8
    with pytest.raises(ValueError, match="k = 9 of E = 8"):
        arithmetic.routing(4096, 8, 9, 7168)


def softmax(scores):
    m = max(scores)
    exps = [math.exp(s - m) for s in scores]
    return [e / sum(exps) for e in exps]


@pytest.mark.parametrize("chunk", [1, 3, 4, 17, 100])
def test_the_online_softmax_ends_at_the_softmax_whatever_the_chunk(chunk):
    rng = random.Random(chunk)
    scores = [rng.uniform(-50, 50) for _ in range(17)]
    values = [(rng.random(), rng.random()) for _ in scores]
    run = online_softmax(scores, chunk, values)
    p = softmax(scores)
    assert run.weights == pytest.approx(p)
    expected = [sum(w * v[d] for w, v in zip(p, values, strict=True)) for d in range(2)]
    assert run.final.output == pytest.approx(expected)
    assert run.final.logsumexp == pytest.approx(max(scores) + math.log(1 / max(p)))
    assert [s.start for s in run.steps] == list(range(0, 17, chunk))


def test_states_merge_in_any_order():
    rng = random.Random(0)
    run = online_softmax([rng.uniform(-9, 9) for _ in range(12)], 3, [rng.random() for _ in range(12)])
    states = [step.chunk for step in run.steps]
    for order in itertools.permutations(states):
        assert merge(order).output == pytest.approx(run.final.output)
    a, b, c, _ = states
    assert ((a + b) + c).l == pytest.approx((a + (b + c)).l)


def test_large_scores_do_not_overflow_and_masked_ones_weigh_nothing():
    run = online_softmax([-math.inf, -math.inf, 1e308, -math.inf, 1e308], 2)
    assert run.weights == (0, 0, 0.5, 0, 0.5)
    nothing = online_softmax([-math.inf] * 3, 2, [1, 2, 3])
    assert nothing.final == SoftmaxState(-math.inf, 0.0, (0.0,))
    assert (nothing.weights, nothing.final.output, nothing.final.logsumexp) == ((0, 0, 0), (0,), -math.inf)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], 1), "at least one"),
        (([1.0], 0), "at least 1"),
        (([math.nan], 1), "nan"),
        (([1.0, 2.0], 1, [1.0]), "one value"),
        (([1.0, 2.0], 1, [(1.0,), (1.0, 2.0)]), "of one length"),
    ],
)
def test_the_online_softmax_refuses_mismatched_inputs(given, message):
    with pytest.raises(ValueError, match=message):
        online_softmax(*given)


def test_a_softmax_step_prints_its_rescaling():
    run = online_softmax([0.0, 1.0, 5.0], 1)
    assert run.steps[2].rescale == pytest.approx(math.exp(-4))
    assert "2 rescaled" in str(run)
    assert "0.01832" in str(run.steps[2])


def test_each_part_lists_its_own_weights_with_shapes_and_copies():
    terms = {term.name: str(term) for term in arithmetic.params(models.find("Llama 3 8B")).terms}
    assert terms["mlp"] == (
        "mlp 5.64 G (gate[4096, 14336] × 32, up[4096, 14336] × 32, down[14336, 4096] × 32)"
    )
    assert terms["embedding"] == "embedding 525 M (embed[128256, 4096] × 1)"
