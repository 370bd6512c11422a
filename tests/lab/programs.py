"""Programs for the coding exercises on JAX: other correct solutions, and some that each make one mistake."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from scalingbook_book.chapters import checks
from scalingbook_lab.compiler import sharding
from tools import exercises


@functools.cache
def given(name=None):
    """The code that precedes an exercise: the notebook's first cells, and those up to it."""
    cells = exercises.source("jax").cells
    first = next(place for place, cell in enumerate(cells) if "exercise" in cell.metadata)
    asks = exercises.read("jax")
    upto = next((one.number for one in asks if one.key == f"jax.{name}"), 0)
    asked = [cell for one in asks[:upto] for cell in one.given]
    names = {}
    for cell in [*(c for c in cells[:first] if c.cell_type == "code"), *asked]:
        exec(cell.source, names)
    return names


def judged(name, fn):
    return checks.find(f"jax.{name}")(given(name)["task"](fn))


def local(fn, *texts, out, on):
    """`shard_map` on a mesh of the notebook."""
    return sharding.local(fn, *texts, out=out, on=given()[on])


def hop(x, axis, by):
    n = lax.axis_size(axis)
    return lax.ppermute(x, axis, [(i, (i + by) % n) for i in range(n)])


def block_of(w, place, n, dim):
    width = w.shape[dim] // n
    return lax.dynamic_slice_in_dim(w, place % n * width, width, dim)


def a_ring(fn, out="C[B_X, F_Y]"):
    return local(fn, "A[B_X, D_Y]", "W[D_Y, F]", out=out, on="GRID")


def to_the_left(a, w):
    me = lax.axis_index("Y")
    total = a @ block_of(w, me + 1, 4, 1)
    for s in range(1, 4):
        total = hop(total, "Y", -1) + a @ block_of(w, me + 1 + s, 4, 1)
    return total


def to_the_right(a, w):
    me = lax.axis_index("Y")
    total = a @ block_of(w, me - 1, 4, 1)
    for s in range(1, 4):
        total = hop(total, "Y", 1) + a @ block_of(w, me - 1 - s, 4, 1)
    return total


def with_zeros_first(a, w):
    me, total = lax.axis_index("Y"), jnp.zeros((8, 8))
    for s in range(4):
        total = hop(total, "Y", -1) + a @ block_of(w, me + 1 + s, 4, 1)
    return total


def summed_and_scattered(a, w):
    return lax.psum_scatter(a @ w, "Y", scatter_dimension=1, tiled=True)


def summed_and_cut(a, w):
    return block_of(lax.psum(a @ w, "Y"), lax.axis_index("Y"), 4, 1)


def in_a_scan(a, w):
    groups = w.reshape(w.shape[0], 4, -1).swapaxes(0, 1)
    _, sums = lax.scan(lambda c, group: (c, lax.psum(a @ group, "Y")), 0, groups)
    return sums.swapaxes(0, 1).reshape(a.shape[0], -1)


def in_groups(a, w):
    return jnp.concatenate([lax.psum(a @ group, "Y") for group in jnp.split(w, 4, axis=1)], axis=1)


def of_shards(x, reduce):
    """A function of each shard of an array with an explicit type."""
    shards = jnp.reshape(x, (2, 4, 4, 4), out_sharding=PartitionSpec("X", None, "Y", None))
    return reduce(shards, axis=(1, 3))


def rolled_by(x, rows):
    return jnp.roll(x.reshape(8, 8, 4), rows, axis=1).reshape(64, 4)


def softmax(a):
    e = jnp.exp(a)
    return e / e.sum(0)


def rows(table, tokens):
    return table.at[tokens].get(out_sharding=PartitionSpec("X", None))


def heads(q):
    return jnp.square(q.reshape(4, 8, 4, 8)).sum(-1)


