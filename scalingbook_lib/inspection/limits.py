"""Limits that a program has to keep, for a check in continuous integration."""

from collections.abc import Iterator
from dataclasses import dataclass

from scalingbook_lib.hlo import replica_groups
from scalingbook_lib.hlo.compiled_collectives import CompiledCollective
from scalingbook_lib.hlo.module import COLLECTIVE_OPCODES
from scalingbook_lib.inspection.program import InspectedProgram
from scalingbook_lib.units import binary, percent, si
from scalingbook_lib.words import pluralize


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that a program may do; None is no limit.

    Exposed communication is limited to a share of the run or to seconds, memory to bytes or to a share of a
    device's. `forbidden` are collectives as 'all-gather', or over some axes as 'all-gather:data'.
    """

    exposed_share: float | None = None
    exposed_s: float | None = None
    hbm_bytes: float | None = None
    hbm_share: float | None = None
    forbidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for one in self.forbidden:
            kind = one.partition(":")[0]
            if kind not in COLLECTIVE_OPCODES:
                raise ValueError(
                    f"{kind!r} is not a collective of HLO; write one of {', '.join(COLLECTIVE_OPCODES)}"
                )

    def broken(self, program: InspectedProgram) -> tuple[str, ...]:
        """A sentence for every limit that a program exceeds.

        Raises a ValueError if a limit needs a machine that is unknown, or names an axis that the mesh does
        not have.
        """
        return tuple(self._broken(program))

    def _broken(self, program: InspectedProgram) -> Iterator[str]:
        if self.exposed_share is not None or self.exposed_s is not None:
            if not program.run_s or not program.hardware.laid:
                raise ValueError(
                    "a limit of exposed communication needs the time of a run; name a machine that the mesh "
                    "fits, as in --slice v5p:4x4x4"
                )
            exposed, share = program.exposed_s, program.exposed_share
            if self.exposed_share is not None and share > self.exposed_share:
                yield (
                    f"exposed communication is {percent(share)} of a run, more than "
                    f"{percent(self.exposed_share)}"
                )
            if self.exposed_s is not None and exposed > self.exposed_s:
                yield f"exposed communication takes {si(exposed, 's')}, more than {si(self.exposed_s, 's')}"
        yield from self._memory(program)
        for one in self.forbidden:
            _require_axes(program, one)
            found = [t for t in program.transfers if _is(t.collective, one)]
            if found:
                runs = sum(t.runs for t in found)
                where = next((f" ({t.line})" for t in found if t.line), "")
                yield f"{one} runs {pluralize(runs, 'time')}{where}, and is not allowed"

    def _memory(self, program: InspectedProgram) -> Iterator[str]:
        peak, capacity = program.memory.peak, program.hardware.hbm_bytes
        most = self.hbm_bytes
        if self.hbm_share is not None:
            if not capacity:
                raise ValueError(
                    "a share of the memory needs a machine; name one, as in --slice v5p:4x4x4, or "
                    "write bytes, "
                    "as in 80GiB"
                )
            most = self.hbm_share * capacity
        if most is not None and peak > most:
            yield f"the peak of memory is {binary(peak)} per device, more than {binary(most)}"


def _require_axes(program: InspectedProgram, wanted: str) -> None:
    """Raise a ValueError if a limit names an axis that the mesh does not have: it would hold by itself."""
    _, _, axes = wanted.partition(":")
    mesh = program.source.mesh
    if not axes or axes in {t.collective.axes for t in program.transfers}:
        return
    if not mesh:
        raise ValueError(
            f"{wanted!r} names axes, and the program's mesh is unknown; name its axes, as in "
            "--mesh data=16,model=4"
        )
    if absent := [axis for axis in replica_groups.split_axes(axes, mesh) if axis not in mesh]:
        raise ValueError(
            f"{wanted!r} names {' and '.join(map(repr, absent))}, which the mesh does not have; write one of "
            f"its axes, {', '.join(mesh)}, or several, separated by commas"
        )


def _is(c: CompiledCollective, wanted: str) -> bool:
    """Whether a collective is of this kind, and over these axes if some are named."""
    kind, _, axes = wanted.partition(":")
    return c.kind == kind and (axes in ("", c.axes) or set(axes.split(",")) <= set(c.axis_names))
