"""The TPU compiler compiles the kernels, reserves the predicted VMEM, and refuses what does not fit."""

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lab.compiler import aot
from scalingbook_lab.kernels import collective_matmul, comparison, matmul
from scalingbook_lab.kernels.matmul import Tiles
from scalingbook_lib.hlo import cost
from scalingbook_lib.units import GiB, MiB

pytestmark = pytest.mark.usefixtures("tpu")


def vmem_ratio(found):
    """The VMEM that the compiler reserved, over the formula's."""
    return found.kernel.vmem_bytes / found.predicted_vmem_bytes


def all_gather_matmul(B, D, F, *, both_ways=False):
    """X[B_X, D] · W[D, F_X] → Y[B, F_X]: as a collective matmul, and as XLA compiles it."""
    needed = collective_matmul.vmem_bytes(B, D)
    how = {"both_ways": both_ways, "vmem_bytes": comparison.vmem_limit(needed)}
    both = (
        lambda x, w: collective_matmul.all_gather_matmul(x, w, "X", **how),
        lambda x, w: jax.lax.all_gather(x, "X", tiled=True) @ w,
    )
    arrays = ("X[B_X, D]", "W[D, F_X]")
    return comparison.on_a_ring(both, arrays, "Y[B, F_X]", "v5e:2x2", needed, B=B, D=D, F=F)


def test_the_vmem_of_a_tiled_matmul_is_close_to_its_formula():
    tiles = Tiles(1024, 1024, 512)
    both = (lambda x, w: matmul.matmul(x, w, tiles), jnp.matmul)
    sizes = dict.fromkeys("BDF", 4096)
    found = comparison.on_one_chip(both, ("X[B, D]", "W[D, F]"), tiles.vmem_bytes(), "v5e:1x1", **sizes)
    assert found.predicted_vmem_bytes == 12 * MiB
    assert 1 < vmem_ratio(found) < 1.1
    assert found.xla.flops == 2 * 4096**3
    assert "(predicted 12 MiB), 0 B of HBM for temporaries; fetches 134 MB + 134 MB" in str(found)


def test_flash_attention_keeps_no_scores_in_hbm_and_xla_keeps_them_all():
    found = comparison.attention(4096, 4096, 2, 4)
    assert found.kernel.memory.temporaries < MiB
    assert found.xla.memory.temporaries >= GiB
    assert 0.9 < vmem_ratio(found) < 1.1


def test_flash_attention_works_for_decode():
    found = comparison.attention(1, 8192, 8, 8, block=1)
    assert found.moved.fetched[1] == 2 * 8 * 8192 * 128
    assert 0.9 < vmem_ratio(found) < 1.1


@pytest.mark.parametrize("both_ways", [False, True])
def test_the_ring_sends_what_xlas_all_gather_receives(both_ways):
    found = comparison.all_gather(4096, 4096, both_ways=both_ways)
    assert found.moved.sent_bytes == found.xla.collectives.received_bytes


@pytest.mark.parametrize("both_ways", [False, True])
def test_the_collective_matmul_holds_all_of_x_in_vmem(both_ways):
    found = all_gather_matmul(4096, 2048, 4096, both_ways=both_ways)
    assert found.moved.sent_bytes == found.xla.collectives.received_bytes
    assert 0.9 < vmem_ratio(found) < 1.1


def test_a_kernel_with_too_much_vmem_is_refused_with_its_sizes():
    with pytest.raises(aot.DoesNotFit, match=r"needs \d+ MiB of VMEM at once but may use only 16 MiB"):
        aot.compile(
            lambda x, w: matmul.matmul(x, w, Tiles(2048, 2048, 512)),
            "X[B, D]", "W[D, F]", topology="v5e:1x1", B=4096, D=4096, F=4096,
        )  # fmt: skip


def test_an_array_that_is_too_large_to_be_gathered_in_vmem_is_refused():
    with pytest.raises(aot.DoesNotFit, match=r"needs .* of VMEM and a chip has 128 MiB"):
        all_gather_matmul(16384, 8192, 2048)


def test_a_fusion_without_an_estimate_does_not_count():
    line = '  ROOT %f = f32[8]{0} add(%a, %a), backend_config={"estimated_cycles":"9223372036854775807"}'
    text = (
        f"HloModule m\n\nENTRY %main (a: f32[8]) -> f32[8] {{\n  %a = f32[8]{{0}} parameter(0)\n{line}\n}}\n"
    )
    assert cost.fusions(text) == ()
