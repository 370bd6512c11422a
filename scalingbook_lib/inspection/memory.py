"""The memory of a program on one device, by source, and the largest buffers that are live at its peak.

XLA reports the sizes of arguments, outputs and temporaries for a program that it has just compiled. For a
saved text they are estimated: the sizes of arguments and outputs are exact, tiles included, and temporaries
follow from live ranges in the schedule.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib.hlo import walk
from scalingbook_lib.hlo.module import Computation, HloModule, Instruction, dtype_bytes, shapes_in
from scalingbook_lib.inspection.kernel_traffic import fused
from scalingbook_lib.inspection.source import ProgramSource
from scalingbook_lib.units import Result, binary

# Opcodes whose result is a buffer that already exists, or is in another memory.
_ALIASES = {
    "bitcast", "get-tuple-element", "tuple", "while", "copy-start", "copy-done", "slice-start", "slice-done",
    "optimization-barrier", "opt-barrier", "after-all", "add-dependency", "async-update",
}  # fmt: skip
_NOT_IN_PLACE = {"dot", "convolution", "custom-call", "all-gather", "all-to-all", "transpose", "copy"}
_IN_PLACE = ("dynamic-update-slice", "scatter")
_TYPED = re.compile(r"([a-z]\w*\[[\d,<= ]*\])(?:\{([\d,]*)(?::([^}]*))?\})?")
_TILE = re.compile(r"T((?:\([\d,]+\))+)")
LARGEST = 8  # buffers that are listed


@dataclass(frozen=True, slots=True)
class LiveBuffer(Result):
    """A buffer in HBM at the peak: the instruction that allocates it, its size, its type and its scopes."""

    name: str
    nbytes: float
    type: str
    source: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.name}: {binary(self.nbytes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMemory(Result):
    """The memory of one device in bytes at the peak; `estimated` if temporaries follow from the text.

    `outputs` have memory of their own; `aliased` are outputs in the memory of donated arguments.
    """

    arguments: float
    outputs: float
    aliased: float
    temporaries: float
    estimated: bool
    largest: tuple[LiveBuffer, ...] = ()

    @property
    def peak(self) -> float:
        """The bytes that are live at once."""
        return self.arguments + self.outputs + self.temporaries

    @property
    def terms(self) -> dict[str, float]:
        """The bytes by source; they sum to the peak."""
        return {"arguments": self.arguments, "outputs": self.outputs, "temporaries": self.temporaries}

    def __str__(self) -> str:
        parts = ", ".join(f"{binary(n)} of {name}" for name, n in self.terms.items())
        aliased = f"; {binary(self.aliased)} of outputs reuse arguments" if self.aliased else ""
        return f"{binary(self.peak)} per device{' (estimated)' * self.estimated}: {parts}{aliased}"


def memory(source: ProgramSource) -> ProgramMemory:
    """The memory of a program, as XLA reported it or as its text shows it."""
    module = source.module
    aliased_outputs = aliases(module.header)
    temporaries, live = _peak(module, module.entry)
    largest = tuple(sorted(live, key=lambda b: -b.nbytes)[:LARGEST])
    if told := source.memory:
        return ProgramMemory(
            arguments=told.arguments,
            outputs=told.outputs - told.aliased,
            aliased=told.aliased,
            temporaries=told.temporaries,
            estimated=False,
            largest=largest,
        )
    inputs = [i for i in module.entry.instructions.values() if i.opcode == "parameter"]
    outputs = [padded_bytes(array) for array in _arrays(module.entry.root.type)]
    aliased = sum(n for k, n in enumerate(outputs) if k in aliased_outputs)
    return ProgramMemory(
        arguments=sum(padded_bytes(array) for i in inputs for array in _arrays(i.type)),
        outputs=sum(outputs) - aliased,
        aliased=aliased,
        temporaries=temporaries,
        estimated=True,
        largest=largest,
    )


def aliases(header: str) -> dict[int, int]:
    """The outputs in the memory of an argument, by number: {0: 0} for `{0}: (0, {}, may-alias)`."""
    found = re.search(r"input_output_alias=\{((?:[^{}]|\{[^{}]*\})*)\}", header)
    pairs = re.findall(r"\{(\d*)[\d, ]*\}:\s*\((\d+)", found[1]) if found else ()
    return {int(output or 0): int(argument) for output, argument in pairs}


def padded_bytes(array: str) -> float:
    """The bytes of an array with its tiles: `bf16[8,129]{1,0:T(8,128)(2,1)}` takes 8 × 256 elements."""
    found = _TYPED.match(array)
    if found is None:
        return 0.0
    (shape,) = shapes_in(found[1])
    dims = list(shape.dims)
    order = [int(n) for n in (found[2] or "").split(",") if n]
    tile = _TILE.search(found[3] or "")
    if not tile or not dims or len(order) != len(dims):
        return shape.nbytes
    sides = [int(n) for n in tile[1].lstrip("(").split(")")[0].split(",")]
    # the layout lists dimensions from the fastest, and a tile's last side belongs to the fastest
    for side, dimension in zip(reversed(sides), order, strict=False):
        dims[dimension] = -(-dims[dimension] // side) * side
    return math.prod(dims) * dtype_bytes(shape.dtype)


def _arrays(type_: str) -> Iterator[str]:
    """The arrays of a type with their layouts, without those in other memories than HBM."""
    for found in _TYPED.finditer(type_):
        if "S(" not in (found[3] or ""):
            yield found[0]


def _peak(module: HloModule, here: Computation) -> tuple[float, list[LiveBuffer]]:
    """The largest sum of temporaries of a computation, and the buffers that are then live."""
    lines = [*here.instructions.values()]
    owner = _owners(module, here)
    last: dict[str, int] = {}
    for at, i in enumerate(lines):
        for name in i.operands:
            for owned in owner.get(name, ()):
                last[owned] = at
    kept = set(owner.get(here.root.name, ())) | {here.root.name}
    live: dict[str, LiveBuffer] = {}
    now, best, best_live = 0.0, 0.0, list[LiveBuffer]()
    for at, i in enumerate(lines):
        allocated = _allocated(module, here, i, kept)
        if shared := _shared(i, at, allocated, live, last):
            now -= live.pop(shared).nbytes
        if allocated:
            live[i.name] = LiveBuffer(i.name, allocated, _largest_type(i), i.quoted("op_name"))
            now += allocated
        inner, inside = _inner(module, i)
        if now + inner > best:
            best, best_live = now + inner, [*live.values(), *inside]
        for name in [name for name in live if last.get(name, at if name == i.name else -1) <= at]:
            if name not in kept and (name in last or name != i.name):
                now -= live.pop(name).nbytes
    return best, best_live


def _owners(module: HloModule, here: Computation) -> dict[str, tuple[str, ...]]:
    """For every value, the instructions that allocated the buffers it consists of."""
    owner: dict[str, tuple[str, ...]] = {}
    for i in here.instructions.values():
        if i.opcode in _ALIASES:
            owner[i.name] = _aliased_owners(here, i, owner)
        elif (place := _updated(module, i)) is not None and place < len(i.operands):
            owner[i.name] = owner.get(i.operands[place], ()) or (i.name,)
        else:
            owner[i.name] = (i.name,)
    return owner


def _aliased_owners(here: Computation, i: Instruction, owner: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The owners of an alias: of one element of a tuple, only that element's."""
    if i.opcode == "get-tuple-element":
        index = re.search(r"index=(\d+)", i.attributes)
        whole = here.instructions.get(i.operands[0])
        if whole is not None and whole.opcode == "while":
            whole = here.instructions.get(whole.operands[0])
        if whole is not None and whole.opcode == "tuple" and index and int(index[1]) < len(whole.operands):
            return owner.get(whole.operands[int(index[1])], ())
    return tuple(dict.fromkeys(one for name in i.operands for one in owner.get(name, ())))


