"""The coding exercises on JAX accept other correct solutions, and each
known mistake occurs in a real program.
"""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from jax.sharding import reshard

from scalingbook_book.chapters import checks
from tests.lab import programs
from tests.lab.programs import local


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("shard-means", lambda: lambda x: programs.of_shards(x, jnp.mean)),
        (
            "roll-in-shard",
            lambda: lambda x: (jnp.roll(x.reshape(8, 8, 4), 2, 1) - x.reshape(8, 8, 4)).reshape(64, 4),
        ),
        ("scattered-sum", lambda: programs.a_ring(programs.to_the_left)),
        ("four-sums", lambda: programs.a_ring(programs.in_a_scan, "C[B_X, F]")),
        ("four-sums", lambda: programs.a_ring(programs.in_groups, "C[B_X, F]")),
        ("choose-result", lambda: lambda x, v: jnp.einsum("bd,df->bf", x, v, out_sharding=P("X", None))),
        ("softmax-columns", lambda: lambda a: jax.nn.softmax(reshard(a, P(None, "Y")), axis=0)),
        ("split-heads", lambda: lambda q: jnp.square(q.reshape(4, 8, 4, 8)).sum(-1)),
        ("gather-both-ways", lambda: programs.a_gather(programs.halves)),
        ("gather-both-ways", lambda: programs.a_gather(partial(programs.halves, swapped=False))),
        ("expert-alltoall", lambda: programs.experts(4)),
        ("one-allreduce", lambda: programs.unchecked_sum()),
        (
            "scattered-gradient",
            lambda: local(programs.by_hand, "W[D_X, F]", "X[B_X, D]", out="G[D_X, F]", on="LINE"),
        ),
        ("pipeline-stages", lambda: programs.staged(programs.unrolled)),
        ("hosts-few-bytes", lambda: programs.summed(programs.by_columns)),
    ],
)
def test_other_correct_solutions_are_accepted(name, fn):
    outcome = programs.judged(name, fn())
    assert outcome.ok, outcome


def whole(array, rows=None):
    """An array with all its dimensions on every device, except for the rows if an axis is named."""
    return reshard(array, P(rows, *[None] * (array.ndim - 1)))


MISTAKES = [
    (
        "scattered-sum",
        0,
        lambda: programs.a_ring(programs.summed_and_scattered),
    ),
    ("scattered-sum", 1, lambda: programs.a_ring(programs.summed_and_cut)),
    ("scattered-sum", 2, lambda: programs.a_ring(programs.with_zeros_first)),
    ("scattered-sum", 3, lambda: programs.a_ring(programs.to_the_right)),
    ("four-sums", 0, lambda: programs.a_ring(programs.four_whole_sums, "C[B_X, F]")),
    ("gather-both-ways", 0, lambda: programs.a_gather(programs.both_whole)),
    ("gather-both-ways", 1, lambda: programs.a_gather(partial(programs.one_way, by=-1))),
    ("gather-both-ways", 2, lambda: programs.a_gather(partial(programs.one_way, by=1))),
    ("gather-both-ways", 3, lambda: programs.a_gather(programs.gathered)),
    ("gather-both-ways", 4, lambda: programs.a_gather(partial(programs.two_and_one, by=1))),
    ("gather-both-ways", 5, lambda: programs.a_gather(partial(programs.two_and_one, by=-1))),
    ("expert-alltoall", 0, lambda: lambda h, expert, w: jnp.einsum("sd,sdf->sf", h, w[expert])),
    ("expert-alltoall", 1, lambda: programs.experts(8)),
    ("one-allreduce", 0, programs.checked_sums),
    ("one-allreduce", 1, lambda: programs.all_six_at_once),
    (
        "scattered-gradient",
        0,
        lambda: local(programs.reduced_and_cut, "W[D_X, F]", "X[B_X, D]", out="G[D_X, F]", on="LINE"),
    ),
    ("block-gradient", 1, programs.whole_blocks_backward_too),
    (
        "pipeline-stages",
        0,
        lambda: programs.staged(lambda x, w: jnp.stack([programs.passed(m, w) for m in x])[None]),
    ),
    ("pipeline-stages", 1, lambda: programs.staged(lambda x, w: programs.passed(x, w)[None])),
    ("choose-result", 0, lambda: lambda x, v: whole(x, "X") @ whole(v)),
    ("softmax-columns", 0, lambda: lambda a: reshard(programs.softmax(a), P(None, "Y"))),
    ("softmax-columns", 1, lambda: lambda a: programs.softmax(reshard(whole(a), P(None, "Y")))),
    ("explicit-block", 0, lambda: lambda x, w, v: jnp.tanh(x @ whole(w)) @ whole(v)),
    ("explicit-block", 1, lambda: lambda x, w, v: whole(jnp.tanh(x @ w), "X") @ whole(v)),
    ("embed-rows", 0, lambda: lambda e, t: reshard(programs.rows(whole(e), t), P("X", "Y"))),
    ("split-heads", 0, lambda: lambda q: reshard(programs.heads(whole(q, "X")), P("X", None, "Y"))),
    ("hosts-few-bytes", 0, lambda: programs.summed(lambda x: lax.psum(x[0], ("X", "Y")))),
    ("hosts-few-bytes", 1, lambda: programs.summed(lambda x: lax.psum(lax.psum(x[0], "Y"), "X"))),
]


