"""Follows values through a program: what feeds an instruction, what reads its result, what a loop changes."""

import re
from collections.abc import Iterator, Sequence

from scalingbook_lib.hlo import cost, walk
from scalingbook_lib.hlo.module import Computation, HloModule, Instruction
from scalingbook_lib.inspection.kernel_traffic import SLICES, fused, read_bytes
from scalingbook_lib.inspection.steps import LoopStep, Move

PASSED_ON = {*walk.TRANSPARENT, "get-tuple-element", "tuple", "transpose"}
# Instructions between a sum over devices and the accumulator that it is added to.
_BEFORE_SUM = {*PASSED_ON, "dynamic-slice", "slice", "fusion", "add", "multiply", "divide", "all-reduce-done"}
_MOST_STEPS = 12


def result_of(move: Move) -> Instruction | None:
    """The instruction whose value is a transfer's result: its done, or itself if the device waits."""
    if move.instruction is None or move.computation is None:
        return None
    for i in move.computation.instructions.values():
        is_done = i.opcode.endswith("-done") or i.name.startswith("async-collective-done")
        if is_done and move.name in i.operands:
            return i
    return move.instruction


def used_bytes(module: HloModule, here: Computation, i: Instruction) -> float:
    """The bytes of a value that its users read; infinite if one of them reads all of it."""
    total, seen = 0.0, {i.name}
    pending = [(i, user) for user in here.users(i.name)]
    if i.root:
        return float("inf")
    while pending:
        value, user = pending.pop()
        if user.opcode in SLICES and user.operands[0] == value.name:
            total += sum(shape.nbytes for shape in user.shapes)
        elif (body := fused(module, user)) is not None:
            places = [n for n, name in enumerate(user.operands) if name == value.name]
            total += sum(read_bytes(body, n) for n in places)
        elif user.opcode in PASSED_ON - {"tuple"} and not user.root:
            if user.name not in seen:
                seen.add(user.name)
                pending += [(user, after) for after in here.users(user.name)]
        else:
            return float("inf")
        if total == float("inf"):
            return total
    return total


def changes_in(
    module: HloModule, loops: Sequence[LoopStep], target: int, here: Computation, name: str
) -> bool:
    """Whether a value in the innermost of `loops` differs from trip to trip of `loops[target]`.

    Counters of inner loops do not count: they take the same values in every trip of an outer loop.
    """
    pending, seen = [(len(loops) - 1, here, name)], set()
    while pending:
        level, computation, at = pending.pop()
        if (level, at) in seen or (i := computation.instructions.get(at)) is None:
            continue
        seen.add((level, at))
        if i.opcode == "get-tuple-element" and _is_state(computation, i):
            element = _index(i)
            if not _passed_through(module, computation, element):
                if level == target or not _is_counter(i):
                    return True
                continue
            if level == target:
                continue
            outer = loops[level]
            state = outer.computation.instructions.get(outer.instruction.operands[0])
            if state is None or state.opcode != "tuple":
                return True
            pending.append((level - 1, outer.computation, state.operands[element]))
        elif i.opcode in ("while", "parameter", "call", "conditional", "infeed", "rng-bit-generator"):
            return True
        else:
            pending += [(level, computation, operand) for operand in i.operands if i.opcode != "constant"]
    return False


def _is_state(here: Computation, i: Instruction) -> bool:
    """Whether `i` reads an element of a loop's state."""
    whole = here.instructions.get(i.operands[0])
    return whole is not None and whole.opcode == "parameter"


def _index(i: Instruction) -> int:
    found = re.search(r"index=(\d+)", i.attributes)
    return int(found[1]) if found else 0


def _passed_through(module: HloModule, body: Computation, element: int) -> bool:
    """Whether a loop's body returns an element of its state unchanged, perhaps through inner loops."""
    if body.root.opcode != "tuple" or element >= len(body.root.operands):
        return False
    value = walk.resolve(body, body.root.operands[element])
    for _ in range(_MOST_STEPS):
        if value is None or value.opcode != "get-tuple-element":
            return False
        if _is_state(body, value):
            return _index(value) == element
        inner = body.instructions.get(value.operands[0])
        if inner is None or inner.opcode != "while":
            return False
        state = body.instructions.get(inner.operands[0])
        carried = _passed_through(module, walk.body_of(module, inner), _index(value))
        if not carried or state is None or state.opcode != "tuple":
            return False
        value = walk.resolve(body, state.operands[_index(value)])
    return False


