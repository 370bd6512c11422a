"""Counts the bytes that a kernel moves between the chip and its HBM.

As in XLA's own cost analysis, an operand of which a fusion reads only a slice counts as that slice, and an
array that is updated in place counts as the update.
"""

import re
from collections.abc import Iterator

from scalingbook_lib.hlo import walk
from scalingbook_lib.hlo.module import ArrayType, Computation, HloModule, Instruction, shapes_in, tuple_types

SLICES = ("dynamic-slice", "slice", "gather")
UPDATES = ("dynamic-update-slice", "scatter")
_TYPED = re.compile(r"([a-z]\w*\[[\d,<= ]*\])(\{[^}]*\})?")


def fused(module: HloModule, i: Instruction) -> Computation | None:
    """The computation of a fusion; None for other instructions, and if the text lacks it."""
    names = walk.callees(i) if i.opcode in walk.FUSIONS else []
    return module.computations.get(names[0]) if names else None


def hbm_bytes(module: HloModule, computation: Computation, i: Instruction) -> float:
    """The bytes that one run of an instruction reads from HBM and writes to it, without padding."""
    body = fused(module, i)
    operands = [computation.instructions.get(name) for name in i.operands]
    if i.opcode in SLICES:
        return 2 * sum(shape.nbytes for shape in i.shapes)
    if i.opcode in UPDATES and len(operands) > 1 and (update := operands[1]) is not None:
        return 2 * sum(shape.nbytes for shape in update.shapes)
    read = 0.0
    for position, operand in enumerate(operands):
        if operand is None or operand.opcode == "constant":
            continue
        whole = sum(shape.nbytes for shape in in_hbm(operand.type))
        read += min(whole, read_bytes(body, position)) if body else whole
    return read + (_written(body, i) if body else sum(shape.nbytes for shape in in_hbm(i.type)))


def result_type(i: Instruction) -> str:
    """The type of an instruction's results: of `fusion-start`, without its operands and its context."""
    if i.opcode != "fusion-start":
        return i.type
    parts = tuple_types(i.type)
    return parts[1] if len(parts) > 1 else i.type


def in_hbm(type_: str) -> Iterator[ArrayType]:
    """The arrays of a type that are in HBM: those whose layout names no other memory, as `S(1)` does."""
    for array, layout in _TYPED.findall(type_):
        if "S(" not in layout:
            yield from shapes_in(array)


def read_bytes(body: Computation, position: int) -> float:
    """The bytes that a fused computation reads of one parameter: slices, if it reads nothing else of it."""
    parameter = next(
        (p for p in body.instructions.values() if p.opcode == "parameter" and p.operands == (str(position),)),
        None,
    )
    if parameter is None:
        return float("inf")
    total = 0.0
    for user in _real_users(body, parameter.name):
        if user.opcode in SLICES and _source(body, user.operands[0]) == parameter.name:
            total += sum(shape.nbytes for shape in user.shapes)
        elif user.opcode in UPDATES and _source(body, user.operands[0]) == parameter.name:
            continue  # updated in place: nothing of it is read
        else:
            return float("inf")
    return total


def _written(body: Computation, i: Instruction) -> float:
    """The bytes that a fusion writes: of an array that it updates in place, the update."""
    roots = body.operands(body.root) if body.root.opcode == "tuple" else (body.root,)
    placed = list(_TYPED.findall(result_type(i)))
    total = 0.0
    for n, root in enumerate(roots):
        if n < len(placed) and "S(" in placed[n][1]:
            continue
        inner = _through(body, root)
        update = body.instructions.get(inner.operands[1]) if inner.opcode == UPDATES[0] else None
        total += sum(shape.nbytes for shape in (update or root).shapes)
    return total


def _through(body: Computation, i: Instruction) -> Instruction:
    """The instruction that produces a value, before bitcasts and copies."""
    return walk.resolve(body, i.name) or i


def _real_users(body: Computation, name: str) -> Iterator[Instruction]:
    """The users of a value, through bitcasts."""
    for user in body.users(name):
        if user.opcode in ("bitcast", "reshape"):
            yield from _real_users(body, user.name)
        else:
            yield user


def _source(body: Computation, name: str) -> str:
    """The name of the value behind bitcasts."""
    i = body.instructions.get(name)
    while i is not None and i.opcode in ("bitcast", "reshape"):
        name = i.operands[0]
        i = body.instructions.get(name)
    return name
