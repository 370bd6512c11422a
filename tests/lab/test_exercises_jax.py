"""Coding exercises on JAX: other right ways are right, and each known mistake is really made."""

from functools import partial

import jax.numpy as jnp
import pytest
from jax import lax

from scalingbook_lib.chapters import checks
from tests.lab import programs
from tests.lab.programs import local


@pytest.mark.parametrize(
    ("number", "fn"),
    [
        (4, lambda: lambda x: x.reshape(2, 4, 4, 4).mean((1, 3))),
        (5, lambda: lambda x: (jnp.roll(x.reshape(8, 8, 4), 2, 1) - x.reshape(8, 8, 4)).reshape(64, 4)),
        (6, lambda: programs.a_ring(programs.to_the_left)),
        (7, lambda: programs.a_ring(programs.in_a_scan, "C[B_X, F]")),
        (8, lambda: programs.a_gather(programs.halves)),
        (8, lambda: programs.a_gather(partial(programs.halves, swapped=False))),
        (10, lambda: programs.experts(4)),
        (12, lambda: programs.unchecked_sum()),
        (13, lambda: local(programs.by_hand, "W[D_X, F]", "X[B_X, D]", out="G[D_X, F]", on="LINE")),
        (15, lambda: programs.staged(programs.unrolled)),
        (16, lambda: programs.summed(programs.by_columns)),
    ],
)
def test_another_right_way_is_right(number, fn):
    outcome = programs.judged(number, fn())
    assert outcome.ok, outcome


MISTAKES = [
    (
        6,
        0,
        lambda: programs.a_ring(programs.summed_and_scattered),
    ),
    (6, 1, lambda: programs.a_ring(programs.summed_and_cut)),
    (6, 2, lambda: programs.a_ring(programs.with_zeros_first)),
    (6, 3, lambda: programs.a_ring(programs.to_the_right)),
    (7, 0, lambda: programs.a_ring(lambda a, w: lax.psum(a @ w, "Y"), "C[B_X, F]")),
    (7, 1, lambda: programs.a_ring(programs.four_whole_sums, "C[B_X, F]")),
    (8, 0, lambda: programs.a_gather(programs.both_whole)),
    (8, 1, lambda: programs.a_gather(partial(programs.one_way, by=-1))),
    (8, 2, lambda: programs.a_gather(partial(programs.one_way, by=1))),
    (8, 3, lambda: programs.a_gather(programs.gathered)),
    (8, 4, lambda: programs.a_gather(partial(programs.two_and_one, by=1))),
    (8, 5, lambda: programs.a_gather(partial(programs.two_and_one, by=-1))),
    (10, 0, lambda: lambda h, expert, w: jnp.einsum("sd,sdf->sf", h, w[expert])),
    (10, 1, lambda: programs.experts(8)),
    (12, 0, programs.checked_sums),
    (12, 1, lambda: programs.all_six_at_once),
    (
        13,
        0,
        lambda: local(programs.reduced_and_cut, "W[D_X, F]", "X[B_X, D]", out="G[D_X, F]", on="LINE"),
    ),
    (14, 1, programs.whole_blocks_backward_too),
    (15, 0, lambda: programs.staged(lambda x, w: jnp.stack([programs.passed(m, w) for m in x])[None])),
    (15, 1, lambda: programs.staged(lambda x, w: programs.passed(x, w)[None])),
    (16, 0, lambda: programs.summed(lambda x: lax.psum(x[0], ("X", "Y")))),
    (16, 1, lambda: programs.summed(lambda x: lax.psum(lax.psum(x[0], "Y"), "X"))),
]


@pytest.mark.parametrize(("number", "place", "fn"), MISTAKES)
def test_a_known_mistake_is_made_by_a_real_program(number, place, fn):
    outcome = programs.judged(number, fn())
    assert outcome.message == checks.find(f"jax.{number}").mistakes[place].says


def test_every_known_mistake_of_a_program_is_tried():
    coded = [check for check in checks.catalogue("jax").values() if check.kind == "program"]
    known = {(check.key, place) for check in coded for place in range(len(check.mistakes))}
    assert {(f"jax.{number}", place) for number, place, _ in MISTAKES} | {("jax.14", 0)} == known


@pytest.mark.parametrize(
    ("number", "fn"),
    [
        (4, lambda: lambda x: x.reshape(2, 4, 4, 4).max((1, 3))),
        (5, lambda: lambda x: jnp.roll(x, 2, 0) - x),
        (6, lambda: programs.a_ring(lambda a, w: programs.to_the_left(a, w).at[0, 0].add(1))),
        (10, lambda: programs.experts(2)),
        (
            12,
            lambda: local(programs.accumulated, "W[D, F]", "X[N, B_X, D]", out="G[D, F]", on="LINE"),
        ),
        (16, lambda: programs.summed(lambda x: lax.psum(x[0], "Y"))),
    ],
)
def test_a_wrong_result_is_wrong(number, fn):
    assert programs.judged(number, fn()).message.startswith("Wrong result: on ")
