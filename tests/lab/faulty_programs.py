"""Small programs with one fault each, and the same programs without it, for the findings of `inspection`.

`python -m tests.lab.faulty_programs` compiles all of them for a TPU slice and writes their texts, with the
notes that `inspect --save` adds, to `tests/core/inspection/programs`. The tests of the core read those, and a
test of the laboratory compiles some of them again.
"""

import gzip
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from scalingbook_lab import devices

FOLDER = Path(__file__).parents[1] / "core" / "inspection" / "programs"
SLICE, MESH = "v5e:4x4", {"data": 4, "model": 4}
BF16, FP32 = jnp.bfloat16, jnp.float32


class Program(NamedTuple):
    """A function with its arguments: (shape, dtype, partition spec) or a dict of them.

    `slice_name` is "" for simulated devices of this machine, eight unless `mesh` says otherwise. They may
    stand in for those of a `machine`.
    """

    fn: Callable[..., Any]
    arguments: tuple[Any, ...]
    donate: tuple[int, ...] = ()
    slice_name: str = SLICE
    mesh: dict[str, int] | None = None
    machine: str = ""


def constrained(x, *spec):
    return lax.with_sharding_constraint(x, P(*spec))


def gathered_rows(x):
    """Every device gathers all rows and keeps the first few of them."""
    whole = constrained(x, None, None)
    return constrained(lax.optimization_barrier(whole)[:64], None, None) * 2


def sharded_rows(x):
    return constrained(x[:4096] * 2, "data", None)


def local_sums(each: bool):
    """The same by hand: a psum in every microbatch, or one after all of them."""

    def step(w, xs):
        def one(total, x):
            gradient = jax.grad(lambda w: jnp.square(jnp.tanh(x @ w).astype(FP32)).sum())(w).astype(FP32)
            return total + (lax.psum(gradient, "data") if each else gradient), None

        total = lax.pcast(jnp.zeros(w.shape, FP32), () if each else ("data",), to="varying")
        total = lax.scan(one, total, xs)[0]
        return total if each else lax.psum(total, "data")

    return lambda w, xs: jax.shard_map(
        lambda w, xs: step(lax.pcast(w, ("data",), to="varying"), xs),
        in_specs=(P(), P(None, "data", None)), out_specs=P(), axis_names={"data"},
    )(w, xs)  # fmt: skip


def weights_gathered(once: bool):
    """The weights of four layers, which FSDP shards, are gathered in every microbatch or once before all."""

    def step(ws, xs):
        stacked = lax.optimization_barrier(constrained(ws, None, None, None)) if once else ws

        def microbatch(total, x):
            def one(x, w):
                return jnp.tanh(x @ constrained(w, None, None)), None

            return total + lax.scan(one, x, stacked)[0].astype(FP32).sum(), None

        return lax.scan(microbatch, jnp.zeros((), FP32), xs)[0]

    return step


def layer(x, up, down):
    return constrained(jnp.tanh(x @ up) @ down, "data", None)


def reduced_and_sliced(x, w):
    """The sum over model is kept whole on each device, and then every device takes its slice."""

    def body(x, w):
        total = lax.psum(x @ w, "model")
        width = total.shape[1] // 4
        return lax.dynamic_slice_in_dim(total, lax.axis_index("model") * width, width, 1)

    return jax.shard_map(body, in_specs=(P("data", "model"), P("model", None)), out_specs=P("data", "model"))(
        x, w
    )


def scattered(x, w):
    body = lambda x, w: lax.psum_scatter(x @ w, "model", scatter_dimension=1, tiled=True)  # noqa: E731
    return jax.shard_map(body, in_specs=(P("data", "model"), P("model", None)), out_specs=P("data", "model"))(
        x, w
    )


def many_norms(combined: bool):
    """A norm of each of 32 small vectors, reduced one by one or together."""

    def body(*vectors):
        squares = [jnp.square(v).sum() for v in vectors]
        if combined:
            return lax.psum(jnp.stack(squares), "data").sum()
        total = jnp.zeros(())
        for square in squares:  # each waits for the one before it
            total = jnp.sqrt(lax.psum(square + total * 1e-9, "data"))
        return total

    return jax.shard_map(body, in_specs=P("data"), out_specs=P())


def gradient(dtype):
    """The gradient of a matrix, reduced over data in this type."""

    def body(w, x):
        loss = lambda w: jnp.square(jnp.tanh(x @ w).astype(FP32)).mean()  # noqa: E731
        g = jax.grad(loss)(lax.pcast(w, ("data",), to="varying"))
        return lax.psum(g.astype(dtype), "data")

    return lambda w, x: jax.shard_map(
        body, in_specs=(P(), P("data", None)), out_specs=P(), axis_names={"data"}
    )(w, x)


