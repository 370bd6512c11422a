"""Pipelines and whole plans at their limits, and what is refused."""

import math

import pytest

from scalingbook_lib import models, roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster, ClusterError
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.steps import limits
from scalingbook_lib.steps.placement import place

approx = pytest.approx

C = 989e12  # H100 in bf16

POD = Cluster.of(chips.H100, 4096)

DENSE, DEEPSEEK = models.find("Llama 3 70B"), models.find("DeepSeek-V3")


# --- pipelines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "m", "v"), [(1, 4, 1), (4, 4, 1), (8, 16, 1), (8, 16, 2), (16, 64, 5)])
def test_the_bubble(p, m, v):
    found = limits.pipeline_parallel(POD, p, tokens=1000, m=m, D=8192, F=28672, L=80, interleave=v)
    assert found.bubble == approx((p - 1) / (v * m + p - 1), abs=1e-12)


@pytest.mark.parametrize(("p", "m"), [(2, 3), (4, 4), (8, 32)])
def test_the_bubble_is_that_of_a_pipeline_played_through(p, m):
    played = roofline.pipeline({f"stage {i}": 1.0 for i in range(p)}, m)
    found = limits.pipeline_parallel(POD, p, tokens=1000, m=m, D=8, F=8, L=64)
    assert found.bubble == approx(1 - played.lower_s / played.total_s)


def test_a_hop_is_light_and_does_not_depend_on_the_batch():
    """w C p / (2 matrices F L W): 8 stages of Llama 3 70B on H100 hide a hop of 2% of their work."""
    for tokens in (100, 1000):
        found = limits.pipeline_parallel(
            POD, 8, tokens=tokens, m=32, D=8192, F=28672, L=80, gated=True, model_parallel=8
        )
        assert found.ratio == approx(2 * C * 8 / (6 * 28672 * 80 * 50e9))
        assert found.hop_bytes == 2 * 8 * tokens / 32 * 8192


def test_stages_of_unequal_size_wait_for_the_largest():
    uneven = limits.pipeline_parallel(POD, 4, tokens=100, m=8, D=8, F=8, L=61)
    assert uneven.bubble == approx(1 - 8 * 61 / 4 / (11 * 16))
    inside = limits.pipeline_parallel(Cluster.of(chips.H100, 8), 4, tokens=1000, m=8, D=8192, F=8192, L=64)
    assert inside.hop_s == approx(inside.hop_bytes / 450e9)


# --- a whole plan -----------------------------------------------------------------------------------------

PLANS = [{}, {"tp": 8}, {"tp": 8, "pp": 8, "m": 32}, {"tp": 4, "pp": 16, "m": 64}, {"tp": 16}]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_the_terms_of_a_plan_cross_the_arithmetic_at_the_limits(plan):
    found = limits.audit(POD, DENSE, tokens=4e6, **plan)
    inside = found.tp * found.pp * found.ep
    needed = limits.data_parallel(POD, model_parallel=inside).least
    assert found.data_s / found.math_s == approx(needed / found.tokens_per_chip)
    width = limits.tensor_parallel(POD, found.tp, gated=True).least
    assert found.tensor_s / found.math_s == approx(width / DENSE.F)
    pipe = limits.pipeline_parallel(
        POD, found.pp, tokens=found.tokens_per_chip, m=plan.get("m", 1), D=DENSE.D, F=DENSE.F, L=DENSE.L,
        gated=True, model_parallel=found.tp,
    )  # fmt: skip
    assert found.bubble == pipe.bubble
    assert found.hop_s / found.math_s == approx(pipe.ratio)


def test_the_experts_of_a_plan_cross_at_their_limit():
    found = limits.audit(Cluster.of(chips.H100, 2048), DEEPSEEK, tokens=62.9e6, ep=64)
    width = limits.expert_parallel(POD, 64, k=8, E=256, shared=1, gated=True, once=True).least
    assert found.expert_s / found.math_s == approx(width / 2048)
    needed = limits.data_parallel(Cluster.of(chips.H100, 2048), model_parallel=64, sparsity=257 / 9).least
    assert found.data_s / found.math_s == approx(needed / found.tokens_per_chip)
    assert found.bound == "expert"


