"""Records profiles of programs on simulated devices."""

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lab.compiler import sharding
from scalingbook_lab.profiler import trace
from scalingbook_lib import profiles
from scalingbook_lib.notation import Mesh

MESH = Mesh(X=4)


def mlp(x, w, v):
    with jax.named_scope("up"):
        h = jnp.tanh(x @ w)
    with jax.named_scope("down"):
        return h @ v


@pytest.fixture(scope="module")
def recorded():
    shapes = {"X[B, D]": (64, 128), "W[D, F_X]": (128, 256), "V[F_X, D]": (256, 128)}
    arrays = [sharding.place(jnp.ones(shape), text, MESH) for text, shape in shapes.items()]
    step = jax.jit(mlp, out_shardings=sharding.named("Y[B, D]", MESH))
    return trace.record(step, *arrays, runs=2)


def test_every_operation_appears_on_every_device_in_every_run(recorded):
    assert (recorded.runs, recorded.devices, recorded.warmup) == (2, 4, 1)
    assert {row.times for row in recorded.rows} == {1}
    assert len(recorded.events) == 2 * 4 * len(recorded.ops)


def test_nothing_is_compiled_after_the_warm_up(recorded):
    assert recorded.compilations == ()
    assert [m.name for m in recorded.host] == ["step", "step"]


def test_operations_have_scopes_work_and_collectives(recorded):
    flops = {row.op.scope: row.op.flops for row in recorded.rows if row.op.kind == "matmul"}
    assert flops == {"up": 2 * 64 * 128 * 256 // 4, "down": 2 * 64 * 128 * 256 // 4}
    nbytes = 4 * 64 * 128
    assert recorded.collectives == {f"all-reduce over X of {nbytes / 1000:.3g} kB": 1}


def test_a_recorded_trace_loads_unchanged(recorded, tmp_path):
    again = profiles.load(profiles.save(recorded, tmp_path / "mlp.json"))
    assert again.ops == recorded.ops
    assert [e[:3] for e in again.events] == [e[:3] for e in recorded.events]
    assert again.run_s == pytest.approx(recorded.run_s)


def test_a_block_counts_its_compilations():
    square = jax.jit(lambda x: x @ x)
    small, large = jnp.ones((3, 3)), jnp.ones((5, 5))
    with trace.recording(title="shapes") as seen:
        for x in (small, large, large):
            jax.block_until_ready(square(x))
        with pytest.raises(RuntimeError, match="ask for its trace after"):
            _ = seen.trace
    assert len(seen.trace.compilations) == 2
    assert "2 compilations within" in str(seen.trace)


def test_profiling_writes_nothing_to_standard_error(capfd):
    with trace.recording():
        jax.block_until_ready(jnp.ones(4) + 1)
    assert capfd.readouterr().err == ""


def test_two_programs_of_one_name_are_refused():
    inputs = [[jnp.ones((n, n))] * 3 for n in (2, 3)]
    programs = [jax.jit(mlp).lower(*each).compile() for each in inputs]

    def record():
        with trace.recording(*programs):
            for program, each in zip(programs, inputs, strict=True):
                program(*each).block_until_ready()

    with pytest.raises(ValueError, match="give their functions different names"):
        record()
