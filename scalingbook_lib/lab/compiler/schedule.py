"""In which order does the program run, and what hides behind what?

XLA's optimised text stands in the order of execution. A collective that runs beside other work stands there
twice, where it starts and where its result is waited for; what lies between hides it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from scalingbook_lib.lab.compiler import hlo, walk, work
from scalingbook_lib.lab.compiler.text import Computation, HloError, Instruction, Text
from scalingbook_lib.lab.compiler.walk import Visit
from scalingbook_lib.units import Result, si


@dataclass(frozen=True, slots=True)
class ScheduledStep(Result):
    """One line: 'start' and 'done' of a transfer, 'wait' without overlap, 'compute', 'loop' or 'branch'.

    `cycles` is the compiler's estimate of a kernel; of a 'done', the sum of what ran since its start.
    `source`: the named scopes that it comes from.
    """

    what: str
    label: str
    cycles: int
    nbytes: int = 0
    depth: int = 0
    source: str = field(default="", compare=False)

    def __str__(self) -> str:
        size = f", {si(self.nbytes, 'B')}" if self.nbytes else ""
        cycles = f", {self.cycles:,} cycles" + (" of work meanwhile" if self.what == "done" else "")
        return f"{'  ' * self.depth}{self.what:<8}{self.label}{size}{cycles if self.cycles else ''}"


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
        """The transfers that end after other work has run since their start."""
        return tuple(step for step in self.steps if step.what == "done" and step.cycles)

    @property
    def exposed(self) -> tuple[ScheduledStep, ...]:
        """The transfers that nothing hides: those without a start of their own, or with no work after it."""
        return tuple(s for s in self.steps if s.what == "wait" or (s.what == "done" and not s.cycles))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) or "nothing to compute and nothing to move"


def schedule(program: Any, mesh: Any = None, *, copies: bool = False) -> ProgramSchedule:
    """The order in which a program computes and communicates; with `copies`, its moves into VMEM too."""
    sizes = hlo.sizes_of(mesh if mesh is not None else hlo.mesh_of(program))
    text = Text.of(program)
    return ProgramSchedule(tuple(_ProgramReader(text, sizes, copies).steps(text.entry)))


class _ProgramReader(NamedTuple):
    """One program being read: its text, the sizes of its mesh's axes, and whether moves into VMEM count."""

    text: Text
    sizes: Mapping[str, int]
    copies: bool

    def steps(self, here: Computation, depth: int = 0) -> Iterator[ScheduledStep]:
        """The steps of a computation, those of its loops inside."""
        since: dict[str, int] = {}  # what has run since each open transfer started
        for i in here.instructions.values():
            if i.opcode == "while":
                trips = walk.trip_count(self.text, here, i)
                yield ScheduledStep("loop", f"{'?' if trips is None else trips} times:", 0, 0, depth)
                yield from self.steps(walk.body_of(self.text, i), depth + 1)
            yield from self.called(i, depth)
            if (step := self.step(here, i)) is not None:
                step = replace(step, depth=depth, source=walk.scopes(self.text, i))
                yield _timed(step, i, here, since)

    def called(self, i: Instruction, depth: int) -> Iterator[ScheduledStep]:
        """The steps of what a call runs, or of that branch of a conditional which computes longest."""
        if i.opcode not in ("call", "conditional"):
            return
        branches = [list(self.steps(self.text.computations[name], depth + 1)) for name in walk.callees(i)]
        longest = max(branches, key=lambda steps: sum(step.cycles for step in steps), default=[])
        if i.opcode == "conditional":
            yield ScheduledStep("branch", f"the longest of {len(branches)}:", 0, 0, depth)
        yield from longest

    def step(self, here: Computation, i: Instruction) -> ScheduledStep | None:
        """The step that one instruction is, if it moves or computes something."""
        moved = self.transfer(here, i)
        # S(1) in a layout is VMEM; the result of copy-start is a tuple of which the first is what is made
        if moved is None and i.opcode.startswith("copy-") and self.copies:
            moved = "copy HBM to VMEM" if "S(1)" in i.type.split("}")[0] else "copy", int(i.shapes[0].nbytes)
        if moved is not None:
            what = "start" if _is_start(i) else "done" if _is_done(i) else "wait"
            label, nbytes = moved
            return ScheduledStep(what, label, work.cycles_of(i) if what == "wait" else 0, nbytes)
        # parameters, tuples and bitcasts have neither cycles nor FLOPs: they take no time and are no step
        kernel = work.fusion(self.text, Visit(i, here, 1))
        computes = (kernel.cycles or kernel.flops) and kernel.kind != "copy"
        return ScheduledStep("compute", kernel.kind, kernel.cycles) if computes else None

    def transfer(self, here: Computation, i: Instruction) -> tuple[str, int] | None:
        """What an instruction moves between devices, if it does: its kind and axes, and the array's bytes."""
        if _is_done(i) and not i.opcode.startswith("copy"):
            start = here.instructions.get(_start_of(here, i))
            return self.transfer(here, start) if start is not None else None
        found = hlo.started(self.text, Visit(i, here, 1), self.sizes)
        return (f"{found[0].kind} {found[0].over}", sum(c.nbytes for c in found)) if found else None


def _timed(step: ScheduledStep, i: Instruction, here: Computation, since: dict[str, int]) -> ScheduledStep:
    """Let the step count for every open transfer, and close the one that it ends."""
    if step.what == "done":
        return replace(step, cycles=since.pop(_start_of(here, i), 0))
    if step.what == "start":  # what runs from here on hides it
        since[i.name] = 0
    for name in since:
        since[name] += step.cycles
    return step


def _is_start(i: Instruction) -> bool:
    # an opcode of its own (`all-gather-start`), or a fusion that libtpu has named so and that starts one
    return i.opcode.endswith("-start") or i.name.startswith("async-collective-start")


def _is_done(i: Instruction) -> bool:
    return i.opcode.endswith("-done") or i.name.startswith("async-collective-done")


def _start_of(here: Computation, done: Instruction) -> str:
    """The instruction that started what this one waits for."""
    # a fusion that carries a transfer on passes it through, so the start may be several instructions back
    name = done.operands[0] if done.operands else ""
    for _ in range(len(here.instructions)):
        i = here.instructions.get(name)
        if i is None:
            raise HloError(f"{done.name} waits for nothing; give the whole text of the program")
        if _is_start(i):
            return name
        name = i.operands[0] if i.operands else ""
    raise HloError(f"{done.name} waits for what never starts; give the whole text of the program")
