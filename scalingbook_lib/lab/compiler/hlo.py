"""Which collectives did the compiler write, over which mesh axes, of how many bytes, run how often?

`collectives(compiled, mesh)` reads them out of a compiled program for simulated CPU devices or for TPUs:
asynchronous pairs count once, loops count every trip, fused forms are seen through. Chapter: Sharding.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scalingbook_lib.collectives import Collective, bytes_received
from scalingbook_lib.lab.compiler import fused, replica_groups, unread, walk
from scalingbook_lib.lab.compiler.text import BROADCAST, KINDS, RAGGED, HloError, Text
from scalingbook_lib.lab.compiler.walk import Visit
from scalingbook_lib.units import Result, si

WHOLE = (Collective.ALL_GATHER.hlo, Collective.ALL_TO_ALL.hlo, RAGGED)  # a device holds one part of n


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCollective(Result):
    """One collective of a compiled program.

    `nbytes` is the array as `scalingbook_lib.collectives` counts it: gathered (all-gather), unreduced
    (reduce-scatter), as it is (all-reduce), over all devices of the group (all-to-all), what one device sends
    (permute). `axes` is '?' where the groups are no axes of the mesh; `times` is None in a loop whose number
    of trips the program does not fix.
    """

    kind: str
    axes: str
    nbytes: int
    times: int | None
    dtype: str
    devices: int
    shift: int | None = None
    overlapped: bool = False
    name: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    @property
    def received_bytes(self) -> float:
        """What one device takes in from the others each time it runs, ends and corners aside."""
        if self.kind == BROADCAST:
            return self.nbytes
        return bytes_received(self.kind.removeprefix("ragged-"), self.nbytes, self.devices)

    @property
    def over(self) -> str:
        """The axes as a table shows them, a permute's shift included: 'Y +1'."""
        return self.axes if self.shift is None else f"{self.axes} {self.shift:+d}"

    def __str__(self) -> str:
        times = "an unknown number of times" if self.times is None else f"{self.times}×"
        return f"{self.kind} over {self.over} of {si(self.nbytes, 'B')} in {self.dtype}, {times}"


@dataclass(frozen=True, slots=True)
class Collectives(Result):
    """The collectives of a program, in the order in which it runs them, and what its text does not tell.

    One in a loop of unknown length counts once in every sum; what is `not_counted` says so.
    """

    rows: tuple[CompiledCollective, ...]
    not_counted: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[CompiledCollective]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> CompiledCollective:
        return self.rows[place]

    def __eq__(self, other: object) -> bool:
        """Equal to other collectives of the same rows, or to a dict of counts: `== {"all-reduce": 1}`.

        What is not counted equals no dict: nobody knows whether the program does as it says.
        """
        if isinstance(other, Mapping):
            return not self.not_counted and self.counts() == other
        return isinstance(other, Collectives) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash(self.rows)

    def counts(self) -> dict[str, int]:
        """How often each kind runs: {'all-gather': 2}."""
        return self.summed(lambda c: c.kind, lambda c: 1)

    def over_axes(self) -> dict[str, int]:
        """How often each kind runs over which axes: {'all-gather X': 2}."""
        return self.summed(lambda c: f"{c.kind} {c.axes}", lambda c: 1)

    def nbytes(self) -> dict[str, int]:
        """The array bytes of each kind over its axes, all runs together: {'all-gather X': 16777216}."""
        return self.summed(lambda c: f"{c.kind} {c.axes}", lambda c: c.nbytes)

    @property
    def received_bytes(self) -> float:
        """What one device takes in over its links in the whole program."""
        return sum(self.summed(lambda c: c.kind, lambda c: c.received_bytes).values())

    def summed(self, key: Callable, value: Callable) -> dict:
        """A figure of every row times its runs, those of one key together."""
        total: dict = {}
        for c in self.rows:
            total[key(c)] = total.get(key(c), 0) + value(c) * (1 if c.times is None else c.times)
        return total

    def __str__(self) -> str:
        return "\n".join([self.table(), *self.not_counted])

    def table(self) -> str:
        """The rows, those that are alike as one."""
        if not self.rows:
            return "no collectives in its text" if self.not_counted else "no collectives"
        merged: dict[tuple, int | None] = {}
        for c in self.rows:
            key = (c.kind, c.over, f"{c.dtype} {si(c.nbytes, 'B')}", si(c.received_bytes, "B"))
            times = merged.get(key, 0)
            merged[key] = None if c.times is None or times is None else times + c.times
        head = ("collective", "axes", "array", "received", "times")
        return table([head, *((*key, "≥ 1" if n is None else str(n)) for key, n in merged.items())])


