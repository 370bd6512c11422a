"""What each server means by its words: groups and replicas, caps and load, and three memory fractions."""

import pytest

from scalingbook_lib import inference, launch
from scalingbook_lib.launch import Given, LaunchError
from scalingbook_lib.launch.memory_fraction import CARD, LEFT, STATIC
from scalingbook_lib.machines import chips, machine_names
from scalingbook_lib.units import BF16, FP8, FP16, MXFP4

LLAMA, V3 = "meta-llama/Llama-3.1-70B-Instruct", "deepseek-ai/DeepSeek-V3"


def read(text, chip=chips.H100, **more):
    return launch.read(text, Given(machine=chip, **more))


def test_three_servers_have_three_pools_at_090():
    pools = [rule.pool(0.9, card=80, weights=35, working=5) for rule in (CARD, LEFT)]
    assert pools == pytest.approx([32, 36])
    assert STATIC.pool(0.9, card=80, weights=35, working=5) == pytest.approx(37)
    assert STATIC.pool(0.99, card=80, weights=35, working=5) == pytest.approx(
        40
    )  # activations need their place


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (CARD, f"vllm serve {LLAMA} -tp 4 --gpu-memory-utilization 0.8"),
        (STATIC, f"python -m sglang.launch_server --model-path {LLAMA} --tp 4 --mem-fraction-static 0.8"),
        (LEFT, f"trtllm-serve {LLAMA} --tp_size 4 --kv_cache_free_gpu_memory_fraction 0.8"),
    ],
)
def test_the_cache_fills_the_pool_of_its_server(rule, text):
    one = read(text)
    assert one.rule is rule
    card = one.machine.chip.hbm_bytes
    full = inference.memory(one.model, one.layout, one.machine, batch=1, S=1, step_tokens=one.chunk)
    pool = rule.pool(0.8, card=card, weights=full.weights, working=full.activations + full.logits)
    batch = inference.largest_batch(one.model, one.layout, one.machine, S=4096, reserve=one.reserve)
    held = inference.memory(one.model, one.layout, one.machine, batch=batch, S=4096).kv
    assert 0.95 * pool < held <= pool


def test_data_parallelism_of_a_dense_model_is_replicas():
    one = read(f"vllm serve {LLAMA} -tp 4 -dp 2")
    assert (one.layout.tp, one.replicas, one.machine.chips) == (4, 2, 8)


def test_data_parallelism_of_experts_shares_them_and_multiplies_the_caps():
    one = read(f"vllm serve {V3} -dp 8 --enable-expert-parallel --max-num-seqs 256", chips.H200)
    layout = one.layout
    assert (layout.tp, layout.ep, layout.attention_dp, one.replicas) == (8, 8, 8, 1)
    assert one.max_sequences == 2048  # each engine has its own cap
    split = read(f"vllm serve {V3} -dp 8", chips.H200).layout
    assert (split.ep, split.attention_dp) == (1, 8)


def test_context_parallel_decoding_adds_no_gpus():
    one = read(f"vllm serve {LLAMA} -tp 16 -dcp 2")
    assert (one.machine.chips, one.layout.kv_sequence) == (16, 2)
    assert read(f"vllm serve {V3} -tp 8 -dcp 8", chips.H200).layout.kv_sequence == 8  # one latent entry


@pytest.mark.parametrize("degrees", ["-tp 8 -dcp 2", "-tp 4 -dcp 4", "-tp 16 -dcp 4"])
def test_context_parallel_decoding_needs_replicas_of_the_kv_heads(degrees):
    with pytest.raises(LaunchError, match="splits the replicas of KV heads"):
        read(f"vllm serve {LLAMA} {degrees}")


