"""Read the memory that a compiled program needs on one device, as XLA reports it."""

from dataclasses import dataclass
from typing import Any

from scalingbook_lib.hlo.out_of_memory import HbmAllocation
from scalingbook_lib.units import Result, binary


@dataclass(frozen=True, slots=True)
class CompiledMemory(Result):
    """The HBM use of one device in bytes, padding included; `limit` is its capacity (None if unknown).

    `host` counts what the program keeps in the host's pinned memory, which takes no HBM.
    """

    arguments: int
    results: int
    temporaries: int
    aliased: int
    limit: float | None
    host: int = 0

    @property
    def needed(self) -> int:
        """The bytes that are live at once: arguments, temporaries, and results in memory of their own."""
        return self.arguments + self.results - self.aliased + self.temporaries

    @property
    def fits(self) -> bool:
        """Whether the program fits in the device's memory."""
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
    """Return the memory use of a compiled program, from XLA's `memory_analysis`."""
    # for one device, padding included; an aliased buffer was donated and counts as both argument and result
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


def allocations(m: CompiledMemory) -> tuple[HbmAllocation, ...]:
    """Return the parts of a program's memory, largest first."""
    named = (("arguments", m.arguments), ("results", m.results - m.aliased), ("temporaries", m.temporaries))
    return tuple(HbmAllocation(n, what) for what, n in sorted(named, key=lambda part: -part[1]) if n)