def momentum(state, x):
    """A training step of one matrix."""

    def loss(w):
        return jnp.square(jnp.tanh(x @ w).astype(FP32)).mean()

    gradient = jax.grad(loss)(state["w"])
    mu = 0.9 * state["mu"] + gradient.astype(FP32)
    return {"w": (state["w"] - 1e-3 * mu).astype(BF16), "mu": mu}


def stack(checkpointed: bool):
    """The gradient of 8 layers, which recompute their forward pass or save it."""

    def one(x, w):
        return jnp.tanh(jnp.tanh(x @ w["up"]) @ w["down"]), None

    def loss(w, x):
        y, _ = lax.scan(jax.checkpoint(one) if checkpointed else one, x, w)
        return jnp.square(y.astype(FP32)).mean()

    return jax.grad(loss)


def multiply(x, w):
    return x @ w


def uneven(x, w):
    """129 columns over four devices are padded to 132."""
    return constrained(jnp.tanh(constrained(x @ w, "data", "model")), "data", "model").sum(0)


def transposes(x):
    return lax.optimization_barrier(jnp.swapaxes(lax.optimization_barrier(x), 1, 2)) * 2


def twice(x):
    return x * 2


def attention(flash: bool):
    """Attention that materializes its scores, or computes them in blocks of queries and keys."""

    def plain(q, k, v):
        scores = jnp.einsum("bthd,bshd->bhts", q, k, preferred_element_type=FP32)
        return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores).astype(BF16), v)

    def blocks(q, k, v):
        parts = jnp.reshape(q, (q.shape[0], -1, 256, *q.shape[2:])).swapaxes(0, 1)
        out = lax.map(lambda part: plain(part, k, v), parts)
        return out.swapaxes(0, 1).reshape(q.shape)

    return blocks if flash else plain


def printing(verbose: bool):
    def step(x):
        y = jnp.tanh(x)
        if verbose:
            jax.debug.callback(lambda total: None, y.sum())
        return y

    return step


def _w(*shape, dtype=BF16, spec=()):
    return shape, dtype, spec


_STACK = {
    "up": _w(8, 2048, 8192, spec=(None, None, "model")),
    "down": _w(8, 8192, 2048, spec=(None, "model")),
}
_X = _w(4096, 2048, spec=("data",))
_STATE = {"w": _w(4096, 8192, spec=(None, "model"))}
_PARTIAL = (_w(4096, 8192, spec=("data", "model")), _w(8192, 2048, spec=("model",)))
_BATCH = _w(4096, 4096, spec=("data",))
_TRAINED = _STATE | {"mu": _w(4096, 8192, dtype=FP32, spec=(None, "model"))}
_SHARDED = {name: (*array[:2], ("data", "model")) for name, array in _TRAINED.items()}
_HEADS = _w(16, 2048, 16, 128, spec=("data", None, "model"))
_ROWS = _w(65536, 4096, spec=("data", None))
_MICRO = _w(8, 4096, 2048, spec=(None, "data", None))

