"""A model is found under every spelling of its name, and no altered name finds another model."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import CATALOG, quantized
from scalingbook_lib.models.catalog import ALIASES, FAMILIES, FURTHER_ALIASES
from scalingbook_lib.models.quantization import serving_types, storage

ORACLE = json.loads((Path(__file__).parents[3] / "data" / "model_oracle.json").read_text(encoding="utf-8"))
DATA = Path(__file__).parents[3] / "data" / "further_models.csv"
PUBLISHED = {row["model"]: row for row in csv.DictReader(DATA.open(encoding="utf-8"))}
UNITS = {"B": 1e9, "M": 1e6}
KNOWN_ALIASES = ALIASES | FURTHER_ALIASES
SPELLED = [*(m.name for m in CATALOG), *ALIASES, *[name for name in PUBLISHED if "." in name][::4]]


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
        known = [found.name, *(alias for alias, of in KNOWN_ALIASES.items() if of == found.name)]
        same = [own for own in known if says(own) == says(typed)]
        assert same, typed
        assert any(set(re.findall(r"\d+\.\d+", typed)) <= set(re.findall(r"\d+\.\d+", s)) for s in same), (
            typed
        )


@pytest.mark.parametrize(
    ("typed", "near"), [("OPT-125B", "OPT 125M"), ("gemma-12b", "Gemma-3 12B"), ("Llama 3 7B", "Llama 3 70B")]
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
        (
            "Qwen/Qwen3-15B",
            "write one of Qwen3.5 9B, Qwen3.5 4B, Qwen3 1.7B, or give the model's config.json",
        ),
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
        ("Qwen/Qwen2.5-32B-Instruct-GPTQ-Int8", "Qwen2.5 32B", "int8", 1.0),
        ("amd/Llama-3.1-405B-Instruct-FP8-KV", "Llama 3.1 405B", "fp8", 1.0),
        ("amd/Llama-3.3-70B-Instruct-MXFP4-Preview", "Llama 3 70B", "mxfp4", 0.53125),
        ("nvidia/Phi-4-reasoning-plus-FP4", "Phi-4", "nvfp4", 0.5625),
        ("unsloth/Qwen3-14B-unsloth-bnb-4bit", "Qwen3 14B", "int4", 0.52),
        ("google/gemma-3-4b-it-qat-q4_0-gguf", "Gemma-3 4B", "int4", 0.52),
        ("ISTA-DASLab/gemma-3-27b-it-GPTQ-4b-128g", "Gemma-3 27B", "int4", 0.52),
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


VECTORS = json.loads((Path(__file__).parents[3] / "data/vectors/models.json").read_text(encoding="utf-8"))
STORED = {  # the bytes of the weights, by the name of a published checkpoint
    one["model"]: row["value"]
    for one in VECTORS["models"]
    if one["source"] == "published config.json"
    for row in one["rows"]
    if row["quantity"] == "weight_bytes"
}


@pytest.mark.parametrize("name", STORED)
def test_the_name_of_a_checkpoint_gives_the_bytes_of_its_file(name):
    """But for the scales of fp8, which a name does not place: of a matrix, or of 128 x 128 elements."""
    assert storage(models.find_as_stored(name)).nbytes == pytest.approx(STORED[name], rel=3e-4)


@pytest.mark.parametrize(
    ("name", "gigabytes", "told"),
    [
        ("moonshotai/Kimi-K2-Thinking", 594.2, ""),  # int4 experts; Kimi K2 itself is in fp8
        ("moonshotai/Kimi-K2-Instruct", 1029.2, ""),
        ("moonshotai/Kimi-K2.6", 594.2, ""),
        ("unsloth/Kimi-K2-Thinking-BF16", 2052.8, ""),
        ("somebody/Kimi-K2.5-AWQ", 537.0, "int4"),
    ],
)
def test_a_checkpoint_has_the_types_of_its_own_file(name, gigabytes, told):
    found = models.find_as_stored(name)
    assert storage(found).nbytes / 1e9 == pytest.approx(gigabytes, abs=0.1)
    assert quantized.named_format(found.quantization) == told


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("google/gemma-3n-E2B-it", {"the part that sees pictures", "the part that hears"}),
        ("google/gemma-3n-E4B-it", {"the part that sees pictures", "the part that hears"}),
        ("microsoft/Phi-4-multimodal-instruct", {"the part that sees pictures", "the part that hears"}),
        ("mistralai/Mistral-Large-3-675B", {"the part that sees pictures"}),
    ],
)
def test_a_multimodal_model_names_the_parts_that_are_not_counted(name, parts):
    found = models.find(name)
    assert set(found.not_counted) == parts
    assert all(part in str(found) for part in parts)


def test_an_embedding_model_says_which_matrix_it_does_not_run():
    told = "an embedding model does not run it"
    assert told in str(models.find("Qwen/Qwen3-Embedding-0.6B"))
    assert told not in str(models.find("Qwen/Qwen3-Reranker-0.6B"))


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


def printed(text):
    """A count as the vendor prints it ('41.9B'), and half a unit of its last digit."""
    if text[-1] not in UNITS:
        return float(text), 0.0
    decimals = len(text[:-1].partition(".")[2])
    return float(text[:-1]) * UNITS[text[-1]], UNITS[text[-1]] * 10.0**-decimals / 2


def test_every_further_model_has_a_published_count():
    assert list(PUBLISHED) == list(dict.fromkeys(PUBLISHED))
    assert set(PUBLISHED) == {model.name for model in models.further()}


@pytest.mark.parametrize("model", models.further(), ids=lambda model: model.name)
def test_a_further_model_has_the_published_counts(model):
    """Within 1%; the file of a multimodal model also counts its encoders, which `other_params` has."""
    row = PUBLISHED[model.name]
    total, _ = printed(row["published_params"])
    assert model.params + int(row["other_params"] or 0) == pytest.approx(total, rel=0.01)
    assert bool(row["other_params"]) == bool(row["other_parts"])
    assert re.search(r"2026-\d\d-\d\d$", model.source)
    assert models.find(model.name.lower()) is model
    if row["published_active_params"]:
        parts = row["active_leaves_out"].split(" and ")
        counted = model.active_params - sum(model.active_by_part[part] for part in parts if part)
        active, rounding = printed(row["published_active_params"])
        assert counted == pytest.approx(active, abs=max(rounding, 0.01 * active))


@pytest.mark.parametrize(
    ("published", "name"),
    [
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "Kimi Linear 48B-A3B"),
        ("moonshotai/Kimi-K2.6", "Kimi K2.5"),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "Nemotron Nano 9B v2"),
        ("nvidia/Nemotron-H-8B-Base-8K", "Nemotron-H 8B"),
        ("google/gemma-3n-E4B-it", "Gemma 3n E4B"),
        ("google/gemma-4-31B-it", "Gemma 4 31B"),
        ("google/gemma-3-1b-it", "Gemma-3 1B"),
        ("stepfun-ai/Step-3.5-Flash", "Step-3.5-Flash"),
        ("allenai/Olmo-3-1025-7B", "Olmo-3 7B"),
        ("allenai/OLMo-3-7B", "Olmo-3 7B"),
        ("allenai/Olmo-3-1125-32B", "Olmo-3 32B"),
        ("allenai/Olmo-3.1-32B-Think", "Olmo-3 32B"),
        ("allenai/OLMo-2-1124-13B-Instruct", "OLMo-2 13B"),
        ("allenai/OLMo-2-0325-32B", "OLMo-2 32B"),
        ("LGAI-EXAONE/EXAONE-4.0-1.2B", "EXAONE-4.0 1.2B"),
        ("mistralai/Ministral-3-14B-Reasoning-2512", "Ministral 3 14B"),
        ("mistralai/Ministral-8B-Instruct-2410", "Ministral 8B"),
        ("mistralai/Devstral-Small-2507", "Mistral Small 24B"),
        ("mistralai/Devstral-2-123B-Instruct-2512", "Devstral 2 123B"),
        ("mistralai/Mistral-Large-3-675B-Instruct-2512", "Mistral Large 3"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "Mistral Small 24B"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "Mistral 7B v0.2"),
        ("LiquidAI/LFM2-8B-A1B", "LFM2 8B-A1B"),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", "Seed-OSS 36B"),
        ("baidu/ERNIE-4.5-300B-A47B-PT", "ERNIE-4.5 300B-A47B"),
        ("rednote-hilab/dots.llm1.inst", "dots.llm1"),
        ("tencent/Hunyuan-A13B-Instruct", "Hunyuan A13B"),
        ("tiiuae/Falcon-H1-34B-Instruct", "Falcon-H1 34B"),
        ("ai21labs/AI21-Jamba-Large-1.7", "Jamba Large"),
        ("ibm-granite/granite-4.0-h-small", "Granite 4.0-H Small"),
        ("ibm-granite/granite-3.3-8b-instruct", "Granite 3.3 8B"),
        ("swiss-ai/Apertus-70B-Instruct-2509", "Apertus 70B"),
        ("microsoft/Phi-4-reasoning", "Phi-4"),
        ("Qwen/Qwen3-VL-30B-A3B-Thinking", "Qwen3-VL 30B-A3B"),
        ("Qwen/Qwen3-Coder-Next", "Qwen3-Next 80B-A3B"),
        ("Qwen/QwQ-32B", "Qwen2.5 32B"),
        ("zai-org/GLM-4.7", "GLM-4.5"),
        ("facebook/opt-13b", "OPT 13B"),
        ("facebook/opt-1.3b", "OPT 1.3B"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "DeepSeek-R1-Distill-Qwen-1.5B"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "Qwen3 8B"),
        ("EleutherAI/pythia-1.4b-deduped", "Pythia 1.4B"),
        ("databricks/dbrx-instruct", "DBRX 132B"),
        ("google/gemma-3-270m-it", "Gemma-3 270M"),
        ("google/gemma-3n-E2B-it", "Gemma 3n E2B"),
        ("deepseek-ai/deepseek-llm-7b-chat", "DeepSeek LLM 7B"),
        ("deepseek-ai/deepseek-coder-33b-instruct", "DeepSeek Coder 33B"),
        ("deepseek-ai/DeepSeek-R1-Zero", "DeepSeek-V3"),
        ("01-ai/Yi-1.5-9B-Chat", "Yi 9B"),
        ("Qwen/Qwen3-Embedding-8B", "Qwen3-Embedding 8B"),
        ("Qwen/Qwen3-Reranker-0.6B", "Qwen3-Reranker 0.6B"),
        ("Qwen/Qwen2-VL-7B-Instruct", "Qwen2-VL 7B"),
        ("Qwen/Qwen1.5-110B-Chat", "Qwen1.5 110B"),
        ("mistralai/Codestral-22B-v0.1", "Codestral 22B"),
        ("mistralai/Mistral-Small-Instruct-2409", "Codestral 22B"),
        ("mistralai/Mathstral-7B-v0.1", "Mistral 7B v0.3"),
        ("allenai/OLMo-2-0425-1B-Instruct", "OLMo-2 1B"),
        ("CohereLabs/c4ai-command-r-08-2024", "Aya Expanse 32B"),
        ("internlm/internlm2_5-7b-chat", "InternLM2 7B"),
        ("stabilityai/stablelm-2-1_6b", "StableLM 2 1.6B"),
        ("upstage/SOLAR-10.7B-Instruct-v1.0", "SOLAR 10.7B"),
        ("XiaomiMiMo/MiMo-7B-RL", "MiMo 7B"),
        ("inclusionAI/Ring-1T", "Ling 1T"),
        ("nvidia/Minitron-4B-Base", "Nemotron Mini 4B"),
        ("LGAI-EXAONE/EXAONE-3.5-32B-Instruct", "EXAONE 3.5 32B"),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "Llama 3.2 11B Vision"),
        ("google/gemma-3-27b-it-qat-q4_0-unquantized", "Gemma-3 27B"),
    ],
)
def test_popular_checkpoints_are_found_in_every_spelling(published, name):
    bare = published.partition("/")[2]
    for typed in (published, published.lower(), bare, bare.upper(), f"{published}-FP8"):
        assert models.find_as_stored(typed).name == name


def test_a_name_that_resembles_none_is_told_eight_families_at_most():
    with pytest.raises(models.ModelError) as refused:
        models.find("zzzzzz")
    told = str(refused.value)
    assert told.count(",") == len(FAMILIES) == 8
    assert "see `scalingbook model --help`" in told
    for family in FAMILIES:
        assert models.find(family).name == family in told