@pytest.mark.parametrize(("name", "place", "fn"), MISTAKES)
def test_a_known_mistake_is_made_by_a_real_program(name, place, fn):
    outcome = programs.judged(name, fn())
    assert outcome.message == checks.find(f"jax.{name}").mistakes[place].message


def test_every_known_mistake_of_a_program_is_tried():
    coded = [check for check in checks.catalog("jax").values() if check.kind == "program"]
    known = {(check.key, place) for check in coded for place in range(len(check.mistakes))}
    assert {(f"jax.{name}", place) for name, place, _ in MISTAKES} | {("jax.block-gradient", 0)} == known


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("shard-means", lambda: lambda x: programs.of_shards(x, jnp.max)),
        ("roll-in-shard", lambda: lambda x: jnp.roll(x, 2, 0) - x),
        ("scattered-sum", lambda: programs.a_ring(lambda a, w: programs.to_the_left(a, w).at[0, 0].add(1))),
        ("expert-alltoall", lambda: programs.experts(2)),
        (
            "one-allreduce",
            lambda: local(programs.accumulated, "W[D, F]", "X[N, B_X, D]", out="G[D, F]", on="LINE"),
        ),
        ("hosts-few-bytes", lambda: programs.summed(lambda x: lax.psum(x[0], "Y"))),
    ],
)
def test_wrong_results_are_recognized(name, fn):
    assert programs.judged(name, fn()).message.startswith("Wrong result: on ")


def test_the_number_of_written_collectives_is_checked():
    outcome = programs.judged("four-sums", programs.a_ring(lambda a, w: lax.psum(a @ w, "Y"), "C[B_X, F]"))
    assert "contains 1 of psum over Y, but should contain 4" in outcome.message


@pytest.mark.parametrize(
    ("name", "fn", "says"),
    [
        (
            "shard-means",
            lambda x: programs.of_shards(x, jnp.sum),
            "16 times what it should be, as when a sum",
        ),
        ("shard-means", lambda x: -programs.of_shards(x, jnp.mean), "wrong sign"),
        ("roll-in-shard", lambda x: programs.rolled_by(x, -2) - x, "rolls in the other direction"),
        ("roll-in-shard", lambda x: x - programs.rolled_by(x, 2), "wrong sign"),
        ("roll-in-shard", lambda x: x - programs.rolled_by(x, -2), "direction, and the sign"),
    ],
)
def test_a_common_mistake_is_named_and_the_devices_are_drawn(name, fn, says):
    outcome = programs.judged(name, fn)
    assert says in outcome.message
    assert outcome.picture.count("┌") == outcome.picture.count("should  ") == 8
