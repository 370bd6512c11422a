"""The limits of each kind of parallelism: the figures of the book, and those at 90% of the links' rate."""

import pytest

from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.steps import limits
from scalingbook_lib.units import FP8, FP32

B70 = models.find("Llama 3 70B")


def test_the_thresholds_of_the_book_are_those_at_90_percent_of_the_links():
    assert rules.network_ridge(chips.V5P, links=0.9) == pytest.approx(2550)
    assert rules.data_parallel_tokens(chips.V5P, axes=3, links=0.9) == pytest.approx(850)
    assert rules.fsdp_with_tensor_tokens(32768, chips.V5P, links=0.9) == pytest.approx(99.2, rel=1e-3)
    assert rules.fsdp_with_tensor_tokens(32768, chips.V5P, links=0.9, dial=1) == pytest.approx(397, rel=1e-3)


def test_the_best_split_of_the_book():
    assert rules.best_fsdp_degree(4e6, 8960, 28672) == pytest.approx(1581, abs=1)
    assert rules.best_fsdp_degree(2**22, 8960, 28672) == pytest.approx(1619, abs=1)
    assert rules.best_fsdp_degree(48e3, 64, 32768) == pytest.approx(13.7, abs=0.01)


def test_the_product_of_both_ratios_does_not_depend_on_the_split():
    found = [
        rules.fsdp_with_tensor(2**22, 4096, 28672, X, chips.V5P, links=0.9) for X in (256, 512, 1024, 2048)
    ]
    assert [m.data * m.tensor for m in found] == pytest.approx([found[0].data * found[0].tensor] * 4)
    assert found[2].data == pytest.approx(0.31, abs=0.005)
    assert found[2].tensor == pytest.approx(0.356, abs=0.001)
    assert (found[2].slowdown(), found[2].slowdown(1)) == (1, 1)  # both hide


def test_context_expert_pod_and_tensor_limits():
    assert rules.context_parallel_tokens(B70.G, chips.V5P, causal=False, links=0.9) == pytest.approx(
        319, abs=0.5
    )
    assert rules.context_parallel_tokens(B70.G, chips.V5P, links=0.9) == pytest.approx(638, abs=1)
    assert rules.expert_parallel_width(chips.V5P, 16, links=0.9) == pytest.approx(6800)
    assert rules.expert_parallel_width(chips.V5P, 4, links=0.9) == pytest.approx(1700)
    assert rules.cross_pod_tokens(chips.V5P, 2) == pytest.approx(36720)
    assert rules.cross_pod_tokens(chips.V5P, 2, gradients=FP32) == pytest.approx(73440)
    assert rules.tensor_parallel_degree(28672, chips.V5P, links=0.9) == pytest.approx(11.24, abs=0.01)


def test_in_a_domain_of_switches_every_byte_leaves_a_chip_once():
    of = limits.rules(chips.H100)
    W = chips.H100.domain_bytes_per_s()
    assert of.expert_F == of.domain_tokens == pytest.approx(989.5e12 / 450e9, rel=1e-3)
    assert rules.tensor_parallel_degree(28672, chips.H100, bytes_per_s=W) == of.tensor_degree
    gated = rules.expert_parallel_width(chips.H100, dispatch=FP8, bytes_per_s=W)
    assert gated == pytest.approx(
        rules.network_ridge(chips.H100, bytes_per_s=W) / 2
    )  # C/2W, as of a data sheet
