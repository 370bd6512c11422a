"""The parts of one line of an optimized HLO program.

`%name = type operation(%operands), attributes`: a value, how it is computed, and from what. Chapter:
Profiling.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from scalingbook_lib.evidence.compiled.layout import ArrayLayout, arrays
from scalingbook_lib.units import Result

_ASSIGN = re.compile(r"\s*(ROOT )?%?([\w.\-]+) = ")
# groups are written over mesh axes, as an iota [2,4]<=[8], or as explicit lists
_GROUPS = r"replica_groups=(?:mesh\[[^\]]*\] \{[^}]*\}|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?|\{[\d,{} ]*\})"
_PARTICIPANTS = re.compile(rf"{_GROUPS}|source_target_pairs=\{{[\d,{{}}]*\}}")
_CALLS = re.compile(r"\b(?:kind|calls|to_apply|condition|body|custom_call_target)=%?[^, ]+")
_SOURCE = re.compile(r'op_name="([^"]*)"')


@dataclass(frozen=True, slots=True)
class ProgramRecord(Result):
    """A line of a compiled program and its context.

    `mesh` has the sizes of the mesh axes (empty on one chip). `groups` are the device groups of a collective
    and `moves` the (source, target) pairs of a permute; devices are numbered along the mesh, the last axis
    fastest.
    """

    title: str
    program: str
    text: str
    mesh: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[tuple[int, ...], ...] = ()
    moves: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """The name of the value."""
        return self._assigned()[2]

    @property
    def root(self) -> bool:
        """Whether the value is the program's result."""
        return bool(self._assigned()[1])

    @property
    def type(self) -> str:
        """The type of the value, including layouts."""
        # a tuple's type contains spaces; any other type ends at the first space
        rest = self.text[self._assigned().end() :]
        return rest[: _closing(rest)] if rest.startswith("(") else rest[: rest.index(" ")]

    @property
    def arrays(self) -> tuple[ArrayLayout, ...]:
        """The arrays of its type: one, or those of a tuple."""
        return arrays(self.type)

    @property
    def operation(self) -> str:
        """The operation that computes the value, such as `fusion` or `all-gather`."""
        return self._definition()[0]

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of its operands."""
        return tuple(re.findall(r"%([\w.\-]+)", self._definition()[1]))

    @property
    def attributes(self) -> str:
        """The text after the operands."""
        return self._definition()[2]

    @property
    def participants(self) -> str:
        """The replica groups or source-target pairs as written, "" if there are none."""
        found = _PARTICIPANTS.search(self.attributes)
        return found[0] if found else ""

    @property
    def calls(self) -> tuple[str, ...]:
        """Its kind and the computations that it calls, as written."""
        return tuple(_CALLS.findall(self.attributes))

    @property
    def source(self) -> str:
        """The path in the JAX program that it comes from, "" for an operation that the compiler added."""
        found = _SOURCE.search(self.attributes)
        return found[1] if found else ""

    @property
    def devices(self) -> int:
        """The number of devices that run the program."""
        return math.prod(self.mesh.values())

    def _assigned(self) -> re.Match[str]:
        found = _ASSIGN.match(self.text)
        if found is None:
            raise ValueError(
                f"{self.text[:60]!r} is no line of HLO; write one as in %a = f32[8]{{0}} copy(%b)"
            )
        return found

    def _definition(self) -> tuple[str, str, str]:
        rest = self.text[self._assigned().end() + len(self.type) :].lstrip()
        operation, _, tail = rest.partition("(")
        end = _closing("(" + tail) - 1
        return operation, tail[: end - 1], tail[end:].lstrip(", ")

    def __str__(self) -> str:
        return f"{self.title}, of {self.program}: {self.text}"


def _closing(text: str) -> int:
    """The index after the parenthesis that closes the first one."""
    depth = 0  # nested parentheses have to be counted
    for found in re.finditer(r"[()]", text):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    raise ValueError(f"{text[:60]!r}: a parenthesis is not closed; give the whole line")
