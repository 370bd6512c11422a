"""Finds the live ranges of a program's temporaries in HBM, from its scheduled text."""

import re
from typing import Any, NamedTuple

from scalingbook_lib.hlo.module import HloModule, Instruction, shapes_in

# opcodes whose result is a buffer that already exists, or its copy in VMEM
ALIASES = ("bitcast", "get-tuple-element", "copy-start", "copy-done")


class Buffer(NamedTuple):
    """A temporary in HBM: its size in bytes, and the first and last program line that need it, from 0."""

    name: str
    nbytes: float
    first: int
    last: int


def buffers(program: Any) -> tuple[Buffer, ...]:
    """The temporaries of a program in the order of its lines, with their live ranges.

    Arguments, the result and arrays in VMEM (`S(1)` in the type) are left out.
    """
    owner: dict[str, str] = {}
    written: dict[str, tuple[float, int]] = {}
    last: dict[str, int] = {}
    for position, line in enumerate(_lines(program)):
        alias = line.opcode in ALIASES
        owner[line.name] = owner[line.operands[0]] if alias else line.name
        if not (alias or line.root or line.opcode == "parameter"):
            written[line.name] = _hbm_bytes(line.type), position
        last |= {owner[name]: position for name in line.operands if name in owner}
    return tuple(Buffer(name, n, first, last.get(name, first)) for name, (n, first) in written.items() if n)


def live_bytes(program: Any) -> dict[str, float]:
    """The bytes of temporaries that are live while each kernel runs, in the order of execution."""
    temporaries = buffers(program)
    kernels = {line.name: at for at, line in enumerate(_lines(program)) if line.opcode == "fusion"}
    return {
        name: sum(b.nbytes for b in temporaries if b.first <= at <= b.last) for name, at in kernels.items()
    }


def _lines(program: Any) -> list[Instruction]:
    return [*HloModule.of(program).entry.instructions.values()]


def _hbm_bytes(kind: str) -> float:
    """The bytes of the arrays of a type that are in HBM."""
    arrays = re.findall(r"(\w+\[[\d,]*\])\{([^}]*)\}", kind)
    return sum(shapes_in(array)[0].nbytes for array, layout in arrays if "S(" not in layout)
