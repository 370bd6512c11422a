"""What does the text of a compiled program say, instruction by instruction?

HLO, the language of XLA's optimised programs, as `compiled.as_text()` prints it: computations made of
instructions, one a line. Which of them run, and how often, is the business of `walk`; what they mean, of
`hlo`, `schedule` and `work`.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from scalingbook_lib.collectives import Collective

# `bf16`, `s4`, `f8e4m3fn`: the first digits are the bits. `pred`, a truth value, takes a byte; a token, none.
_BITS = re.compile(r"^(?:pred|token|[a-z]+(\d+))")
# `bf16[2048,<=512]{1,0:T(8,128)(2,1)S(1)}`: what stands in braces is the layout, the tiles and the memory
# (S(1) is VMEM), which the array's size does not depend on; `<=` marks a size known only when it runs.
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<= ]*)\]")
# A computation opens with `%name (arguments) -> type {` at the margin; the one that starts has ENTRY. Its
# instructions are indented, `  ROOT %name = type opcode(...)`. The % signs depend on how a text was printed.
_HEADER = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)\s*\(.*->.*\{\s*$")
_ASSIGN = re.compile(r"^\s+(ROOT\s+)?%?([\w.\-]+) = ")
_WRAPPED = re.compile(r'\n(?="|\}[},])')  # a kernel's metadata goes over several lines
BROADCAST, RAGGED = "collective-broadcast", "ragged-all-to-all"  # the compiler's own, in no formula
KINDS = (*(kind.hlo for kind in Collective), BROADCAST, RAGGED)  # what moves bytes between devices
_CALLEE = r"=%?([\w.\-]+)"


class HloError(ValueError):
    """The text is not a compiled program as this book reads them."""


@dataclass(frozen=True, slots=True)
class ArrayType:
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
    def shapes(self) -> tuple[ArrayType, ...]:
        """Every array in its type: several where it is a tuple."""
        return shapes_in(self.type)

    def callee(self, attribute: str) -> str | None:
        """The computation that an attribute (`calls`, `body`, `condition`) names."""
        found = re.search(rf"\b{attribute}{_CALLEE}", self.attributes)
        return found[1] if found else None

    def callees(self, attribute: str) -> list[str]:
        """The computations that an attribute (`branch_computations`) lists in braces."""
        found = re.search(rf"\b{attribute}=\{{([^}}]*)\}}", self.attributes)
        return re.findall(r"[\w.\-]+", found[1]) if found else []

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
class Text:
    """A whole program: its computations by name, and the one that starts."""

    computations: dict[str, Computation]
    entry: Computation
    header: str

    @classmethod
    def of(cls, program: Any) -> "Text":
        """A compiled program, its text, or anything with `as_text()` or `.text`, read into computations."""
        # an `aot.Program` has been read once
        return program if isinstance(program, Text) else getattr(program, "parsed", None) or read(program)


def read(program: Any) -> Text:
    """The text of a compiled program, or of anything with `as_text()` or `.text`, read into computations."""
    text = program
    if not isinstance(program, str):
        text = program.as_text() if hasattr(program, "as_text") else program.text
    computations: dict[str, Computation] = {}
    here, entry = None, None
    # computations refer to each other by name: in which order they stand says nothing about what runs when
    for line in _WRAPPED.sub("", text).splitlines():
        if header := _HEADER.match(line):
            here = computations[header[2]] = Computation(header[2])
            entry = here if header[1] else entry
        elif here is not None and (assigned := _ASSIGN.match(line)):
            instruction = _instruction(line[assigned.end() :], assigned[2], bool(assigned[1]))
            for part in _parts(here, instruction):
                here.instructions[part.name] = part
            here.instructions[instruction.name] = instruction
    if entry is None:
        raise HloError(f"{text[:60]!r} is no compiled program: no ENTRY in it; give compiled.as_text()")
    return Text(computations, entry, text.partition("\n")[0])


def _instruction(rest: str, name: str, root: bool) -> Instruction:
    """Read `type opcode(operands), attributes`."""
    # a type has no blanks unless it is a tuple, `(f32[8], u32[])`: that ends where its parenthesis does
    end = _closing(rest, 0) if rest.startswith("(") else rest.index(" ")
    type_, rest = rest[:end], rest[end:].lstrip()
    opcode, _, tail = rest.partition("(")
    close = _closing("(" + tail, 0)
    inside, attributes = tail[: close - 2], tail[close - 1 :]
    # `constant(7)` and `parameter(0)` have a value where others name what they read
    operands = (inside,) if opcode in ("constant", "parameter") else _operand_names(inside)
    return Instruction(name, type_, opcode.strip(), operands, attributes.strip(" ,"), root)


def _parts(here: Computation, instruction: Instruction) -> Iterator[Instruction]:
    """`%loop#3` is a part of a tuple: so a dump writes what has a line of its own in `as_text()`."""
    for operand in instruction.operands:
        if "#" in operand and operand not in here.instructions:
            whole, _, index = operand.rpartition("#")
            part = Instruction(operand, "", "get-tuple-element", (whole,), f"index={index}", False)
            yield from _parts(here, part)  # of a tuple in a tuple, that one first
            if whole in here.instructions:
                type_ = _elements(here.instructions[whole].type)[int(index)]
                yield replace(part, type=type_)


def _elements(type_: str) -> list[str]:
    """The types in a tuple's, `(f32[8]{0}, (u32[], bf16[2,4]))`."""
    inside, depth, found = re.sub(r"/\*.*?\*/", "", type_)[1:-1], 0, [""]
    for letter in inside:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [element.strip() for element in found]


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
        return tuple(re.findall(r"%([\w.\-#]+)", inside))
    # no % and no types: a comma is never part of a name
    return tuple(part.split()[-1] for part in inside.split(",") if part.strip())


def shapes_in(type_: str) -> tuple[ArrayType, ...]:
    """The arrays of a type, in order: one, or those of a tuple."""
    return tuple(
        ArrayType(dtype, tuple(int(n.lstrip("<= ")) for n in dims.split(",") if n.strip()))
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
