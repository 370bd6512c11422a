"""The four cases of a sharded matmul, as compiled for CPU and TPU: collective, axis, bytes and FLOPs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scalingbook_lab.compiler import aot, sharding
from scalingbook_lib import collectives, hlo, sharded_matmul
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Mesh, parse_product
from scalingbook_lib.units import BF16, FP32

MESH = Mesh(X=2, Y=4)
SLICE = chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4)
SIZES = {"I": 2048, "J": 2048, "K": 2048}
TARGETS = {"cpu": (None, FP32), "tpu": ("v5e:2x4", BF16)}  # XLA:CPU would widen bf16 to fp32

CASES = {
    "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]": (1, "nothing to move"),
    "A[I_X, J_Y] · B[J, K] -> C[I_X, K]": (2, "gather A over Y"),
    "A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]": (2, "gather B over X"),
    "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]": (3, "all-reduce C over Y"),
    "A[I_XY, J] · B[J, K_Y] -> C[I_XY, K]": (4, "gather B over Y"),
}
NAMES = {"AllGather": "all-gather", "AllReduce": "all-reduce", "ReduceScatter": "reduce-scatter"}


def multiply(a, b):
    return a @ b


def of_product(compiler, text, target):
    product, (topology, dtype) = parse_product(text), TARGETS[target]
    a, b, c = (array.canonical() for array in product.arrays)
    return compiler(multiply, a, b, out=c, mesh=MESH, topology=topology, dtype=dtype, **SIZES)


def compiled_rows(program):
    return [(c.kind, c.axes, c.nbytes, c.times) for c in program.collectives]


def predicted_rows(strategy, dtype=BF16):
    """The predicted collectives; the library computes in bf16, as the MXU
    does, and other types move other bytes.
    """
    wider = dtype.bytes / BF16.bytes
    return [(NAMES[move.kind], move.axes, wider * move.nbytes, 1) for move in strategy.steps]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", CASES)
def test_the_compiler_moves_what_the_case_says(request, text, target):
    case, name = CASES[text]
    solution = sharded_matmul.solve(text, SLICE, SIZES, BF16)
    strategy = solution.named(name)
    program = of_product(request.getfixturevalue(target), text, target)
    assert solution.case == case
    assert compiled_rows(program) == predicted_rows(strategy, TARGETS[target][1])
    assert program.flops == strategy.flops


@pytest.mark.parametrize("out", ["C[I_X, K_Y]", "C[I_XY, K]"])
def test_a_sharded_sum_is_a_reduce_scatter_only_on_a_tpu(tpu, cpu, out):
    text = f"A[I_X, J_Y] · B[J_Y, K] -> {out}"
    strategy = sharded_matmul.solve(text, SLICE, SIZES, BF16).named("reduce-scatter C over Y")
    assert compiled_rows(of_product(tpu, text, "tpu")) == predicted_rows(strategy)
    (on_cpu,) = of_product(cpu, text, "cpu").collectives
    assert (on_cpu.kind, on_cpu.axes, on_cpu.nbytes) == ("all-reduce", "Y", 2 * strategy.steps[0].nbytes)


@pytest.mark.parametrize("text", CASES)
def test_the_matmul_is_right_on_eight_devices(cpu, text):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2048, 2048), np.float32) for _ in "AB")
    np.testing.assert_allclose(of_product(cpu, text, "cpu").run(a, b), a @ b, atol=1e-2)


def test_the_compiler_uses_an_idle_axis(tpu):
    """Y shards no array of this product; the compiler shards an array over Y and gathers it again."""
    text = "A[I_X, J] · B[J, K_X] -> C[I_X, K]"
    assert [(c.kind, c.axes) for c in of_product(tpu, text, "tpu").collectives] == [
        ("collective-permute", "XY"),
        ("all-gather", "Y"),
    ]


def moved(compiler, fn, mesh, axis, I):
    program = compiler(fn, "A[I, J]", f"B[J_{axis}, K]", out="C[I, K]", mesh=mesh, topology="v5e:2x4",
                       I=I, J=4096, K=4096)  # fmt: skip
    return program.collectives.over_axes()


def slice_first(a, b):
    split = sharding.named("A[I, J_Y]", aot.mesh_for("v5e:2x4", MESH))
    return lax.with_sharding_constraint(a, split) @ b


def test_with_an_idle_axis_the_compiler_gathers_the_weight(tpu):
    """Its partial sums would be 32 times smaller, but the compiler reduces
    them only where the local slice is explicit.
    """
    assert moved(tpu, multiply, MESH, "Y", 128) == {"all-gather Y": 1}
    assert moved(tpu, slice_first, MESH, "Y", 128) == {"all-reduce Y": 1}


def test_without_idle_axes_the_compiler_chooses_the_fewer_bytes(tpu):
    assert moved(tpu, multiply, Mesh(X=8), "X", 128) == {"all-reduce X": 1}
    assert moved(tpu, multiply, Mesh(X=8), "X", 8192) == {"all-gather X": 1}


COLLECTIVES = {
    "all-gather": (lambda x: lax.all_gather(x, "Y", tiled=True), "A[I_Y, J]", "A[I, J]"),
    "reduce-scatter": (
        lambda x: lax.psum_scatter(x, "Y", scatter_dimension=1, tiled=True),
        "A[I, J]",
        "A[I, J_Y]",
    ),
    "all-reduce": (lambda x: lax.psum(x, "Y"), "A[I, J]", "A[I, J]"),
    "all-to-all": (lambda x: lax.all_to_all(x, "Y", 1, 0, tiled=True), "A[I_Y, J]", "A[I, J_Y]"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", COLLECTIVES)
def test_an_explicit_collective_is_compiled_as_that_collective(request, kind, target):
    fn, given, out = COLLECTIVES[kind]
    topology, dtype = TARGETS[target]
    compiler = request.getfixturevalue(target)
    program = compiler(
        fn, given, out=out, local=True, mesh=MESH, topology=topology, dtype=dtype, I=1024, J=1024
    )
    nbytes = dtype.bytes * 1024 * 1024
    assert compiled_rows(program) == [(kind, "Y", nbytes, 1)]
    assert program.collectives.received_bytes == collectives.bytes_received(kind, nbytes, 4)


@pytest.mark.parametrize("target", TARGETS)
def test_scanned_layers_count_once_per_trip(request, target):
    topology, dtype = TARGETS[target]
    program = request.getfixturevalue(target)(
        nested, "A[I, J]", out="A[I, J]", local=True, mesh=MESH, topology=topology, dtype=dtype, I=256, J=256
    )
    nbytes = dtype.bytes * 256 * 256
    assert compiled_rows(program) == [("all-reduce", "Y", nbytes, 15), ("all-reduce", "X", nbytes, 5)]


def nested(x):
    def inner(h, _):
        return lax.psum(h, "Y") * 0.1, None

    def outer(h, _):
        return lax.psum(lax.scan(inner, h, None, length=3)[0], "X") * 0.5, None

    return lax.scan(outer, x, None, length=5)[0]


@pytest.mark.parametrize(
    ("forward", "backward"), [("all-gather", "reduce-scatter"), ("reduce-scatter", "all-gather")]
)
def test_gather_and_scatter_are_transposes_of_each_other(tpu, forward, backward):
    fn, given, out = COLLECTIVES[forward]

    def pulled_back(x, g):
        return jax.vjp(fn, x)[1](g)[0]

    program = tpu(pulled_back, given, out.replace("A", "G"), out=given, local=True, mesh=MESH,
                  topology="v5e:2x4", I=1024, J=1024)  # fmt: skip
    assert compiled_rows(program) == [(backward, "Y", 2 * 1024 * 1024, 1)]


def gradient(topology, n, batch):
    def loss(w, x):
        return jnp.sum((x @ w).astype(jnp.float32) ** 2)

    return aot.compile(jax.grad(loss), "W[D, F]", "X[B_X, D]", out="W[D, F]", topology=topology,
                       mesh=Mesh(X=n), B=batch, D=1024, F=1024)  # fmt: skip


@pytest.mark.usefixtures("tpu")
def test_gradients_keep_their_bytes_while_flops_shrink_with_chips():
    strong = {n: gradient(t, n, 4096) for n, t in {4: "v5e:2x2", 8: "v5e:2x4"}.items()}
    assert strong[4].collectives.nbytes() == strong[8].collectives.nbytes() == {"all-reduce X": 2 * 1024**2}
    assert strong[4].flops == 2 * strong[8].flops == 2 * 2 * 4096 * 1024**2 * 2 // 8
    assert gradient("v5e:2x4", 8, 8192).flops == strong[4].flops


def test_a_plain_jit_knows_its_mesh():
    x = sharding.place(np.ones((8, 8), np.float32), "A[I_X, J]", MESH)
    whole = sharding.named("A[I, J]", MESH)
    compiled = jax.jit(lambda a: a, out_shardings=whole).lower(x).compile()
    assert hlo.collectives(compiled).over_axes() == {"all-gather X": 1}
    assert hlo.collectives(compiled, MESH) == {"all-gather": 1}
