"""Reads the order in which a program computes and communicates, and which work overlaps which transfer.

XLA's optimized text is in execution order. An asynchronous collective appears twice, where it starts and
where its result is needed; the work in between overlaps with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from scalingbook_lib.hlo import cost, walk
from scalingbook_lib.hlo.compiled_collectives import started_by
from scalingbook_lib.hlo.mesh import mesh_of, sizes_of
from scalingbook_lib.hlo.module import Computation, HloError, HloModule, Instruction
from scalingbook_lib.hlo.walk import Visit
from scalingbook_lib.units import Result, si


@dataclass(frozen=True, slots=True)
class ScheduledStep(Result):
    """One step: 'start', 'done' or 'wait' (without overlap) of a transfer, 'compute', 'loop' or 'branch'.

    `cycles` is the compiler's estimate of a kernel; for a 'done', the sum over the kernels that ran since its
    start. `nbytes` is the size of the array that moves. `source` is the `op_name` that the step comes from.
    """

    kind: str
    label: str
    cycles: int
    nbytes: int = 0
    depth: int = 0
    source: str = field(default="", compare=False)

    def __str__(self) -> str:
        size = f", {si(self.nbytes, 'B')}" if self.nbytes else ""
        cycles = f", {self.cycles:,} cycles" + (" of overlapped work" if self.kind == "done" else "")
        return f"{'  ' * self.depth}{self.kind:<8}{self.label}{size}{cycles if self.cycles else ''}"


@dataclass(frozen=True, slots=True)
class ProgramSchedule(Result):
    """The steps of a program in order."""

    steps: tuple[ScheduledStep, ...]

    def __iter__(self) -> Iterator[ScheduledStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int) -> ScheduledStep:
        return self.steps[place]

    @property
    def hidden(self) -> tuple[ScheduledStep, ...]:
        """The transfers that overlap with other work, which ran between their start and their end."""
        return tuple(step for step in self.steps if step.kind == "done" and step.cycles)

    @property
    def exposed(self) -> tuple[ScheduledStep, ...]:
        """The transfers that overlap with no work: synchronous ones, and those without work meanwhile."""
        return tuple(s for s in self.steps if s.kind == "wait" or (s.kind == "done" and not s.cycles))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) or "nothing to compute and nothing to move"


def schedule(program: Any, mesh: Any = None, *, copies: bool = False) -> ProgramSchedule:
    """The steps of a program in order; with `copies`, its copies between HBM and VMEM too.

    Raises an HloError if the mesh is needed, or if the text ends a transfer that it does not start.
    """
    sizes = sizes_of(mesh if mesh is not None else mesh_of(program))
    module = HloModule.of(program)
    return ProgramSchedule(tuple(_ProgramReader(module, sizes, copies).steps(module.entry)))


class _ProgramReader(NamedTuple):
    """A program, the sizes of its mesh's axes, and whether copies into VMEM are steps."""

    module: HloModule
    sizes: Mapping[str, int]
    copies: bool

    def steps(self, here: Computation, depth: int = 0) -> Iterator[ScheduledStep]:
        """The steps of a computation, with those of its loops, calls and branches."""
        since: dict[str, int] = {}  # cycles since the start of each transfer in flight
        for i in here.instructions.values():
            if i.opcode == "while":
                trips = walk.trip_count(self.module, here, i)
                yield ScheduledStep("loop", f"{'?' if trips is None else trips} times:", 0, 0, depth)
                yield from self.steps(walk.body_of(self.module, i), depth + 1)
            yield from self.called(i, depth)
            if (step := self.step(here, i)) is not None:
                step = replace(step, depth=depth, source=walk.scope_path(self.module, i))
                yield _timed(step, i, here, since)

    def called(self, i: Instruction, depth: int) -> Iterator[ScheduledStep]:
        """The steps of a call, or of the branch of a conditional with the most cycles."""
        if i.opcode not in ("call", "conditional"):
            return
        branches = [list(self.steps(self.module.computations[name], depth + 1)) for name in walk.callees(i)]
        longest = max(branches, key=lambda steps: sum(step.cycles for step in steps), default=[])
        if i.opcode == "conditional":
            yield ScheduledStep("branch", f"the longest of {len(branches)}:", 0, 0, depth)
        yield from longest

    def step(self, here: Computation, i: Instruction) -> ScheduledStep | None:
        """The step of one instruction; None if it neither moves nor computes anything."""
        moved = self.transfer(here, i)
        # S(1) in a layout is VMEM; the first element of copy-start's result is the copy
        if moved is None and i.opcode.startswith("copy-") and self.copies:
            moved = "copy HBM to VMEM" if "S(1)" in i.type.split("}")[0] else "copy", int(i.shapes[0].nbytes)
        if moved is not None:
            kind = "start" if _is_start(i) else "done" if _is_done(i) else "wait"
            label, nbytes = moved
            return ScheduledStep(kind, label, cost.cycles_of(i) if kind == "wait" else 0, nbytes)
        # parameters, tuples and bitcasts have neither cycles nor FLOPs: they take no time
        kernel = cost.fusion(self.module, Visit(i, here, 1))
        computes = (kernel.cycles or kernel.flops) and kernel.kind != "copy"
        return ScheduledStep("compute", kernel.kind, kernel.cycles) if computes else None

    def transfer(self, here: Computation, i: Instruction) -> tuple[str, int] | None:
        """The kind and axes of a transfer between devices, and its bytes; None for other instructions."""
        if _is_done(i) and not i.opcode.startswith("copy"):
            start = here.instructions.get(_start_of(here, i))
            return self.transfer(here, start) if start is not None else None
        found = started_by(self.module, Visit(i, here, 1), self.sizes)
        return (f"{found[0].kind} {found[0].over}", sum(c.nbytes for c in found)) if found else None


def _timed(step: ScheduledStep, i: Instruction, here: Computation, since: dict[str, int]) -> ScheduledStep:
    """The step, with its cycles added to every transfer in flight; a 'done' takes the sum of its own."""
    if step.kind == "done":
        return replace(step, cycles=since.pop(_start_of(here, i), 0))
    if step.kind == "start":
        since[i.name] = 0
    for name in since:
        since[name] += step.cycles
    return step


def _is_start(i: Instruction) -> bool:
    # a separate opcode (`all-gather-start`), or a fusion that libtpu names so because it starts a transfer
    return i.opcode.endswith("-start") or i.name.startswith("async-collective-start")


def _is_done(i: Instruction) -> bool:
    return i.opcode.endswith("-done") or i.name.startswith("async-collective-done")


def _start_of(here: Computation, done: Instruction) -> str:
    """The name of the instruction that starts the transfer that `done` ends.

    Raises an HloError if there is none.
    """
    # a fusion that continues a transfer passes it through, so the start may be several instructions back
    name = done.operands[0] if done.operands else ""
    for _ in range(len(here.instructions)):
        i = here.instructions.get(name)
        if i is None:
            raise HloError(f"{done.name} has no transfer to wait for; give the whole text of the program")
        if _is_start(i):
            return name
        name = i.operands[0] if i.operands else ""
    raise HloError(f"{done.name} waits for a transfer that never starts; give the whole text of the program")
