"""What does the text of a compiled program say, instruction by instruction?

HLO, the language of XLA's optimised programs, as `compiled.as_text()` prints it: computations made of
instructions, one a line. This module reads the text, follows calls, and counts how often each instruction
runs, loops included. What the instructions mean is the business of `hlo`, `schedule` and `work`.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

TRANSPARENT = {"copy", "bitcast", "convert", "reshape", "copy-start", "copy-done", "optimization-barrier"}

_BITS = re.compile(r"^(?:pred|token|[a-z]+(\d+))")
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<= ]*)\]")
_HEADER = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)\s*\(.*->.*\{\s*$")
_ASSIGN = re.compile(r"^\s+(ROOT\s+)?%?([\w.\-]+) = ")
_CALLEE = r"=%?([\w.\-]+)"


class HloError(ValueError):
    """The text is not a compiled program as this book reads them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An array type in a program: `bf16[2048,512]`."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def nbytes(self) -> float:
        """The bytes of the array, without padding."""
        return math.prod(self.dims) * dtype_bytes(self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line: `%name = type opcode(%operands), attributes`."""

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    root: bool

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Every array in its type: several where it is a tuple."""
        return shapes_in(self.type)

    def callee(self, attribute: str) -> str | None:
        """The computation that an attribute (`calls`, `body`, `condition`) names."""
        found = re.search(rf"\b{attribute}{_CALLEE}", self.attributes)
        return found[1] if found else None

    def text(self, attribute: str) -> str:
        """The quoted text of an attribute or of a key of its configuration; empty where there is none."""
        found = re.search(rf'"?\b{attribute}"?[=:]"((?:[^"\\]|\\.)*)"', self.attributes)
        return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Computation:
    """A named list of instructions in the order in which they are scheduled."""

    name: str
    instructions: dict[str, Instruction] = field(default_factory=dict)

    @property
    def root(self) -> Instruction:
        """The instruction whose value the computation returns."""
        return next((i for i in self.instructions.values() if i.root), [*self.instructions.values()][-1])

    def operands(self, instruction: Instruction) -> tuple[Instruction, ...]:
        """The instructions that an instruction reads."""
        return tuple(self.instructions[name] for name in instruction.operands if name in self.instructions)

    def users(self, name: str) -> Iterator[Instruction]:
        """The instructions that read `name`."""
        return (i for i in self.instructions.values() if name in i.operands)

    def has(self, *opcodes: str) -> bool:
        """Does an instruction with one of these opcodes stand here?"""
        return any(i.opcode in opcodes for i in self.instructions.values())


@dataclass(frozen=True, slots=True)
class Visit:
    """An instruction, where it stands, how often it runs (None: unknown), and the fusion it is part of."""

    instruction: Instruction
    computation: Computation
    times: int | None
    inside: Instruction | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A whole program: its computations by name, and the one that starts."""

    computations: dict[str, Computation]
    entry: Computation
    header: str

    def visits(self) -> Iterator[Visit]:
        """Every instruction that runs, with the number of times it does; calls and fusions are entered."""
        return self._visits(self.entry, 1, None)

    def _visits(self, here: Computation, times: int | None, inside: Instruction | None) -> Iterator[Visit]:
        for instruction in here.instructions.values():
            yield Visit(instruction, here, times, inside)
            if instruction.opcode == "while":
                trips = trip_count(self, here, instruction)
                times_inside = None if trips is None or times is None else times * trips
                yield from self._visits(self.computations[_body(instruction)], times_inside, inside)
                continue
            fused = instruction if instruction.opcode == "fusion" else inside
            for name in callees(instruction):
                yield from self._visits(self.computations[name], times, fused)


def read(program: Any) -> Text:
    """The text of a compiled program, or of anything with `as_text()` or `.text`, read into computations."""
    if isinstance(program, Text):
        return program
    text = _text_of(program)
    computations: dict[str, Computation] = {}
    here, entry = None, None
    for line in text.splitlines():
        if header := _HEADER.match(line):
            here = computations[header[2]] = Computation(header[2])
            entry = here if header[1] else entry
        elif here is not None and (assigned := _ASSIGN.match(line)):
            instruction = _instruction(line[assigned.end() :], assigned[2], bool(assigned[1]))
            here.instructions[instruction.name] = instruction
    if entry is None:
        raise HloError(f"{text[:60]!r} is no compiled program: no ENTRY in it; give compiled.as_text()")
    return Text(computations, entry, text.partition("\n")[0])


def _text_of(program: Any) -> str:
    if isinstance(program, str):
        return program
    return program.as_text() if hasattr(program, "as_text") else program.text


def _instruction(rest: str, name: str, root: bool) -> Instruction:
    """Read `type opcode(operands), attributes`."""
    end = _closing(rest, 0) if rest.startswith("(") else rest.index(" ")
    type_, rest = rest[:end], rest[end:].lstrip()
    opcode, _, tail = rest.partition("(")
    close = _closing("(" + tail, 0)
    inside, attributes = tail[: close - 2], tail[close - 1 :]
    operands = (inside,) if opcode in ("constant", "parameter") else _operand_names(inside)
    return Instruction(name, type_, opcode.strip(), operands, attributes.strip(" ,"), root)


def _closing(text: str, start: int) -> int:
    """One past the parenthesis that closes the one at `start`."""
    depth = 0
    for found in re.compile(r"[()]").finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    raise HloError(f"{text[:60]!r}: a parenthesis is not closed; give the whole text of the program")


def _operand_names(inside: str) -> tuple[str, ...]:
    """The names of the operands; older versions print each one's type before it."""
    if "%" in inside:
        return tuple(re.findall(r"%([\w.\-]+)", inside))
    return tuple(part.split()[-1] for part in inside.split(",") if part.strip())


def shapes_in(type_: str) -> tuple[Shape, ...]:
    """The arrays of a type, in order: one, or those of a tuple."""
    return tuple(
        Shape(dtype, tuple(int(n.lstrip("<= ")) for n in dims.split(",") if n.strip()))
        for dtype, dims in _ARRAY.findall(type_)
    )


def dtype_bytes(dtype: str) -> float:
    """The bytes of one element: 2 for bf16, 1/2 for s4; a token takes none."""
    if dtype in ("pred", "token", "opaque"):
        return dtype == "pred"
    bits = _BITS.match(dtype)
    if bits is None or bits[1] is None:
        raise HloError(f"{dtype!r} is no data type of a compiled program")
    return int(bits[1]) / 8


def callees(instruction: Instruction) -> list[str]:
    """The computations that an instruction runs once each; a reducer's `to_apply` is not one of them."""
    match instruction.opcode:
        case "fusion" | "async-start":
            names = [instruction.callee("calls")]
        case "call":
            names = [instruction.callee("to_apply") or instruction.callee("calls")]
        case "conditional":
            branches = re.search(r"branch_computations=\{([^}]*)\}", instruction.attributes)
            listed = branches[1].replace("%", "").split(", ") if branches else []
            names = listed or [instruction.callee(f"{case}_computation") for case in ("true", "false")]
        case _:
            names = []
    return [name for name in names if name]


def _body(loop: Instruction) -> str:
    body = loop.callee("body")
    if body is None:
        raise HloError(f"while loop {loop.name} names no body; give the whole text of the program")
    return body


def trip_count(text: Text, here: Computation, loop: Instruction) -> int | None:
    """How often a loop runs: as the compiler notes it, or from its start, its step and its limit."""
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
    last = limit + 1 if "direction=LE" in compare.attributes else limit
    return max(0, -(-(last - start) // step)) if re.search("direction=L[TE]", compare.attributes) else None


def _element(here: Computation, name: str) -> int | None:
    """Which element of the loop's state `name` reads."""
    instruction = _behind(here, name)
    if instruction is None or instruction.opcode != "get-tuple-element":
        return None
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
    body = text.computations[_body(loop)]
    if counter is None or body.root.opcode != "tuple" or counter >= len(body.root.operands):
        return None
    add = _behind(body, body.root.operands[counter])
    if add is None or add.opcode != "add":
        return None
    steps = [_constant(body, name) for name in add.operands if _element(body, name) is None]
    return steps[0] if len(steps) == 1 else None


def _constant(here: Computation, name: str) -> int | None:
    instruction = _behind(here, name)
    if instruction is None or instruction.opcode != "constant":
        return None
    return int(instruction.operands[0]) if re.fullmatch(r"-?\d+", instruction.operands[0]) else None


def _behind(here: Computation, name: str) -> Instruction | None:
    """The instruction that `name` stands for, seen through copies and conversions."""
    instruction = here.instructions.get(name)
    while instruction is not None and instruction.opcode in TRANSPARENT and instruction.operands:
        instruction = here.instructions.get(instruction.operands[0])
    return instruction
