"""Parses HLO, the text of XLA's optimized programs (`compiled.as_text()`), into instructions.

A program is a set of computations, each with a list of instructions. `walk` finds which instructions run and
how often; `compiled_collectives`, `schedule` and `cost` interpret them.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from scalingbook_lib import git_lfs
from scalingbook_lib.collectives import Collective
from scalingbook_lib.hlo import out_of_memory

# `bf16`, `s4`, `f8e4m3fn`: the first digits are the bits. `pred`, a boolean, takes one byte; a token, none.
_BITS = re.compile(r"^(?:pred|token|[a-z]+(\d+))")
# `bf16[2048,<=512]{1,0:T(8,128)(2,1)S(1)}`: braces hold the layout, the tiles and the memory (S(1) is VMEM),
# on which the unpadded size does not depend; `<=` marks a size that is known only when the program runs.
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<= ]*)\]")
# A computation opens with `%name (arguments) -> type {` at the margin; the entry computation has ENTRY.
# Instructions are indented, `  ROOT %name = type opcode(...)`. The % signs depend on the printer's options.
# XLA's short form, used in its own tests, leaves the arguments out: `ENTRY main {`.
_HEADER = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)\s*(?:\(.*->.*)?\{\s*$")
_ASSIGN = re.compile(r"^\s+(ROOT\s+)?%?([\w.\-]+) = ")
_WRAPPED = re.compile(r'\n(?="|\}[},])')  # a kernel's metadata spans several lines
BROADCAST, RAGGED = "collective-broadcast", "ragged-all-to-all"  # `collectives` has no formula for these
# the opcodes that move bytes between devices
COLLECTIVE_OPCODES = (*(kind.hlo for kind in Collective), BROADCAST, RAGGED)
_CALLEE = r"=%?([\w.\-]+)"


class HloError(ValueError):
    """The text is not an optimized HLO program, or only a part of one."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array type in a program, such as `bf16[2048,512]`: XLA's data type and the dimensions."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def nbytes(self) -> float:
        """The size of the array in bytes, without padding."""
        return math.prod(self.dims) * dtype_bytes(self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a program: `%name = type opcode(%operands), attributes`.

    `root`: its value is the computation's value.
    """

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    root: bool

    @property
    def shapes(self) -> tuple[ArrayType, ...]:
        """Every array in the instruction's type: one, or several if the type is a tuple."""
        return shapes_in(self.type)

    def callee(self, attribute: str) -> str | None:
        """The computation named by an attribute such as `calls`, `body` or `condition`; None if absent."""
        found = re.search(rf"\b{attribute}{_CALLEE}", self.attributes)
        return found[1] if found else None

    def callees(self, attribute: str) -> list[str]:
        """The names of the computations that an attribute such as `branch_computations` lists in braces."""
        found = re.search(rf"\b{attribute}=\{{([^}}]*)\}}", self.attributes)
        return re.findall(r"[\w.\-]+", found[1]) if found else []

    def quoted(self, attribute: str) -> str:
        """The quoted value of an attribute, or of a key of the configuration; "" if it is absent."""
        found = re.search(rf'"?\b{attribute}"?[=:]"((?:[^"\\]|\\.)*)"', self.attributes)
        return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Computation:
    """A named list of instructions, in the order in which they are scheduled."""

    name: str
    instructions: dict[str, Instruction] = field(default_factory=dict)

    @property
    def root(self) -> Instruction:
        """The instruction whose value the computation returns: the one marked ROOT, else the last one."""
        return next((i for i in self.instructions.values() if i.root), [*self.instructions.values()][-1])

    def operands(self, instruction: Instruction) -> tuple[Instruction, ...]:
        """The instructions of this computation that `instruction` reads."""
        return tuple(self.instructions[name] for name in instruction.operands if name in self.instructions)

    def users(self, name: str) -> Iterator[Instruction]:
        """The instructions of this computation that read the instruction `name`."""
        return (i for i in self.instructions.values() if name in i.operands)

    def has(self, *opcodes: str) -> bool:
        """Whether an instruction of this computation has one of these opcodes."""
        return any(i.opcode in opcodes for i in self.instructions.values())


@dataclass(frozen=True, slots=True)
class HloModule:
    """A parsed program: its computations by name, the entry computation, and the first line of its text."""

    computations: dict[str, Computation]
    entry: Computation
    header: str

    @classmethod
    def of(cls, program: Any) -> "HloModule":
        """The parsed form of a program: compiled, text, or an object with `as_text()`, `.text` or `.parsed`.

        Raises an HloError if the text is not a complete program.
        """
        # an `aot.Program` holds its parsed text
        if isinstance(program, HloModule):
            return program
        return getattr(program, "parsed", None) or parse(program)


def parse(program: Any) -> HloModule:
    """Parse a program: its text, or anything with `as_text()` or `.text`.

    XLA's short form (`ENTRY main {`, instructions over several lines) is read as well. Raises an HloError if
    the text has no entry computation, or a parenthesis that is never closed; the error names the text's kind
    if it is recognized: a Git LFS pointer, StableHLO, or an out-of-memory error, which is then explained.
    """
    text = program
    if not isinstance(program, str):
        text = program.as_text() if hasattr(program, "as_text") else program.text
    if other := _other_text(text):
        raise HloError(other)
    computations: dict[str, Computation] = {}
    computation, entry = None, None
    # computations refer to each other by name: their order in the text is not the order in which they run
    for line in _whole_lines(_WRAPPED.sub("", text).splitlines()):
        if header := _HEADER.match(line):
            computation = computations[header[2]] = Computation(header[2])
            entry = computation if header[1] else entry
        elif computation is not None and (assigned := _ASSIGN.match(line)):
            instruction = _parse_instruction(line[assigned.end() :], assigned[2], bool(assigned[1]))
            for part in _tuple_elements(computation, instruction):
                computation.instructions[part.name] = part
            computation.instructions[instruction.name] = instruction
    if entry is None:
        raise HloError(
            f"the text that begins {text[:60]!r} has no entry computation, a line that begins with ENTRY; "
            "give the whole text of one program, as compiled.as_text() returns it"
        )
    if not entry.instructions:
        raise HloError(
            f"the entry computation {entry.name!r} has no instructions; give the program's whole text"
        )
    return HloModule(computations, entry, text.strip().partition("\n")[0])


def _other_text(text: str) -> str:
    """Why another kind of text is refused: a Git LFS pointer, an error, or StableHLO; "" for HLO."""
    if not text.strip():
        return "the text is empty; give the whole text of one program, as compiled.as_text() returns it"
    if git_lfs.is_pointer(text):
        return git_lfs.refusal("the text")
    if "RESOURCE_EXHAUSTED" in text and not re.search(r"^ENTRY ", text, re.M):
        found = out_of_memory.read(text)
        return f"the text is an out-of-memory error, not a program: {found}" if found else ""
    if not re.search(r"^ENTRY ", text, re.M) and (told := out_of_memory.of_pytorch(text)):
        return f"the text is an out-of-memory error of PyTorch, not a program: {told}"
    if re.match(r"\s*(#\w+ = .*\n\s*)*module\b.*\{", text):
        return (
            "the text is StableHLO, the program before XLA compiles it, which has no schedule and may have "
            "no collectives yet; give the compiled program's text, jax.jit(f).lower(...).compile().as_text()"
        )
    return ""


def _whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a program, with multi-line instructions joined and `//` comments removed."""
    pending = ""
    for line in lines:
        text = line.strip()
        if text.startswith("//"):
            continue
        continues = bool(pending) and text not in ("", "}") and not _ASSIGN.match(line)
        if continues and (pending.endswith(",") or pending.count("(") > pending.count(")")):
            pending = f"{pending} {text}"
            continue
        if pending:
            yield pending
        pending = line.rstrip()
    if pending:
        yield pending


def _parse_instruction(rest: str, name: str, root: bool) -> Instruction:
    """Parse `type opcode(operands), attributes`."""
    # a type has no spaces unless it is a tuple, `(f32[8], u32[])`, which ends with its parenthesis
    end = _closing_parenthesis(rest, 0) if rest.startswith("(") else rest.index(" ")
    type_, rest = rest[:end], rest[end:].lstrip()
    opcode, _, tail = rest.partition("(")
    close = _closing_parenthesis("(" + tail, 0)
    inside, attributes = tail[: close - 2], tail[close - 1 :]
    # `constant(7)` and `parameter(0)` have a value instead of operands
    operands = (inside,) if opcode in ("constant", "parameter") else _operand_names(inside)
    return Instruction(name, type_, opcode.strip(), operands, attributes.strip(" ,"), root)


def _tuple_elements(computation: Computation, instruction: Instruction) -> Iterator[Instruction]:
    """The instructions that `%loop#3` in an operand list refers to.

    A dump writes this form for what `as_text()` writes as a separate `get-tuple-element`.
    """
    for operand in instruction.operands:
        if "#" in operand and operand not in computation.instructions:
            whole, _, index = operand.rpartition("#")
            part = Instruction(operand, "", "get-tuple-element", (whole,), f"index={index}", False)
            yield from _tuple_elements(computation, part)  # the inner tuple of a nested tuple first
            if whole in computation.instructions:
                type_ = tuple_types(computation.instructions[whole].type)[int(index)]
                yield replace(part, type=type_)


def tuple_types(type_: str) -> list[str]:
    """The element types of a tuple type such as `(f32[8]{0}, (u32[], bf16[2,4]))`."""
    inside, depth, found = re.sub(r"/\*.*?\*/", "", type_)[1:-1], 0, [""]
    for letter in inside:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [element.strip() for element in found]


def _closing_parenthesis(text: str, start: int) -> int:
    """The position after the parenthesis that closes the one at `start`."""
    depth = 0
    for found in re.compile(r"[()]").finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    raise HloError(f"{text[:60]!r}: a parenthesis is not closed; give the whole text of the program")


def _operand_names(inside: str) -> tuple[str, ...]:
    """The names of the operands; older versions of XLA print each operand's type before its name."""
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
    """The bytes of one element of XLA's data type `dtype`: 2 for bf16, 1/2 for s4, 0 for a token.

    Raises an HloError if XLA has no such type.
    """
    if dtype in ("pred", "token", "opaque"):
        return dtype == "pred"
    bits = _BITS.match(dtype)
    if bits is None or bits[1] is None:
        raise HloError(f"{dtype!r} is not a data type of a compiled program")
    return int(bits[1]) / 8
