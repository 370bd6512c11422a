"""The Transformer chapter's explorers obey the laws of what they show."""

import itertools
import json
import random

import pytest
from looked import curve, panels, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.transformers.explorers import kv, share
from scalingbook_book.chapters.transformers.explorers import model as transformers_model
from scalingbook_book.reader.explorers.view import Bars, Chart, Grid, Points
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import experts

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("transformers")}
LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "_name_or_path": "somebody/my-8b",
}  # fmt: skip


# A model


def test_a_pasted_config_is_counted_to_the_last_parameter():
    view = ALL["model"].evaluate(text=json.dumps(LLAMA_8B, indent=2))
    assert readout(view, "parameters") == models.find("Llama 3 8B").params == 8_030_261_248
    assert view.verdict.startswith("my-8b has 8.03 billion parameters, 70% of them in the MLPs")
    assert readout(view, "KV cache, per token") == 131_072


@pytest.mark.parametrize("text", ["{", '{"model_type": "bert"}', "LLaMA-9 80B", "A[I_X, J_X", '{"a": 1}'])
def test_a_text_that_is_no_model_gives_the_words_of_the_error_and_stays(text):
    with pytest.raises(models.ModelError) as refused:
        transformers_model.read(text, "Llama 3 8B")
    painted = ALL["model"].render({"text": text, "T": 12})
    assert painted.evaluated.error == str(refused.value)
    assert painted.evaluated.state["text"] == text
    assert painted.evaluated.outputs["T"] == ALL["model"].render({"T": 12}).evaluated.outputs["T"]


def test_a_whole_file_fits_into_the_text_and_a_longer_one_is_said_to_be_cut():
    long = json.dumps(LLAMA_8B | {f"unused_{i}": None for i in range(400)})
    assert 200 < len(long) < transformers_model.LONGEST_CONFIG
    assert not ALL["model"].render({"text": long}).evaluated.error
    cut = ALL["model"].render({"text": long + " " * 20_000 + "}"})
    assert "first 20,000 characters" in cut.evaluated.notes[0]
    assert 'maxlength="20000"' in ALL["model"].html()


@pytest.mark.parametrize("model", models.CATALOG, ids=lambda m: m.name)
def test_the_bars_of_a_model_sum_to_what_is_read_out(model):
    view = ALL["model"].evaluate(name=model.name)
    parts, flops, _ = panels(view, Bars)
    assert sum(parts.series[0].values) == readout(view, "parameters") == model.params
    assert sum(parts.series[-1].values) == readout(view, "active per token")
    assert sum(flops.series[0].values) == pytest.approx(readout(view, "forward, per token"))
    assert readout(view, "training, per token") == pytest.approx(3 * readout(view, "forward, per token"))


# The share of attention


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", ALL["share"].controls["first"].options)
def test_the_share_is_that_of_the_counted_flops(name, causal):
    model = models.find(name)
    for T in (128, 8192, 2**20):
        counted = arithmetic.flops(model, 1, T, causal=causal)
        layers = counted.total - counted["unembedding"]
        here = share.share(name, T, causal=causal, windows=True)
        assert here == pytest.approx(counted.attention / layers)