def test_eight_stages_turn_llama_3_70b_from_the_network_to_the_arithmetic():
    flat, deep = (limits.audit(POD, DENSE, tokens=4e6, **PLANS[i]) for i in (1, 2))
    assert (flat.bound, deep.bound) == ("data", "compute")
    assert flat.utilization == approx(0.396, abs=1e-3)
    assert deep.utilization == approx(32 / 39)
    assert str(deep) == (
        "4,096 H100s as DP 64, TP 8, PP 8, 977 tokens per chip: bottleneck compute (compute 111 ms, "
        "data 34.7 ms, tensor 39.8 ms, pipeline 2.56 ms; bubble 18%), at most 82% of peak FLOP/s"
    )
    for found in (flat, deep):
        assert found.math_s <= found.lower_s <= found.upper_s


@pytest.mark.parametrize("tp", [1, 4, 16])
@pytest.mark.parametrize("pp", [1, 8])
@pytest.mark.parametrize("ep", [1, 8, 64])
@pytest.mark.parametrize("model", ["Mixtral 8x22B", "DeepSeek-V3", "Llama 3 8B"])
def test_every_plan_is_audited_or_refused_with_a_sentence(tp, pp, ep, model):
    for machine in (POD, Cluster.of(chips.GB200, 4096, domain=64), Cluster.of(chips.MI300X, 4096)):
        shape = models.find(model)
        if tp * pp * ep > 4096 or ep > (shape.experts.E if shape.experts else 1):
            with pytest.raises(ValueError, match=r"lower one of them|experts"):
                limits.audit(machine, shape, tokens=2**22, tp=tp, pp=pp, ep=ep, m=16)
            continue
        found = limits.audit(machine, shape, tokens=2**22, tp=tp, pp=pp, ep=ep, m=16)
        assert 0 < found.utilization <= 1 - found.bubble + 1e-12
        assert found.math_s <= found.lower_s <= found.upper_s
        assert found.dp * tp * pp * ep == machine.chips
        assert [s > 0 for s in list(found.terms.values())[2:]] == [tp > 1, ep > 1, pp > 1]


def test_a_plan_on_a_slice():
    found = limits.audit(Slice.of(chips.V5P, "8x8x8"), DENSE, tokens=2e6, tp=8)
    needed = limits.data_parallel(Slice.of(chips.V5P, "8x8x8"), model_parallel=8).least
    assert found.data_s / found.math_s == approx(needed / found.tokens_per_chip)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (lambda: limits.data_parallel(POD, model_parallel=3), "write a divisor"),
        (lambda: limits.data_parallel(POD, sparsity=0.5), "sparsity=0.5: write a number of at least 1"),
        (lambda: limits.tensor_parallel(POD, 8192), "write 1 to 4,096"),
        (lambda: limits.tensor_parallel(POD, 0), "Y=0"),
        (lambda: limits.expert_parallel(POD, 8, k=0), "k=0"),
        (
            lambda: limits.exchange(POD, 16, tokens=1, D=1, k=1, E=8),
            "8 experts cannot be sharded over 16 chips",
        ),
        (lambda: limits.exchange(POD, 8, tokens=-1, D=1, k=1), "at least 0"),
        (lambda: limits.pipeline_parallel(POD, 8, tokens=1, m=1, D=1, F=1, L=4), "lower p"),
        (lambda: limits.pipeline_parallel(POD, 3, tokens=1, m=1, D=1, F=1, L=4), "do not divide"),
        (lambda: limits.audit(POD, DENSE, tokens=1e6, ep=2), "has 1 experts"),
        (lambda: limits.audit(POD, DENSE, tokens=1e6, tp=3), "powers of two"),
        (lambda: limits.data_parallel(POD).term("mesh"), "it uses NVLink, leaf, spine"),
        (lambda: limits.data_parallel(POD, in_switch=True, overlap=True, sparsity=math.nan), "sparsity=nan"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(asked, says):
    with pytest.raises(ValueError, match=says):
        asked()


def test_a_plan_lies_on_whole_axes_of_a_torus_where_a_mesh_of_its_slice_does():
    machine = Slice.of(chips.V5P, "2x2x4")
    found, mesh = place(machine, (8, 1, 1, 2, 1, 1)).networks, machine.mesh(Y=8, X=2)
    assert (found["Y"], found["X"]) == (mesh.axes("Y"), mesh.axes("X"))
    assert [axis.size for axis in found["Y"]] == [2, 4]


def test_errors_of_a_cluster_are_a_clusters():
    with pytest.raises(ClusterError):
        limits.tensor_parallel(POD, 12)
