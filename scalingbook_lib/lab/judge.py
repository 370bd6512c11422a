"""Is a reader's program right, and does it move no more than it has to?

`task = Task("jax.scattered-sum", oracle, (a, w))`, then `task(f)`: what `f` makes of the placed arrays is
compared with what the oracle makes of the whole ones on one device, shard by shard; then the collectives of
the compiled program are read. Without a key, `asked={"all-gather X": 4096}` says what it may move (times and
bytes where times matter). Chapters: Profiling, JAX.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from scalingbook_lib.chapters import checks
from scalingbook_lib.lab.compiler import aot, hlo, sharding, slices
from scalingbook_lib.reader.checks import programs
from scalingbook_lib.reader.checks.programs import Asked, Move, Verdict
from scalingbook_lib.units import Told


@dataclass(frozen=True)
class Task(Told):
    """What a function has to do: the oracle's result for these arrays (or trees of them).

    `out` is how its results are to be split, in the notation, for each of them one; `rel_tol` is how near an
    entry has to be, as a share of the largest one. With a `topology` the collectives are those that the TPU
    compiler writes for such a slice: a function then takes its mesh from `jax.set_mesh`, and names none.
    """

    key: str
    oracle: Callable
    arrays: tuple[Any, ...]
    out: tuple[str, ...] = ()
    rel_tol: float = 1e-4
    asked: Asked | None = None
    topology: str | None = None

    def __call__(self, fn: Any) -> Any:
        """The verdict on a function of these arrays; its own errors come through, with their traceback."""
        if fn is ...:
            return fn  # not answered yet
        mesh = mesh_of(self.arrays)
        with jax.default_matmul_precision("highest"), jax.default_device(mesh.devices.flat[0]):
            with jax.set_mesh(mesh):
                program = jax.jit(fn).lower(*self.arrays).compile()
                got = program(*self.arrays)
            wanted = self.oracle(*jax.tree.map(np.asarray, self.arrays))
        wrong = next(_wrong(got, wanted, self.rel_tol, mesh), "")
        rows = hlo.collectives(program, mesh) if self.topology is None else self._compiled(fn, mesh)
        asked = self._asked()
        moved = summed(rows, shifts=any(" " in move.axes for move in asked or ()))
        key = checks.ordinals().get(self.key, self.key)  # a notebook of once has a number
        return Verdict(wrong, moved, key, asked, tuple(_elsewhere(got, self.out, mesh)))

    def _asked(self) -> tuple[Move, ...] | None:
        if self.asked is not None:
            return programs.moves(self.asked)
        return checks.find(self.key).answer().moves if self.key else None

    def _compiled(self, fn: Callable, mesh: jax.sharding.Mesh) -> hlo.Collectives:
        """What it communicates on the slice."""
        grid = aot.mesh_for(self.topology, mesh).devices
        there = jax.sharding.Mesh(grid, mesh.axis_names, axis_types=mesh.axis_types)
        structs = jax.tree.map(lambda a: _struct(a, there), self.arrays)
        with jax.sharding.use_abstract_mesh(there.abstract_mesh), slices.quiet():
            return hlo.collectives(jax.jit(fn).lower(*structs).compile(), there)

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in jax.tree.leaves(self.arrays))
        where = f" for {self.topology}" if self.topology else ""
        return f"{self.key or 'a task'}: a function of {shapes}, to {self.rel_tol:g}{where}"


def mesh_of(arrays: Any) -> jax.sharding.Mesh:
    """The mesh that these arrays lie on."""
    for array in jax.tree.leaves(arrays):
        if isinstance(mesh := getattr(array.sharding, "mesh", None), jax.sharding.Mesh):
            return mesh
    raise ValueError(
        "none of the arrays lies on a mesh; place one, as in sharding.place(a, 'A[I_X, J]', mesh)"
    )


def summed(rows: hlo.Collectives, *, shifts: bool = False) -> tuple[Move, ...]:
    """The collectives of a program, those of one kind over the same axes (and shifts) as one."""
    if rows.not_counted:
        raise hlo.HloError(f"{rows.not_counted[0]}; a program that is judged must say all that it moves")
    sums: dict[str, tuple[int, int]] = {}
    for row in rows:
        name = f"{row.kind} {row.over if shifts else row.axes}"
        times, nbytes = sums.get(name, (0, 0))
        runs = row.times or 0  # known: a loop of unknown length is not counted
        sums[name] = (times + runs, nbytes + runs * row.nbytes)
    return programs.moves(sums)


def _struct(a: jax.Array, on: jax.sharding.Mesh) -> jax.ShapeDtypeStruct:
    where = jax.sharding.NamedSharding(on, a.sharding.spec)  # type: ignore[attr-defined]
    return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=where)


def _wrong(got: Any, wanted: Any, rel_tol: float, mesh: jax.sharding.Mesh) -> Iterator[str]:
    """What is wrong about a result."""
    found, right = jax.tree.leaves(got), [np.asarray(a) for a in jax.tree.leaves(wanted)]
    if len(found) != len(right):
        yield f"its arrays are {len(found)}, and {len(right)} are asked for"
        return
    for n, (g, w) in enumerate(zip(found, right, strict=True)):
        which = f"array {n + 1} of {len(right)}, " if len(right) > 1 else ""
        if g.shape != w.shape:
            yield f"{which}its shape is {list(g.shape)}, and {list(w.shape)} is asked for"
        elif off := [s for s in g.addressable_shards if not _near(s.data, w[s.index], w, rel_tol)]:
            yield f"{which}{_where(off, w, len(g.addressable_shards), mesh)}"


def _near(got: Any, wanted: np.ndarray, whole: np.ndarray, rel_tol: float) -> bool:
    """Is every entry near enough, as a share of the largest entry of the whole result?"""
    room = rel_tol * float(np.abs(_exact(whole)).max(initial=0.0))
    return np.allclose(_exact(got), _exact(wanted), rtol=0, atol=room)


def _exact(a: Any) -> np.ndarray:
    """As float64, which bf16 and integers fit into."""
    return np.asarray(a).astype(np.float64)


def _where(off: list[Any], whole: np.ndarray, of: int, mesh: jax.sharding.Mesh) -> str:
    """On which devices a result is wrong, and the entry that is farthest off on the first of them."""
    first = off[0]
    got, wanted = _exact(first.data), _exact(whole[first.index])
    far = np.nan_to_num(np.abs(got - wanted), nan=np.inf)
    at = np.unravel_index(int(far.argmax()), far.shape)
    who = "every device" if len(off) == of else f"{len(off)} of {of} devices"
    entry = f"entry {[int(i) for i in at]} of its block is {got[at]:.4g} instead of {wanted[at]:.4g}"
    return f"on {who}, first on {_place(first.device, mesh)}: {entry}"


def _place(device: Any, mesh: jax.sharding.Mesh) -> str:
    """A device by its place on the mesh: 'X=0, Y=3'."""
    places = np.argwhere(mesh.devices == device)
    if not len(places):
        return str(device)
    return ", ".join(f"{name}={i}" for name, i in zip(mesh.axis_names, places[0], strict=True))


def _elsewhere(got: Any, out: tuple[str, ...], mesh: jax.sharding.Mesh) -> Iterator[str]:
    """Results that are not split as is asked for."""
    for text, array in zip(out, jax.tree.leaves(got), strict=False):
        asked = sharding.array(text)
        where = jax.sharding.NamedSharding(mesh, sharding.spec(asked))
        if not array.sharding.is_equivalent_to(where, array.ndim):
            yield f"it lies as {sharding.array_of(array, asked.names, asked.name)}, and {asked} is asked for"
