"""A reader's function is judged by its result, device by device, and by the collectives of its program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.checks import Check
from scalingbook_book.code_exercises import judge
from scalingbook_book.reader.checks.programs import ProgramVerdict, right
from scalingbook_lab.compiler import sharding

MESH = sharding.mesh(X=2, Y=4)
A, W = np.random.default_rng(0).normal(size=(2, 16, 16)).astype(np.float32)
ARRAYS = (sharding.place(A, "A[I_X, J_Y]", MESH), sharding.place(W, "W[J, K_Y]", MESH))
SPLIT = ("A[I_X, J_Y]", "W[J, K_Y]")
OUT = "C[I_X, K_Y]"
TASK = judge.Task("", lambda a, w: a @ w, ARRAYS, (OUT,), asked={"collective-permute Y": (3, 3 * 128)})


def by_hand(block, out=OUT):
    return sharding.local(block, *SPLIT, out=out, on=MESH)


def ring(a, w, *, late=0, all_the_way=False):
    n, me, k = lax.axis_size("Y"), lax.axis_index("Y"), a.shape[1]
    total = 0
    for s in range(n):
        total += a @ lax.dynamic_slice_in_dim(w, (me + s + late) % n * k, k)
        if s < n - 1 or all_the_way:
            a = lax.ppermute(a, "Y", [(i, (i - 1) % n) for i in range(n)])
    return total + (a[0, 0] * 1e-9 if all_the_way else 0)


def gathering(a, w):
    return lax.all_gather(a, "Y", axis=1, tiled=True) @ w


def test_a_correct_and_cheap_program_passes():
    verdict = TASK(by_hand(ring))
    assert verdict.ok
    assert str(verdict) == "right result; it runs collective-permute over Y: 3×, 384 B"


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (by_hand(gathering), "right result, but all-gather over Y (512 B) is not needed; collective-permute"),
        (by_hand(lambda a, w: ring(a, w, all_the_way=True)), "collective-permute over Y moves 1.33 times"),
        (lambda a, w: lax.with_sharding_constraint(a @ w, sharding.named("C[I_X, K]", MESH)),
         "it is sharded as C[I_X, K], but should be C[I_X, K_Y]"),
    ],
)  # fmt: skip
def test_a_correct_but_expensive_program_is_told_what_is_expensive(fn, says):
    verdict = TASK(fn)
    assert not verdict.wrong
    assert not verdict.ok
    assert says in str(verdict)


def by_one_device(a, w):
    c = ring(a, w)
    return jnp.where((lax.axis_index("X") == 1) & (lax.axis_index("Y") == 2), c.at[3, 1].set(jnp.nan), c)


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (by_hand(lambda a, w: ring(a, w, late=1)), "on every device, first on X=0, Y=0: entry ["),
        (by_hand(by_one_device), "on 1 of 8 devices, first on X=1, Y=2: entry [3, 1] of its block is nan"),
        (lambda a, w: (a @ w).T[:8], "its shape is [8, 16], but should be [16, 16]"),
        (lambda a, w: (a, w), "it returns 2 arrays, but should return 1"),
    ],
)
def test_a_wrong_result_names_the_device_and_the_entry(fn, says):
    verdict = TASK(fn)
    assert not verdict.ok
    assert str(verdict).startswith("wrong result: ")
    assert says in str(verdict)


def test_replicas_are_compared_device_by_device():
    task = judge.Task("", lambda a, w: (a @ w).sum(1, keepdims=True), ARRAYS, asked={"all-reduce Y": 32})
    rows = lambda a, w: ring(a, w).sum(1, keepdims=True)  # noqa: E731
    assert "on every device, first on X=0, Y=0" in task(by_hand(rows, "S[I_X, K]")).wrong
    assert not task(by_hand(lambda a, w: lax.psum(rows(a, w), "Y"), "S[I_X, K]")).wrong


def test_trees_in_and_trees_out_are_compared_leaf_by_leaf():
    def both(p):
        return {"both": p["a"] + p["w"], "sum": p["a"].sum(0)}

    given = jax.device_put({"a": A, "w": W}, sharding.named("A[I_X, J]", MESH))
    task = judge.Task("", both, (given,), asked={"all-reduce X": 64})
    assert task(both).ok
    assert "array 2 of 2" in task(lambda p: both(p) | {"sum": p["w"].sum(0)}).wrong


def test_a_mesh_may_have_explicit_axes():
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Explicit,) * 2)
    a = jax.device_put(A, NamedSharding(mesh, PartitionSpec("X", "Y")))
    task = judge.Task("", lambda a: 2 * a, (a,), ("A[I_X, J_Y]",), asked={})
    assert task(lambda a: a + a).ok
    assert task(jax.shard_map(lambda a: a + a, in_specs=a.sharding.spec, out_specs=a.sharding.spec)).ok


def test_a_stub_is_not_judged_and_errors_propagate():
    assert TASK(...) is ...
    with pytest.raises(TypeError):
        TASK(lambda a: a)
    with pytest.raises(ValueError, match="place one"):
        judge.Task("", lambda a: a, (jnp.ones(4),), asked={})(lambda a: a)


def test_bf16_is_judged_to_its_own_precision():
    a = sharding.place(jnp.asarray(A, jnp.bfloat16), "A[I_X, J]", MESH)
    near = judge.Task("", lambda a: np.asarray(a, np.float32) ** 2, (a,), rel_tol=1e-2, asked={})
    assert near(lambda a: a * a).ok
    assert judge.Task("", near.oracle, (a,), rel_tol=1e-5, asked={})(lambda a: a * a).wrong


def test_a_task_with_a_key_takes_the_moves_of_its_check(monkeypatch):
    check = Check(key="here.1", title="", kind="program", answer=lambda: right({"all-gather Y": 512}))
    monkeypatch.setattr(checks, "find", lambda key: check)
    verdict = judge.Task("here.1", TASK.oracle, ARRAYS)(by_hand(gathering))
    assert check(verdict).ok
    assert isinstance(verdict, ProgramVerdict)
    assert "is not needed" in check(judge.Task("here.1", TASK.oracle, ARRAYS)(by_hand(ring))).message


def test_a_task_without_requirements_only_reports():
    verdict = judge.Task("", TASK.oracle, ARRAYS)(by_hand(gathering))
    assert verdict.ok
    assert str(verdict) == "right result; it runs all-gather over Y: 1×, 512 B"


def test_a_task_for_a_slice_reads_the_tpu_programs_collectives(tpu):
    task = judge.Task("", TASK.oracle, ARRAYS, topology="v5e:2x4")
    spec = [sharding.spec(text) for text in (*SPLIT, OUT)]
    gather = jax.shard_map(gathering, in_specs=tuple(spec[:2]), out_specs=spec[2])
    assert task(gather).moves == judge.Task("", TASK.oracle, ARRAYS)(gather).moves
    assert "v5e:2x4" in str(task)


def test_a_task_may_require_permutes_in_both_directions():
    both = {"collective-permute Y +1": (1, 128), "collective-permute Y -1": (2, 256)}
    task = judge.Task("", TASK.oracle, ARRAYS, asked=both)
    assert task(by_hand(ring)).faults == (
        "collective-permute over Y -1 moves 1.5 times the bytes that it should",
        "collective-permute over Y +1 should run but does not",
    )
