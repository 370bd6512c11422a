"""The compiled programs among the mysteries, each with or without one fault that `inspect` finds.

Two are compiled ahead of time for TPU slices, and two for simulated CPU devices. Nothing is run.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from scalingbook_lab.compiler import user_program
from scalingbook_lib.inspection import source

type Tree = dict[str, Any]
DEVICES = 64  # simulated devices that the programs need


def tight_memory(*, fault: bool = True) -> str:
    """A step of Adam under FSDP, whose second moments of two matrices are replicated over all devices."""
    L, D, F, batch, T = 16, 4096, 16384, 32, 2048
    names = {"query": (L, D, D), "output": (L, D, D), "up": (L, D, F), "down": (L, F, D)}

    def layer(x: jax.Array, w: Tree) -> tuple[jax.Array, None]:
        x = x + (jnp.tanh(x @ w["query"]) @ w["output"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    def loss(weights: Tree, x: jax.Array) -> jax.Array:
        narrow = jax.tree.map(lambda w: w.astype(jnp.bfloat16), weights)
        y, _ = jax.lax.scan(jax.checkpoint(layer), x, narrow)
        return jnp.square(y.astype(jnp.float32)).mean()

    def step(state: Tree, x: jax.Array) -> Tree:
        gradients = jax.grad(loss)(state["params"], x)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], gradients)
        nu = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, state["nu"], gradients)
        change = jax.tree.map(lambda m, v: 1e-3 * m / (jnp.sqrt(v) + 1e-8), mu, nu)
        return {"params": jax.tree.map(jnp.subtract, state["params"], change), "mu": mu, "nu": nu}

    def arguments(mesh: Any) -> tuple[Tree, jax.ShapeDtypeStruct]:
        def array(shape: tuple[int, ...], dtype: Any, *spec: str | None) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

        sharded = {name: array(shape, jnp.float32, None, "fsdp") for name, shape in names.items()}
        replicated = {name: array(names[name], jnp.float32) for name in ("up", "down") if fault}
        state = {"params": sharded, "mu": sharded, "nu": sharded | replicated}
        return state, array((batch, T, D), jnp.bfloat16, "fsdp")

    return _text(jax.jit(step, donate_argnums=0), arguments, slice_name="v5e:4x4", mesh={"fsdp": 16})


def eight_nodes(*, fault: bool = True) -> str:
    """Tensor and data parallelism on eight nodes of eight GPUs; the model axis is the outer one."""
    L, D, F, batch, T = 8, 4096, 16384, 64, 1024
    shapes = {"up": (L, D, F), "down": (L, F, D)}

    def layer(x: jax.Array, w: Tree) -> tuple[jax.Array, None]:
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    def loss(weights: Tree, x: jax.Array) -> jax.Array:
        y, _ = jax.lax.scan(layer, x, weights)
        return jnp.square(y).mean()

    def step(weights: Tree, x: jax.Array) -> Tree:
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, gradients)

    def arguments(mesh: Any) -> tuple[Tree, jax.ShapeDtypeStruct]:
        def array(shape: tuple[int, ...], *spec: str | None) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

        weights = {
            "up": array(shapes["up"], None, None, "model"),
            "down": array(shapes["down"], None, "model", None),
        }
        return weights, array((batch, T, D), "data")

    sizes = {"model": 8, "data": 8} if fault else {"data": 8, "model": 8}
    return _text(jax.jit(step, donate_argnums=0), arguments, machine="h100:64", mesh=sizes)


def one_layer(*, fault: bool = True) -> str:
    """An attention block whose 32 heads of 80 fill neither tiles nor matrix units."""
    B, T, D, N, H = (16, 384, 2560, 32, 80) if fault else (16, 384, 2560, 20, 128)

    def loss(w: Tree, x: jax.Array) -> jax.Array:
        q, k, v = (jnp.einsum("btd,dnh->btnh", x, w[name]) for name in ("query", "key", "value"))
        scores = jnp.einsum("btnh,bsnh->bnts", q, k).astype(jnp.float32) * H**-0.5
        shares = jax.nn.softmax(scores).astype(v.dtype)
        y = x + jnp.einsum("bnts,bsnh,nhd->btd", shares, v, w["output"])
        return jnp.square(y.astype(jnp.float32)).mean()

    def step(w: Tree, x: jax.Array) -> Tree:
        gradients = jax.grad(loss)(w, x)
        return jax.tree.map(lambda w, g: (w - 1e-3 * g).astype(w.dtype), w, gradients)

    def arguments(mesh: Any) -> tuple[Tree, jax.ShapeDtypeStruct]:
        def array(*shape: int) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P()))

        weights = {name: array(D, N, H) for name in ("query", "key", "value")}
        return weights | {"output": array(N, H, D)}, array(B, T, D)

    return _text(jax.jit(step, donate_argnums=0), arguments, slice_name="v5e:1x1")


def twelve_layers(*, fault: bool = True) -> str:
    """A training step whose layers call Python on the host, in loops over microbatches and layers."""
    L, D, F, microbatches, batch, T = 12, 1024, 4096, 4, 8, 128

    def watched(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda norm: None, jnp.square(x).mean())
        return x

    def layer(x: jax.Array, w: Tree) -> tuple[jax.Array, None]:
        return (watched if fault else jnp.asarray)(x + jax.nn.gelu(x @ w["up"]) @ w["down"]), None

    def loss(weights: Tree, x: jax.Array) -> jax.Array:
        y, _ = jax.lax.scan(jax.checkpoint(layer), x, weights)
        return jnp.square(y).mean()

    def step(weights: Tree, batches: jax.Array) -> Tree:
        def add(total: Tree, x: jax.Array) -> tuple[Tree, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(weights, x)), None

        total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), batches)
        return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, total)

    def arguments(mesh: Any) -> tuple[Tree, jax.ShapeDtypeStruct]:
        def array(shape: tuple[int, ...], *spec: str | None) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

        weights = {"up": array((L, D, F)), "down": array((L, F, D))}
        return weights, array((microbatches, batch, T, D), None, "data")

    return _text(jax.jit(step, donate_argnums=0), arguments, mesh={"data": 1})


def _text(step: Callable[..., Any], arguments: Any, machine: str = "", **how: Any) -> str:
    """The text of a step that was compiled ahead of time, with its mesh and its arguments.

    `machine` is that of a program that simulated devices stand in for.
    """
    found = user_program.compile_function(step, arguments, **how)
    return source.with_notes(replace(found, machine=machine or found.machine))


PROGRAMS: dict[str, Callable[..., str]] = {
    "tight-memory": tight_memory,
    "eight-nodes": eight_nodes,
    "one-layer": one_layer,
    "twelve-layers": twelve_layers,
}
