"""The options of `serve` that engines have: caps, the prefix cache and speculative decoding."""

from dataclasses import replace

import pytest

from scalingbook_lib import inference, models
from scalingbook_lib.inference import Drafting, Layout
from scalingbook_lib.machines import Cluster, chips

LINE = "serve llama-3-70b h100:8 --tp 8 --prompt 2048 --output 256 --json"
MODEL, NODE, LAYOUT = models.find("Llama 3 70B"), Cluster.of(chips.H100, 8), Layout(tp=8)


def steady(**more):
    return inference.serve(MODEL, NODE, LAYOUT, P=2048, G=256, batch=32, **more)


def test_a_cap_limits_the_batch_and_does_not_become_the_load(ask):
    free = ask(LINE).values
    capped = ask(f"{LINE} --max-num-seqs 48 --max-model-len 32768").values
    assert capped["batch_size_sequences"] <= 48 < free["batch_size_sequences"]
    assert capped["prompt_length_tokens"] == 2048
    assert capped["longest_context_tokens"] == 32768


def test_the_kv_cache_holds_what_the_memory_leaves(ask):
    """What is left of 85% of the HBM after weights and activations, in tokens of 320 KiB over 8 chips."""
    told = ask(f"{LINE} --gpu-memory-utilization 85% --max-model-len 32768 --max-num-seqs 1").values
    weights = told["memory_bytes_by_part"]["weights"]
    tokens = 8 * (0.85 * chips.H100.hbm_bytes - weights) / (320 * 1024)
    assert told["kv_cache_tokens"] == pytest.approx(tokens, rel=0.003)
    assert told["concurrency_at_longest_context"] == told["kv_cache_tokens"] // 32768


def test_a_part_of_a_sequence_counts_as_a_server_prints_it(ask):
    """vLLM #10517: 3.81 GiB hold 31,211 tokens of Llama 3.1 8B, 1.56 sequences of 20,000."""
    model, card = models.find("Llama 3 8B"), Cluster.of(chips.find("RTX 3090"), 1)
    one = inference.memory(model, Layout(), card, batch=1, S=20_000)
    room = replace(card.chip, hbm_bytes=one.total - one.kv + 3.81 * 2**30)
    held = inference.concurrency(model, Layout(), Cluster.of(room, 1), S=20_000)
    assert held == pytest.approx(1.56, abs=0.005)
    told = ask("serve llama-3.1-8b rtx3090:1 --prompt 19000 --output 1000 --max-model-len 20000").out
    assert "sequences of 20,000 tokens                            2.72" in told


@pytest.mark.parametrize(
    ("name", "machine", "stored"),
    [
        ("openai/gpt-oss-120b", "h100:1", ("bf16", "mxfp4")),
        ("gpt-oss-20b", "rtx5090:1", ("bf16", "mxfp4")),
        ("deepseek-ai/DeepSeek-V3", "h200:8", ("fp8", "fp8")),
        ("moonshotai/Kimi-K2-Instruct", "h200:16", ("fp8", "fp8")),
    ],
)
def test_a_model_fits_where_its_published_weights_fit(ask, name, machine, stored):
    """gpt-oss-120b (60.8 GiB) is made for one H100, and DeepSeek-V3 in fp8 for eight H200."""
    told = ask(f"serve {name} {machine} --best 1 --json").values
    assert (told["layout"]["weights"], told["layout"]["experts"]) == stored
    assert told["layout"]["compute"] == ("fp8" if stored[0] == "fp8" else "bf16")
    assert told["memory_bytes"] < told["hbm_bytes"]


@pytest.mark.parametrize("policy", inference.POLICIES)
def test_cached_prompt_tokens_cost_no_prefill(policy):
    cold, warm = (steady(policy=policy, cached=n) for n in (0, 1536))
    assert warm.ttft_s < cold.ttft_s
    assert warm.tokens_per_s > cold.tokens_per_s
    assert warm.step.total_s == pytest.approx(cold.step.total_s, rel=0.05)


@pytest.mark.parametrize("policy", inference.POLICIES)
def test_drafts_help_by_what_is_accepted_and_cost_what_is_verified(policy):
    plain = steady(policy=policy)
    none, half, every = (
        steady(policy=policy, drafting=Drafting(tokens=3, acceptance_length=n, cost=0.02))
        for n in (1, 2.5, 4)
    )
    assert none.itl_s > plain.itl_s  # verification and drafts, without a token more
    assert every.itl_s < half.itl_s < none.itl_s
    assert every.tokens_per_s < 4 * plain.tokens_per_s


def test_without_prompts_the_gain_is_the_formula_s():
    """A long output: the time per token is (v + c K) / A plain steps, as in `speculative`."""
    how = {"P": 1, "G": 100_000, "batch": 1}
    plain = inference.serve(MODEL, NODE, LAYOUT, **how)
    drafted = inference.serve(
        MODEL, NODE, LAYOUT, drafting=Drafting(tokens=3, acceptance_length=2.5, cost=0.1), **how
    )
    verify = drafted.step.total_s / plain.step.total_s
    assert plain.itl_s / drafted.itl_s == pytest.approx(2.5 / (verify + 0.3), rel=1e-3)
    assert verify < 1.1  # the weights are read once for all four tokens


def test_a_step_is_as_large_as_the_engine_s(ask):
    assert ask(LINE).values["chunk_tokens"] == 8192
    assert ask("serve llama-3-8b a100:1 --json").values["chunk_tokens"] == 2048
    assert ask(f"{LINE} --max-num-batched-tokens 4096").values["chunk_tokens"] == 4096


