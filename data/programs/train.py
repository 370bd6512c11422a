"""A training step of eight MLP layers, for `scalingbook inspect train.py:step --slice v5p:4x4x4`."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

L, D, F, BATCH, TOKENS = 8, 2048, 8192, 64, 128
mesh_axes = {"data": 16, "model": 4}


@jax.checkpoint
def layer(x, w):
    """One MLP with a residual connection."""
    h = jax.nn.gelu(jnp.einsum("btd,df->btf", x, w["up"]))
    return x + jnp.einsum("btf,fd->btd", h, w["down"]), None


def loss(params, x):
    """The mean square of the last layer's output."""
    y, _ = jax.lax.scan(layer, x, params)
    return jnp.square(y.astype(jnp.float32)).mean()


def step(state, x):
    """One step of SGD with momentum."""
    gradients = jax.grad(loss)(state["params"], x)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], gradients)
    params = jax.tree.map(lambda p, m: (p - 1e-3 * m).astype(p.dtype), state["params"], momentum)
    return {"params": params, "momentum": momentum}


def step_args(mesh):
    """The shapes and the shardings of a state and a batch."""

    def array(shape, dtype, *spec):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

    params = {
        "up": array((L, D, F), jnp.bfloat16, None, "data", "model"),
        "down": array((L, F, D), jnp.bfloat16, None, "model", "data"),
    }
    momentum = {  # sharded over model only: a mistake that inspect finds
        "up": array((L, D, F), jnp.float32, None, None, "model"),
        "down": array((L, F, D), jnp.float32, None, "model", None),
    }
    x = array((BATCH, TOKENS, D), jnp.bfloat16, "data")
    return {"params": params, "momentum": momentum}, x
