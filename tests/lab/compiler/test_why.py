"""A predicted plan beside a compiled program: agreement is silence about numbers, difference is a reason."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from scalingbook_lib import models, sharded_matmul, training
from scalingbook_lib.lab.compiler import predicted, why
from scalingbook_lib.lab.compiler.hlo import Collectives, CompiledCollective
from scalingbook_lib.machines import chips, slices
from scalingbook_lib.notation import Mesh, parse_product
from scalingbook_lib.units import BF16, FP32

MESH = Mesh(X=2, Y=4)
SLICE = chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4)
SMALL, LARGE = dict.fromkeys("IJK", 2048), dict.fromkeys("IJK", 8192)


def multiply(a, b):
    return a @ b


def both(compiler, text, sizes=SMALL, topology="v5e:2x4", dtype=BF16):
    a, b, c = (array.canonical() for array in parse_product(text).arrays)
    program = compiler(multiply, a, b, out=c, mesh=MESH, topology=topology, dtype=dtype, **sizes)
    return sharded_matmul.solve(text, SLICE, sizes, BF16), program


def rows(*made):
    defaults = {"times": 1, "dtype": "bf16", "devices": 4}
    return Collectives(
        tuple(
            CompiledCollective(kind=kind, axes=axes, nbytes=n, **defaults | more)
            for kind, axes, n, more in made
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        "A[I_X, J_Y] · B[J, K] -> C[I_X, K]",
        "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]",
        "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]",
    ],
)
def test_small_products_are_compiled_as_predicted(tpu, text):
    told = why.compare(*both(tpu, text))
    assert told.agrees
    assert told.predicted_bytes == told.compiled_bytes
    assert str(told).startswith("as predicted: a device receives")


def test_a_large_gather_becomes_a_collective_matmul(tpu):
    told = why.compare(*both(tpu, "A[I_X, J_Y] · B[J, K_Y] -> C[I_X, K_Y]", LARGE))
    (line,) = told.differences
    assert line.predicted == (("all-gather", "Y"),)
    assert line.compiled == (("collective-permute", "Y"),)
    assert "instead of the all-gather: a ring behind the pieces of the product" in str(line)
    assert told.predicted_bytes == told.compiled_bytes


def test_a_large_reduce_scatter_becomes_a_longer_ring(tpu):
    told = why.compare(*both(tpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]", LARGE))
    assert "instead of the reduce-scatter: a ring of 1.67 times the bytes" in str(told)


def test_a_cpu_widens_and_slices(cpu):
    wide = why.compare(*both(cpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]", topology=None))
    assert "2 times the 4.19 MB predicted: it moves fp32, which is twice bf16" in str(wide)
    sliced = why.compare(*both(cpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]", topology=None))
    assert "of fp32, then a slice, instead of the reduce-scatter: twice the bytes on the links" in str(sliced)
    assert sliced.compiled_bytes == 4 * sliced.predicted_bytes


def test_another_strategy_is_recognized_by_name():
    text = "A[I_X, J_Y] · B[J, K] -> C[I_X, K]"
    solution = sharded_matmul.solve(text, SLICE, SMALL, BF16)
    nbytes = solution.named("cut B over Y, all-reduce C over Y").steps[-1].nbytes
    told = why.compare(solution, rows(("all-reduce", "Y", int(nbytes), {})), MESH)
    (line,) = told.lines
    assert "the compiler chose 'cut B over Y, all-reduce C over Y', not 'gather A over Y'" in str(line)
    assert "times as long, network-bound" in str(line)


def test_work_that_is_done_twice_is_said(cpu):
    solution, _ = both(cpu, "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]", topology=None)
    program = cpu(multiply, "A[I, J]", "B[J, K_Y]", out="C[I, K_Y]", mesh=MESH, topology=None, **SMALL)
    assert "2 times the 2.15 GFLOPs predicted" in str(why.compare(solution, program))


def test_a_loop_is_the_reason_for_more_of_the_same():
    def summed(x):
        def step(total, part):
            return total + lax.psum(part, "X"), None

        return lax.scan(step, jnp.zeros(x.shape[1:]), x)[0]

    from scalingbook_lib.lab.compiler import aot

    program = aot.compile(summed, "A[N, I_X]", out="B[I]", mesh=Mesh(X=4), local=True, dtype=FP32, N=5, I=64)
    told = why.compare({"all-reduce X": (1, 4 * 16)}, program)
    assert ": it runs 5 times, not 1, in a loop" in str(told)
    assert why.compare({"all-reduce X": (5, 5 * 4 * 16)}, program).agrees


def test_what_is_on_one_side_alone_is_named():
    told = why.compare(
        {"all-gather X": 4096}, rows(("all-to-all", "X", 1024, {"source": "jit(f)/moe"})), {"X": 4}
    )
    assert [str(line) for line in told.differences] == [
        "all-gather over X: 4.1 kB was predicted, and is not there",
        "all-to-all over X: 1.02 kB was not predicted; it comes from jit(f)/moe",
    ]


def test_an_all_reduce_in_two_halves_moves_as_much():
    halves = rows(("reduce-scatter", "X", 4096, {}), ("all-gather", "X", 4096, {}))
    told = why.compare({"all-reduce X": 4096}, halves, {"X": 4})
    assert "instead of the all-reduce: as many bytes" in str(told)
    assert told.predicted_bytes == told.compiled_bytes


def test_axes_have_no_order_and_hidden_ones_are_said():
    told = why.compare(
        {"all-gather YX": 4096}, rows(("all-gather", "XY", 4096, {"overlapped": True})), {"X": 2, "Y": 2}
    )
    assert told.agrees
    assert "as predicted, beside other work" in str(told)


def test_a_program_is_compared_with_another(cpu):
    _, program = both(cpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]", topology=None)
    assert why.compare(program, program).agrees
    assert why.compare(program.collectives.nbytes(), program).agrees


def test_traffic_of_training_is_a_prediction():
    plan = training.Plan(fsdp=8, microbatch=1)
    traffic = training.traffic(
        models.find("LLaMA-3 8B"), plan, slices.Slice(chips.V5E, (2, 4)), batch=8, T=2048
    )
    told = why.compare(traffic, rows(), {"X": 8})
    assert {line.predicted[0] for line in told.differences} == {("all-gather", "X"), ("reduce-scatter", "X")}
    assert told.predicted_bytes == pytest.approx(sum(row.received for row in traffic))


def test_what_a_whole_step_does_otherwise_has_a_name():
    plan = training.Plan(fsdp=8, dp=2, microbatch=1)
    asked = {"batch": 16, "T": 2048, "loop": True}
    traffic = training.traffic(models.find("LLaMA-3 8B"), plan, slices.Slice(chips.V5E, (4, 4)), **asked)
    sums = predicted.read(traffic)
    scattered = sums.pop(predicted.Key("reduce-scatter", "X")).nbytes
    told = why.compare(
        predicted.on(traffic, X="fsdp", R="data"),
        rows(
            *((key.kind, {"X": "fsdp", "R": "data"}[key.axes], int(n), {}) for key, (_, n) in sums.items()),
            ("all-reduce", "fsdp", int(scattered), {}),
            ("all-gather", "data", 10**10, {"source": "jit(step)/mine"}),
        ),
        {"data": 2, "fsdp": 8},
    )
    assert "≠ summed whole: all-reduce over fsdp: 15 GB, then a slice, for a reduce-scatter" in str(told)
    assert "≠ all-gather over data: 10 GB more than predicted; it comes from jit(step)/mine" in str(told)
    assert [line.rule for line in told.differences] == ["summed whole", ""]
    assert told.unexplained_bytes == pytest.approx(5e9)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (7, "is no prediction; give a strategy"),
        ([7], "is no row of a prediction"),
        ({"gather X": 1}, "'all-gather X'"),
    ],
)
def test_what_is_no_prediction_says_what_is(given, says):
    with pytest.raises((TypeError, ValueError), match=says):
        why.compare(given, rows(), {"X": 4})


def test_a_jax_program_knows_its_mesh():
    mesh = jax.make_mesh((4,), ("X",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])
    split = jax.NamedSharding(mesh, jax.P("X"))
    whole = jax.NamedSharding(mesh, jax.P())
    program = jax.jit(lambda x: x + 1, in_shardings=split, out_shardings=whole).lower(jnp.ones(64)).compile()
    assert why.compare({"all-gather X": 256}, program).agrees