def _is_counter(i: Instruction) -> bool:
    """Whether a value is one whole number."""
    return len(i.shapes) == 1 and not i.shapes[0].dims and i.shapes[0].dtype[0] in "su"


def origin(module: HloModule, here: Computation, name: str) -> Instruction | None:
    """The instruction that produces a value: through copies, prefetches in slices, and loops that keep it."""
    value = walk.resolve(here, name)
    for _ in range(_MOST_STEPS):
        if value is None or not value.operands:
            return value
        before = value.operands[0]
        if value.opcode == "get-tuple-element":
            loop = here.instructions.get(before)
            state = here.instructions.get(loop.operands[0]) if loop and loop.opcode == "while" else None
            if loop is None or state is None or state.opcode != "tuple":
                return value
            if not _passed_through(module, walk.body_of(module, loop), _index(value)):
                return value
            before = state.operands[_index(value)]
        elif not (
            value.opcode in ("slice-done", "slice-start")
            or (value.opcode == "custom-call" and '"ConcatBitcast"' in value.attributes)
        ):
            return value
        value = walk.resolve(here, before)
    return value


def feeds_matmul(module: HloModule, kernel: Instruction, place: int) -> bool:
    """Whether a fusion multiplies its operand with this number as a matrix."""
    if kernel.opcode in cost.MATMULS:
        return True
    body = fused(module, kernel)
    if body is None:
        return False
    parameter = next((p for p in body.instructions.values() if p.operands == (str(place),)), None)
    if parameter is None:
        return False
    readers = [*_beyond(body, parameter.name)]
    return any(
        feeds_matmul(module, reader, n)
        for reader in readers
        for n, name in enumerate(reader.operands)
        if reader.opcode != "fusion" or _comes_from(body, name, parameter.name)
    )


def _comes_from(body: Computation, name: str, source: str) -> bool:
    """Whether a value is `source`, through conversions and bitcasts."""
    value = walk.resolve(body, name)
    return value is not None and value.name == source


def accumulates(module: HloModule, here: Computation, result: Instruction) -> bool:
    """Whether a loop's body does nothing with a value but add it to an element of the loop's state."""
    if here.root.opcode != "tuple":
        return False
    reached, pending = {result.name}, [result]
    while pending:
        for user in here.users(pending.pop().name):
            if user.root:
                continue
            if user.opcode not in _BEFORE_SUM or len(reached) > _MOST_STEPS:
                return False
            if user.name not in reached:
                reached.add(user.name)
                pending.append(user)
    elements = [n for n, name in enumerate(here.root.operands) if name in reached]
    return bool(elements) and all(_adds(module, here, n, reached) for n in elements)


def _adds(module: HloModule, here: Computation, element: int, reached: set[str]) -> bool:
    """Whether the new value of an element is its old value plus something that was reached."""
    new = walk.resolve(here, here.root.operands[element])
    if new is None:
        return False
    old = [n for n, name in enumerate(new.operands) if _reads_element(here, name, element)]
    if not old or not any(name in reached for name in new.operands):
        return False
    # a residual stream is also added up, but its old value is read by the layers too
    if any(user.name != new.name for n in old for user in _beyond(here, new.operands[n])):
        return False
    if new.opcode == "add":
        return True
    body = fused(module, new)
    return body is not None and any(_feeds_sum(body, place) for place in old)


def _reads_element(here: Computation, name: str, element: int) -> bool:
    """Whether a value is this element of the loop's state."""
    i = walk.resolve(here, name)
    return i is not None and i.opcode == "get-tuple-element" and _is_state(here, i) and _index(i) == element


def _feeds_sum(body: Computation, place: int) -> bool:
    """Whether a fusion adds something to its parameter with this number, and does nothing else with it."""
    parameter = next((p for p in body.instructions.values() if p.operands == (str(place),)), None)
    users = [*_beyond(body, parameter.name)] if parameter else []
    return bool(users) and all(user.opcode == "add" for user in users)


def _beyond(body: Computation, name: str) -> Iterator[Instruction]:
    """The users of a value, through conversions and bitcasts."""
    for user in body.users(name):
        if user.opcode in PASSED_ON:
            yield from _beyond(body, user.name)
        else:
            yield user