def test_the_batched_tokens_of_a_data_parallel_rank_are_its_own():
    """Each engine of vLLM, and each GPU of TensorRT-LLM with attention DP, has its own limit."""
    one = read(f"vllm serve {V3} -dp 8 --max-num-batched-tokens 4096", chips.H200)
    assert one.chunk == 8 * 4096
    file = "cat > a.yml <<EOF\nenable_attention_dp: true\nEOF\n"
    text = f"{file}trtllm-serve {V3} --tp_size 8 --max_num_tokens 1536 --extra_llm_api_options a.yml"
    assert read(text, chips.H200).chunk == 8 * 1536


def test_the_chunk_of_sglang_is_that_of_all_groups_and_each_group_has_its_part_in_memory():
    """Published for 4 nodes of 8 H100: a prefill chunk of 524,288 tokens is 16,384 of each GPU."""
    text = (
        f"python3 -m sglang.launch_server --model-path {V3} --tp 32 --dp 32 --enable-dp-attention "
        "--moe-a2a-backend deepep --mem-fraction-static 0.85 --chunked-prefill-size 524288"
    )
    one = read(text)
    assert one.chunk == 524_288
    assert one.reserve < 0.2


def test_sglang_counts_the_tokens_that_a_step_verifies():
    """Three draft tokens of two steps (top-k 1) are two drafts and the token that is known."""
    flags = "--speculative-algorithm EAGLE --speculative-num-steps 2 --speculative-num-draft-tokens 3"
    text = f"python -m sglang.launch_server --model-path {V3} --tp 8 {flags}"
    assert read(text, chips.H200, acceptance_length=2.5).drafts == 2


def test_a_chip_without_bf16_serves_in_fp16():
    turing = read("vllm serve meta-llama/Llama-3.2-1B", chips.find("t4"))
    assert turing.layout.compute is FP16
    assert any("No bf16 rate of T4 is known" in each for each in turing.account.assumed)


SMALL = "meta-llama/Llama-3.2-1B-Instruct"


@pytest.mark.parametrize(
    ("config", "model", "layers"),
    [
        (f'{{"model": "{SMALL}", "num_speculative_tokens": 5}}', "Llama 3.2 1B", 1),
        (f'{{"method": "draft_model", "model": "{SMALL}", "num_speculative_tokens": 5}}', "Llama 3.2 1B", 1),
        ('{"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.1", "num_speculative_tokens": 5}', None, 1),
        ('{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}', None, 0),
    ],
)
def test_what_drafts_is_a_model_a_head_or_a_lookup(config, model, layers):
    one = read(f"vllm serve {LLAMA} -tp 4 --speculative-config '{config}'", acceptance_length=3.0)
    assert one.drafts == 5
    assert (one.draft.model and one.draft.model.name, one.draft.layers) == (model, layers)
    assert one.draft.cost(one.model) == (0 if model else layers / one.model.L)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (CARD, f"vllm serve {LLAMA} -tp 4 --gpu-memory-utilization 0.8"),
        (STATIC, f"python -m sglang.launch_server --model-path {LLAMA} --tp 4 --mem-fraction-static 0.8"),
    ],
)
def test_the_weights_of_a_draft_model_leave_less_for_the_caches(rule, text):
    """The pool of blocks is what the draft model's weights leave, and both models have caches in it."""
    drafts = {
        CARD: f""" --speculative-config '{{"model": "{SMALL}", "num_speculative_tokens": 5}}'""",
        STATIC: f" --speculative-algorithm STANDALONE --speculative-draft-model-path {SMALL}"
        " --speculative-num-draft-tokens 5",
    }
    one = read(text + drafts[rule], acceptance_length=3.0)
    how = {"S": 4096, "drafting": one.draft.beside}
    held = inference.memory(one.model, one.layout, one.machine, batch=1, step_tokens=one.chunk, **how)
    weights, working = held.weights + held.draft_weights, held.activations + held.logits
    pool = rule.pool(0.8, card=one.machine.chip.hbm_bytes, weights=weights, working=working)
    batch = inference.largest_batch(one.model, one.layout, one.machine, reserve=one.reserve, **how)
    full = inference.memory(one.model, one.layout, one.machine, batch=batch, **how)
    assert full.draft_kv > 0
    assert 0.95 * pool < full.kv + full.draft_kv <= pool


