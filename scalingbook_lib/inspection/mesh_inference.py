"""Reads the axes of a mesh as people write them, and infers them from the groups of a program's collectives.

A saved text does not name mesh axes. Its groups show where axes begin and end: devices are numbered along the
mesh with the last axis fastest, so a group over one axis is an arithmetic sequence of device numbers.
"""

import itertools
import math
import re
from collections.abc import Iterator

from scalingbook_lib.hlo import replica_groups, walk
from scalingbook_lib.hlo.module import COLLECTIVE_OPCODES, HloModule

LETTERS = "XYZUVW"
_NAMED = re.compile(r"replica_groups=mesh\[([^\]]*)\]")

_AXIS = re.compile(r"([A-Za-z_][\w.\-]*)\s*=\s*([0-9]{1,9})")


def read(text: str) -> dict[str, int]:
    """Mesh axes by any names, in the order of the program: 'data=16,model=4', 'X=8,Y=2'.

    Raises a ValueError that says what to write instead.
    """
    sizes: dict[str, int] = {}
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        match = _AXIS.fullmatch(part)
        if match is None or match[1] in sizes or int(match[2]) < 1:
            raise ValueError(
                f"{text!r} is not a mesh; name each axis of the program once, slowest first, as in "
                "data=16,model=4"
            )
        sizes[match[1]] = int(match[2])
    if not sizes:
        raise ValueError("a mesh needs an axis; write the axes of the program, as in data=16,model=4")
    return sizes


def infer(module: HloModule, devices: int) -> dict[str, int]:
    """A mesh of `devices` devices in which the program's groups are whole axes, as {'X': 16, 'Y': 4}.

    Newer versions of XLA name the axes in some groups. Otherwise the axes are the coarsest that fit, and are
    called X, Y, Z from the slowest. The mesh is one axis if no group shows another.
    """
    if named := _named(module, devices):
        return named
    bounds = {1, devices}
    for start, stop in _spans(module, devices):
        bounds |= {start, stop}
    # a boundary has to divide the next one; the groups of one mesh always do
    kept = [1]
    for bound in sorted(bounds):
        if bound > kept[-1] and bound % kept[-1] == 0 and devices % bound == 0:
            kept.append(bound)
    sizes = [high // low for low, high in itertools.pairwise(kept)][::-1]
    return dict(zip(LETTERS, sizes[: len(LETTERS)], strict=False)) or {"X": max(devices, 1)}


def _named(module: HloModule, devices: int) -> dict[str, int]:
    """The axes that a group names, as in `mesh['data'=4,'model'=2]`; none if no group does."""
    for computation in module.computations.values():
        for i in computation.instructions.values():
            if found := _NAMED.search(i.attributes):
                axes = re.findall(r"""['"]?([\w.\-]+)['"]?=(\d+)""", found[1])
                sizes = {name: int(size) for name, size in axes}
                if math.prod(sizes.values()) == devices:
                    return sizes
    return {}


def _spans(module: HloModule, devices: int) -> Iterator[tuple[int, int]]:
    """For every run of evenly spaced devices in a group: its stride, and the stride times its length."""
    for visit in walk.visits(module):
        i = visit.instruction
        kind = i.opcode.removesuffix("-start")
        if kind not in COLLECTIVE_OPCODES or kind == "collective-permute":
            continue
        for group in replica_groups.read(i.attributes, devices)[:1]:
            yield from _strides(sorted(group))


def _strides(group: list[int]) -> Iterator[tuple[int, int]]:
    """The strides of a group, innermost first: 0, 1, 8, 9 has two devices at stride 1, two at stride 8."""
    while len(group) > 1:
        stride = group[1] - group[0]
        length = next((n for n in range(1, len(group)) if group[n] - group[n - 1] != stride), len(group))
        if len(group) % length:
            return
        yield stride, stride * length
        group = group[::length]
