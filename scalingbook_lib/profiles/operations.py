"""Looks up the operations of a profile in its programs' text: kind, FLOPs, bytes, scopes, transfers."""

from collections.abc import Iterable, Mapping
from typing import Any

from scalingbook_lib import hlo
from scalingbook_lib.hlo import cost, walk
from scalingbook_lib.hlo.compiled_collectives import started_by
from scalingbook_lib.hlo.module import HloError, HloModule
from scalingbook_lib.hlo.walk import Visit
from scalingbook_lib.profiles.trace import COLLECTIVE, LOOP, Op
from scalingbook_lib.units import si

CONTAINERS = ("while", "conditional")

type Known = dict[tuple[str, str], Op]


def of_programs(programs: Iterable[Any]) -> Known:
    """The operations of compiled programs, by module and name.

    Raises a ValueError if two programs have the same name, because a profile distinguishes them by name only.
    """
    operations: Known = {}
    for program in programs:
        text = HloModule.of(program)
        module = text.header.removeprefix("HloModule ").partition(",")[0]
        if any(where == module for where, _ in operations):
            raise ValueError(
                f"two programs are called {module}, and a profile distinguishes them by name only; "
                "give their functions different names"
            )
        outer, sizes = (v for v in walk.visits(text) if v.inside is None), _sizes(program)
        operations |= {(module, v.instruction.name): _op(text, v, module, sizes) for v in outer}
    return operations


def _op(text: HloModule, visit: Visit, module: str, sizes: Mapping[str, int]) -> Op:
    """One instruction as an operation of a trace."""
    i = visit.instruction
    if i.opcode in CONTAINERS:
        return Op(i.name, LOOP, module, i.quoted("op_name"))
    kernel = cost.fusion(text, visit)
    moved = _transfer(text, visit, sizes)
    read = sum(shape.nbytes for o in visit.computation.operands(i) for shape in o.shapes)
    nbytes = int(read + sum(shape.nbytes for shape in i.shapes))
    kind = COLLECTIVE if moved else kernel.kind
    return Op(i.name, kind, module, kernel.source, kernel.flops, nbytes, moved)


def _transfer(text: HloModule, visit: Visit, sizes: Mapping[str, int]) -> str:
    """The transfer between devices: of the instruction, fused into it, or of the start that it waits for."""
    i, computation = visit.instruction, visit.computation
    if i.opcode.endswith("-done") and not i.opcode.startswith("copy") and i.operands:
        started = computation.instructions.get(i.operands[0])
        return _transfer(text, Visit(started, computation, 1), sizes) if started is not None else ""
    found = started_by(text, visit, sizes)
    return f"{found[0].kind} over {found[0].over} of {si(sum(c.nbytes for c in found), 'B')}" if found else ""


def _sizes(program: Any) -> Mapping[str, int]:
    """The sizes of a program's mesh; one device if it has none."""
    try:
        return hlo.sizes_of(hlo.mesh_of(program))
    except HloError:
        return {"X": 1}