@pytest.mark.parametrize("windows", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", ALL["share"].controls["first"].options)
def test_the_crossing_is_where_the_share_is_half(name, causal, windows):
    at = arithmetic.crossover(models.find(name), causal=causal, windows=windows)
    assert share.share(name, at, causal=causal, windows=windows) == pytest.approx(0.5, abs=1e-3)


def test_gemma_crosses_late_and_the_rule_of_thumb_early():
    plain = ALL["share"].evaluate(windows=False)
    assert readout(plain, "Gemma-2 27B: T*") == 69_120
    assert readout(plain, "rule of thumb for the first model") == 36_864
    assert readout(ALL["share"].evaluate(windows=False, causal=True), "Gemma-2 27B: T*") == 138_240
    assert "3.6 times what the rule of thumb says" in ALL["share"].evaluate().verdict


# The budget for keys and values


def test_grouped_queries_are_the_published_model_and_a_cache_eight_times_smaller():
    made = kv.kinds("Llama 3 70B")
    assert made["GQA"] == made["as published"]
    each = [
        readout(ALL["kv"].evaluate(kind=kind), "KV cache per sequence")
        for kind in ("MHA", "GQA", "MQA", "MLA")
    ]
    assert each[0] == 8 * each[1] == 64 * each[2]
    assert each[3] == 2 * 80 * 576 * 8192


@pytest.mark.parametrize("name", ALL["kv"].controls["name"].options)
def test_only_attention_changes_with_the_kind_of_attention(name):
    for model in kv.kinds(name).values():
        mine, published = model.by_part, models.find(name).by_part
        same = set(published) - {"attention", "norms", "biases"}
        assert {part: mine[part] for part in same} == {part: published[part] for part in same}


@pytest.mark.parametrize("kind", ALL["kv"].controls["kind"].options)
def test_what_fits_fits_and_one_more_does_not(kind):
    for S, cache in itertools.product((1024, 8192, 131072), ("bf16", "int8")):
        view = ALL["kv"].evaluate(kind=kind, S=S, cache=cache, name="Gemma-2 27B", chip="H100", n=1)
        each, free = readout(view, "KV cache per sequence"), readout(view, "memory left after the weights")
        fits = readout(view, "sequences that fit")
        assert fits * each <= max(free, 0) < (fits + 1) * each


def test_weights_that_do_not_fit_are_said_to_be_too_large():
    assert "the weights alone exceed" in ALL["kv"].evaluate(n=1).verdict
    assert "49 sequences of 8,192 tokens fit" in ALL["kv"].evaluate().verdict


# Keep or compute again


@pytest.mark.parametrize("flash", [True, False])
@pytest.mark.parametrize("name", ALL["remat"].controls["name"].options)
def test_keeping_less_never_computes_less(name, flash):
    kept, again, _ = panels(ALL["remat"].evaluate(name=name, flash=flash), Bars)
    assert list(kept.series[0].values) == sorted(kept.series[0].values, reverse=True)
    assert list(again.series[0].values) == sorted(again.series[0].values)
    assert 0 <= again.series[0].values[-1] <= 50  # a forward pass, and the scores once more in the kernel


@pytest.mark.parametrize("keeps", ALL["remat"].controls["keeps"].options)
def test_the_arrays_sum_to_what_is_kept(keeps):
    view = ALL["remat"].evaluate(keeps=keeps)
    assert sum(panels(view, Bars)[2].series[0].values) == readout(view, "kept")


def test_only_what_holds_scores_grows_with_the_length():
    policies = ALL["remat"].controls["keeps"].options
    short, long = (
        {k: readout(ALL["remat"].evaluate(keeps=k, T=T), "kept per token") for k in policies}
        for T in (1024, 8192)
    )
    assert {k for k in short if long[k] > short[k]} == {"everything", "all matmuls"}


# A product


def test_the_product_is_counted_as_the_library_counts_it():
    view = ALL["einsum"].evaluate(text="BTD,DF->BTF", a=4, b=512, c=1024, d=2048)
    counted = arithmetic.einsum("BTD,DF->BTF", B=4, T=512, D=1024, F=2048)
    assert readout(view, "forward") == counted.flops == 2 * 4 * 512 * 1024 * 2048
    assert readout(view, "backward") == 2 * counted.flops
    assert "sums over D. " in view.verdict
    assert "sums over h, separately for each b and k" in ALL["einsum"].evaluate().verdict


def test_every_index_has_one_color_in_both_of_its_arrays():
    grid = panels(ALL["einsum"].evaluate(), Grid)[0]
    for column in zip(*grid.cells, strict=True):
        *arrays, role = column
        colors = {cell.color for cell in arrays if cell.text}
        assert len(colors) == 1
        assert colors == {{"contracting": 1, "batching": 0, "free": 2}[role.text]}
        assert sum(bool(cell.text) for cell in arrays) == (3 if role.text == "batching" else 2)


@pytest.mark.parametrize("text", ["", "A[I_X, J_X", "ab,cd", "ab,bc->ax", "abcd,defg->abcefg"])
def test_a_text_that_is_no_product_says_why(text):
    painted = ALL["einsum"].render({"text": text})
    assert painted.evaluated.error
    assert painted.evaluated.state["text"] == text


# The router


@pytest.mark.parametrize(("E", "k", "skew"), [(8, 1, 0.0), (64, 8, 0.3), (8, 8, 1.5), (512, 16, 1.5)])
def test_every_token_visits_k_experts(E, k, skew):
    found = experts.routing_probabilities(E, k, skew)
    assert sum(found) == pytest.approx(k)
    assert list(found) == sorted(found, reverse=True)
    assert max(found) <= 1 + 1e-12


def test_what_is_turned_away_is_what_a_simulated_expert_turns_away():
    dice = random.Random(1)
    B, chance, capacity = 200, 0.15, 32
    lost = [max(sum(dice.random() < chance for _ in range(B)) - capacity, 0) for _ in range(4000)]
    assert experts.dropped_tokens(B, chance, capacity) == pytest.approx(sum(lost) / len(lost), rel=0.08)


def test_an_even_router_turns_away_only_by_chance_and_a_skewed_one_more():
    even, skewed = (readout(ALL["router"].evaluate(skew=skew), "dropped tokens") for skew in (0.0, 1.0))
    assert even < 0.01 < 0.2 < skewed
    assert readout(ALL["router"].evaluate(skew=0.0), "busiest expert / average") == pytest.approx(1)
    assert readout(ALL["router"].evaluate(), "critical batch") == pytest.approx(240.5 * 8, rel=1e-3)


# The softmax


@pytest.mark.parametrize("order", ALL["softmax"].controls["order"].options)
@pytest.mark.parametrize("chunk", range(1, 17))
def test_the_last_chunk_leaves_the_whole_softmax_whatever_the_chunks(chunk, order):
    view = ALL["softmax"].evaluate(order=order, chunk=chunk, step=10**6)
    assert readout(view, "output so far") == readout(view, "output of the full softmax")
    assert view.frames == -(-16 // chunk)
    points = next(m for m in panels(view, Chart)[0].marks if isinstance(m, Points))
    assert sum(points.ys) == pytest.approx(1)
    assert list(points.ys) == pytest.approx(list(curve(view, "final").ys))


def test_the_result_does_not_depend_on_the_order_in_which_scores_and_their_values_come():
    options = ALL["softmax"].controls["order"].options
    outputs = [
        readout(ALL["softmax"].evaluate(order=order, step=10**6), "output so far") for order in options
    ]
    assert outputs == pytest.approx([2.273] * len(options), abs=1e-3)


def test_falling_scores_never_shrink_the_sums():
    for step in (1, 2, 3):
        assert readout(ALL["softmax"].evaluate(order="falling", step=step), "factor on the earlier sums") == 1
        assert readout(ALL["softmax"].evaluate(order="rising", step=step), "factor on the earlier sums") < 1


# The balance of experts


def test_replicas_lower_the_busiest_gpu_and_the_histogram_replaces_the_skew():
    found = [readout(ALL["balance"].evaluate(extra=n), "busiest GPU / mean, with EPLB") for n in range(5)]
    assert found[0] > 1.5 > 1.01 > max(found[1:]) >= 1
    even = ALL["balance"].evaluate(pasted="7 " * 64, skew=1.5)
    assert readout(even, "busiest GPU / mean, as numbered") == pytest.approx(1)
    assert even.verdict.startswith("The load is even")


def test_a_histogram_that_does_not_divide_is_refused_in_words():
    seen = ALL["balance"].evaluate_state({"pasted": "1 2 3"})
    assert "are not divisible by 32 chips" in seen.error
