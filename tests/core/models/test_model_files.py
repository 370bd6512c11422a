"""Published files whose model type no class of transformers has: counted as their own code builds them.

The files are those of aiconfigurator-core 0.12.0 (`model_configs`), without fields that change no shape.
"""

import json
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import ModelError, quantization

FILES = Path(__file__).parent / "files"
KIMI_K3, NEMOTRON = (
    json.loads((FILES / f"{name}.json").read_text()) for name in ("kimi_k3", "nemotron_super_49b")
)


def test_nemotron_nas_counts_each_layer_by_its_own_widths():
    m = models.from_hf(NEMOTRON)
    # the size of nvidia/Llama-3_3-Nemotron-Super-49B-v1 in bf16 that its safetensors files state
    assert m.params == m.active_params == 49_867_145_216
    assert m.softmax_layers == 49  # of 80 layers, 31 have no attention
    assert m.kv_elements_per_token == 49 * 2 * 8 * 128
    assert (m.K, m.F) == (8, 28672)
    assert not m.uncounted
    assert not m.assumed


@pytest.mark.parametrize(
    ("part", "changed", "params"),
    [
        ("ffn", {"no_op": True}, -3 * 8192 * 14336 - 8192),  # the first layer's: a width of 2.625 · 2/3 · D
        ("ffn", {"replace_with_linear": True}, -3 * 8192 * 14336 + 8192**2),
        ("attention", {"no_op": True}, -2 * 8192**2 - 2 * 8192 * 1024 - 8192),
        ("attention", {"replace_with_linear": True}, -(8192**2) - 2 * 8192 * 1024),
        ("attention", {"n_heads_in_group": 16}, -2 * 8192 * 512),
    ],
)
def test_a_layer_of_nemotron_nas_may_lack_a_sublayer_or_have_one_matrix_in_its_place(part, changed, params):
    blocks = [dict(block) for block in NEMOTRON["block_configs"]]
    blocks[0] = blocks[0] | {part: blocks[0][part] | changed}
    assert models.from_hf(NEMOTRON | {"block_configs": blocks}).params == 49_867_145_216 + params


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"ffn": {"ffn_mult": "wide"}}, "ffn_mult"),
        ({"attention": {"n_heads_in_group": 7}}, "n_heads_in_group"),
        ({"attention": {"n_heads_in_group": 8, "num_sink_tokens": 4}}, "block_configs"),
        ({"ffn": {"ffn_mult": 1.0, "sparsify": True}}, "block_configs"),
    ],
)
def test_what_a_layer_of_nemotron_nas_cannot_be_is_refused_by_name(block, field):
    blocks = [NEMOTRON["block_configs"][0] | block, *NEMOTRON["block_configs"][1:]]
    with pytest.raises(ModelError) as error:
        models.from_hf(NEMOTRON | {"block_configs": blocks})
    assert error.value.field == field


def test_nemotron_nas_without_its_list_is_refused():
    with pytest.raises(ModelError, match="block_configs: it is missing"):
        models.from_hf({name: value for name, value in NEMOTRON.items() if name != "block_configs"})


def test_kimi_k3_counts_its_gates_latent_experts_and_attention_residuals():
    """By hand, from the modules of its training code (torchtitan's experiment kimi_k3, MindSpeed-MM)."""
    m = models.from_hf(KIMI_K3)
    D, N, w, V, L, full = 7168, 96, 128, 163840, 93, 24
    delta = 5 * D * N * w + D * 128 + 128 * N * w + D * N + 3 * N * w * 4 + N + N * w + w
    latent = D * 1536 + 1536 + 1536 * N * 192 + D * (512 + 64) + 512 + 512 * N * 256 + 2 * D * N * 128
    experts = 896 * 3 * 3584 * 3072 + 2 * D * 3584 + 3584 + 896 * D + 3 * D * 2 * 3072
    layers = (L - full) * delta + full * latent + (L - 1) * experts + 3 * D * 33792
    residuals = (2 * L + 1) * 2 * D  # a query and a norm in front of each sublayer, and behind the last layer
    assert m.params == 2 * V * D + layers + residuals + (2 * L + 1) * D
    assert round(m.params / 1e12, 1) == 2.8  # its model card
    assert m.softmax_layers == full
    assert m.kv_elements_per_token == full * 576
    assert m.state_elements == (L - full) * N * w * w
    assert m.uncounted == ("the part that sees pictures",)
    stored = quantization.storage(m)
    # mxfp4 for experts alone: the published file has 17,547,264 bytes for the 33,030,144 parameters of one
    assert stored.part("experts") == pytest.approx(92 * 896 * 17_547_264)
    assert dict(stored.formats)["mxfp4"] == 92 * (896 * 33_030_144 + 2 * D * 3584)


@pytest.mark.parametrize("field", ["llm_config", "language_config", "text_config"])
def test_the_language_model_of_a_multimodal_file_has_several_names(field):
    llama = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
    llama |= {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
    outer = {"model_type": "internvl_chat", "vision_config": {"hidden_size": 1024}, field: llama}
    m = models.from_hf(outer)
    assert m.params == 8_030_261_248
    assert m.uncounted == ("the part that sees pictures",)


def test_the_thinker_of_an_omni_model_is_its_language_model():
    # Qwen2.5-Omni-7B: the file nests the language model twice
    text = {
        "model_type": "qwen2_5_omni_text",
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "vocab_size": 152064,
    }
    text |= {"num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944}
    omni = {
        "model_type": "qwen2_5_omni",
        "thinker_config": {
            "model_type": "qwen2_5_omni_thinker",
            "text_config": text,
            "audio_config": {"a": 1},
        },
        "talker_config": {"hidden_size": 896},
    }
    m = models.from_hf(omni)
    assert m.params == 7_615_616_512  # Qwen2.5 7B
    assert m.uncounted == ("the parts that see and hear", "the part that speaks")


def test_an_unknown_type_with_a_known_architecture_is_read_as_that_and_says_so():
    config = NEMOTRON | {"model_type": "my_fine_tune", "architectures": ["LlamaForCausalLM"]}
    config = {name: value for name, value in config.items() if name != "block_configs"}
    m = models.from_hf(config | {"intermediate_size": 28672, "num_key_value_heads": 8})
    assert m.params == 70_553_706_496
    assert m.assumed == ("model_type 'my_fine_tune' is unknown and was read as llama, by its architecture",)


def test_an_unknown_type_with_squared_relu_has_no_gates():
    arcee = {
        "model_type": "newcomer",
        "hidden_size": 2560,
        "num_hidden_layers": 32,
        "intermediate_size": 18432,
    }
    arcee |= {"num_attention_heads": 32, "vocab_size": 32000, "tie_word_embeddings": False}
    m = models.from_hf(arcee | {"hidden_act": "relu2"})
    assert m.params == 4_022_766_080  # as transformers counts Arcee's default
    assert "two RMS norms in a layer and MLPs without gates" in m.assumed