_LAYER = (
    _w(16384, 4096, spec=("data",)), _w(4096, 16384, spec=(None, "model")), _w(16384, 4096, spec=("model",))
)  # fmt: skip
PROGRAMS: dict[str, tuple[Program, Program]] = {
    "repeated in a loop": (
        Program(weights_gathered(False), (_w(4, 2048, 2048, spec=(None, "data")), _MICRO)),
        Program(weights_gathered(True), (_w(4, 2048, 2048, spec=(None, "data")), _MICRO)),
    ),
    "summed in every trip": (
        Program(local_sums(True), (_w(2048, 2048), _MICRO), slice_name=""),
        Program(local_sums(False), (_w(2048, 2048), _MICRO), slice_name=""),
    ),
    "gathered and mostly unused": (Program(gathered_rows, (_ROWS,)), Program(sharded_rows, (_ROWS,))),
    "reduced, then sliced": (
        Program(reduced_and_sliced, _PARTIAL),
        Program(scattered, _PARTIAL),
    ),
    "exposed communication": (
        Program(layer, (_X, _w(2048, 8192, spec=(None, "model")), _w(8192, 2048, spec=("model",)))),
        Program(layer, (_X, _w(2048, 8192), _w(8192, 2048))),
    ),
    "latency-bound collectives": (
        Program(many_norms(False), (_w(1024, dtype=FP32, spec=("data",)),) * 16),
        Program(many_norms(True), (_w(1024, dtype=FP32, spec=("data",)),) * 16),
    ),
    "fp32 collectives": (
        Program(gradient(FP32), (_w(4096, 4096), _w(8192, 4096, spec=("data",)))),
        Program(gradient(BF16), (_w(4096, 4096), _w(8192, 4096, spec=("data",)))),
    ),
    "replicated state": (
        Program(momentum, (_TRAINED, _BATCH), (0,)),
        Program(momentum, (_SHARDED, _BATCH), (0,)),
    ),
    "not donated": (
        Program(momentum, (_TRAINED, _BATCH)),
        Program(momentum, (_TRAINED, _BATCH), (0,)),
    ),
    "padded arrays": (
        Program(twice, (_w(516, 129, 129, spec=("data",)),)),
        Program(twice, (_w(512, 128, 128, spec=("data",)),)),
    ),
    "memory nearly full": (
        Program(twice, (_w(4 * 131072, 30500, spec=("data", None)),)),
        Program(twice, (_w(4 * 131072, 8192, spec=("data", None)),)),
    ),
    "recomputed": (Program(stack(True), (_STACK, _X)), Program(stack(False), (_STACK, _X))),
    "padded matmuls": (
        Program(multiply, (_w(8192, 8192, spec=("data",)), _w(8192, 129))),
        Program(multiply, (_w(8192, 8192, spec=("data",)), _w(8192, 128))),
    ),
    "uneven shards": (
        Program(uneven, (_w(8192, 8192, spec=("data",)), _w(8192, 1030))),
        Program(uneven, (_w(8192, 8192, spec=("data",)), _w(8192, 1024))),
    ),
    "relayout copies": (
        Program(transposes, (_w(64, 2048, 2048, spec=("data",)),)),
        Program(twice, (_w(64, 2048, 2048, spec=("data",)),)),
    ),
    "fp32 matmuls": (
        Program(multiply, (_w(8192, 8192, dtype=FP32, spec=("data",)), _w(8192, 8192, dtype=FP32))),
        Program(multiply, (_w(8192, 8192, spec=("data",)), _w(8192, 8192))),
    ),
    "scores in HBM": (
        Program(attention(False), (_HEADS, _HEADS, _HEADS)),
        Program(attention(True), (_HEADS, _HEADS, _HEADS)),
    ),
    "axis across nodes": (
        Program(layer, _LAYER, slice_name="", mesh={"model": 2, "data": 8}, machine="h100:16"),
        Program(layer, _LAYER, slice_name="", mesh={"data": 8, "model": 2}, machine="h100:16"),
    ),
    "calls to the host": (
        Program(printing(True), (_w(4096, 4096, spec=("data",)),)),
        Program(printing(False), (_w(4096, 4096, spec=("data",)),)),
    ),
}  # fmt: skip
"""For every rule, a program that breaks it and one that does not."""


def file_name(rule: str, *, faulty: bool) -> str:
    """The name of a stored program, such as 'reduced-then-sliced.faulty.hlo.gz'."""
    return f"{re.sub(r'[^a-z0-9]+', '-', rule.lower())}.{'faulty' if faulty else 'fixed'}.hlo.gz"


def compiled(program: Program) -> Any:
    """The source of a program, compiled for the slice."""
    from scalingbook_lab.compiler import user_program

    def struct(one, mesh):
        shape, dtype, spec = one
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

    def arguments(mesh):
        return tuple(
            {k: struct(v, mesh) for k, v in a.items()} if isinstance(a, dict) else struct(a, mesh)
            for a in program.arguments
        )

    jitted = jax.jit(program.fn, donate_argnums=program.donate)
    mesh = program.mesh or (MESH if program.slice_name else {"data": 4, "model": 2})
    found = user_program.compile_function(jitted, arguments, slice_name=program.slice_name, mesh=mesh)
    return replace(found, machine=program.machine or found.machine)


def main(*rules: str) -> None:
    """Write the texts of all programs, or of those for some rules."""
    from scalingbook_lib.inspection import source

    devices.simulate(16)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for rule, pair in PROGRAMS.items():
        if rules and rule not in rules:
            continue
        for program, faulty in zip(pair, (True, False), strict=True):
            text = source.with_notes(compiled(program))
            path = FOLDER / file_name(rule, faulty=faulty)
            with gzip.GzipFile(path, "wb", mtime=0) as file:
                file.write(text.encode())
            print(file_name(rule, faulty=faulty))


if __name__ == "__main__":
    main(*sys.argv[1:])
