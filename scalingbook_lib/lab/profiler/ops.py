"""What is each operation of a profile? Its program's text knows: FLOPs, bytes, scopes, and what it moves."""

from collections.abc import Iterable, Mapping
from typing import Any

from scalingbook_lib.lab.compiler import hlo, walk, work
from scalingbook_lib.lab.compiler.text import HloError, Text
from scalingbook_lib.lab.compiler.walk import Visit
from scalingbook_lib.lab.profiler.table import COLLECTIVE, LOOP, Op
from scalingbook_lib.units import si

HOLDERS = ("while", "conditional")

type Known = dict[tuple[str, str], Op]


def of(programs: Iterable[Any]) -> Known:
    """The operations of compiled programs, by module and name."""
    known: Known = {}
    for program in programs:
        text = Text.of(program)
        module = text.header.removeprefix("HloModule ").partition(",")[0]
        if any(where == module for where, _ in known):
            raise ValueError(
                f"two programs are called {module}, and a profile tells them apart by name alone; "
                "give their functions different names"
            )
        outer, sizes = (v for v in walk.visits(text) if v.inside is None), _sizes(program)
        known |= {(module, v.instruction.name): _op(text, v, module, sizes) for v in outer}
    return known


def _op(text: Text, visit: Visit, module: str, sizes: Mapping[str, int]) -> Op:
    i = visit.instruction
    if i.opcode in HOLDERS:
        return Op(i.name, LOOP, module, i.text("op_name"))
    kernel = work.fusion(text, visit)
    moved = _moved(text, visit, sizes)
    read = sum(shape.nbytes for o in visit.computation.operands(i) for shape in o.shapes)
    nbytes = int(read + sum(shape.nbytes for shape in i.shapes))
    kind = COLLECTIVE if moved else kernel.kind
    return Op(i.name, kind, module, kernel.source, kernel.flops, nbytes, moved)


def _moved(text: Text, visit: Visit, sizes: Mapping[str, int]) -> str:
    """What an instruction moves between devices: itself, within its fusion, or by what it waits for."""
    i, here = visit.instruction, visit.computation
    if i.opcode.endswith("-done") and not i.opcode.startswith("copy") and i.operands:
        started = here.instructions.get(i.operands[0])
        return _moved(text, Visit(started, here, 1), sizes) if started is not None else ""
    found = hlo.started(text, visit, sizes)
    return f"{found[0].kind} over {found[0].over} of {si(sum(c.nbytes for c in found), 'B')}" if found else ""


def _sizes(program: Any) -> Mapping[str, int]:
    """The mesh of a program; one device where it knows none."""
    try:
        return hlo.sizes_of(hlo.mesh_of(program))
    except HloError:
        return {"X": 1}
