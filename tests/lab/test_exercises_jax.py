"""Coding exercises on JAX: other right ways are right, and each known mistake is really made."""

from functools import partial

import jax.numpy as jnp
import pytest
from jax import lax

from scalingbook_lib.chapters import checks
from tests.lab import programs
from tests.lab.programs import local


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("shard-means", lambda: lambda x: x.reshape(2, 4, 4, 4).mean((1, 3))),
        (
            "roll-in-shard",
            lambda: lambda x: (jnp.roll(x.reshape(8, 8, 4), 2, 1) - x.reshape(8, 8, 4)).reshape(64, 4),
        ),
        ("scattered-sum", lambda: programs.a_ring(programs.to_the_left)),
        ("four-sums", lambda: programs.a_ring(programs.in_a_scan, "C[B_X, F]")),
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
def test_another_right_way_is_right(name, fn):
    outcome = programs.judged(name, fn())
    assert outcome.ok, outcome


MISTAKES = [
    (
        "scattered-sum",
        0,
        lambda: programs.a_ring(programs.summed_and_scattered),
    ),
    ("scattered-sum", 1, lambda: programs.a_ring(programs.summed_and_cut)),
    ("scattered-sum", 2, lambda: programs.a_ring(programs.with_zeros_first)),
    ("scattered-sum", 3, lambda: programs.a_ring(programs.to_the_right)),
    ("four-sums", 0, lambda: programs.a_ring(lambda a, w: lax.psum(a @ w, "Y"), "C[B_X, F]")),
    ("four-sums", 1, lambda: programs.a_ring(programs.four_whole_sums, "C[B_X, F]")),
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
    ("hosts-few-bytes", 0, lambda: programs.summed(lambda x: lax.psum(x[0], ("X", "Y")))),
    ("hosts-few-bytes", 1, lambda: programs.summed(lambda x: lax.psum(lax.psum(x[0], "Y"), "X"))),
]


@pytest.mark.parametrize(("name", "place", "fn"), MISTAKES)
def test_a_known_mistake_is_made_by_a_real_program(name, place, fn):
    outcome = programs.judged(name, fn())
    assert outcome.message == checks.find(f"jax.{name}").mistakes[place].says


def test_every_known_mistake_of_a_program_is_tried():
    coded = [check for check in checks.catalogue("jax").values() if check.kind == "program"]
    known = {(check.key, place) for check in coded for place in range(len(check.mistakes))}
    assert {(f"jax.{name}", place) for name, place, _ in MISTAKES} | {("jax.block-gradient", 0)} == known


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("shard-means", lambda: lambda x: x.reshape(2, 4, 4, 4).max((1, 3))),
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
def test_a_wrong_result_is_wrong(name, fn):
    assert programs.judged(name, fn()).message.startswith("Wrong result: on ")
