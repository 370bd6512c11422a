"""Lists the instructions of a program that run, and how often each of them runs.

Calls, fusions and asynchronous computations are entered. The body of a loop counts once per trip. For a
conditional, sums use the branch with the largest amount.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scalingbook_lib.hlo.module import Computation, HloError, HloModule, Instruction

# Opcodes that pass a value on: the TPU compiler puts copies and conversions between a loop and its counter.
FUSIONS = "fusion", "fusion-start"  # the latter on another stream of a GPU
TRANSPARENT = {"copy", "bitcast", "convert", "reshape", "copy-start", "copy-done", "optimization-barrier"}


@dataclass(frozen=True, slots=True)
class Visit:
    """An instruction, its computation, how often it runs, and the kernel that it is part of.

    `times` is None if the program does not fix it. `inside` is the fusion, or the start of the asynchronous
    computation, that contains the instruction.
    """

    instruction: Instruction
    computation: Computation
    times: int | None
    inside: Instruction | None = None


type Weigh = Callable[[Visit], float]


def visits(module: HloModule, weigh: Weigh | None = None) -> Iterator[Visit]:
    """Every instruction that may run, with the number of times that it does.

    `weigh` gives a visit's contribution to a sum: of a conditional, only the branch with the largest total is
    visited. Without it every branch is visited, because the program's text does not say which one runs.
    """
    return _visits(module, Visit(module.entry.root, module.entry, 1), weigh)


def _visits(module: HloModule, at: Visit, weigh: Weigh | None) -> Iterator[Visit]:
    """The visits of the computation of `at` and of all computations that it calls, times the runs of `at`."""
    computation, times, inside = at.computation, at.times, at.inside
    for instruction in computation.instructions.values():
        yield Visit(instruction, computation, times, inside)
        if instruction.opcode == "while":
            # the condition is not entered: it only compares, which takes no time and moves nothing
            trips = trip_count(module, computation, instruction)
            body_times = None if trips is None or times is None else times * trips
            yield from _visits(
                module, Visit(instruction, body_of(module, instruction), body_times, inside), weigh
            )
            continue
        # the computation called by a fusion is part of that kernel; calls and branches run kernels of their
        # own
        part = instruction if is_one_kernel(instruction) else inside
        called = [
            list(_visits(module, Visit(instruction, module.computations[name], times, part), weigh))
            for name in callees(instruction)
        ]
        if instruction.opcode == "conditional" and weigh is not None:
            called = [max(called, key=lambda branch: sum(weigh(v) * (v.times or 1) for v in branch))]
        for found in called:
            yield from found


def is_one_kernel(instruction: Instruction) -> bool:
    """Whether an instruction and what it calls run as one kernel: a fusion or asynchronous computation."""
    return instruction.opcode == "fusion" or instruction.opcode.endswith("-start")


def callees(instruction: Instruction) -> list[str]:
    """The computations that an instruction runs once each, excluding the `to_apply` of a reduction."""
    match instruction.opcode:
        case opcode if opcode in (*FUSIONS, "async-start"):
            names = [instruction.callee("calls")]
        case "call" | "call-start":  # `call-start`: on another unit of the chip, while the program continues
            names = [instruction.callee("to_apply") or instruction.callee("calls")]
        case "custom-call" | "custom-call-start":  # what TPU7x offloads to its SparseCores
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


def scope_path(module: HloModule, instruction: Instruction) -> str:
    """The `op_name` of an instruction with the scopes of everything fused into it.

    For example 'jit(f)/up/down/dot_general'.
    """
    paths = [path.split("/") for path in _op_names(module, instruction)]
    outer = dict.fromkeys(part for path in paths for part in path[:-1] if part)
    return "/".join([*outer, *(path[-1] for path in paths[:1])])


def _op_names(module: HloModule, instruction: Instruction) -> Iterator[str]:
    """The `op_name` of an instruction, then those of the instructions in the computations that it calls."""
    if path := instruction.quoted("op_name"):
        yield path
    for name in callees(instruction):
        for part in module.computations[name].instructions.values():
            yield from _op_names(module, part)


def body_of(module: HloModule, loop: Instruction) -> Computation:
    """The computation that a loop repeats. Raises an HloError if the text lacks it."""
    body = module.computations.get(loop.callee("body") or "")
    if body is None:
        raise HloError(f"while loop {loop.name} has no body; give the whole text of the program")
    return body


def trip_count(module: HloModule, computation: Computation, loop: Instruction) -> int | None:
    """The trip count of a loop, as XLA notes it or from its counter; None if the text does not fix it."""
    # XLA notes a trip count that it knows as `"known_trip_count":{"n":"8"}` or, in older texts, as
    # `known_trip_count={n=8}`. Without it, the trips follow from the loop's counter: a number in its state
    # that starts at a constant, grows by a constant, and is compared with a limit.
    noted = re.search(r'known_trip_count"?[:=]\{"?n"?[:=]"?(\d+)', loop.attributes)
    if noted:
        return int(noted[1])
    condition = module.computations.get(loop.callee("condition") or "")
    compare = condition.root if condition else None
    if condition is None or compare is None or compare.opcode != "compare":
        return None
    counter = _tuple_index(condition, compare.operands[0])
    start = _initial_value(computation, loop, counter)
    limit = _constant(condition, compare.operands[1])
    if (limit_at := _tuple_index(condition, compare.operands[1])) is not None:
        limit = _initial_value(computation, loop, limit_at)
    step = _increment(module, loop, counter)
    if start is None or limit is None or not step:
        return None
    # -(-a // b) rounds up: a shorter last step is also a trip
    last = limit + 1 if "direction=LE" in compare.attributes else limit
    return max(0, -(-(last - start) // step)) if re.search("direction=L[TE]", compare.attributes) else None


def _tuple_index(computation: Computation, name: str) -> int | None:
    """The index of the element of the loop's state that `name` reads; None if it reads none."""
    instruction = resolve(computation, name)
    if instruction is None or instruction.opcode != "get-tuple-element":
        return None
    # a loop's state is one tuple: the condition and the body read it by `get-tuple-element(state), index=2`
    index = re.search(r"index=(\d+)", instruction.attributes)
    return int(index[1]) if index else None


