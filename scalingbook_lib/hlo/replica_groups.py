"""Finds the mesh axes of a collective from the groups of device numbers that XLA writes.

XLA writes groups in three forms: lists `{{0,1},{2,3}}`, an iota `[2,4]<=[4,2]T(1,0)`, and a mesh with some of
its axes `mesh['x'=2,'y'=4] {'y'}`. All three are read into lists of device numbers, which are then compared
with the axes of the reader's mesh.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from scalingbook_lib.notation import axis_names, join_axes

type Groups = list[tuple[int, ...]]

_LISTS = re.compile(r"replica_groups=\{((?:\{[\d, ]*\},?\s*)*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(
    r"replica_groups=@?mesh[\[<](?P<axes>[^\]>]*)[\]>]"
    r"(?:,?\s*device_ids=\((?P<devices>[^{]*?)\))?\s*\{(?P<over>[^}]*)\}"
)
_SUB_AXIS = re.compile(r"""['"]?([\w.\-]+)['"]?(?::\((\d+)\)(\d+))?""")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?\s*)*)\}")


def read(attributes: str, devices: int) -> Groups:
    """The groups of device numbers that communicate; one group of all devices if the attributes name none."""
    if found := _IOTA.search(attributes):
        shape, dims = _numbers(found[1]), _numbers(found[2])
        order = _numbers(found[3]) if found[3] else tuple(range(len(dims)))
        return _rows(_transposed(dims, order), shape[-1])
    if found := _MESH.search(attributes):
        return _mesh_groups(found["axes"], found["devices"], found["over"])
    if (found := _LISTS.search(attributes)) and found[1].strip():
        return [_numbers(group) for group in re.findall(r"\{([\d, ]*)\}", found[1])]
    return [tuple(range(devices))]


def pairs(attributes: str) -> Groups:
    """The (source, target) device numbers of a collective permute."""
    found = _PAIRS.search(attributes)
    return [_numbers(pair) for pair in re.findall(r"\{(\d+,\d+)\}", found[1])] if found else []


def axes_of(groups: Groups, sizes: Mapping[str, int], *, ordered: bool = True) -> str | None:
    """The mesh axes along which the devices of every group differ: 'X', 'XY'; None if no axes fit.

    Devices are numbered along the mesh, last axis fastest. With `ordered`, the slowest axis of the group is
    named first (a gather over YX is not one over XY); without it, axes keep the mesh's order.
    """
    coordinates = dict(enumerate(itertools.product(*map(range, sizes.values()))))
    numbers = [n for group in groups for n in group]
    if len(numbers) > len(coordinates) or any(n not in coordinates for n in numbers):
        return None
    names = tuple(sizes)
    varying = [k for k in range(len(names)) if len({coordinates[n][k] for n in groups[0]}) > 1]
    for order in itertools.permutations(varying):
        wanted = {tuple(g) for g in _axis_groups(list(sizes.values()), order)}
        if ordered and wanted == set(groups):
            return join_axes(names[k] for k in order)
        if {frozenset(g) for g in wanted} == {frozenset(g) for g in groups} and not ordered:
            return join_axes(names[k] for k in varying)
    return axes_of(groups, sizes, ordered=False) if ordered else None


def shift_of(moves: Groups, sizes: Mapping[str, int]) -> tuple[str | None, int | None]:
    """The mesh axes along which a permute moves data, and by how many positions: ('Y', 1).

    (None, None) if the devices do not fit the mesh; the shift is None if devices move by different amounts.
    """
    moves = [(a, b) for a, b in moves if a != b]
    coordinates = dict(enumerate(itertools.product(*map(range, sizes.values()))))
    if not moves or any(n not in coordinates for move in moves for n in move):
        return None, None
    names, lengths = tuple(sizes), tuple(sizes.values())
    moved = [k for k in range(len(names)) if any(coordinates[a][k] != coordinates[b][k] for a, b in moves)]
    n = math.prod(lengths[k] for k in moved)
    flat = {device: _flat(at, moved, lengths) for device, at in coordinates.items()}
    steps = {(flat[b] - flat[a]) % n for a, b in moves}
    shift = steps.pop() if len(steps) == 1 else None
    signed = shift - n if shift is not None and shift > n // 2 else shift
    return join_axes(names[k] for k in moved), signed


def split_axes(axes: str, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The single axes in 'XY' or in 'data,model'.

    `sizes` has the axes of the mesh, of which one may be called 'DP'.
    """
    return tuple(axes.split(",")) if "," in axes or axes in sizes else axis_names(axes)


def _numbers(text: str) -> tuple[int, ...]:
    """The integers of a comma-separated list."""
    return tuple(int(n) for n in text.split(",") if n.strip())


def _rows(numbers: Sequence[int], length: int) -> Groups:
    """`numbers` divided into tuples of `length`."""
    return [tuple(numbers[k : k + length]) for k in range(0, len(numbers), length)]


def _transposed(dims: Sequence[int], order: Sequence[int]) -> list[int]:
    """0, 1, 2, … laid out in `dims` and read with its axes in `order`, the last one fastest."""
    strides = [math.prod(dims[k + 1 :]) for k in range(len(dims))]
    ranges = [range(0, dims[k] * strides[k], strides[k]) for k in order]
    return [sum(at) for at in itertools.product(*ranges)]


def _mesh_groups(axes: str, devices: str | None, over: str) -> Groups:
    """The groups of the mesh form; a sub-axis `'x':(2)4` is the 4 that follow the first 2 of x."""
    named = {name: int(size) for name, size in re.findall(r"""['"]?([\w.\-]+)['"]?=(\d+)""", axes)}
    parts: list[tuple[str, int]] = []  # every axis, divided where a sub-axis begins or ends
    chosen: list[tuple[str, int, int]] = []
    for name, before, size in _SUB_AXIS.findall(over):
        chosen.append((name, int(before or 1), int(size or named[name])))
    sizes: list[int] = []
    for name, whole in named.items():
        bounds = sorted({1, whole, *(c for n, b, s in chosen if n == name for c in (b, b * s))})
        for low, high in itertools.pairwise(bounds):
            parts.append((name, low))
            sizes.append(high // low)
    order = [k for n, b, s in chosen for k, (name, low) in enumerate(parts) if name == n and b <= low < b * s]
    numbers = _device_numbers(devices, math.prod(named.values()))
    return [tuple(numbers[position] for position in group) for group in _axis_groups(sizes, order)]


def _device_numbers(devices: str | None, n: int) -> Sequence[int]:
    """The device at each position of a mesh: in order, a list, or an iota `[4,16]T(1,0)`."""
    if not devices:
        return range(n)
    iota = re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\)?)?", devices.strip())
    if iota is None:
        return _numbers(devices)
    dims = _numbers(iota[1])
    return _transposed(dims, _numbers(iota[2]) if iota[2] else range(len(dims)))


def _axis_groups(sizes: Sequence[int], order: Iterable[int]) -> Groups:
    """The groups along some axes of a grid, the first axis of `order` slowest within a group."""
    order = list(order)
    rest = [k for k in range(len(sizes)) if k not in order]
    length = math.prod(sizes[k] for k in order)
    return _rows(_transposed(sizes, rest + order), length)


def _flat(position: Sequence[int], axes: Sequence[int], lengths: Sequence[int]) -> int:
    """The position along `axes` as one number, the last axis fastest."""
    flat = 0
    for k in axes:
        flat = flat * lengths[k] + position[k]
    return flat
