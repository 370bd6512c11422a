"""Which instructions of a program run, and how often?

Calls, fusions and what runs beside them are entered; a loop's body counts once for every trip, and of a
conditional's branches one where amounts are summed: that which has most of what is asked for.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scalingbook_lib.lab.compiler.text import Computation, HloError, Instruction, Text

# What hands on a value as it is: the TPU compiler puts copies and conversions between a loop and its counter.
TRANSPARENT = {"copy", "bitcast", "convert", "reshape", "copy-start", "copy-done", "optimization-barrier"}


@dataclass(frozen=True, slots=True)
class Visit:
    """An instruction, where it stands, how often it runs (None: unknown), and what it is part of.

    `inside` is the fusion that it is a piece of, or the start of what runs beside the program.
    """

    instruction: Instruction
    computation: Computation
    times: int | None
    inside: Instruction | None = None


type Weigh = Callable[[Visit], float]


def visits(text: Text, weigh: Weigh | None = None) -> Iterator[Visit]:
    """Every instruction that may run, with the number of times it does.

    `weigh` says how much of a sum a visit has: of a conditional's branches the heaviest is taken. Without
    one, every branch is: which of them runs is known only then.
    """
    return _visits(text, Visit(text.entry.root, text.entry, 1), weigh)


def _visits(text: Text, at: Visit, weigh: Weigh | None) -> Iterator[Visit]:
    """What runs in the computation of a visit, as often as that, and as part of the same kernel."""
    here, times, inside = at.computation, at.times, at.inside
    for instruction in here.instructions.values():
        yield Visit(instruction, here, times, inside)
        if instruction.opcode == "while":
            # the condition is not entered: it has a comparison and nothing that takes time or moves anything
            trips = trip_count(text, here, instruction)
            times_inside = None if trips is None or times is None else times * trips
            yield from _visits(
                text, Visit(instruction, body_of(text, instruction), times_inside, inside), weigh
            )
            continue
        # what a fusion calls is part of that one kernel; what a call or a branch calls runs by itself
        part = instruction if is_whole(instruction) else inside
        called = [
            list(_visits(text, Visit(instruction, text.computations[name], times, part), weigh))
            for name in callees(instruction)
        ]
        if instruction.opcode == "conditional" and weigh is not None:
            called = [max(called, key=lambda branch: sum(weigh(v) * (v.times or 1) for v in branch))]
        for found in called:
            yield from found


def is_whole(instruction: Instruction) -> bool:
    """Is what it calls one kernel: a fusion, or something that runs on another unit meanwhile?"""
    return instruction.opcode == "fusion" or instruction.opcode.endswith("-start")


def callees(instruction: Instruction) -> list[str]:
    """The computations that an instruction runs once each; a reducer's `to_apply` is not one of them."""
    match instruction.opcode:
        case "fusion" | "async-start":
            names = [instruction.callee("calls")]
        case "call" | "call-start":  # `call-start`: on another unit of the chip, while the program goes on
            names = [instruction.callee("to_apply") or instruction.callee("calls")]
        case "custom-call" | "custom-call-start":  # what TPU7x hands to its SparseCores
            names = instruction.callees("called_computations")
        case "conditional":
            # `branch_computations={%a, %b}` where a number chooses, `true_computation=` where a predicate
            # does
            names = instruction.callees("branch_computations") or [
                instruction.callee(f"{case}_computation") for case in ("true", "false")
            ]
        case _:
            names = []
    return [name for name in names if name]


def scopes(text: Text, instruction: Instruction) -> str:
    """The path of an instruction, with the scopes of what is fused into it: 'jit(f)/up/down/dot_general'."""
    paths = [path.split("/") for path in _paths(text, instruction)]
    outer = dict.fromkeys(part for path in paths for part in path[:-1] if part)
    return "/".join([*outer, *(path[-1] for path in paths[:1])])


def _paths(text: Text, instruction: Instruction) -> Iterator[str]:
    if path := instruction.text("op_name"):
        yield path
    for name in callees(instruction):
        for part in text.computations[name].instructions.values():
            yield from _paths(text, part)


def body_of(text: Text, loop: Instruction) -> Computation:
    """The computation that a loop repeats."""
    body = text.computations.get(loop.callee("body") or "")
    if body is None:
        raise HloError(f"while loop {loop.name} has no body; give the whole text of the program")
    return body


def trip_count(text: Text, here: Computation, loop: Instruction) -> int | None:
    """How often a loop runs: as the compiler notes it, or from its start, its step and its limit."""
    # XLA notes what it has found out with the loop, as `"known_trip_count":{"n":"8"}` or, in older texts,
    # `known_trip_count={n=8}`. Where that is missing the loop itself says enough if it counts: a number in
    # its state starts at a constant, grows by a constant, and is compared with a limit.
    noted = re.search(r'known_trip_count"?[:=]\{"?n"?[:=]"?(\d+)', loop.attributes)
    if noted:
        return int(noted[1])
    condition = text.computations.get(loop.callee("condition") or "")
    compare = condition.root if condition else None
    if condition is None or compare is None or compare.opcode != "compare":
        return None
    counter = _element(condition, compare.operands[0])
    start = _carried(here, loop, counter)
    limit_at = _element(condition, compare.operands[1])
    limit = _constant(condition, compare.operands[1]) if limit_at is None else _carried(here, loop, limit_at)
    step = _step(text, loop, counter)
    if start is None or limit is None or not step:
        return None
    # -(-a // b) rounds up: a last, shorter step is a trip too
    last = limit + 1 if "direction=LE" in compare.attributes else limit
    return max(0, -(-(last - start) // step)) if re.search("direction=L[TE]", compare.attributes) else None


def _element(here: Computation, name: str) -> int | None:
    """Which element of the loop's state `name` reads."""
    instruction = behind(here, name)
    if instruction is None or instruction.opcode != "get-tuple-element":
        return None
    # a loop's state is one tuple: the condition and the body read it by `get-tuple-element(state), index=2`
    index = re.search(r"index=(\d+)", instruction.attributes)
    return int(index[1]) if index else None


def _carried(here: Computation, loop: Instruction, element: int | None) -> int | None:
    """The value with which an element of the loop's state starts."""
    state = here.instructions.get(loop.operands[0])
    if element is None or state is None or state.opcode != "tuple" or element >= len(state.operands):
        return None
    return _constant(here, state.operands[element])


def _step(text: Text, loop: Instruction, counter: int | None) -> int | None:
    """What one trip adds to the counter."""
    body = body_of(text, loop)
    if counter is None or body.root.opcode != "tuple" or counter >= len(body.root.operands):
        return None
    add = behind(body, body.root.operands[counter])
    if add is None or add.opcode != "add":
        return None
    # counter + constant, in either order: the operand that is no element of the state is the step
    steps = [_constant(body, name) for name in add.operands if _element(body, name) is None]
    return steps[0] if len(steps) == 1 else None


def _constant(here: Computation, name: str) -> int | None:
    instruction = behind(here, name)
    if instruction is None or instruction.opcode != "constant":
        return None
    return int(instruction.operands[0]) if re.fullmatch(r"-?\d+", instruction.operands[0]) else None


def behind(here: Computation, name: str) -> Instruction | None:
    """The instruction that `name` stands for, seen through copies and conversions."""
    instruction = here.instructions.get(name)
    while instruction is not None and instruction.opcode in TRANSPARENT and instruction.operands:
        instruction = here.instructions.get(instruction.operands[0])
    return instruction
