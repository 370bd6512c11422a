"""The devices in a notebook: what a task shows of its arrays, and where a wrong answer is wrong."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_book.chapters import checks
from scalingbook_book.code_exercises import drawn, judge
from scalingbook_book.reader.figures import placement
from scalingbook_lab.compiler import sharding
from scalingbook_lib.notation import Mesh
from tests.lab import programs

GRID = Mesh(X=2, Y=4)
MESH = sharding.mesh(GRID)
A = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)
GIVEN, OUT = "A[I_XY, J]", "B[I_XY, J]"
TASK = judge.Task("", lambda a: 2 * a, (sharding.place(A, GIVEN, MESH),), (OUT,), (GIVEN,), asked={})
CODED = [key for key, check in checks.catalog("jax").items() if check.kind == "program"]


def told(shown):
    """What a drawing says of each device, by its place."""
    label = re.search(r'aria-label="([^"]*)"', shown._repr_html_() or "")
    return dict(re.findall(r"(\w=\d(?:, \w=\d)*)(?: is)?:? (.*?)\.(?= \w=|$)", label[1])) if label else {}


def wrong(shown):
    return {place for place, said in told(shown).items() if said.startswith("wrong")}


def by_hand(block):
    return sharding.local(block, GIVEN, out=OUT, on=MESH)


@pytest.mark.parametrize("key", CODED)
def test_a_task_shows_its_arrays_as_they_lie(key):
    task = programs.given(key.partition(".")[2])["task"]
    mesh = judge.mesh_of(task.arrays)
    lies = [drawn.placed(a, "A", mesh).blocks for a in task.arrays]
    grid = Mesh(**dict(mesh.shape))
    assert lies == [
        placement.placed(text, grid, a.shape).blocks for a, text in zip(task.arrays, task.given, strict=True)
    ]
    assert len(told(task)) == mesh.size
    assert all("must return " in said for said in told(task).values())


def test_a_result_that_may_lie_anywhere_is_not_drawn_before():
    task = judge.Task("", lambda a: 2 * a, TASK.arrays, given=(GIVEN,), asked={})
    assert not any("must return" in said for said in told(task).values())
    norm = judge.Task("", np.linalg.norm, TASK.arrays, given=(GIVEN,), asked={})
    assert all(said.endswith("must return result") for said in told(norm).values())
    assert judge.Task("", lambda a: 2 * a, TASK.arrays, asked={})._repr_html_() is None


def test_a_right_answer_is_not_drawn():
    assert TASK(lambda a: a + a).ok
    assert TASK(lambda a: a + a)._repr_html_() is None
    moved = TASK(lambda a: 2 * jnp.roll(jnp.roll(a, 8, 0), -8, 0))
    assert moved.faults
    assert moved._repr_html_() is None


def test_a_wrong_order_of_axes_marks_the_devices_that_differ():
    there = NamedSharding(MESH, PartitionSpec(("Y", "X")))
    verdict = TASK(lambda a: lax.with_sharding_constraint(2 * a, there))
    assert "it is sharded as B[I_YX, J]" in str(verdict)
    assert len(told(verdict)) == 8
    assert wrong(verdict) == {f"X={x}, Y={y}" for x in range(2) for y in range(4) if 4 * x + y != 2 * y + x}
    assert "holds B[16:24, :]; should hold B[8:16, :]" in told(verdict)["X=0, Y=1"]


def test_blocks_that_arrive_at_other_devices_are_recognized():
    to_the_right = [(i, (i + 1) % 4) for i in range(4)]
    verdict = TASK(by_hand(lambda a: lax.ppermute(2 * a, "Y", to_the_right)))
    assert len(wrong(verdict)) == 8
    assert "holds the values of B[56:64, :]" in told(verdict)["X=1, Y=0"]
    assert "should hold B[32:40, :]" in told(verdict)["X=1, Y=0"]


@pytest.mark.parametrize("out", [(), (OUT,)])
@pytest.mark.parametrize("other", [lambda a: a[:32], lambda a: a.sum(1), lambda a: a[None], lambda a: a[:0]])
def test_a_result_of_another_shape_is_wrong_everywhere(other, out):
    verdict = judge.Task("", TASK.oracle, TASK.arrays, out, asked={})(other)
    assert "its shape is" in verdict.wrong
    assert len(wrong(verdict)) == 8


def test_one_wrong_device_is_marked_alone():
    def spoiled(a):
        here = (lax.axis_index("X") == 1) & (lax.axis_index("Y") == 2)
        return jnp.where(here, (2 * a).at[3, 1].set(jnp.nan), 2 * a)

    verdict = TASK(by_hand(spoiled))
    assert wrong(verdict) == {"X=1, Y=2"}
    assert "holds wrong values in B[48:56, :] (… nan" in told(verdict)["X=1, Y=2"]


def test_the_first_of_several_results_that_is_wrong_is_drawn():
    task = judge.Task("", lambda a: (a, a.sum(1)), TASK.arrays, ("B[I_XY, J]", "C[I_XY]"), asked={})
    verdict = task(by_hand_two)
    assert "array 2 of 2" in verdict.wrong
    assert all("C[" in said for said in told(verdict).values())


def by_hand_two(a):
    return sharding.local(lambda b: (b, -b.sum(1)), GIVEN, out=("B[I_XY, J]", "C[I_XY]"), on=MESH)(a)


def test_a_notebook_shows_the_devices_and_a_terminal_the_text():
    outcome = programs.judged("shard-means", lambda x: programs.of_shards(x, jnp.sum))
    assert len(wrong(outcome)) == 8
    assert "16 times what it should be" in outcome._repr_html_()
    assert "<svg" not in str(outcome)
    assert str(outcome).count("┌") == 8
    assert programs.judged("shard-means", lambda x: programs.of_shards(x, jnp.mean))._repr_html_() is None
