"""Judge a reader's program by its result, device by device, and by the collectives that it runs.

After `task = Task("jax.scattered-sum", oracle, (a, w))`, `task(f)` judges a function `f`. The result of `f`
for the sharded arrays is compared, shard by shard, with the oracle's result for the whole arrays on one
device. Then the collectives of the compiled program are read. Without a key, `asked={"all-gather X": 4096}`
says what the program may move (counts and bytes if counts matter). Chapters: Profiling, JAX.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from scalingbook_book.chapters import checks
from scalingbook_book.code_exercises import drawn
from scalingbook_book.reader.checks import programs
from scalingbook_book.reader.checks.programs import Asked, CollectiveCount, ProgramVerdict
from scalingbook_book.reader.figures import placement
from scalingbook_book.reader.figures.placement import Compared, Placed
from scalingbook_lab import classic
from scalingbook_lab.compiler import aot, sharding, slices
from scalingbook_lib import hlo, notation
from scalingbook_lib.units import Result
from scalingbook_lib.words import pluralize


@dataclass(frozen=True)
class Task(Result):
    """The specification of a function: the oracle's result for these arrays (or trees of arrays).

    `out` is the required sharding of each result, in the notation. `given` is that of the arguments, for the
    drawing of the devices that a notebook shows. `rel_tol` is the tolerance of an entry, as a fraction of the
    largest one. With a `topology` the collectives are those that the TPU compiler emits for such a slice; a
    function then takes its mesh from `jax.set_mesh` and names none. `written=(("psum Y", 4),)` requires that
    number of collectives in the program as written, because a compiler may merge them.
    """

    key: str
    oracle: Callable
    arrays: tuple[Any, ...]
    out: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    rel_tol: float = 1e-4
    asked: Asked | None = None
    topology: str | None = None
    written: tuple[tuple[str, int], ...] = ()

    def __call__(self, fn: Any) -> Any:
        """Return the verdict on a function of these arrays; errors of the function itself propagate."""
        if fn is ...:
            return fn  # not answered yet
        mesh = mesh_of(self.arrays)
        with jax.default_matmul_precision("highest"), jax.default_device(mesh.devices.flat[0]):
            with jax.set_mesh(mesh):
                program = jax.jit(fn).lower(*self.arrays).compile()
                got = program(*self.arrays)
            whole = jax.tree.map(np.asarray, self.arrays)
            wanted = self.oracle(*whole)
        wrong = next(_wrong(got, wanted, self.rel_tol, mesh, lambda: classic.turned(self.oracle, whole)), "")
        elsewhere = tuple(_elsewhere(got, self.out, mesh))
        found = self._compared(got, wanted, mesh) if wrong or elsewhere else None
        picture = drawn.boxes(found, placement.places(_grid(mesh))) if found and wrong else ""
        drawing = placement.answered(_grid(mesh), found).html() if found else ""
        rows = hlo.collectives(program, mesh) if self.topology is None else self._compiled(fn, mesh)
        asked = self._asked()
        moved = summed(rows, shifts=any(" " in move.axes for move in asked or ()))
        also = (*elsewhere, *self._unwritten(fn, mesh))
        return ProgramVerdict(wrong, moved, self.key, asked, also, picture, drawing)

    def _repr_html_(self) -> str | None:
        """Draw the devices with the shards that they hold and those that they must return."""
        if not self.given:
            return None
        mesh = mesh_of(self.arrays)
        arrays = zip(jax.tree.leaves(self.arrays), self.given, strict=True)
        given = [drawn.placed(array, sharding.array(text).name, mesh, text) for array, text in arrays]
        with jax.default_device(mesh.devices.flat[0]):
            wanted = self.oracle(*jax.tree.map(np.asarray, self.arrays))
        answer = [one for one in self._placed(jax.tree.leaves(wanted), mesh) if one is not None]
        return placement.asked(_grid(mesh), given, answer).html()

    def _placed(self, wanted: list[Any], mesh: jax.sharding.Mesh) -> list[Placed | None]:
        """Return the required placement of each result, or None if free. A scalar is on every device."""
        grid, scalar = _grid(mesh), Placed("result", (), ((),) * mesh.size, "the result")
        return [
            placement.placed(text, grid, np.shape(one)) if text else None if np.ndim(one) else scalar
            for one, text in itertools.zip_longest(wanted, self.out)
        ]

    def _compared(self, got: Any, wanted: Any, mesh: jax.sharding.Mesh) -> Compared | None:
        """Return the first wrong array, device by device, or else the first with a wrong placement."""
        results, right = jax.tree.leaves(got), [np.asarray(a) for a in jax.tree.leaves(wanted)]
        if len(results) != len(right):
            return None
        found = [
            drawn.compared(g, w, asked, mesh, lambda a, b, w=w: _near(a, b, w, self.rel_tol))
            for g, w, asked in zip(results, right, self._placed(right, mesh), strict=True)
        ]
        off = (one for one in found if not one.equal)
        return next(off, None) or next((one for one in found if not all(one.right)), None)

    def _unwritten(self, fn: Callable, mesh: jax.sharding.Mesh) -> Iterator[str]:
        """Yield the required collectives that the program lacks, or has in a different number."""
        if self.written:
            with jax.set_mesh(mesh):
                there = _collectives(jax.make_jaxpr(fn)(*self.arrays).jaxpr)
            for name, times in self.written:
                if there[name] != times:
                    over = name.replace(" ", " over ")
                    yield f"it contains {there[name]} of {over}, but should contain {times}"

    def _asked(self) -> tuple[CollectiveCount, ...] | None:
        if self.asked is not None:
            return programs.moves(self.asked)
        return checks.find(self.key).answer().moves if self.key else None

    def _compiled(self, fn: Callable, mesh: jax.sharding.Mesh) -> hlo.Collectives:
        """Return the collectives of the program compiled for the slice."""
        grid = aot.mesh_for(self.topology, mesh).devices
        there = jax.sharding.Mesh(grid, mesh.axis_names, axis_types=mesh.axis_types)
        structs = jax.tree.map(lambda a: _struct(a, there), self.arrays)
        with jax.sharding.use_abstract_mesh(there.abstract_mesh), slices.stderr_silenced():
            return hlo.collectives(jax.jit(fn).lower(*structs).compile(), there)

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in jax.tree.leaves(self.arrays))
        where = f" for {self.topology}" if self.topology else ""
        return f"{self.key or 'a task'}: a function of {shapes}, to {self.rel_tol:g}{where}"


def _collectives(jaxpr: Any, times: int = 1) -> Counter[str]:
    """Return the number of psums of a traced program by axes, counting those in a scan once per iteration."""
    found: Counter[str] = Counter()
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name.startswith("psum"):
            axes = eqn.params.get("axes", ())
            found["psum " + "".join(axis for axis in axes if isinstance(axis, str))] += times
        inner = times * (eqn.params["length"] if name == "scan" else 1)
        for value in eqn.params.values():
            for sub in value if isinstance(value, tuple | list) else (value,):
                if hasattr(sub := getattr(sub, "jaxpr", sub), "eqns"):
                    found += _collectives(sub, inner)
    return found


def mesh_of(arrays: Any) -> jax.sharding.Mesh:
    """Return the mesh of these arrays. Raises ValueError if none of them is on a mesh."""
    for array in jax.tree.leaves(arrays):
        if isinstance(mesh := getattr(array.sharding, "mesh", None), jax.sharding.Mesh):
            return mesh
    raise ValueError("none of the arrays is on a mesh; place one, as in sharding.place(a, 'A[I_X, J]', mesh)")


def summed(rows: hlo.Collectives, *, shifts: bool = False) -> tuple[CollectiveCount, ...]:
    """Return the collectives of a program, summed by kind and axes (and shifts).

    Raises HloError if the program does not reveal everything that it sends.
    """
    if rows.not_counted:
        raise hlo.HloError(f"{rows.not_counted[0]}; all communication of a judged program must be visible")

    def name(row: hlo.CompiledCollective) -> str:
        return f"{row.kind} {row.over if shifts else row.axes}"

    # no loop of unknown length is left: one that communicates would be among the uncounted operations
    times, nbytes = rows.summed(name, lambda row: 1), rows.summed(name, lambda row: row.nbytes)
    return programs.moves({each: (times[each], nbytes[each]) for each in times})


def _grid(mesh: jax.sharding.Mesh) -> notation.Mesh:
    """Return a JAX mesh as a mesh of the notation."""
    return notation.Mesh(**hlo.sizes_of(mesh))


def _struct(a: jax.Array, on: jax.sharding.Mesh) -> jax.ShapeDtypeStruct:
    where = jax.sharding.NamedSharding(on, a.sharding.spec)  # type: ignore[attr-defined]
    return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=where)


type Turned = Callable[[], list[np.ndarray]]


def _wrong(
    got: Any, wanted: Any, rel_tol: float, mesh: jax.sharding.Mesh, turned: Turned = lambda: []
) -> Iterator[str]:
    """Yield what is wrong with a result.

    `turned` returns the oracle's results with all rolls reversed.
    """
    found, right = jax.tree.leaves(got), [np.asarray(a) for a in jax.tree.leaves(wanted)]
    if len(found) != len(right):
        yield f"it returns {pluralize(len(found), 'array')}, but should return {len(right)}"
        return
    for n, (g, w) in enumerate(zip(found, right, strict=True)):
        which = f"array {n + 1} of {len(right)}, " if len(right) > 1 else ""
        if g.shape != w.shape:
            yield f"{which}its shape is {list(g.shape)}, but should be {list(w.shape)}"
        elif off := [s for s in g.addressable_shards if not _near(s.data, w[s.index], w, rel_tol)]:
            where = _where(off, w, len(g.addressable_shards), mesh)
            slip = _classic(g, w, next(iter(turned()[n : n + 1]), None), rel_tol)
            yield f"{which}{slip}{'; ' if slip else ''}{where}"


def _classic(got: Any, wanted: np.ndarray, turned: np.ndarray | None, rel_tol: float) -> str:
    """Return a sentence about the common mistake that leads to this result, or "" if none is recognized."""
    whole = np.asarray(got) if got.is_fully_replicated or got.is_fully_addressable else None
    if whole is None:
        return ""
    other = None if turned is None or turned.shape != wanted.shape else drawn.exact(turned)
    near = lambda a, b: _near(a, b, np.abs(b).max(initial=0.0), rel_tol)  # noqa: E731
    return classic.slip(drawn.exact(whole), drawn.exact(wanted), other, near)


def _near(got: Any, wanted: np.ndarray, whole: np.ndarray, rel_tol: float) -> bool:
    """Return whether every entry is within `rel_tol` of the right one, relative to the largest entry."""
    room = rel_tol * float(np.abs(drawn.exact(whole)).max(initial=0.0))
    return np.allclose(drawn.exact(got), drawn.exact(wanted), rtol=0, atol=room)


def _where(off: list[Any], whole: np.ndarray, of: int, mesh: jax.sharding.Mesh) -> str:
    """Say which devices have a wrong result, and which entry has the largest error on the first of them."""
    first = off[0]
    got, wanted = drawn.exact(first.data), drawn.exact(whole[first.index])
    far = np.nan_to_num(np.abs(got - wanted), nan=np.inf)
    at = np.unravel_index(int(far.argmax()), far.shape)
    who = "every device" if len(off) == of else f"{len(off)} of {of} devices"
    entry = f"entry {[int(i) for i in at]} of its block is {got[at]:.4g} instead of {wanted[at]:.4g}"
    return f"on {who}, first on {_place(first.device, mesh)}: {entry}"


def _place(device: Any, mesh: jax.sharding.Mesh) -> str:
    """Return the position of a device on the mesh: 'X=0, Y=3'."""
    places = np.argwhere(mesh.devices == device)
    if not len(places):
        return str(device)
    return ", ".join(f"{name}={i}" for name, i in zip(mesh.axis_names, places[0], strict=True))


def _elsewhere(got: Any, out: tuple[str, ...], mesh: jax.sharding.Mesh) -> Iterator[str]:
    """Yield the results whose sharding is not the required one."""
    for text, array in zip(out, jax.tree.leaves(got), strict=False):
        asked = sharding.array(text)
        where = jax.sharding.NamedSharding(mesh, sharding.spec(asked))
        if not array.sharding.is_equivalent_to(where, array.ndim):
            yield (
                f"it is sharded as {sharding.array_of(array, asked.names, asked.name)}, but should be {asked}"
            )
