"""A compiled program as it is inspected: its kernels, transfers, memory and FLOPs, each computed once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from scalingbook_lib.hlo import cost, not_counted, walk
from scalingbook_lib.hlo.compiled_collectives import CompiledCollective
from scalingbook_lib.hlo.module import HloModule
from scalingbook_lib.inspection import work as counted
from scalingbook_lib.inspection.hardware import Hardware
from scalingbook_lib.inspection.memory import ProgramMemory, memory
from scalingbook_lib.inspection.source import Argument, ProgramSource
from scalingbook_lib.inspection.steps import WAIT, KernelStep, LoopStep, Move, Step, parts, steps
from scalingbook_lib.inspection.timeline import Timeline, Use
from scalingbook_lib.inspection.work import MatmulShape, MatmulWork, Need

HIDDEN, PARTLY, EXPOSED, NOT_OVERLAPPED = "hidden", "partly hidden", "exposed", "synchronous"
NEGLIGIBLE = 0.05  # of a transfer's time: exposed less than this, it counts as hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTransfer:
    """A collective at its place in the program: its loops, outermost first, and its cost over all runs."""

    collective: CompiledCollective
    move: Move
    loops: tuple[LoopStep, ...]
    times: int | None
    seconds: float
    exposed_s: float
    latency_s: float
    line: str = ""

    @property
    def runs(self) -> int:
        """How often it runs; a loop of unknown length counts once."""
        return 1 if self.times is None else self.times

    @property
    def received_bytes(self) -> float:
        """The bytes that one device receives over all runs."""
        return self.runs * self.collective.received_bytes

    @property
    def schedule(self) -> str:
        """Whether other work hides it: synchronous, exposed, partly hidden, hidden."""
        if self.move.when == WAIT:
            return NOT_OVERLAPPED
        if not self.seconds:
            return HIDDEN if self.exposed_s == 0 else EXPOSED
        if self.exposed_s <= NEGLIGIBLE * self.seconds:
            return HIDDEN
        return EXPOSED if self.exposed_s >= (1 - NEGLIGIBLE) * self.seconds else PARTLY


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedKernel:
    """A kernel at its place in the program, with the time of all its runs and the bound of its roofline."""

    kernel: KernelStep
    loops: tuple[LoopStep, ...]
    times: int | None
    seconds: float
    roofline_s: float
    line: str = ""

    @property
    def runs(self) -> int:
        """How often it runs; a loop of unknown length counts once."""
        return 1 if self.times is None else self.times

    @property
    def fraction(self) -> float | None:
        """Its estimated speed as a fraction of what the roofline allows; None if the machine is unknown."""
        return self.roofline_s / self.seconds if self.seconds and self.roofline_s else None


@dataclass(frozen=True, kw_only=True)
class InspectedProgram:
    """A program, the machine it runs on, and what its model needs, if they are known."""

    source: ProgramSource
    hardware: Hardware
    need: Need | None = field(default=None)

    @property
    def module(self) -> HloModule:
        """The parsed program."""
        return self.source.module

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The program as a tree of kernels, transfers and loops."""
        return steps(self.module, self.source.mesh or {"X": self.source.devices})

    @cached_property
    def timeline(self) -> Timeline:
        """One run on one device."""
        return Timeline.play(self.steps, self.hardware)

    @cached_property
    def memory(self) -> ProgramMemory:
        """The memory of one device."""
        return memory(self.source)

    @cached_property
    def is_training(self) -> bool:
        """Whether the program has a backward pass, by JAX's names of operations."""
        return "transpose(jvp" in self.source.text

    @property
    def run_s(self) -> float:
        """The estimated time of one run; 0 if the machine is unknown."""
        return self.timeline.now_s if self.hardware.machine else 0.0

    @property
    def exposed_s(self) -> float:
        """The seconds of a run in which a device waits for transfers."""
        return self.timeline.exposed_s

    @property
    def exposed_share(self) -> float:
        """The same as a share of the run."""
        return self.exposed_s / self.run_s if self.run_s else 0.0

    @cached_property
    def transfers(self) -> tuple[PlacedTransfer, ...]:
        """Every collective, in the order of the schedule."""
        return tuple(self._transfers())

    @cached_property
    def kernels(self) -> tuple[PlacedKernel, ...]:
        """Every kernel, in the order of the schedule."""
        return tuple(
            PlacedKernel(
                kernel=step,
                loops=loops,
                times=_times(loops),
                seconds=self.timeline.uses.get(step.name, Use()).seconds,
                roofline_s=(_times(loops) or 1) * self.hardware.roofline_s(step),
                line=self.source.line_of(step.instruction),
            )
            for step, loops in _flat(self.steps)
            if isinstance(step, KernelStep)
        )

    def _transfers(self) -> Iterator[PlacedTransfer]:
        for step, loops in _flat(self.steps):
            if not isinstance(step, Move) or not step.collectives:
                continue
            use = self.timeline.uses.get(step.name, Use())
            times, n = _times(loops), len(step.collectives)
            for c in step.collectives:
                yield PlacedTransfer(
                    collective=c,
                    move=step,
                    loops=loops,
                    times=times,
                    seconds=use.seconds / n,
                    exposed_s=use.exposed_s / n,
                    latency_s=use.latency_s / n,
                    line=self._line(step, c),
                )

    def _line(self, step: Move, c: CompiledCollective) -> str:
        """The line of Python of a collective: its own, or that of what it is fused into."""
        if step.instruction is None:
            return ""
        inner = (
            i
            for name in walk.callees(step.instruction)
            for i in self.module.computations[name].instructions.values()
            if i.name == c.name
        )
        found = next(inner, step.instruction)
        if line := self.source.line_of(found) or self.source.line_of(step.instruction):
            return line
        # what the partitioner inserted has no line of its own: the line of what reads or makes the array
        here = step.computation
        around = [*here.users(step.name), *here.operands(step.instruction)] if here else []
        return next(filter(None, map(self.source.line_of, around)), "")

    @cached_property
    def work(self) -> MatmulWork:
        """The program's matmul FLOPs beside the model's need."""
        recomputed = sum(
            placed.runs * cost.flops_of(where, i)
            for placed in self.kernels
            for i, where in parts(self.module, placed.kernel)
            if counted.is_recomputed(i)
        )
        padded = sum(
            placed.runs * placed.kernel.flops * (shape.factor - 1) for placed, shape in self.matmul_shapes
        )
        return MatmulWork(
            flops=cost.matmul_flops(self.module),
            recomputed=recomputed,
            padded=padded,
            at_least=any(one.flops for one in self.not_counted),
            need=self.need,
        )

    @cached_property
    def matmul_shapes(self) -> tuple[tuple[PlacedKernel, MatmulShape], ...]:
        """The kernels that are matmuls with their shapes, for a TPU's program."""
        if self.source.platform != "tpu":
            return ()
        chip = self.hardware.chip
        side = (chip.matrix_side if chip else None) or counted.LANES
        found = []
        for placed in self.kernels:
            if placed.kernel.flops:
                matmuls = counted.contracted_parts(parts(self.module, placed.kernel))
                shapes = [s for i, where in matmuls if (s := counted.matmul_shape(where, i, side))]
                found += [(placed, shape) for shape in shapes[:1]]
        return tuple(found)

    @cached_property
    def not_counted(self) -> tuple[not_counted.NotCounted, ...]:
        """What the program's text does not reveal."""
        return not_counted.not_counted(self.module)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The program's arguments."""
        return self.source.arguments


def _flat(
    found: tuple[Step, ...], loops: tuple[LoopStep, ...] = ()
) -> Iterator[tuple[Step, tuple[LoopStep, ...]]]:
    """Every step with the loops around it."""
    for step in found:
        yield step, loops
        if isinstance(step, LoopStep):
            yield from _flat(step.steps, (*loops, step))


def _times(loops: tuple[LoopStep, ...]) -> int | None:
    """How often the body of the innermost loop runs; None if a trip count is unknown."""
    product = 1
    for loop in loops:
        if loop.trips is None:
            return None
        product *= loop.trips
    return product
