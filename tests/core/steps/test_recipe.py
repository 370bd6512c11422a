"""Narrow products move every boundary up, narrow transfers their own down."""

import pytest

from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.machines.formats import NVFP4
from scalingbook_lib.steps.limits.limit import MACHINES
from scalingbook_lib.steps.limits.recipe import Recipe
from scalingbook_lib.units import BF16, FP4, FP8, FP32

approx = pytest.approx
NODES = Cluster.of(chips.H100, 4096)
FAST = chips.H100.flops_per_s(FP8) / chips.H100.flops_per_s(BF16)
ALL8 = {"product": FP8, "gather": FP8, "sums": FP8, "dispatch": FP8, "combine": FP8}


@pytest.mark.parametrize(
    ("recipe", "data", "tensor"),
    [
        (Recipe(product=FP8), 1, 1),
        (Recipe(product=FP8, gather=FP8), 3 / 4, 3 / 4),
        (Recipe(product=FP8, gather=FP8, sums=FP8), 1 / 2, 1 / 2),
        (Recipe(product=FP8, gather=FP8, sums=FP32), 5 / 4, 5 / 4),
        (Recipe(product=FP8, sums=FP8), 1, 3 / 4),  # the forward pass gathers alone
    ],
    ids=str,
)
def test_limits_follow_from_the_rate_and_the_mean_of_two_transfers(recipe, data, tensor):
    old = Recipe()
    assert recipe.data_parallel(NODES, 8).least == approx(FAST * data * old.data_parallel(NODES, 8).least)
    assert recipe.tensor_parallel(NODES, 8).least == approx(
        FAST * tensor * old.tensor_parallel(NODES, 8).least
    )


def test_experts_have_a_type_out_and_one_back():
    v3 = Recipe(product=FP8, dispatch=FP8).expert_parallel(NODES, 64, 8)
    assert v3.least == approx(FAST * 3 / 4 * Recipe().expert_parallel(NODES, 64, 8).least)


@pytest.mark.parametrize("chip", [m for m in MACHINES if m != "A100"])
def test_fp8_products_alone_make_every_limit_of_the_network_worse(chip):
    machine = Cluster.of(chips.find(chip), 1152 if chip.startswith("GB") else 1024)
    narrow, wide = Recipe(product=FP8), Recipe()
    assert narrow.data_parallel(machine).least > 1.9 * wide.data_parallel(machine).least
    assert narrow.tensor_parallel(machine, 8).least > 1.9 * wide.tensor_parallel(machine, 8).least
    assert Recipe(**ALL8).data_parallel(machine).least == approx(wide.data_parallel(machine).least, rel=0.01)


def test_a_torus_follows_the_same_law():
    pod = Slice.of(chips.TPU7X, "4x4x8")
    half, most = Recipe(product=FP8), Recipe(product=FP8, gather=FP8)
    assert half.tensor_parallel(pod, 16).least == approx(2 * Recipe().tensor_parallel(pod, 16).least)
    assert most.tensor_parallel(pod, 16).least == approx(1.5 * Recipe().tensor_parallel(pod, 16).least)


@pytest.mark.parametrize(
    ("chip", "product", "weights", "tokens"),
    [
        ("B200", BF16, BF16, 281),
        ("B200", FP8, FP8, 281),
        ("B200", FP4, NVFP4.dtype, 316),
        ("B200", BF16, NVFP4.dtype, 79),
        ("GB300", FP4, NVFP4.dtype, 527),
        ("GB300", BF16, NVFP4.dtype, 88),
    ],
)
def test_break_even_batches_of_mixed_types(chip, product, weights, tokens):
    assert round(Recipe(product=product, weights=weights).batch(chips.find(chip))) == tokens