def _initial_value(computation: Computation, loop: Instruction, element: int | None) -> int | None:
    """The initial constant of an element of the loop's state; None if it is not a constant."""
    state = computation.instructions.get(loop.operands[0])
    if element is None or state is None or state.opcode != "tuple" or element >= len(state.operands):
        return None
    return _constant(computation, state.operands[element])


def _increment(module: HloModule, loop: Instruction, counter: int | None) -> int | None:
    """The constant that one trip adds to the loop's counter; None if it is not a constant."""
    body = body_of(module, loop)
    if counter is None or body.root.opcode != "tuple" or counter >= len(body.root.operands):
        return None
    add = resolve(body, body.root.operands[counter])
    if add is None or add.opcode != "add":
        return None
    # counter + constant, in either order: the operand that is not an element of the state is the step
    steps = [_constant(body, name) for name in add.operands if _tuple_index(body, name) is None]
    return steps[0] if len(steps) == 1 else None


def _constant(computation: Computation, name: str) -> int | None:
    """The integer that `name` refers to; None if it is not a constant."""
    instruction = resolve(computation, name)
    if instruction is None or instruction.opcode != "constant":
        return None
    return int(instruction.operands[0]) if re.fullmatch(r"-?\d+", instruction.operands[0]) else None


def resolve(computation: Computation, name: str) -> Instruction | None:
    """The instruction that produces the value of `name`, through copies, bitcasts and conversions."""
    instruction = computation.instructions.get(name)
    while instruction is not None and instruction.opcode in TRANSPARENT and instruction.operands:
        instruction = computation.instructions.get(instruction.operands[0])
    return instruction
