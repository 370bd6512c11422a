"""Reads the collectives of a compiled program: kind, mesh axes, bytes, and how often each runs.

`collectives(compiled, mesh)` works on programs for CPUs, GPUs and TPUs. A start and its done count once, a
loop's body once per trip, and fused collectives are recognized. Chapter: Sharding.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scalingbook_lib.collectives import Collective, bytes_received
from scalingbook_lib.hlo import async_fusions, not_counted, replica_groups, walk
from scalingbook_lib.hlo.mesh import mesh_of, sizes_of
from scalingbook_lib.hlo.module import BROADCAST, COLLECTIVE_OPCODES, RAGGED, HloModule
from scalingbook_lib.hlo.text_table import text_table
from scalingbook_lib.hlo.walk import Visit
from scalingbook_lib.units import Result, si

# collectives whose operand is one of n shards of the array by which they are counted
SHARD_OPERANDS = (Collective.ALL_GATHER.hlo, Collective.ALL_TO_ALL.hlo, RAGGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCollective(Result):
    """One collective of a compiled program.

    `nbytes` is the array as `scalingbook_lib.collectives` counts it: gathered (all-gather), unreduced
    (reduce-scatter), unchanged (all-reduce), over all devices of the group (all-to-all), or sent by one
    device (permute). `axes` is '?' if the groups do not follow axes of the mesh; `axis_names` are the single
    axes in it. `times` is None in a loop whose trip count the program does not fix. `source` is the
    `op_name`: the path of named scopes.
    """

    kind: str
    axes: str
    nbytes: int
    times: int | None
    dtype: str
    devices: int
    shift: int | None = None
    overlapped: bool = False
    axis_names: tuple[str, ...] = field(default=(), compare=False)
    name: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    @property
    def received_bytes(self) -> float:
        """The bytes that one device receives per run, from `collectives.bytes_received`."""
        if self.kind == BROADCAST:
            return self.nbytes
        return bytes_received(self.kind.removeprefix("ragged-"), self.nbytes, self.devices)

    @property
    def over(self) -> str:
        """The axes as a table shows them, with the shift of a permute: 'Y +1'."""
        return self.axes if self.shift is None else f"{self.axes} {self.shift:+d}"

    @property
    def kind_and_axes(self) -> str:
        """What it is, whatever its size: 'all-gather over data,model'."""
        return f"{self.kind} over {self.axes}"

    def __str__(self) -> str:
        times = "an unknown number of times" if self.times is None else f"{self.times}×"
        return f"{self.kind} over {self.over} of {si(self.nbytes, 'B')} in {self.dtype}, {times}"


@dataclass(frozen=True, slots=True)
class Collectives(Result):
    """The collectives of a program in execution order, and what its text does not reveal.

    A collective in a loop of unknown length counts once in every sum, and `not_counted` says so.
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
        """Whether the rows equal other collectives' rows, or the counts equal a dict: `== {"all-reduce": 1}`.

        A program with something that is not counted equals no dict, because its text does not reveal
        everything that it sends.
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
        """The array bytes of each kind over its axes, summed over all runs: {'all-gather X': 16777216}."""
        return self.summed(lambda c: f"{c.kind} {c.axes}", lambda c: c.nbytes)

    @property
    def received_bytes(self) -> float:
        """The bytes that one device receives over its links in one run of the program."""
        return sum(self.summed(lambda c: c.kind, lambda c: c.received_bytes).values())

    def summed(self, key: Callable, value: Callable) -> dict:
        """`value(row)` times the number of runs, summed over the rows with the same `key(row)`."""
        total: dict = {}
        for c in self.rows:
            total[key(c)] = total.get(key(c), 0) + value(c) * (1 if c.times is None else c.times)
        return total

    def __str__(self) -> str:
        return "\n".join([self.table(), *self.not_counted])

    def table(self) -> str:
        """The rows as a table of text; rows that differ only in their position are merged."""
        if not self.rows:
            return "no collectives in its text" if self.not_counted else "no collectives"
        merged: dict[tuple, int | None] = {}
        for c in self.rows:
            key = (c.kind, c.over, f"{c.dtype} {si(c.nbytes, 'B')}", si(c.received_bytes, "B"))
            times = merged.get(key, 0)
            merged[key] = None if c.times is None or times is None else times + c.times
        head = ("collective", "axes", "array", "received", "times")
        return text_table([head, *((*key, "≥ 1" if n is None else str(n)) for key, n in merged.items())])


def collectives(program: Any, mesh: Any = None) -> Collectives:
    """The collectives of a compiled program: `collectives(jit(f).lower(x).compile(), Mesh(X=4, Y=2))`.

    The program may also be its text, and the mesh a notation Mesh, a JAX mesh or {'X': 4, 'Y': 2}. The mesh
    may be left out if the compiled program has one. Raises an HloError if the mesh is needed, or if the text
    is not a program.
    """
    sizes, module = sizes_of(mesh if mesh is not None else mesh_of(program)), HloModule.of(program)

    def received(visit: Visit) -> float:
        found = collective_at(visit, sizes)
        return found.received_bytes if found else 0

    found = (collective_at(visit, sizes) for visit in walk.visits(module, received))
    lacking = tuple(one.message for one in not_counted.not_counted(module) if one.transfers)
    return Collectives(tuple(c for c in found if c is not None), lacking)


def started_by(module: HloModule, visit: Visit, sizes: Mapping[str, int]) -> list[CompiledCollective]:
    """The collectives that an instruction starts: itself, or those fused into it.

    `sizes` are those of the mesh axes.
    """
    instruction, visits = visit.instruction, [visit]
    if walk.is_one_kernel(instruction) and walk.callees(instruction):
        bodies = [module.computations[name] for name in walk.callees(instruction)]
        visits = [Visit(part, c, 1, instruction) for c in bodies for part in c.instructions.values()]
    found = (collective_at(visit, sizes) for visit in visits)
    return [c for c in found if c is not None]


def collective_at(visit: Visit, sizes: Mapping[str, int]) -> CompiledCollective | None:
    """The collective that this instruction starts; None if it starts none, or moves nothing."""
    instruction = visit.instruction
    kind = instruction.opcode.removesuffix("-start")
    if kind not in COLLECTIVE_OPCODES or async_fusions.is_continuation(visit):
        return None
    operands = visit.computation.operands(instruction)
    # operands, not results: the results of `-start` also have buffers and contexts. One instruction may move
    # many arrays (XLA merges small ones), whose bytes are summed.
    shapes = [shape for operand in operands for shape in operand.shapes] or list(instruction.shapes)
    if kind == RAGGED:
        shapes = shapes[:1]  # the others say where each chunk goes, and its offset and length
    operand_bytes = int(sum(shape.nbytes for shape in shapes))
    kind = "reduce-scatter" if kind == "all-reduce" and async_fusions.is_reduce_scatter(visit) else kind
    axes, shift, n = _axes_and_size(kind, instruction.attributes, sizes)
    if n == 1:
        return None  # a group of one device, or a permute that moves nothing
    return CompiledCollective(
        kind=kind,
        axes=axes or "?",
        nbytes=operand_bytes * n if kind in SHARD_OPERANDS else operand_bytes,
        times=visit.times,
        dtype=shapes[0].dtype,
        devices=n,
        shift=shift,
        overlapped=async_fusions.is_asynchronous(visit),
        axis_names=replica_groups.split_axes(axes, sizes) if axes else (),
        name=instruction.name,
        source=instruction.quoted("op_name"),
    )


def _axes_and_size(
    kind: str, attributes: str, sizes: Mapping[str, int]
) -> tuple[str | None, int | None, int]:
    """The axes, the shift of a permute, and the number of devices in a group."""
    if kind == "collective-permute":
        moves = replica_groups.pairs(attributes)
        axes, shift = replica_groups.shift_of(moves, sizes)
        names = sizes if axes is None else replica_groups.split_axes(axes, sizes)
        n = math.prod(sizes[name] for name in names)
        return axes, shift, n if any(a != b for a, b in moves) else 1
    # a sum does not depend on the order of its devices; a gather or scatter does
    groups = replica_groups.read(attributes, math.prod(sizes.values()))
    axes = replica_groups.axes_of(groups, sizes, ordered=kind != "all-reduce")
    return axes, None, len(groups[0])
