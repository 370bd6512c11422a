"""What does one device hold of a sharded array?

`A[I_XY, J]{U_Z}`: dimension I is split over mesh axes X and Y (X slowest), J is whole on every device, and the
true array is the sum over Z of what the devices hold.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from ..told import Told
from ..units import DType
from .error import NotationError
from .mesh import Mesh, is_axis, size_of, unknown_axis

MOST_DEVICES = 2**16  # that blocks() lists one by one


@dataclass(frozen=True, slots=True)
class Dim(Told):
    """One dimension and the mesh axes that split it, slowest first: `I_XY`."""

    name: str
    axes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))  # "XY" is as good as ("X", "Y")
        if not is_name(self.name) or "_" in self.name:
            raise NotationError(
                "dim-name", str(self.name), "this cannot name a dimension", "write a letter, as in I"
            )
        for axis in self.axes:
            if not is_axis(axis):
                raise NotationError(
                    "axis-name",
                    str(self),
                    f"{axis!r} cannot name a mesh axis",
                    "write one capital letter, as in I_X",
                )

    def __str__(self) -> str:
        return self.name + _subscript(self.axes)


@dataclass(frozen=True, slots=True)
class Array(Told):
    """A sharded array: its name, its dimensions, and the mesh axes over which it is a partial sum."""

    name: str
    dims: tuple[Dim, ...]
    partial: tuple[str, ...] = ()
    text: str = field(default="", init=False, compare=False, repr=False)  # as it was read; lost by replace()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))
        object.__setattr__(self, "partial", tuple(self.partial))
        _check_names(self)
        _check_axes(self)

    def __str__(self) -> str:
        return self.text or self.canonical()

    def canonical(self) -> str:
        """The one way this array is written in the book: `A[I_XY, J]{U_Z}`."""
        marker = f"{{U{_subscript(self.partial)}}}" if self.partial else ""
        return f"{self.name}[{', '.join(map(str, self.dims))}]{marker}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
        return tuple(dim.name for dim in self.dims)

    @property
    def axes(self) -> tuple[str, ...]:
        """Every mesh axis that splits a dimension, in order."""
        return tuple(axis for dim in self.dims for axis in dim.axes)

    def axes_of(self, name: str) -> tuple[str, ...]:
        """The mesh axes that split the dimension `name`."""
        return self.dims[self.names.index(self._known(name))].axes

    def check(self, mesh: Mesh) -> None:
        """Raise NotationError where the array uses an axis that the mesh does not have."""
        for k, axis in enumerate(self.axes + self.partial):
            if axis not in mesh.axes:
                raise unknown_axis(axis, mesh, str(self), f"axis.{k}")

    def unused_axes(self, mesh: Mesh) -> tuple[str, ...]:
        """The axes of the mesh along which every device holds the same thing."""
        self.check(mesh)
        return tuple(axis for axis in mesh.axes if axis not in self.axes + self.partial)

    def replicas(self, mesh: Mesh) -> int:
        """How many devices hold the same block: the product of the unused axes."""
        return mesh.size(self.unused_axes(mesh))

    def shape(self, /, **sizes: int) -> tuple[int, ...]:
        """The shape of the whole array."""
        return tuple(size_of(name, sizes, str(self)) for name in self.names)

    def local_shape(self, mesh: Mesh, /, **sizes: int) -> tuple[int, ...]:
        """The shape of one device's block; an uneven split is padded, so it rounds up."""
        self.check(mesh)
        return tuple(
            -(-n // mesh.size(dim.axes)) for n, dim in zip(self.shape(**sizes), self.dims, strict=True)
        )

    def is_even(self, mesh: Mesh, /, **sizes: int) -> bool:
        """Does every device hold a block of the same size, with no padding?"""
        self.check(mesh)
        return all(
            n % mesh.size(dim.axes) == 0 for n, dim in zip(self.shape(**sizes), self.dims, strict=True)
        )

    def global_bytes(self, dtype: DType, /, **sizes: int) -> float:
        """The bytes of one whole copy of the array."""
        return dtype.bytes * math.prod(self.shape(**sizes))

    def local_bytes(self, mesh: Mesh, dtype: DType, /, **sizes: int) -> float:
        """The bytes of one device's block, padding included."""
        return dtype.bytes * math.prod(self.local_shape(mesh, **sizes))

    def total_bytes(self, mesh: Mesh, dtype: DType, /, **sizes: int) -> float:
        """The bytes that the array takes in all devices of the mesh together."""
        return mesh.devices * self.local_bytes(mesh, dtype, **sizes)

    def blocks(self, mesh: Mesh, /, **sizes: int) -> dict[tuple[int, ...], tuple[range, ...]]:
        """For every device, by its coordinates on the mesh, the range of indices it holds of each dimension.

        The first axis of a subscript is the slow one: device (x, y) holds block x * Y + y of `I_XY` and block
        y * X + x of `I_YX`. Where an uneven split leaves nothing for a device, its range is empty.
        """
        if mesh.devices > MOST_DEVICES:
            broke = f"a block for each of the {mesh.devices:,} devices of {mesh} is too much to list"
            raise NotationError(
                "too-many-devices", str(self), broke, f"use a mesh of at most {MOST_DEVICES:,} devices"
            )
        whole, local = self.shape(**sizes), self.local_shape(mesh, **sizes)
        return {
            at: tuple(
                _block(_place(dim.axes, mesh, at), step, n)
                for dim, step, n in zip(self.dims, local, whole, strict=True)
            )
            for at in mesh.coordinates()
        }

    def with_axes(self, /, **axes: Iterable[str]) -> Self:
        """The same array with other subscripts: `with_axes(I="XY", J="")`."""
        for name in axes:
            self._known(name)
        dims = tuple(Dim(d.name, tuple(axes.get(d.name, d.axes))) for d in self.dims)
        return replace(self, dims=dims)

    def with_partial(self, axes: Iterable[str]) -> Self:
        """The same array as a partial sum over these axes: `with_partial("X")`, `with_partial("")`."""
        return replace(self, partial=tuple(axes))

    def _known(self, name: str) -> str:
        if name not in self.names:
            raise NotationError(
                "unknown-dim", str(self), f"there is no dimension {name}", f"use {' or '.join(self.names)}"
            )
        return name


def is_name(name: object) -> bool:
    """Is this a name: an ASCII letter, then letters, digits, primes and underscores?"""
    rest = name.replace("_", "").replace("'", "") if isinstance(name, str) else ""
    return isinstance(name, str) and name[:1].isalpha() and rest.isalnum() and rest.isascii()


def _subscript(axes: Iterable[str]) -> str:
    joined = "".join(map(str, axes))
    return f"_{joined}" if joined else ""


def _check_names(a: Array) -> None:
    """An array has a name and at least one dimension, and no dimension twice."""
    if not is_name(a.name):
        raise NotationError(
            "missing-name",
            a.canonical(),
            f"{a.name!r} cannot name an array",
            "write a letter first, as in A[I, J]",
            part="name",
        )
    if not a.dims:
        raise NotationError(
            "empty-dims", a.canonical(), "an array needs a dimension", f"write one as in {a.name}[I]"
        )
    for k, name in enumerate(a.names):
        if name in a.names[:k]:
            write = "give each dimension its own letter"
            raise NotationError(
                "duplicate-dim",
                a.canonical(),
                f"dimension {name} stands twice in {a.name}",
                write,
                part=f"dim.{k}",
            )


def _check_axes(a: Array) -> None:
    """A mesh axis is used once: for one dimension or for the partial sum."""
    used: dict[str, str] = {}
    for k, (axis, dim) in enumerate((axis, dim.name) for dim in a.dims for axis in dim.axes):
        if used.get(axis) == dim:
            broke, write = f"mesh axis {axis} stands twice on {dim}", "write each axis once"
            raise NotationError("axis-repeated", a.canonical(), broke, write, part=f"axis.{k}")
        if axis in used:
            broke = f"mesh axis {axis} already splits {used[axis]}, so it cannot split {dim} too"
            write = f"leave {axis} on one of them, as in {a.name}[{_without(a, axis, dim)}]"
            raise NotationError("axis-twice", a.canonical(), broke, write, part=f"axis.{k}")
        used[axis] = dim
    _check_partial(a, used)


def _check_partial(a: Array, used: dict[str, str]) -> None:
    for k, axis in enumerate(a.partial):
        part = f"axis.{len(a.axes) + k}"
        if not is_axis(axis):
            raise NotationError(
                "axis-name",
                a.canonical(),
                f"{axis!r} cannot name a mesh axis",
                "write one capital letter, as in {U_X}",
                part=part,
            )
        if axis in a.partial[:k]:
            raise NotationError(
                "partial-twice",
                a.canonical(),
                f"axis {axis} stands twice in the partial sum",
                f"write {{U_{axis}}} once",
                part=part,
            )
        if axis in used:
            broke = (
                f"mesh axis {axis} splits {used[axis]}, so the array cannot also be a partial sum over {axis}"
            )
            write = f"keep {used[axis]}_{axis} or {{U_{axis}}}, not both"
            raise NotationError("split-and-partial", a.canonical(), broke, write, part=part)


def _without(a: Array, axis: str, dim: str) -> str:
    """The dimensions of `a` with `axis` taken off `dim`."""
    return ", ".join(d.name + _subscript(x for x in d.axes if (x, d.name) != (axis, dim)) for d in a.dims)


def _place(axes: tuple[str, ...], mesh: Mesh, at: tuple[int, ...]) -> int:
    """Which block of a dimension split over `axes` the device at these coordinates holds."""
    place = 0
    for axis in axes:
        place = place * mesh.size(axis) + at[mesh.axes.index(axis)]
    return place


def _block(place: int, step: int, n: int) -> range:
    return range(min(place * step, n), min((place + 1) * step, n))
