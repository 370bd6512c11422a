"""A program that does not fit is refused with the memory it needs, the capacity, and the largest buffers."""

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lab.compiler import aot, slices
from scalingbook_lib.machines import chips
from scalingbook_lib.units import FP32, GiB


@pytest.mark.usefixtures("tpu")
def test_an_array_larger_than_hbm_is_an_error_with_figures():
    with pytest.raises(aot.DoesNotFit, match="of HBM") as caught:
        aot.compile(lambda a: a + 1, "A[I, J]", topology="v5e:1x1", I=200_000, J=100_000)
    error = caught.value
    assert (error.memory, error.used_bytes > 37 * GiB) == ("HBM", True)
    assert error.limit_bytes < chips.V5E.hbm_bytes  # the runtime keeps a little for itself
    assert error.arguments[0].nbytes == 2 * 200_000 * 100_000
    assert "bfloat16[200000, 100000]" in str(error)


@pytest.mark.usefixtures("tpu")
def test_too_large_temporaries_are_reported_as_such():
    def scores(q, k):
        return jax.nn.softmax((q @ k.T).astype(jnp.float32), axis=-1).astype(q.dtype) @ k

    with pytest.raises(aot.DoesNotFit) as caught:
        aot.compile(scores, "Q[T, H]", "K[T, H]", topology="v5e:1x1", T=131_072, H=128)
    error = caught.value
    assert "HLO temporaries" in str(error)  # XLA's own words
    assert "the largest" not in str(error)
    assert "its arguments take 64 MiB" in str(error)
    assert error.used_bytes > 100 * sum(each.nbytes for each in error.arguments)


@pytest.mark.usefixtures("tpu")
def test_results_count_in_addition_to_arguments():
    with pytest.raises(aot.DoesNotFit, match=r"18\.6\d* GiB"):
        aot.compile(lambda a: a + 1, "A[I, J]", topology="v5e:1x1", I=50_000, J=100_000)
    in_place = aot.compile(lambda a: a + 1, "A[I, J]", topology="v5e:1x1", donate=(0,), I=50_000, J=100_000)
    assert in_place.memory.needed < 10 * GiB


@pytest.mark.usefixtures("tpu")
def test_programs_that_older_compilers_accept_are_refused_by_their_size(monkeypatch):
    monkeypatch.setattr(slices.Topology, "hbm_bytes", 2**20)
    with pytest.raises(
        aot.DoesNotFit, match="of HBM and a chip has 1 MiB; the largest: 1 MiB for results; 512 KiB"
    ):
        aot.compile(lambda a: a.astype(jnp.float32), "A[I, J]", topology="v5e:1x1", I=512, J=512)


def kernel_of_tiles(side, count):
    """A kernel that loads `count` square tiles of fp32 into VMEM and computes almost nothing."""
    from jax.experimental import pallas

    def corners(*refs):
        *tiles, out = refs
        out[...] = sum(tile[:8, :128] for tile in tiles)

    def call(*tiles):
        result = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        return pallas.pallas_call(corners, out_shape=result)(*tiles)

    return aot.compile(call, *["X[I, J]"] * count, topology="v5e:1x1", dtype=FP32, I=side, J=side)


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize(
    ("side", "count"),
    [(8192, 1), (4096, 3)],
    ids=["one tile larger than VMEM", "three that do not fit together"],
)
def test_a_kernel_larger_than_vmem_is_an_error_with_figures(side, count):
    with pytest.raises(aot.DoesNotFit, match="of VMEM") as caught:
        kernel_of_tiles(side, count)
    error = caught.value
    assert error.memory == "VMEM"
    assert error.limit_bytes == chips.V5E.vmem_bytes <= error.used_bytes
    assert error.largest[0].nbytes == 4 * side * side
    tile = f"f32[{side},{side}], input window allocation for operator input 0"
    assert error.largest[0].purpose == tile


@pytest.mark.usefixtures("tpu")
def test_a_kernel_that_fits_compiles():
    assert kernel_of_tiles(1024, 2).memory.needed > 0