def test_deepseek_r1_with_mtp_is_as_fast_as_it_was_measured(ask):
    """TensorRT-LLM issue 3058: 253 tokens/s for one user on 8 B200, with three drafted tokens."""
    line = "serve deepseek-v3 b200:8 --tp 8 --ep 8 --weights fp4 --batch 1 --as-written"
    told = ask(f"{line} --draft-tokens 3 --acceptance-length 3 --json").values
    assert told["output_tokens_per_s"] == pytest.approx(253, rel=0.2)


def test_a_draft_model_is_priced_in_the_batch_and_on_the_chips_of_each_layout(ask):
    """A draft costs a larger share of a small batch's step; a search says what --as-written says."""
    draft = models.find("Llama 3.2 1B")
    drafting = Drafting(tokens=3, acceptance_length=2.5, model=draft)
    for layout in (Layout(tp=8), Layout(tp=4, pp=2), Layout(tp=64 // 8, attention_dp=4)):
        for batch in (1, 64):
            how = {"P": 1000, "G": 500, "batch": batch}
            served = inference.serve(MODEL, NODE, layout, drafting=drafting, **how)
            own = drafting.layout(layout)
            assert (own.tp, own.pp, own.attention_dp) == (layout.tp, 1, 1)
            drafts_s = 3 * inference.decode(draft, NODE, own, batch=batch, S=1250).total_s
            steps = served.decode_s / (499 / 2.5)
            assert steps == pytest.approx(served.step.total_s + drafts_s)
    line = "serve llama-3-70b h100:8 --draft-tokens 3 --acceptance-length 2.5 --draft-model llama-3.2-1b"
    found = ask(f"{line} --tp 8 --batch 64 --policy chunked --json").values
    alone = ask(f"{line} --tp 8 --batch 64 --policy chunked --as-written --json").values
    assert found["itl_s"] == alone["itl_s"]


def test_a_draft_model_with_few_heads_runs_on_fewer_chips():
    draft = replace(models.find("Llama 3.2 1B"), N=6, K=2)
    drafting = Drafting(tokens=1, acceptance_length=1.5, model=draft)
    assert drafting.layout(Layout(tp=8)).tp == 4
    with pytest.raises(ValueError, match="costs as much as its own decode step"):
        replace(drafting, cost=0.1)


DRAFTS = "--draft-tokens 3 --acceptance-length 2.5 --draft-model"


@pytest.mark.parametrize("layout", [Layout(tp=8), Layout(tp=4, pp=2), Layout(tp=8, attention_dp=2)])
def test_a_draft_model_s_weights_and_kv_cache_are_on_the_chips_that_run_it(layout):
    draft = models.find("Llama 3.1 8B")
    drafting = Drafting(tokens=3, acceptance_length=2.5, model=draft)
    how = {"batch": 16, "S": 4096, "reserve": 0.1}
    alone = inference.memory(MODEL, layout, NODE, **how)
    both = inference.memory(MODEL, layout, NODE, **how, drafting=drafting)
    own = inference.memory(draft, drafting.layout(layout), NODE, **how)
    assert (both.draft_weights, both.draft_kv) == (own.weights, own.kv)
    assert both.draft_weights == pytest.approx(2 * draft.params / layout.tp, rel=0.01)
    assert both.draft_kv == pytest.approx(16 * 4096 * 2 * 32 * 8 * 128 * 2 / layout.tp)
    assert both.total == pytest.approx(alone.total + own.weights + own.kv)


def test_a_draft_model_leaves_less_room_for_sequences():
    drafting = Drafting(tokens=3, acceptance_length=2.5, model=models.find("Llama 3.1 8B"))
    how = {"S": 4096, "reserve": 0.1}
    most = inference.largest_batch(MODEL, LAYOUT, NODE, **how, drafting=drafting)
    assert most < inference.largest_batch(MODEL, LAYOUT, NODE, **how)
    assert inference.memory(MODEL, LAYOUT, NODE, batch=most, **how, drafting=drafting).fits
    assert not inference.memory(MODEL, LAYOUT, NODE, batch=most + 1, **how, drafting=drafting).fits
    held = inference.concurrency(MODEL, LAYOUT, NODE, **how, drafting=drafting)
    assert most <= held < most + 1
    how = {"P": 2048, "G": 4096, "reserve": 0.1, "drafting": drafting}
    assert inference.serve(MODEL, NODE, LAYOUT, **how).slots == most


def test_serve_counts_the_memory_of_a_draft_model(ask):
    line = f"serve llama-3.1-70b h100:8 --tp 8 --as-written --batch 16 {DRAFTS} llama-3.1-8b --json"
    parts = ask(line).values["memory_bytes_by_part"]
    assert parts["draft weights"] > 2e9
    assert parts["draft kv"] > 0
    told = ask(f"serve llama-3.1-70b h100:4 --batch 1 {DRAFTS} llama-3.1-405b")
    assert told.code == 1
    assert "draft weights 203 GB" in " ".join(told.out.split())


def test_a_draft_model_with_another_vocabulary_is_refused(ask):
    told = ask(f"serve llama-3.1-70b h100:8 {DRAFTS} qwen3-0.6b")
    assert told.code == 2
    said = "Qwen3 0.6B has a vocabulary of 151,936 tokens, and Llama 3 70B one of 128,256"
    assert said in " ".join(told.err.split())
    other = Drafting(tokens=3, acceptance_length=2.5, model=models.find("qwen3-0.6b"))
    with pytest.raises(ValueError, match="write a draft model with the same vocabulary"):
        steady(drafting=other)
