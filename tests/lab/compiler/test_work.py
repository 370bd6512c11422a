"""FLOPs equal the formulas and, without loops, XLA's own count; cycles, VMEM and prefetches are read."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16, FP32, INT8

ONE = {"topology": "v5e:1x1"}


def multiply(x, w):
    return x @ w


def batched(x, w):
    return jnp.einsum("gbd,gdf->gbf", x, w)


def mlp(x, w, v):
    return (x @ w) @ v


@pytest.mark.parametrize("how", [{}, ONE], ids=["cpu", "tpu"])
@pytest.mark.parametrize(
    ("fn", "arrays", "flops"),
    [
        (multiply, ("X[B, D]", "W[D, F]"), 2 * 256 * 512 * 1024),
        (batched, ("X[G, B, D]", "W[G, D, F]"), 4 * 2 * 256 * 512 * 1024),
        (mlp, ("X[B, D]", "W[D, F]", "V[F, D]"), 4 * 256 * 512 * 1024),
    ],
)
def test_flops_are_those_of_the_formula_and_of_xla(cpu, fn, arrays, flops, how):
    program = cpu(fn, *arrays, **how, mesh=Mesh(X=1), dtype=FP32, B=256, D=512, F=1024, G=4)
    assert program.flops == flops
    assert program.compiled.cost_analysis()["flops"] == pytest.approx(flops, rel=0.01)


def test_a_scanned_layer_counts_once_per_trip(tpu):
    def layers(x, w):
        return lax.scan(lambda h, _: (h @ w, None), x, None, length=6)[0]

    program = tpu(layers, "X[B, D]", "W[D, E]", **ONE, B=512, D=512, E=512)
    once = 2 * 512**3
    assert program.flops == 6 * once
    assert program.compiled.cost_analysis()["flops"] == pytest.approx(once, rel=0.01)
    assert {f.times for f in program.fusions if f.kind == "matmul"} == {6}


def test_a_layer_s_gradient_is_three_matmuls_split_over_the_chips(tpu):
    def loss(ws, x):
        return jnp.sum(mlp(x, *ws).astype(jnp.float32) ** 2)

    program = tpu(jax.grad(loss), ("W[D, F_Y]", "V[F_Y, D]"), "X[B_X, D]", mesh=Mesh(X=2, Y=4),
                  topology="v5e:2x4", B=1024, D=512, F=2048)  # fmt: skip
    products = 2 + 3  # forward W and V; backward W, V and the hidden layer
    assert program.flops == products * 2 * 1024 * 512 * 2048 // 8


def test_cycles_are_constant_below_the_critical_batch_and_proportional_above(tpu):
    at = {B: tpu(multiply, "X[B, D]", "W[D, F]", **ONE, B=B, D=8192, F=8192) for B in (8, 64, 4096)}
    assert at[64].cycles < 1.1 * at[8].cycles
    knee = at[8].cycles / (at[4096].cycles / 4096)
    assert 240 < knee < 360  # the datasheet says 255
    assert at[8].estimated_s == at[8].cycles / at[8].chip.clock_hz
    flops_per_cycle = at[4096].flops / at[4096].cycles
    assert 0.95 < flops_per_cycle / (4 * 128 * 128 * 2) <= 1  # four MXUs of 128 x 128


def test_int8_takes_half_the_cycles_of_bf16(tpu):
    def product(x, w):
        return lax.dot(x, w, preferred_element_type=jnp.int32 if x.dtype == jnp.int8 else None)

    cycles = {
        d.name: tpu(product, "X[B, D]", "W[D, F]", **ONE, dtype=d, B=2048, D=4096, F=4096).cycles
        for d in (BF16, INT8)
    }
    assert cycles["bf16"] / cycles["int8"] == pytest.approx(2, rel=0.05)


def test_a_weight_that_fits_into_vmem_is_fetched_ahead(tpu):
    small, large = (tpu(multiply, "X[B, D]", "W[D, F]", **ONE, B=8, D=8192, F=F) for F in (4096, 16384))
    assert small.prefetched_bytes == 2 * 8192 * 4096
    assert large.prefetched_bytes < 2**20
    assert large.cycles / 4 > 5 * small.cycles  # four times the weight, and each byte far slower
    assert 0 < small.vmem_bytes <= small.chip.vmem_bytes


def test_xlas_roofline_has_the_peak_of_the_datasheet(tpu):
    program = tpu(multiply, "X[B, D]", "W[D, F]", **ONE, B=8192, D=8192, F=16384)
    optimal_s = program.compiled.cost_analysis()["optimal_seconds"]
    assert program.flops / optimal_s == pytest.approx(program.chip.bf16_flops_per_s, rel=0.01)
