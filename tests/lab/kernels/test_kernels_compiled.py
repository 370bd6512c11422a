"""The TPU compiler takes the kernels, reserves the VMEM that was predicted, and refuses what is too much."""

import pytest

from scalingbook_lib.lab.compiler import aot, work
from scalingbook_lib.lab.kernels import beside, matmul
from scalingbook_lib.lab.kernels.matmul import Tiles
from scalingbook_lib.units import GiB, MiB

pytestmark = pytest.mark.usefixtures("tpu")


def vmem_ratio(found):
    """The VMEM that the compiler reserved, over the formula's."""
    return found.kernel.vmem_bytes / found.predicted_vmem_bytes


def test_a_tiled_matmul_needs_its_buffers_and_little_more():
    found = beside.product(4096, 4096, 4096, Tiles(1024, 1024, 512))
    assert found.predicted_vmem_bytes == 12 * MiB
    assert 1 < vmem_ratio(found) < 1.1
    assert found.xla.flops == 2 * 4096**3
    assert "(predicted 12 MiB), 0 B of HBM for temporaries; fetches 134 MB + 134 MB" in str(found)


def test_flash_attention_keeps_no_scores_in_hbm_and_xla_keeps_them_all():
    found = beside.attention(4096, 4096, 2, 4)
    assert found.kernel.memory.temporaries < MiB
    assert found.xla.memory.temporaries >= GiB
    assert 0.9 < vmem_ratio(found) < 1.1


def test_flash_attention_decodes_too():
    found = beside.attention(1, 8192, 8, 8, block=1)
    assert found.moved.fetched[1] == 2 * 8 * 8192 * 128
    assert 0.9 < vmem_ratio(found) < 1.1


@pytest.mark.parametrize("both_ways", [False, True])
def test_the_ring_sends_what_xlas_all_gather_receives(both_ways):
    found = beside.all_gather(4096, 4096, both_ways=both_ways)
    assert found.moved.sent_bytes == found.xla.collectives.received_bytes


@pytest.mark.parametrize("both_ways", [False, True])
def test_the_collective_matmul_holds_all_of_x_in_vmem(both_ways):
    found = beside.all_gather_matmul(4096, 2048, 4096, both_ways=both_ways)
    assert found.moved.sent_bytes == found.xla.collectives.received_bytes
    assert 0.9 < vmem_ratio(found) < 1.1


def test_more_vmem_than_a_kernel_may_have_is_refused_in_figures():
    with pytest.raises(aot.DoesNotFit, match=r"one kernel needs \d+ MiB of VMEM at once and may have 16 MiB"):
        aot.compile(
            lambda x, w: matmul.matmul(x, w, Tiles(2048, 2048, 512)),
            "X[B, D]", "W[D, F]", topology="v5e:1x1", B=4096, D=4096, F=4096,
        )  # fmt: skip


def test_an_array_that_is_too_large_to_be_gathered_in_vmem_is_refused():
    with pytest.raises(aot.DoesNotFit, match=r"needs .* of VMEM and a chip has 128 MiB"):
        beside.all_gather_matmul(16384, 8192, 2048)


def test_a_fusion_without_an_estimate_does_not_count():
    line = '  ROOT %f = f32[8]{0} add(%a, %a), backend_config={"estimated_cycles":"9223372036854775807"}'
    text = (
        f"HloModule m\n\nENTRY %main (a: f32[8]) -> f32[8] {{\n  %a = f32[8]{{0}} parameter(0)\n{line}\n}}\n"
    )
    assert work.cycles(text) == 0