def _allocated(module: HloModule, here: Computation, i: Instruction, kept: set[str]) -> float:
    """The bytes that an instruction allocates: none for arguments, aliases, constants and the results."""
    if i.opcode in _ALIASES or i.opcode in ("parameter", "constant") or i.name in kept:
        return 0.0
    if _updated(module, i) is not None:
        return 0.0
    if i.opcode.endswith("-done"):
        return 0.0
    total = sum(padded_bytes(array) for array in _arrays(i.type))
    if i.opcode.endswith("-start") and i.type.startswith("("):  # its type also has the operands
        total -= sum(padded_bytes(array) for o in here.operands(i) for array in _arrays(o.type))
    return max(total, 0.0)


def _shared(
    i: Instruction, at: int, nbytes: float, live: dict[str, LiveBuffer], last: dict[str, int]
) -> str | None:
    """The operand whose memory an elementwise kernel reuses, because nothing else needs it afterwards."""
    if i.opcode in _NOT_IN_PLACE or (i.opcode in walk.FUSIONS and "kind=kLoop" not in i.attributes):
        return None
    usable = (name for name in i.operands if name in live and last.get(name) == at)
    return next((name for name in usable if live[name].nbytes == nbytes), None)


def _updated(module: HloModule, i: Instruction) -> int | None:
    """The operand in whose memory an instruction writes its result; None if it has memory of its own."""
    if i.opcode in _IN_PLACE:
        return 0
    body = fused(module, i)
    if body is None:
        return None
    inner = walk.resolve(body, body.root.name) or body.root
    if inner.opcode not in _IN_PLACE:
        return None
    target = walk.resolve(body, inner.operands[0])
    return int(target.operands[0]) if target is not None and target.opcode == "parameter" else None


def _inner(module: HloModule, i: Instruction) -> tuple[float, list[LiveBuffer]]:
    """The temporaries of what an instruction calls, while it runs."""
    if i.opcode == "while":
        return _peak(module, walk.body_of(module, i))
    if i.opcode in ("call", "conditional"):
        peaks = [_peak(module, module.computations[name]) for name in walk.callees(i)]
        return max(peaks, key=lambda found: found[0], default=(0.0, []))
    return 0.0, []


def _largest_type(i: Instruction) -> str:
    """The type of an instruction's largest array, without its layout."""
    return str(max(i.shapes, key=lambda shape: shape.nbytes)) if i.shapes else ""