def collectives(program: Any, mesh: Any = None) -> Collectives:
    """The collectives of a compiled program: `collectives(jit(f).lower(x).compile(), Mesh(X=4, Y=2))`.

    The program may also be its text; the mesh a notation Mesh, a JAX mesh or {'X': 4, 'Y': 2}. It may be left
    out where the compiled program knows its own.
    """
    sizes, text = sizes_of(mesh if mesh is not None else mesh_of(program)), Text.of(program)

    def received(visit: Visit) -> float:
        found = collective(visit, sizes)
        return found.received_bytes if found else 0

    found = (collective(visit, sizes) for visit in walk.visits(text, received))
    lacking = tuple(one.words for one in unread.unread(text) if one.transfers)
    return Collectives(tuple(c for c in found if c is not None), lacking)


def sizes_of(mesh: Any) -> dict[str, int]:
    """The sizes of a mesh's axes in order, whether the mesh is the notation's, JAX's or a dict."""
    for attribute in ("sizes", "shape"):
        if isinstance(sizes := getattr(mesh, attribute, None), Mapping):
            return dict(sizes)
    return dict(mesh)


def mesh_of(program: Any) -> Any:
    """The mesh that a compiled program was compiled for, from the shardings of its arguments and results."""
    if (mesh := getattr(program, "mesh", None)) is not None:
        return mesh
    import jax

    given = (getattr(program, "input_shardings", None), getattr(program, "output_shardings", None))
    for sharding in jax.tree.leaves(given):
        if (mesh := getattr(sharding, "mesh", None)) is not None:
            return mesh
    raise HloError(
        "the program does not say which mesh it is for; give it, as in collectives(text, Mesh(X=4, Y=2))"
    )


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows of text in columns, the first row as their heads; the last two columns stand to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) - 2
    lines = (
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def started(text: Text, visit: Visit, sizes: Mapping[str, int]) -> list[CompiledCollective]:
    """The collectives that an instruction starts: the one that it is, or those that are fused into it."""
    instruction, visits = visit.instruction, [visit]
    if walk.is_whole(instruction) and walk.callees(instruction):
        bodies = [text.computations[name] for name in walk.callees(instruction)]
        visits = [Visit(part, c, 1, instruction) for c in bodies for part in c.instructions.values()]
    found = (collective(visit, sizes) for visit in visits)
    return [c for c in found if c is not None]


def collective(visit: Visit, sizes: Mapping[str, int]) -> CompiledCollective | None:
    """The collective that this instruction starts, if it starts one."""
    instruction = visit.instruction
    kind = instruction.opcode.removesuffix("-start")
    if kind not in KINDS or fused.is_continued(visit):
        return None
    operands = visit.computation.operands(instruction)
    # operands, not results: those of `-start` have buffers and contexts beside the array. One instruction may
    # move many arrays (XLA merges small ones), whose bytes are summed.
    shapes = [shape for operand in operands for shape in operand.shapes] or list(instruction.shapes)
    if kind == RAGGED:
        shapes = shapes[:1]  # the others are where it goes, and the places and lengths of its pieces
    held = int(sum(shape.nbytes for shape in shapes))
    kind = "reduce-scatter" if kind == "all-reduce" and fused.is_scattered(visit) else kind
    axes, shift, n = _where(kind, instruction.attributes, sizes)
    if n == 1:
        return None  # a group of one device, or a permute that moves nothing
    return CompiledCollective(
        kind=kind,
        axes=axes or "?",
        nbytes=held * n if kind in WHOLE else held,
        times=visit.times,
        dtype=shapes[0].dtype,
        devices=n,
        shift=shift,
        overlapped=fused.overlapped(visit),
        name=instruction.name,
        source=instruction.text("op_name"),
    )


def _where(kind: str, attributes: str, sizes: Mapping[str, int]) -> tuple[str | None, int | None, int]:
    """The axes, the shift and the number of devices in a group."""
    if kind == "collective-permute":
        moves = replica_groups.pairs(attributes)
        axes, shift = replica_groups.shift_of(moves, sizes)
        n = math.prod(sizes[name] for name in (sizes if axes is None else replica_groups.named(axes, sizes)))
        return axes, shift, n if any(a != b for a, b in moves) else 1
    # a sum is the same in any order of its devices; what is gathered or scattered is not
    groups = replica_groups.read(attributes, math.prod(sizes.values()))
    axes = replica_groups.axes_of(groups, sizes, ordered=kind != "all-reduce")
    return axes, None, len(groups[0])
