"""A sharded array, and the block of it that one device holds.

`A[I_XY, J]{U_Z}`: dimension I is sharded over mesh axes X and Y (X slowest), J is not sharded, and the array
is the sum over Z of the values on the devices.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import mul
from typing import Self

from scalingbook_lib.notation.error import broken
from scalingbook_lib.notation.mesh import Mesh, axis_names, is_axis, join_axes
from scalingbook_lib.notation.sizes import size_of
from scalingbook_lib.units import DType, Result

NAME = r"[A-Za-z][A-Za-z0-9']*"  # a dimension's name; an array's name may join several by underscores
MOST_DEVICES = 2**16  # the most devices that blocks() lists one by one

_DIM_NAME, _ARRAY_NAME = re.compile(NAME), re.compile(rf"{NAME}(?:_[A-Za-z0-9']+)*")


@dataclass(frozen=True, slots=True)
class Dim(Result):
    """One dimension and the mesh axes that shard it, slowest first: `I_XY`."""

    name: str
    axes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", axis_names(self.axes))  # accepts "XY" as well as ("X", "Y")
        if not isinstance(self.name, str) or not _DIM_NAME.fullmatch(self.name):
            raise broken("dim-name", str(self.name), found=repr(self.name))
        if sum(map(str.isupper, self.name)) > 1:
            first, axes = self.name[0], "".join(c for c in self.name[1:] if is_axis(c))
            words = {"found": self.name, "first": first, "axes": axes, "split": f"{first}_{axes}"}
            raise broken("run-together", self.name, **words)
        for k, axis in enumerate(self.axes):
            if not is_axis(axis):
                raise broken("axis-name", str(self), None, f"axis.{k}", found=repr(axis))

    def __str__(self) -> str:
        return f"{self.name}{_subscript(self.axes)}"


@dataclass(frozen=True, slots=True)
class Array(Result):
    """A sharded array: its name, its dimensions, and the mesh axes over which it is a partial sum."""

    name: str
    dims: tuple[Dim, ...]
    partial: tuple[str, ...] = ()
    # the text as it was read; replace() drops it
    text: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))
        object.__setattr__(self, "partial", axis_names(self.partial))
        # the order matters: each check relies on the ones before it
        _check_names(self)
        _check_partial(self, _check_dims(self))

    def __str__(self) -> str:
        return self.text or self.canonical()

    def canonical(self) -> str:
        """The array in the book's spelling: `A[I_XY, J]{U_Z}`."""
        marker = f"{{U{_subscript(self.partial)}}}" if self.partial else ""
        return f"{self.name}[{', '.join(map(str, self.dims))}]{marker}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
        return tuple(dim.name for dim in self.dims)

    @property
    def axes(self) -> tuple[str, ...]:
        """Every mesh axis that shards a dimension, in order."""
        return tuple(axis for dim in self.dims for axis in dim.axes)

    def axes_of(self, name: str) -> tuple[str, ...]:
        """The mesh axes that shard the dimension `name`.

        Raises a NotationError if there is no such dimension.
        """
        return self.dims[self.names.index(self._known(name))].axes

    def check(self, mesh: Mesh) -> None:
        """Raise a NotationError if the array uses an axis that the mesh does not have."""
        for k, axis in enumerate(self.axes + self.partial):
            mesh.known(axis, str(self), f"axis.{k}")

    def unused_axes(self, mesh: Mesh) -> tuple[str, ...]:
        """The axes of the mesh along which the array is replicated."""
        self.check(mesh)
        return tuple(axis for axis in mesh.axes if axis not in self.axes + self.partial)

    def replicas(self, mesh: Mesh) -> int:
        """The number of devices that hold the same block: the product of the sizes of the unused axes."""
        return mesh.size(self.unused_axes(mesh))  # the summands of a partial sum are not replicas

    def shape(self, /, **sizes: int) -> tuple[int, ...]:
        """The global shape of the array. Raises a NotationError if a size is missing."""
        return tuple(size_of(name, sizes, str(self), f"dim.{k}") for k, name in enumerate(self.names))

    def local_shape(self, mesh: Mesh, /, **sizes: int) -> tuple[int, ...]:
        """The shape of one device's block, rounded up because an uneven shard is padded."""
        # XLA pads uneven shards: the last devices hold fewer elements in blocks of the same size
        return tuple(-(-n // parts) for n, parts in zip(self.shape(**sizes), self._parts(mesh), strict=True))

    def is_even(self, mesh: Mesh, /, **sizes: int) -> bool:
        """Whether every device holds a block of the same size, without padding."""
        return all(n % parts == 0 for n, parts in zip(self.shape(**sizes), self._parts(mesh), strict=True))

    def global_bytes(self, dtype: DType, /, **sizes: int) -> float:
        """The bytes of the whole array, with every element counted once."""
        return dtype.bytes * math.prod(self.shape(**sizes))  # one summand, if the array is a partial sum

    def local_bytes(self, mesh: Mesh, dtype: DType, /, **sizes: int) -> float:
        """The bytes of one device's block, padding included."""
        return dtype.bytes * math.prod(self.local_shape(mesh, **sizes))

    def total_bytes(self, mesh: Mesh, dtype: DType, /, **sizes: int) -> float:
        """The bytes of the array on all devices of the mesh, replicas and padding included."""
        return mesh.devices * self.local_bytes(mesh, dtype, **sizes)

    def blocks(self, mesh: Mesh, /, **sizes: int) -> dict[tuple[int, ...], tuple[range, ...]]:
        """The range of indices of each dimension that every device holds, by the device's mesh coordinates.

        The first axis of a subscript is the slowest: device (x, y) holds block x · Y + y of `I_XY` and block
        y · X + x of `I_YX`. If an uneven split leaves nothing for a device, its range is empty. Raises a
        NotationError if the mesh has more devices than can be listed.
        """
        # a large number typed by a reader must not freeze the page
        if mesh.devices > MOST_DEVICES:
            raise broken("too-many-devices", str(self), devices=mesh.devices, most=MOST_DEVICES)
        whole, local = self.shape(**sizes), self.local_shape(mesh, **sizes)
        strides = [_strides(dim.axes, mesh) for dim in self.dims]
        held = list(zip(strides, local, whole, strict=True))
        return {
            at: tuple(
                range(n)[(k := sum(map(mul, stride, at)) * step) : k + step] for stride, step, n in held
            )
            for at in mesh.coordinates()
        }

    def with_axes(self, /, **axes: Iterable[str]) -> Self:
        """The array with other mesh axes on the named dimensions: `with_axes(I="XY", J="")`."""
        for name in axes:
            self._known(name)
        dims = tuple(Dim(dim.name, axis_names(axes.get(dim.name, dim.axes))) for dim in self.dims)
        return replace(self, dims=dims)

    def with_partial(self, axes: Iterable[str]) -> Self:
        """The array as a partial sum over these axes: `with_partial("X")`, `with_partial("")`."""
        return replace(self, partial=axis_names(axes))

    def _parts(self, mesh: Mesh) -> tuple[int, ...]:
        """The number of blocks along each dimension."""
        self.check(mesh)
        return tuple(mesh.size(dim.axes) for dim in self.dims)

    def _known(self, name: str) -> str:
        if name not in self.names:
            raise broken("unknown-dim", str(self), name=name, known=", ".join(self.names))
        return name


def _subscript(axes: Iterable[str]) -> str:
    written = join_axes(map(str, axes))
    return (f"_{{{written}}}" if "," in written else f"_{written}") if written else ""


def _check_names(a: Array) -> None:
    """Raise a NotationError unless the array has a name and at least one dimension, each listed once."""
    if not isinstance(a.name, str) or not _ARRAY_NAME.fullmatch(a.name):
        raise broken("array-name", a.canonical(), None, "name", found=repr(a.name))
    if not a.dims:
        raise broken("empty-dims", a.canonical(), name=a.name)
    for k, name in enumerate(a.names):
        if name in a.names[:k]:
            raise broken("duplicate-dim", a.canonical(), None, f"dim.{k}", name=name, array=a.name)


def _check_dims(a: Array) -> dict[str, str]:
    """The dimension that each mesh axis shards. Raises a NotationError if one axis shards two dimensions."""
    used: dict[str, str] = {}
    for k, (axis, name) in enumerate((axis, dim.name) for dim in a.dims for axis in dim.axes):
        if used.get(axis) == name:
            words = {"axis": axis, "name": name, "example": name + _subscript(dict.fromkeys(a.axes_of(name)))}
            raise broken("axis-repeated", a.canonical(), None, f"axis.{k}", **words)
        if axis in used:
            words = {"axis": axis, "first": used[axis], "name": name, "example": _without(a, axis, name)}
            raise broken("axis-twice", a.canonical(), None, f"axis.{k}", **words)
        used[axis] = name
    return used


def _check_partial(a: Array, used: dict[str, str]) -> None:
    """Raise a NotationError unless the partial sum runs over unused axes, each listed once."""
    for k, axis in enumerate(a.partial):
        part = f"axis.{len(a.axes) + k}"
        words = {"found": repr(axis), "axis": axis, "name": used.get(axis)}
        for wrong, rule in (
            (not is_axis(axis), "axis-name"),
            (axis in a.partial[:k], "partial-twice"),
            (axis in used, "split-and-partial"),
        ):
            if wrong:
                raise broken(rule, a.canonical(), None, part, **words)


def _without(a: Array, axis: str, name: str) -> str:
    """The array as text, with `axis` removed from the dimension `name`."""
    axes = [[x for x in dim.axes if (x, dim.name) != (axis, name)] for dim in a.dims]
    dims = ", ".join(dim.name + _subscript(kept) for dim, kept in zip(a.dims, axes, strict=True))
    return f"{a.name}[{dims}]"


def _strides(axes: tuple[str, ...], mesh: Mesh) -> list[int]:
    """The distance in blocks between neighbors along each axis, in a dimension sharded over `axes`."""
    # an axis that the subscript does not list has stride 0: its devices hold replicas
    after = {axis: mesh.size(axes[k + 1 :]) for k, axis in enumerate(axes)}
    return [after.get(axis, 0) for axis in mesh.axes]
