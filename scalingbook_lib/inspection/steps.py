"""A compiled program as a tree of steps in the order of its schedule: kernels, transfers and loops.

The optimized text of XLA is in execution order. A transfer between devices is one step that waits, or a start
and a done with other steps between them. A loop holds the steps of its body.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scalingbook_lib.hlo import cost, walk
from scalingbook_lib.hlo.compiled_collectives import CompiledCollective, started_by
from scalingbook_lib.hlo.module import Computation, HloModule, Instruction, dtype_bytes
from scalingbook_lib.hlo.walk import Visit
from scalingbook_lib.inspection.kernel_traffic import fused, hbm_bytes

START, DONE, WAIT = "start", "done", "wait"
# Instructions that neither compute nor move anything.
_FREE = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id",
    "replica-id", "optimization-barrier", "opt-barrier", "add-dependency", "domain", "iota", "while", "call",
    "conditional", "copy-start", "copy-done", "async-update",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStep:
    """One kernel of the schedule, and what one run of it does on one device."""

    name: str
    kind: str  # matmul, elementwise, copy
    opcode: str
    dtype: str  # of the operands of its matmul, or of its result
    flops: int
    nbytes: float
    cycles: int
    instruction: Instruction
    computation: Computation
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The start or the end of a transfer between devices, or a transfer for which the device waits.

    `name` is the instruction that starts it; the collectives are those that it starts, usually one.
    """

    when: str  # START, DONE, WAIT
    name: str
    collectives: tuple[CompiledCollective, ...] = ()
    instruction: Instruction | None = None
    computation: Computation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStep:
    """A loop: the steps of its body, and its trip count; None if the program does not fix it."""

    name: str
    trips: int | None
    steps: tuple["Step", ...]
    instruction: Instruction
    computation: Computation


type Step = KernelStep | Move | LoopStep


def steps(module: HloModule, sizes: Mapping[str, int]) -> tuple[Step, ...]:
    """The steps of a program on a mesh with axes of these sizes."""
    return tuple(_steps(module, module.entry, sizes))


def _steps(module: HloModule, here: Computation, sizes: Mapping[str, int]) -> Iterator[Step]:
    for i in here.instructions.values():
        if i.opcode == "while":
            body = walk.body_of(module, i)
            trips = walk.trip_count(module, here, i)
            inner = tuple(_steps(module, body, sizes))
            yield LoopStep(name=i.name, trips=trips, steps=inner, instruction=i, computation=here)
        elif i.opcode in ("call", "conditional"):
            yield from _longest(module, i, sizes)
        elif (step := _step(module, here, i, sizes)) is not None:
            yield step


def _longest(module: HloModule, i: Instruction, sizes: Mapping[str, int]) -> tuple[Step, ...]:
    """The steps of a call, or of the branch of a conditional that does most."""
    called = [tuple(_steps(module, module.computations[name], sizes)) for name in walk.callees(i)]
    return max(called, key=_size, default=())


def _size(found: tuple[Step, ...]) -> tuple[float, float]:
    """A measure of how much a branch does: bytes between devices, then cycles or bytes of its kernels."""
    kernels, moved = list[tuple[KernelStep, int]](), 0.0
    for step, times in _repeated(found):
        if isinstance(step, KernelStep):
            kernels.append((step, times))
        elif isinstance(step, Move):
            moved += times * sum(one.received_bytes for one in step.collectives)
    cycles = sum(times * kernel.cycles for kernel, times in kernels)
    return moved, cycles or sum(times * kernel.nbytes for kernel, times in kernels) + len(found)


def _repeated(found: tuple[Step, ...], times: int = 1) -> Iterator[tuple[Step, int]]:
    """All steps and those of their loops, with how often they run; once if that is unknown."""
    for step in found:
        yield step, times
        if isinstance(step, LoopStep):
            yield from _repeated(step.steps, times * (step.trips or 1))


