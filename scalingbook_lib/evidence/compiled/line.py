"""What does one line of an optimized HLO program say? Its parts, each as it stands there.

`%name = type operation(%operands), attributes`: a value, how it is made, from what. Chapter: Profiling.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from scalingbook_lib.evidence.compiled.layout import ArrayLayout, arrays
from scalingbook_lib.units import Result

_ASSIGN = re.compile(r"\s*(ROOT )?%?([\w.\-]+) = ")
# groups are written in three ways: over mesh axes, as [2,4]<=[8], or one after the other
_GROUPS = r"replica_groups=(?:mesh\[[^\]]*\] \{[^}]*\}|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?|\{[\d,{} ]*\})"
_WHO = re.compile(rf"{_GROUPS}|source_target_pairs=\{{[\d,{{}}]*\}}")
_CALLS = re.compile(r"\b(?:kind|calls|to_apply|condition|body|custom_call_target)=%?[^, ]+")
_SOURCE = re.compile(r'op_name="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Line(Result):
    """A line of a compiled program and where it stood.

    `mesh` has the sizes of the axes (empty on one chip); `groups` are the devices that talk to each other,
    `moves` who sends to whom, both as numbers along the mesh, the last axis fastest.
    """

    title: str
    program: str
    text: str
    mesh: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[tuple[int, ...], ...] = ()
    moves: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """What other lines call the value."""
        return self._assigned()[2]

    @property
    def root(self) -> bool:
        """Whether it is what the program hands back."""
        return bool(self._assigned()[1])

    @property
    def type(self) -> str:
        """The type of the value, layouts included."""
        # the type of a tuple has blanks in it; any other ends at the first one
        rest = self.text[self._assigned().end() :]
        return rest[: _closing(rest)] if rest.startswith("(") else rest[: rest.index(" ")]

    @property
    def arrays(self) -> tuple[ArrayLayout, ...]:
        """The arrays of its type: one, or those of a tuple."""
        return arrays(self.type)

    @property
    def operation(self) -> str:
        """What makes the value: `fusion`, `all-gather`."""
        return self._made()[0]

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the values that it is made from."""
        return tuple(re.findall(r"%([\w.\-]+)", self._made()[1]))

    @property
    def attributes(self) -> str:
        """What stands behind the operands."""
        return self._made()[2]

    @property
    def who(self) -> str:
        """Who talks to whom, as written; empty where nobody does."""
        found = _WHO.search(self.attributes)
        return found[0] if found else ""

    @property
    def calls(self) -> tuple[str, ...]:
        """Its kind and the computations that it calls, as written."""
        return tuple(_CALLS.findall(self.attributes))

    @property
    def source(self) -> str:
        """The path in the JAX program that it comes from; empty where the compiler made it up."""
        found = _SOURCE.search(self.attributes)
        return found[1] if found else ""

    @property
    def devices(self) -> int:
        """The chips that run the program."""
        return math.prod(self.mesh.values())

    def _assigned(self) -> re.Match[str]:
        found = _ASSIGN.match(self.text)
        if found is None:
            raise ValueError(
                f"{self.text[:60]!r} is no line of HLO; write one as in %a = f32[8]{{0}} copy(%b)"
            )
        return found

    def _made(self) -> tuple[str, str, str]:
        rest = self.text[self._assigned().end() + len(self.type) :].lstrip()
        operation, _, tail = rest.partition("(")
        end = _closing("(" + tail) - 1
        return operation, tail[: end - 1], tail[end:].lstrip(", ")

    def __str__(self) -> str:
        return f"{self.title}, of {self.program}: {self.text}"


def _closing(text: str) -> int:
    """One past the parenthesis that closes the first one."""
    depth = 0  # operands and layouts have parentheses of their own: counted, not searched
    for found in re.finditer(r"[()]", text):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    raise ValueError(f"{text[:60]!r}: a parenthesis is not closed; give the whole line")
