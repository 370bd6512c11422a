"""Counts the FLOPs of convolutions, which is how the TPU compiler writes matmuls."""

import pytest

from scalingbook_lib.hlo import HloError, cost

CONVOLUTION = """HloModule c

ENTRY %main (x: f32[32,{size},8], w: f32[{window},8,16]) -> f32[32,{out},16] {{
  %x = f32[32,{size},8] parameter(0)
  %w = f32[{window},8,16] parameter(1)
  ROOT %c = f32[32,{out},16] convolution(%x, %w), window={{{how}}}, dim_labels=b0f_0io->b0f
}}
"""


@pytest.mark.parametrize(
    ("size", "window", "out", "how", "touched"),
    [
        (1, 1, 1, "size=1", 1),
        (4, 3, 2, "size=3", 6),
        (4, 3, 4, "size=3 pad=1_1", 10),  # the two ends meet one element of padding each
        (1, 2, 2, "size=2 pad=1_1 rhs_reversal=1", 2),  # two matmuls in one, as XLA:TPU batches them
        (4, 2, 2, "size=2 stride=2", 4),
        (3, 2, 4, "size=2 lhs_dilate=2", 4),  # every second position is a gap
        (4, 2, 2, "size=2 rhs_dilate=2", 4),
    ],
)
def test_a_convolution_counts_the_products_of_real_elements_only(size, window, out, how, touched):
    text = CONVOLUTION.format(size=size, window=window, out=out, how=how)
    assert cost.matmul_flops(text) == 2 * 32 * 8 * 16 * touched


def test_a_truncated_text_is_refused():
    with pytest.raises(HloError, match="not closed"):
        cost.fusions("ENTRY %main () -> f32[] {\n  %a = (f32[], f32[\n}")
