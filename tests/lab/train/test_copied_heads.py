"""Four chips share one key-value head: the compiled layer has the FLOPs and collectives of `training`."""

import jax
import jax.numpy as jnp

from scalingbook_lab.compiler import aot
from scalingbook_lib.hlo.predicted import Amount, Key, read
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan
from scalingbook_lib.training.shape import shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import FP32

SIZES = {"B": 64, "D": 32, "K": 2, "N": 8, "H": 16}
GIVEN = ("X[B, D]", "Q[D, N_YZ, H]", "K[D, K_Y, H]", "V[D, K_Y, H]")  # heads over Y, each copied over Z


def projected(x, *weights):
    """Queries, keys and values, and their gradients where each output is its own gradient."""
    return sum(jnp.sum(jnp.einsum("bd,dnh->bnh", x, w) ** 2) for w in weights)


def gradients(x, *weights):
    found = jax.grad(projected, argnums=(1, 2, 3))(x, *weights)
    return found[0], *(jax.lax.psum(g, "Z") for g in found[1:])


def test_a_layer_uses_replicated_heads_and_sums_their_gradients():
    program = aot.compile(
        gradients, *GIVEN, out=GIVEN[1:], local=True, mesh={"Y": 2, "Z": 4}, dtype=FP32, **SIZES
    )
    model = Transformer(name="one layer", L=1, V=8, F=8, D=32, N=8, K=2, H=16)
    plan = Plan(tp=8)
    one = shape(work(model, 8, "none", FP32, True), plan, 1)
    queries = model.D * model.N * model.H / plan.tp
    passes = 2  # the output, and the gradient of the weights
    assert program.flops == passes * 2 * SIZES["B"] * (queries + one.kv)
    assert read(program) == {Key("all-reduce", "Z"): Amount(1, FP32.bytes * one.kv)}
    assert one.kv_copies == 4
