"""A block in a few passes against token by token: closed forms, and where they are even."""

import pytest

from scalingbook_lib.inference import diffusion
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP8

approx = pytest.approx


@pytest.mark.parametrize("passes", [8, 32, 64])
@pytest.mark.parametrize("chip", [chips.H100, chips.V5E, chips.B200], ids=lambda chip: chip.name)
def test_both_take_as_long_at_the_ridge_over_the_passes(chip, passes):
    ridge = chip.bf16_flops_per_s / chip.hbm_bytes_per_s
    even = diffusion(8e9, chip, T=256, passes=passes).even_batch
    assert even == approx(ridge / passes)
    if even * 256 > ridge:  # there the block computes
        assert diffusion(8e9, chip, T=256, passes=passes, batch=even).gain == approx(1)
    assert diffusion(3e9, chip, T=512, passes=passes, batch=4 * even).gain < 1


def test_alone_it_gains_tokens_over_passes_until_it_computes():
    one = diffusion(8e9, chips.H100, T=256, passes=64)
    assert one.gain == approx(4)
    assert one.block_s == approx(0.306, abs=0.001)
    assert diffusion(8e9, chips.H100, T=256, passes=64, batch=64).gain == approx(1 / 14, rel=0.02)


def test_as_many_passes_as_tokens_never_gain():
    same = diffusion(8e9, chips.H100, T=64, passes=64, batch=16)
    assert same.even_batch == 0
    assert same.gain <= 1


def test_a_narrow_type_reads_less_and_computes_faster():
    wide, narrow = (diffusion(8e9, chips.H100, T=256, passes=64, dtype=t) for t in (BF16, FP8))
    assert narrow.one_by_one_s == approx(wide.one_by_one_s / 2)
    assert narrow.even_batch == approx(wide.even_batch, rel=0.01)


@pytest.mark.parametrize(
    "bad", [{"T": 0, "passes": 1}, {"T": 1, "passes": 0}, {"T": 1, "passes": 1, "batch": -1}]
)
def test_nothing_to_write_is_refused(bad):
    with pytest.raises(ValueError, match="write"):
        diffusion(8e9, chips.H100, **bad)