def test_a_draft_model_with_another_vocabulary_does_not_start():
    config = '{"model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 5}'
    with pytest.raises(LaunchError, match=r"vocabulary of 151,936 tokens, and Llama 3 70B one of 128,256; w"):
        read(f"vllm serve {LLAMA} -tp 4 --speculative-config '{config}'", acceptance_length=3.0)


def test_a_draft_without_an_acceptance_length_is_not_listed_as_used():
    text = "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-num-draft-tokens 4"
    one = read(f"python -m sglang.launch_server --model-path {V3} --tp 8 {text}", chips.H200)
    assert {"--speculative-algorithm", "--speculative-num-draft-tokens"} <= {
        each.flag for each in one.account.unused
    }


def test_dp_attention_of_sglang_is_cut_out_of_tp():
    """--tp 16 --dp 16 --enable-dp-attention --ep 16 are 16 GPUs, not 256."""
    text = f"python -m sglang.launch_server --model-path {V3} --tp 16 --dp 16 --ep 16"
    one = read(f"{text} --enable-dp-attention")
    assert (one.machine.chips, one.layout.attention_dp, one.layout.ep) == (16, 16, 16)
    assert read(text).machine.chips == 256


def test_experts_of_tensorrt_llm_are_inside_tp():
    one = read(f"trtllm-serve {V3} --tp_size 8 --ep_size 4", chips.H200)
    assert (one.machine.chips, one.layout.ep) == (8, 4)


def test_the_file_of_tensorrt_llm_overrides_the_command_and_that_of_vllm_does_not():
    text = (
        "cat > a.yml <<EOF\n"
        "kv_cache_config:\n  free_gpu_memory_fraction: 0.5\nenable_attention_dp: true\nEOF\n"
        f"trtllm-serve {V3} --tp_size 8 --kv_cache_free_gpu_memory_fraction 0.9 --extra_llm_api_options a.yml"
    )
    one = read(text, chips.H200)
    assert (one.fraction, one.layout.attention_dp) == (0.5, 8)
    text = "cat > a.yml <<EOF\nmax-num-seqs: 7\nkv-cache-dtype: fp8\nEOF\n"
    text += f"vllm serve {LLAMA} -tp 4 --config a.yml"
    assert (read(text).max_sequences, read(text).layout.kv) == (7, FP8)
    assert read(f"{text} --max-num-seqs 9").max_sequences == 9


def test_a_file_that_is_not_there_is_said():
    one = read(f"trtllm-serve {LLAMA} --tp_size 4 --extra_llm_api_options missing.yml")
    assert one.account.assumed[0] == (
        "The file missing.yml is not here, and its settings override the command line; "
        "its settings are not read."
    )


@pytest.mark.parametrize(
    ("chip", "sequences", "tokens"),
    [(chips.H100, 1024, 8192), (chips.A100, 256, 2048), (chips.L40S, 256, 2048)],
)
def test_defaults_of_vllm_depend_on_the_card(chip, sequences, tokens):
    one = read("vllm serve meta-llama/Llama-3.1-8B-Instruct", chip)
    assert (one.max_sequences, one.chunk, one.policy) == (sequences, tokens, "chunked")


def test_a_cap_is_no_load_and_a_length_is_no_context():
    one = read(f"vllm serve {LLAMA} -tp 4 --max-model-len 131072 --max-num-seqs 512")
    assert (one.max_length, one.max_sequences) == (131072, 512)


