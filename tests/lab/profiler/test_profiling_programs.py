"""The coding exercises on profiling accept other correct solutions than the printed one."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from scalingbook_book.chapters import checks
from scalingbook_book.code_exercises import judge
from scalingbook_lab.compiler import sharding
from scalingbook_lib.notation import Mesh

X8 = Mesh(X=8)


def waves(*shape):
    return np.sin(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)


def local(block, *specs):
    return jax.shard_map(block, mesh=sharding.mesh(X8), in_specs=specs, out_specs=jax.P(), check_vma=False)


def loss(x, w, target):
    z = x @ w
    return (jax.nn.logsumexp(z, axis=1) - jnp.take_along_axis(z, target[:, None], axis=1)[:, 0]).mean()


def test_a_loss_over_a_split_vocabulary_by_hand():
    def block(x, w, target):
        z = x @ w
        own = jnp.arange(z.shape[1]) + lax.axis_index("X") * z.shape[1] == target[:, None]
        most = lax.pmax(z.max(1), "X")
        parts = jnp.stack([jnp.exp(z - most[:, None]).sum(1), (z * own).sum(1)])
        total, right = lax.psum(parts, "X")
        return (most + jnp.log(total) - right).mean()

    arrays = (waves(256, 64), waves(64, 2048), np.arange(256, dtype=np.int32) * 7 % 2048)
    named = ("X[B, D]", "W[D, V_X]", "T[B]")
    placed = tuple(sharding.place(a, text, X8) for a, text in zip(arrays, named, strict=True))
    verdict = judge.Task("profiling.split-vocabulary", loss, placed)(
        local(block, jax.P(), jax.P(None, "X"), jax.P())
    )
    assert checks.find("profiling.split-vocabulary")(verdict).ok, verdict


def test_a_norm_of_all_gradients_by_hand():
    def block(*gradients):
        return jnp.sqrt(lax.psum(sum(jnp.square(g).sum() for g in gradients), "X"))

    def norm(*gradients):
        return jnp.sqrt(sum(jnp.square(g).sum() for g in gradients))

    sizes = ((256, 64), (64, 256), (128, 1))
    placed = tuple(sharding.place(waves(*size), "G[I_X, J]", X8) for size in sizes)
    task = judge.Task("profiling.global-norm", norm, placed)
    for written in (norm, local(block, *[jax.P("X", None)] * 3)):
        assert checks.find("profiling.global-norm")(task(written)).ok, task(written)
