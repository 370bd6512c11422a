"""A model is found under every spelling of its name, and no altered name finds another model."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import CATALOG, quantized
from scalingbook_lib.models.catalog import ALIASES
from scalingbook_lib.models.quantization import serving_types, storage

ORACLE = json.loads((Path(__file__).parents[3] / "data" / "model_oracle.json").read_text(encoding="utf-8"))
SPELLED = [*(m.name for m in CATALOG), *ALIASES]


def altered(name):
    """Names that are not this one by a digit, a point, a letter or a word."""
    for i in range(len(name) + 1):
        yield from (name[:i] + new + name[i:] for new in ("1", "0", ".", "x"))
        if (i < len(name) and name[i].isalnum()) or name[i : i + 1] == ".":
            yield name[:i] + name[i + 1 :]
    yield from (f"{name}{' ' * 90}2", f"not {name}", f"{name}-distill", f"{name}-fp8")


def says(text):
    """What a name says: its letters and its digits, with the points that stand in it."""
    letters = "".join(c for c in text.lower() if c.isalpha())
    return letters, re.findall(r"\d+", text)


@pytest.mark.parametrize("name", SPELLED)
def test_no_altered_name_finds_another_model(name):
    for typed in (name.upper(), name.lower().replace(" ", "-"), name.replace("-", "_"), f" {name} "):
        assert models.find(typed) is models.find(name)
    for typed in altered(name):
        try:
            found = models.find(typed)
        except models.ModelError:
            continue
        known = [found.name, *(alias for alias, of in ALIASES.items() if of == found.name)]
        same = [own for own in known if says(own) == says(typed)]
        assert same, typed
        assert any(set(re.findall(r"\d+\.\d+", typed)) <= set(re.findall(r"\d+\.\d+", s)) for s in same), (
            typed
        )


@pytest.mark.parametrize(
    ("typed", "near"), [("OPT-13B", "OPT 1.3B"), ("gemma-12b", "Gemma-3 12B"), ("Llama 3 7B", "Llama 3 70B")]
)
def test_a_point_that_is_left_out_is_another_size_and_refused(typed, near):
    with pytest.raises(models.ModelError, match="is not in the catalog") as refused:
        models.find(typed)
    assert near in str(refused.value)
    assert models.find(near).name == near


@pytest.mark.parametrize(
    ("published", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen3 8B"),
        ("Qwen/Qwen3-8B-Base", "Qwen3 8B"),
        ("openai/gpt-oss-120b", "gpt-oss 120B"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", "Qwen3 235B-A22B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3 8B"),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "Llama 3 70B"),
        ("meta-llama/Llama-2-7b-chat-hf", "Llama 2 7B"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "Llama 4 Scout"),
        ("google/gemma-3-27b-it", "Gemma-3 27B"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral 7B v0.3"),
        ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-V3.2", "DeepSeek-V3.2"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "DeepSeek-V3.2"),
        ("mistralai/Mistral-Nemo-Instruct-2407", "Mistral Nemo 12B"),
        ("allenai/OLMo-2-1124-7B", "OLMo-2 7B"),
        ("moonshotai/Kimi-K2-Instruct-0905", "Kimi K2"),
        ("microsoft/Phi-4-mini-instruct", "Phi-4 mini"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "Llama 3 70B"),
        ("openai-community/gpt2-xl", "GPT-2 XL"),
    ],
)
def test_a_checkpoint_on_hugging_face_is_found_by_its_id(published, name):
    assert models.find(published).name == name


@pytest.mark.parametrize(
    ("published", "told"),
    [
        ("Qwen/Qwen3-235B-A22B-FP8", "write Qwen/Qwen3-235B-A22B, and fp8 as the type of its weights"),
        ("nvidia/DeepSeek-R1-FP4", "stores the weights of DeepSeek-V3 in nvfp4"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "write Qwen/Qwen2.5-72B-Instruct, and int4 as the type"),
        ("Qwen/Qwen3-14B", "write one of Qwen3 4B, Qwen3 8B, Qwen3 32B, or give the model's config.json"),
        ("gpt-3", "write OPT 175B, which has its shapes; or one of"),
    ],
)
def test_an_id_that_is_no_model_of_the_catalog_is_told_what_to_write(published, told):
    with pytest.raises(models.ModelError) as refused:
        models.find(published)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("published", "name", "kind", "nbytes"),
    [
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8", "Llama 3 70B", "fp8", 1.0),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "Qwen2.5 72B", "int4", 0.52),
        ("nvidia/DeepSeek-R1-FP4", "DeepSeek-V3", "nvfp4", 0.573),
        ("RedHatAI/Qwen3-8B-INT8", "Qwen3 8B", "int8", 1.0),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "Llama 3 8B", "fp8", 1.0),
        ("Qwen/Qwen3-32B-FP8-Static-PerTensor", "Qwen3 32B", "fp8", 1.0),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "Llama 3 70B", "int4", 0.52),
    ],
)
def test_a_checkpoint_whose_name_tells_its_type_is_stored_in_it(published, name, kind, nbytes):
    found = models.find_as_stored(published)
    assert (found.name, quantized.named_format(found.quantization)) == (name, kind)
    assert replace(found, quantization=None) == models.find(name)
    types = serving_types(found)
    assert types["weights"].bytes == pytest.approx(nbytes, rel=0.01)
    assert "outer" not in types or types["outer"].bytes == 2
    with pytest.raises(models.ModelError, match="not in the catalog"):
        models.find_as_stored("nobody/Nothing-7B-FP8")


@pytest.mark.parametrize(
    ("name", "gib"),
    [("openai/gpt-oss-20b", 12.8), ("gpt-oss-120b", 60.8), ("deepseek-ai/DeepSeek-R1", 626.7)],
)
def test_a_model_is_stored_as_its_published_file(name, gib):
    """The model cards of gpt-oss state 12.8 and 60.8 GiB; DeepSeek-V3 has 671 GB in fp8 and some in bf16."""
    found = models.find_as_stored(name)
    assert storage(found).nbytes / 2**30 == pytest.approx(gib, rel=0.005)
    assert replace(found, quantization=None) == models.find(name)
    assert models.find_as_stored("unsloth/gpt-oss-20b-BF16").quantization is None


def test_deepseek_v32_is_its_published_file():
    config = next(one["config"] for one in ORACLE["models"] if one["name"] == "deepseek-ai/DeepSeek-V3.2")
    read, kept = models.from_hf(config, name="DeepSeek-V3.2"), models.find("DeepSeek-V3.2")
    assert replace(read, quantization=None, source=kept.source) == kept
    assert kept.params == 671_877_929_216


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("moonshotai/Kimi-K3", 2_779_484_393_568),
        ("openai-community/gpt2-large", 774_030_080),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31_577_937_344),
        ("zai-org/GLM-5.1", 743_911_199_232),
        ("MiniMaxAI/MiniMax-M2", 228_689_748_992),
    ],
)
def test_further_models_are_found_by_the_names_of_their_repositories(name, params):
    assert models.find(name).params == params
