"""Optimizers keep and compute what their papers say; layouts move what can be counted."""

import pytest

from scalingbook_lib import models
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.training import optimizers
from scalingbook_lib.training.optimizers import (
    ADAFACTOR,
    ADAM8,
    ADAMW,
    DEEPSEEK_V3,
    EXACT,
    MUON,
    SHAMPOO,
    SOAP,
    layouts,
    newton_schulz,
    pushed,
)

approx = pytest.approx
M70, K2 = models.find("Llama 3 70B"), models.find("Kimi K2")
WAYS = ("short side cut", "long side cut", "gathered by all", "owned by one")


@pytest.mark.parametrize(
    ("optimizer", "each", "square"),
    [
        (ADAMW, 16, 16),
        (ADAM8, 10.03125, 10.03125),
        (ADAFACTOR, 8 + 4 * 36_864 / (8192 * 28_672), 8 + 8 / 8192),
        (MUON, 12, 12),
        (DEEPSEEK_V3, 13, 13),
        (SHAMPOO, 8 + 8 * (2 / 7 + 3.5), 24),
        (SOAP, 16 + 8 * (2 / 7 + 3.5), 32),
    ],
    ids=lambda o: getattr(o, "name", ""),
)
def test_state_of_a_parameter(optimizer, each, square):
    assert optimizer.state(1e9).bytes_per_parameter == approx(each)
    assert optimizer.state(1e9, 8192, 8192).bytes_per_parameter == approx(square)


def test_adamw_is_the_state_of_training():
    assert ADAMW.state(M70.params).total == training_state(M70).total


def test_orthogonalizing_costs_its_products():
    assert newton_schulz(2048, 8192) == newton_schulz(8192, 2048) == 773_094_113_280
    assert MUON.flops(2048, 8192) == newton_schulz(2048, 8192)
    # the whole layer by hand: two squares, two of 1,024 rows, three of the MLP
    layer = sum(
        20 * m * m * n + 10 * m**3 for m, n in [(8192, 8192), (1024, 8192)] * 2 + [(8192, 28_672)] * 3
    )
    assert optimizers.orthogonalized(M70) == 80 * layer


@pytest.mark.parametrize(
    ("model", "tokens", "share"), [(M70, 4e6, 0.0078), (K2, 67e6, 0.00367), (K2, 4.2e6, 0.0586)]
)
def test_the_share_of_a_step_falls_with_the_batch(model, tokens, share):
    assert optimizers.orthogonalized(model) / (6 * model.active_params * tokens) == approx(share, rel=0.01)


def test_a_square_costs_five_rows_over_the_batch():
    assert newton_schulz(4096, 4096) / (6 * 4096 * 4096 * 2**20) == approx(5 * 4096 / 2**20)


def test_muon_brings_singular_values_near_one_and_slower_iterations_to_it():
    assert all(0.6 < pushed(s / 100) < 1.25 for s in range(2, 101))
    assert [pushed(s, 30, EXACT) for s in (0.01, 0.5, 1)] == approx([1, 1, 1])


def test_four_layouts_move_what_their_collectives_must():
    each = {one.name: one for one in layouts(2048, 8192, Slice.of(chips.V5E, "2x4"))}
    assert tuple(each) == WAYS
    whole, square = 2 * 2048 * 8192, 2 * 2048**2
    sent = [5 * (whole + square) * 7 / 8, 10 * square * 7 / 8, whole * 7 / 8, 2 * whole * 7 / 64]
    assert [one.sent_bytes for one in each.values()] == approx(sent)
    flops = newton_schulz(2048, 8192)
    cube = 10 * 2048**3
    assert [one.flops for one in each.values()] == approx(
        [flops / 8, (flops - cube) / 8 + cube, flops, flops / 8]
    )


def test_the_long_side_beats_a_gather_from_ten_times_the_short_one():
    for n, cheaper in ((9 * 2048, False), (11 * 2048, True)):
        _, cut, gathered, _ = layouts(2048, n, Slice.of(chips.V5P, "4x4x4"))
        assert (cut.sent_bytes < gathered.sent_bytes) is cheaper


def test_an_owner_is_fastest_and_one_chip_in_place_of_all_hardly_is():
    ways = layouts(8192, 28_672, Slice.of(chips.V5P, "4x4x4"))
    assert min(ways, key=lambda one: one.total_s).name == "owned by one"
    assert ways[2].math_s == approx(64 * ways[3].math_s)
