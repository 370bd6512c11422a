"""Models with layers of several kinds cost the sum of their layers, and equal layers cost the same."""

import json
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.models.fields import Fields
from scalingbook_lib.models.layered import BOTH, heads, latent, layered
from scalingbook_lib.training import Plan, step
from scalingbook_lib.training.feasible import reasons
from scalingbook_lib.training.stages import stages
from scalingbook_lib.training.work import work
from scalingbook_lib.units import BF16

ORACLE = json.loads((Path(__file__).parents[3] / "data" / "model_oracle.json").read_text(encoding="utf-8"))
CONFIGS = {row["name"]: row["config"] for row in ORACLE["models"]}
ALIKE = {
    "meta-llama/Meta-Llama-3.1-70B": heads(),
    "Qwen/Qwen3-235B-A22B": heads(qk_norm="head"),
    "deepseek-ai/DeepSeek-V3": latent(),
}
POLICIES = ("none", "alternate", "selective", "all", "dots", "full", "save:q,k,v", "recompute:moe_act")
H100 = clusters.Cluster.of(chips.H100, 64)


def both(name):
    """A model whose layers are alike, and the same layer by layer."""
    m = models.from_hf(CONFIGS[name])
    layer_by_layer = layered({"full_attention": ALIKE[name]}, BOTH)(Fields(CONFIGS[name]))
    return m, Transformer(name=m.name, **layer_by_layer)


@pytest.mark.parametrize("remat", POLICIES)
@pytest.mark.parametrize("name", ALIKE)
def test_layers_that_are_alike_cost_the_same_one_by_one(name, remat):
    alike, listed = (work(m, 4096, remat, BF16, True) for m in both(name))
    for field in set(alike.__dataclass_fields__) - {"model"}:
        assert getattr(listed, field) == getattr(alike, field), field


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize(("pp", "chunks"), [(1, 1), (4, 1), (2, 2)])
def test_their_stages_are_the_same(name, pp, chunks):
    alike, listed = (stages(m, 4096, True, pp, chunks) for m in both(name))
    assert listed == alike


def test_their_step_takes_as_long_and_holds_as_much():
    plan = Plan(tp=8, fsdp=4, pp=2, microbatch=1, remat="full")
    alike, listed = (step(m, H100, plan, batch=64, T=4096) for m in both("meta-llama/Meta-Llama-3.1-70B"))
    assert listed.total_s == alike.total_s
    assert listed.memory == alike.memory


def test_the_longest_stage_bounds_a_pipeline_of_unequal_layers():
    m = models.from_hf(CONFIGS["nemotron_h"])  # a mixer or an MLP in each layer
    three = stages(m, 4096, True, 3, 1)
    assert three.longest > 1 / 3
    assert stages(m, 4096, True, 1, 1).longest == 1
    assert three.experts == max(
        sum(any(layer in b.at for b in m.blocks if b.name == "experts") for layer in range(at, at + m.L // 3))
        for at in range(0, m.L, m.L // 3)
    )


def test_two_sublayers_of_a_layer_gather_twice_and_side_by_side_once():
    longcat, falcon = (models.from_hf(CONFIGS[name]) for name in ("longcat_flash", "falcon_h1"))
    assert sublayers.mixers(longcat) == 2 * longcat.L
    assert sublayers.dense_mlps(longcat) == 2 * longcat.L
    assert sublayers.mixers(falcon) == falcon.L  # attention and Mamba-2 read the same input
    nemotron = models.from_hf(CONFIGS["nemotron_h"])
    assert sublayers.inputs(nemotron) == nemotron.L
    assert sublayers.paired_layers(nemotron) == 0


def test_arithmetic_of_a_step_is_that_of_all_sublayers():
    m = models.from_hf(CONFIGS["kimi_linear"])
    found = work(m, 4096, "none", BF16, True)
    assert found.useful == pytest.approx(3 * models.arithmetic.flops(m, 1, 4096, causal=True).total / 4096)


@pytest.mark.parametrize("name", ["kimi_linear", "falcon_h1", "lfm2", "qwen3_next"])
def test_recurrent_layers_are_not_split_over_context_ways(name):
    m = models.from_hf(CONFIGS[name])
    told = " ".join(reasons(m, Plan(cp=2, fsdp=32), 4096, H100))
    assert "recurrent layers" in told
    assert "write cp=1" in told
    assert not reasons(m, Plan(fsdp=64), 4096, H100)


def test_every_kind_of_layer_has_to_divide_over_tensor_ways():
    m = models.from_hf(CONFIGS["step3p7"])  # 64 query heads, and 96 in layers with a window
    told = " ".join(reasons(m, Plan(tp=64), 4096, H100))
    assert "96 heads are not divisible by tp=64" in told
    assert "64 heads" not in told


@pytest.mark.parametrize(
    "name",
    ["nemotron_h", "gemma4_text", "glm_moe_dsa", "deepseek_v4", "jamba", "longcat_flash", "minimax", "lfm3"],
)
def test_an_architecture_with_layers_of_several_kinds_is_planned(name):
    m = models.from_hf(CONFIGS[name])
    done = step(m, H100, Plan(fsdp=64, ep=1, remat="full"), batch=64, T=4096)
    assert 0 < done.mfu < 1
    assert done.memory.total > m.params * 16 / 64
