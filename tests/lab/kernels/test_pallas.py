"""Pallas kernels: right in the interpreter, compiled for a TPU, refused where VMEM is too small."""

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lab.compiler import aot
from scalingbook_lib.hlo import out_of_memory
from scalingbook_lib.units import BF16, FP32, MiB


def multiply(x, w, y, total):
    """One step: a tile of X times a tile of W is added to a tile of Y."""
    step = pallas.program_id(2)

    @pallas.when(step == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    @pallas.when(step == pallas.num_programs(2) - 1)
    def _():
        y[...] = total[...].astype(y.dtype)


def matmul(b, depth=512, *, vmem=None, interpret=False):
    """X · W in square tiles of side b."""

    def run(x, w):
        (M, K), (_, N) = x.shape, w.shape
        return pallas.pallas_call(
            multiply,
            grid=(M // b, N // b, K // depth),
            in_specs=[
                pallas.BlockSpec((b, depth), lambda i, j, k: (i, k)),
                pallas.BlockSpec((depth, b), lambda i, j, k: (k, j)),
            ],
            out_specs=pallas.BlockSpec((b, b), lambda i, j, k: (i, j)),
            out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
            scratch_shapes=[tpu.VMEM((b, b), jnp.float32)],
            compiler_params=tpu.CompilerParams(vmem_limit_bytes=vmem) if vmem else None,
            interpret=interpret,
        )(x, w)

    return run


def compiled(b, **how):
    kernel = matmul(b, **how)
    return aot.compile(kernel, "X[M, K]", "W[K, N]", topology="v5e:1x1", dtype=BF16, M=4096, K=4096, N=4096)


def buffers(b, depth=512):
    """Two buffers of each input tile and of the output tile in bf16, one accumulator in fp32."""
    return 2 * 2 * (2 * b * depth) + 2 * 2 * b * b + FP32.bytes * b * b


def test_the_kernel_computes_the_matmul():
    x = jnp.arange(256 * 256).reshape(256, 256) % 7 - 3.0
    w = jnp.arange(256 * 384).reshape(256, 384) % 5 - 2.0
    assert (matmul(128, 128, interpret=True)(x, w) == x @ w).all()


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("b", [512, 1024])
def test_vmem_is_close_to_the_size_of_the_buffers(b):
    assert buffers(b) < compiled(b).vmem_bytes < 1.1 * buffers(b)


@pytest.mark.usefixtures("tpu")
def test_a_kernel_over_the_scoped_vmem_limit_is_refused_with_both_sizes():
    with pytest.raises(aot.DoesNotFit, match=r"one kernel needs \d+ MiB of VMEM") as caught:
        compiled(2048)
    error = caught.value
    assert error.limit_bytes == 16 * MiB < error.used_bytes <= buffers(2048)  # all, or up to what broke it
    assert f"size {error.used_bytes // MiB}.00M and limit 16.00M" in error.scoped_vmem
    assert "/" not in error.scoped_vmem  # no path of this machine


@pytest.mark.usefixtures("tpu")
def test_a_higher_vmem_limit_is_enough():
    assert buffers(2048) < compiled(2048, vmem=64 * MiB).vmem_bytes <= 64 * MiB


def test_the_error_message_survives_parsing():
    message = (
        "RESOURCE_EXHAUSTED: E1001\nRan out of memory in memory space vmem while allocating on stack for %k. "
        "Scoped allocation with size 40.00M and limit 16.00M exceeded scoped vmem limit by 24.00M. It should"
    )
    error = out_of_memory.read(message)
    assert error is not None
    assert (error.memory, error.used_bytes, error.limit_bytes) == ("VMEM", 40 * MiB, 16 * MiB)
    assert error.scoped_vmem.endswith("by 24.00M")
    assert error.with_arguments(()).scoped_vmem == error.scoped_vmem