@pytest.mark.parametrize(
    ("text", "weights", "compute", "kv"),
    [
        (f"vllm serve {LLAMA} -tp 4", BF16, BF16, BF16),
        (f"vllm serve {LLAMA} -tp 4 --quantization fp8 --kv-cache-dtype fp8", FP8, FP8, FP8),
        ("vllm serve nvidia/Llama-3.3-70B-Instruct-FP8 -tp 4", FP8, FP8, BF16),
        (f"vllm serve {V3} -tp 16", FP8, FP8, BF16),
        (f"python -m sglang.launch_server --model {V3} --tp 16 --kv-cache-dtype fp8_e4m3", FP8, FP8, FP8),
    ],
)
def test_the_checkpoint_or_a_flag_says_the_dtypes(text, weights, compute, kv):
    layout = read(text).layout
    assert (layout.weights, layout.compute, layout.kv) == (weights, compute, kv)


def test_the_experts_of_gpt_oss_are_stored_in_mxfp4():
    layout = read("vllm serve openai/gpt-oss-120b").layout
    assert (layout.experts, layout.weights) == (MXFP4, BF16)


def test_drafts_count_only_with_an_acceptance_length():
    drafts = '{"num_speculative_tokens": 3, "method": "eagle3"}'
    text = f"vllm serve openai/gpt-oss-120b --speculative-config '{drafts}'"
    one = read(text)
    assert (one.drafts, [each.flag for each in one.account.unused]) == (
        0, ["--speculative-config.num_speculative_tokens"],
    )  # fmt: skip
    assert read(text, acceptance_length=2.5).drafts == 3


@pytest.mark.parametrize(
    "flags",
    ["--enforce-eager", "--cpu-offload-gb 10", "--enable-dbo", "--all2all-backend deepep_low_latency",
     "--kv-cache-memory-bytes 10G", "--enable-lora"],
)  # fmt: skip
def test_what_changes_time_or_memory_and_is_not_expressed_is_named(flags):
    (unused,) = read(f"vllm serve {LLAMA} -tp 4 {flags}").account.unused
    assert unused.flag == flags.split()[0]
    assert set(unused.effect) & {"time", "memory"}


def test_more_chips_than_the_command_starts_are_instances():
    one = launch.read(f"vllm serve {LLAMA} -tp 4", Given(machine=machine_names.read("h100:16").machine))
    assert one.replicas == 4
    with pytest.raises(LaunchError, match=r"starts 4 GPUs \(TP 4 x PP 1 x DP 1\), and 6 H100 has 6; write"):
        launch.read(f"vllm serve {LLAMA} -tp 4", Given(machine=machine_names.read("h100:6").machine))


NVFP4 = (  # vllm-project/recipes Qwen/Qwen3.5.md @8959cf6
    "vllm serve nvidia/Qwen3.5-397B-A17B-NVFP4 -dp 4 --enable-expert-parallel --language-model-only "
    "--reasoning-parser qwen3 --enable-prefix-caching"
)


def test_a_chip_without_the_stored_type_converts_weights_and_multiplies_in_bf16():
    hopper, blackwell = read(NVFP4, chips.H200), read(NVFP4, chips.B200)
    assert hopper.layout.weights == blackwell.layout.weights
    assert hopper.layout.weights.name == "nvfp4"
    assert hopper.layout.compute == BF16
    assert blackwell.layout.compute.name == "fp4"
    said = [sentence for sentence in hopper.account.assumed if "rate of" in sentence]
    assert said == ["No fp4 rate of H200 is known: kernels convert the weights, and multiply in bf16."]
    assert not any("rate of" in sentence for sentence in blackwell.account.assumed)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("zai-org/GLM-5.1-FP8", "GLM-5"),  # commands of vllm-project/recipes @8959cf6
        ("MiniMaxAI/MiniMax-M2.7", "MiniMax-M2.5"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "Qwen3-Coder 480B-A35B"),
        ("moonshotai/Kimi-K3", "Kimi K3"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "Nemotron 3 Nano 30B-A3B"),
    ],
)
def test_models_of_published_commands_are_in_the_catalog(name, model):
    assert read(f"vllm serve {name} --tensor-parallel-size 8", chips.H200).model.name == model