def _step(module: HloModule, here: Computation, i: Instruction, sizes: Mapping[str, int]) -> Step | None:
    """The step of one instruction; None if it does nothing that takes time."""
    done = i.opcode.endswith("-done") or i.name.startswith("async-collective-done")
    if done:
        start = _start_of(here, i)
        return (
            Move(when=DONE, name=start.name)
            if start is not None and _moves(module, here, start, sizes)
            else None
        )
    if found := _moves(module, here, i, sizes):
        started = i.opcode.endswith("-start") or i.name.startswith("async-collective-start")
        return Move(
            when=START if started else WAIT, name=i.name, collectives=found, instruction=i, computation=here
        )
    if i.opcode in _FREE or (i.opcode.endswith(("-start", "-done")) and i.opcode not in walk.FUSIONS):
        return None
    return _kernel(module, here, i)


def _moves(
    module: HloModule, here: Computation, i: Instruction, sizes: Mapping[str, int]
) -> tuple[CompiledCollective, ...]:
    """The collectives that an instruction starts."""
    if i.opcode.startswith("copy"):
        return ()
    return tuple(started_by(module, Visit(i, here, 1), sizes))


def _start_of(here: Computation, done: Instruction) -> Instruction | None:
    """The instruction that starts the transfer that `done` ends; None for one that starts elsewhere."""
    # a fusion that continues a transfer passes it through, so the start may be several instructions back
    name = done.operands[0] if done.operands else ""
    for _ in range(len(here.instructions)):
        i = here.instructions.get(name)
        if i is None or i.opcode == "parameter":
            return None
        if i.opcode.endswith("-start") or i.name.startswith("async-collective-start"):
            return i
        name = i.operands[0] if i.operands else ""
    return None


def _kernel(module: HloModule, here: Computation, i: Instruction) -> KernelStep | None:
    """An instruction that runs as a kernel; None if it has neither cycles, nor FLOPs, nor bytes."""
    found = cost.fusion(module, Visit(i, here, 1))
    nbytes = hbm_bytes(module, here, i)
    if not (found.cycles or found.flops or nbytes):
        return None
    kind = "copy" if found.kind == "elementwise" and _only_copies(module, i) else found.kind
    return KernelStep(
        name=i.name,
        kind=kind,
        opcode=i.opcode,
        dtype=_dtype(module, here, i),
        flops=found.flops,
        nbytes=nbytes,
        cycles=found.cycles,
        instruction=i,
        computation=here,
        source=found.source or i.quoted("op_name"),
    )


def _only_copies(module: HloModule, i: Instruction) -> bool:
    """Whether an instruction only rearranges data: a copy, a transpose, or a fusion of them."""
    rearranges = {"copy", "transpose", "bitcast", "reshape", "parameter", "get-tuple-element", "tuple"}
    if i.opcode in ("copy", "transpose"):
        return True
    body = fused(module, i)
    opcodes = {p.opcode for p in body.instructions.values()} if body else set[str]()
    return opcodes <= rearranges and bool(opcodes & {"copy", "transpose"})


def _dtype(module: HloModule, here: Computation, i: Instruction) -> str:
    """The type of a kernel's matmul operands, else of its first result."""
    for part, where in _parts(module, here, i):
        if part.opcode in cost.MATMULS or cost.CONTRACTED.search(part.attributes):
            operands = [shape.dtype for o in where.operands(part)[:2] for shape in o.shapes[:1]]
            if operands:
                return max(operands, key=dtype_bytes)
    return i.shapes[0].dtype if i.shapes else ""


def _parts(module: HloModule, here: Computation, i: Instruction) -> Iterator[tuple[Instruction, Computation]]:
    """An instruction and everything fused into it, each with its computation."""
    yield i, here
    if (inner := fused(module, i)) is not None:
        for part in inner.instructions.values():
            yield from _parts(module, inner, part)


def parts(module: HloModule, kernel: KernelStep) -> Iterator[tuple[Instruction, Computation]]:
    """A kernel's instruction and everything fused into it, each with its computation."""
    return _parts(module, kernel.computation, kernel.instruction)