def four_whole_sums(a, w):
    add = lambda i, c: c + lax.psum(a @ w * (jnp.arange(32) // 8 == i), "Y")  # noqa: E731
    return lax.fori_loop(0, 4, add, jnp.zeros((8, 32)))


def a_gather(fn):
    return local(fn, "A[B_X, D_Y]", "W[D, F_Y]", out="C[B_X, F_Y]", on="GRID")


def halves(a, w, *, swapped=True):
    me, (one, two) = lax.axis_index("Y"), jnp.split(a, 2, 1)
    total = jnp.zeros((8, 8))
    for s in range(4):
        if s:
            one, two = hop(one, "Y", -1 if swapped else 1), hop(two, "Y", 1 if swapped else -1)
        there, here = (me + s, me - s) if swapped else (me - s, me + s)
        total += one @ block_of(w, there, 4, 0)[:2] + two @ block_of(w, here, 4, 0)[2:]
    return total


def one_way(a, w, by):
    me, total = lax.axis_index("Y"), 0
    for s in range(4):
        a = hop(a, "Y", by) if s else a
        total += a @ block_of(w, me - by * s, 4, 0)
    return total


def two_and_one(a, w, by):
    """Whole blocks from both sides: two hops in one direction, one in the other."""
    me, far, near = lax.axis_index("Y"), hop(a, "Y", by), hop(a, "Y", -by)
    farther = hop(far, "Y", by)
    rows = lambda s: block_of(w, me - by * s, 4, 0)  # noqa: E731
    return a @ rows(0) + far @ rows(1) + farther @ rows(2) + near @ rows(-1)


def both_whole(a, w):
    return (one_way(a, w, 1) + one_way(a, w, -1)) / 2


def gathered(a, w):
    return lax.all_gather(a, "Y", axis=1, tiled=True) @ w


def dispatch(h, expert, w, room):
    wants = jax.nn.one_hot(expert, 8)
    place = jax.nn.one_hot((jnp.cumsum(wants, 0) - 1).astype(int), room) * wants[..., None]  # [S, E, room]
    sent = lax.all_to_all(jnp.einsum("sec,sd->ecd", place, h), "X", 0, 0)
    return jnp.einsum("sec,ecf->sf", place, lax.all_to_all(sent @ w[0], "X", 0, 0))


def experts(room):
    fn = functools.partial(dispatch, room=room)
    return local(fn, "H[S_X, D]", "E[S_X]", "W[E_X, D, F]", out="O[S_X, F]", on="LINE")


def accumulated(w, batches):
    loss = given("one-allreduce")["loss"]
    g, _ = lax.scan(lambda g, x: (g + jax.grad(loss)(w, x), None), jnp.zeros_like(w), batches)
    return g


def all_six_at_once(w, batches):
    return jax.grad(lambda w: sum(given("one-allreduce")["loss"](w, x) for x in batches))(w)


def by_hand(w, x):
    g = jax.grad(given("scattered-gradient")["loss"])(lax.all_gather(w, "X", tiled=True), x)
    return lax.psum_scatter(g, "X", tiled=True)


def reduced_and_cut(w, x):
    g = lax.psum(jax.grad(given("scattered-gradient")["loss"])(lax.all_gather(w, "X", tiled=True), x), "X")
    return block_of(g, lax.axis_index("X"), 8, 0)


def staged(fn):
    return sharding.local(
        fn, "X[M, B, D]", "W[L_X, D, E]", out="Y[S_X, M, B, D]", on=given("pipeline-stages")["STAGES"]
    )


def unrolled(x, w):
    """Eight hops: nothing is sent after the last tick."""
    me, arrived, done = lax.axis_index("X"), jnp.zeros_like(x[0]), []
    for tick in range(9):
        done.append(jnp.tanh(jnp.where(me == 0, x[min(tick, 5)], arrived) @ w[0]))
        arrived = hop(done[-1], "X", 1) if tick < 8 else arrived
    return jnp.where(me == 3, jnp.stack(done[3:]), 0)[None]


def passed(x, w):
    for stage in range(4):
        y = jnp.tanh(x @ w[0])
        x = hop(y, "X", 1) if stage < 3 else y
    return jnp.where(lax.axis_index("X") == 3, x, 0)


def summed(fn):
    return local(fn, "A[K_XY, I, J]", out="S[I, J]", on="GRID")


def by_columns(x):
    part = lax.psum(lax.psum_scatter(x[0], "Y", scatter_dimension=1, tiled=True), "X")
    return lax.all_gather(part, "Y", axis=1, tiled=True)


def unchecked_sum():
    fn = lambda w, b: lax.psum(accumulated(w, b), "X")  # noqa: E731
    return local(fn, "W[D, F]", "X[N, B_X, D]", out="G[D, F]", on="LINE")


def checked_sums():
    specs = (PartitionSpec(), PartitionSpec(None, "X"))
    return jax.shard_map(accumulated, mesh=given()["LINE"], in_specs=specs, out_specs=PartitionSpec())


def whole_blocks_backward_too():
    """The chapter's rings: to the right in the forward pass, so to the left in the backward pass."""
    names = given("block-gradient")
    block = lambda x, w, v: to_the_right(jnp.tanh(one_way(x, w, 1)), v)  # noqa: E731
    specs = tuple(sharding.spec(text) for text in names["texts"])
    whole = jax.shard_map(block, mesh=names["GRID"], in_specs=specs, out_specs=specs[0])
    return jax.grad(names["score"](whole), argnums=(0, 1, 2))
