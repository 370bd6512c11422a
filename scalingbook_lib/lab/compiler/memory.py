"""How much memory does a compiled program need on one device?"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from scalingbook_lib.lab.compiler import text as hlo_text
from scalingbook_lib.lab.compiler.overflow import Allocation
from scalingbook_lib.units import Result, binary


@dataclass(frozen=True, slots=True)
class CompiledMemory(Result):
    """The HBM of one device, in bytes, padding included; `limit` is what it has (None: not known).

    `host` is what lies in the host's memory (pinned) for it, and needs no HBM.
    """

    arguments: int
    results: int
    temporaries: int
    aliased: int
    limit: float | None
    host: int = 0

    @property
    def needed(self) -> int:
        """What must be there at once: arguments, results that do not reuse an argument, temporaries."""
        return self.arguments + self.results - self.aliased + self.temporaries

    @property
    def fits(self) -> bool:
        """Is there room for it?"""
        return self.limit is None or self.needed <= self.limit

    def __str__(self) -> str:
        of = f" of {binary(self.limit)}" if self.limit else ""
        parts = (
            f"{binary(self.arguments)} of arguments, {binary(self.results)} of results, "
            f"{binary(self.temporaries)} of temporaries"
        )
        host = f"; {binary(self.host)} in the host's memory" if self.host else ""
        return f"{binary(self.needed)}{of} per device: {parts}{host}"


def memory(compiled: Any, limit: float | None) -> CompiledMemory:
    """The memory of a compiled program."""
    # of one device, padding included; what is aliased was donated, and counts among arguments and results
    m = compiled.memory_analysis()
    host = (
        m.host_argument_size_in_bytes
        + m.host_output_size_in_bytes
        - m.host_alias_size_in_bytes
        + m.host_temp_size_in_bytes
    )
    return CompiledMemory(
        m.argument_size_in_bytes,
        m.output_size_in_bytes,
        m.temp_size_in_bytes,
        m.alias_size_in_bytes,
        limit,
        host,
    )


def parts(m: CompiledMemory) -> tuple[Allocation, ...]:
    """What there is of it, the largest first."""
    named = (("arguments", m.arguments), ("results", m.results - m.aliased), ("temporaries", m.temporaries))
    return tuple(Allocation(n, what) for what, n in sorted(named, key=lambda part: -part[1]) if n)


SAME = ("bitcast", "get-tuple-element", "copy-start", "copy-done")  # they name a buffer anew, or move it


class Buffer(NamedTuple):
    """What a line of a program writes to HBM: needed from the line `born` to the line `last`, from 0."""

    name: str
    nbytes: float
    born: int
    last: int


def buffers(program: Any) -> tuple[Buffer, ...]:
    """The temporaries of a program in the order of its lines, with their live ranges.

    The arguments and the result are left out, as is what lies in VMEM: `S(1)` in its type.
    """
    owner: dict[str, str] = {}
    made: dict[str, tuple[float, int]] = {}
    last: dict[str, int] = {}
    for at, line in enumerate(_lines(program)):
        same = line.opcode in SAME
        owner[line.name] = owner[line.operands[0]] if same else line.name
        if not (same or line.root or line.opcode == "parameter"):
            made[line.name] = _in_hbm(line.type), at
        last |= {owner[name]: at for name in line.operands if name in owner}
    return tuple(Buffer(name, n, at, last.get(name, at)) for name, (n, at) in made.items() if n)


def alive(program: Any) -> dict[str, float]:
    """For each kernel in the order in which they run, the bytes of temporaries that are in use meanwhile."""
    kept = buffers(program)
    kernels = {line.name: at for at, line in enumerate(_lines(program)) if line.opcode == "fusion"}
    return {name: sum(b.nbytes for b in kept if b.born <= at <= b.last) for name, at in kernels.items()}


def _lines(program: Any) -> list[hlo_text.Instruction]:
    return [*hlo_text.Text.of(program).entry.instructions.values()]


def _in_hbm(kind: str) -> float:
    arrays = re.findall(r"(\w+\[[\d,]*\])\{([^}]*)\}", kind)
    return sum(hlo_text.shapes_in(array)[0].nbytes for array, place in arrays if "S(" not in place)
