"""Reads XLA's out-of-memory errors: which memory, how many bytes are needed, and how many there are.

XLA reports them as RESOURCE_EXHAUSTED with pages of text; `read` turns that into a DoesNotFit with numbers.
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from scalingbook_lib.units import binary

# XLA prints sizes as 15.75G, in powers of two. Nothing but the text of the error says what was asked for and
# how much there is; each of the forms that libtpu has for HBM and VMEM is one of the patterns.
_SUFFIX = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# "Ran out of memory in memory space hbm. Used 20.1G of 15.75G hbm", with a list of the largest buffers
_SPACE = re.compile(
    r"memory in memory space (?P<memory>\w+).*?Used (?P<used>[\d.]+[KMGT]?) of (?P<limit>[\d.]+[KMGT]?)", re.S
)
# the sum of arguments and temporaries is too much, though each of them would fit
_TOTAL = re.compile(
    r"memory on (?P<memory>\w+).*?required for (?P<kind>[\w ]+?) \((?P<used>[\d.]+[KMGT]?)\) exceeds "
    r"available \w+ \((?P<limit>[\d.]+[KMGT]?)\)",
    re.S,
)
# one buffer alone is larger than the memory: XLA gives up before it has allocated anything
_ONE_BUFFER = re.compile(
    r"Allocation \(size=(?P<used>\d+)\) would exceed memory \(size=(?P<limit>\d+)\)"
    r"(?P<rest>.*?space=(?P<memory>\w+).*?tag = '[^']*')",
    re.S,
)
# a kernel written by hand has 16 MiB of VMEM unless it asks for more by `vmem_limit_bytes`
_KERNEL = re.compile(
    r"memory in memory space (?P<memory>\w+) .*?(?P<said>Scoped allocation with size (?P<used>[\d.]+[KMGT]?) "
    r"and limit (?P<limit>[\d.]+[KMGT]?) exceeded scoped vmem limit by [\d.]+[KMGT]?)\.",
    re.S,
)
_FORMS = (_SPACE, _TOTAL, _ONE_BUFFER, _KERNEL)
_ALLOCATION = re.compile(r"Size: (?P<size>[\d.]+[KMGT]?)B?\s*$(?P<rest>.*?)(?=^\s*={5,}|\Z)", re.S | re.M)


@dataclass(frozen=True, slots=True)
class Allocation:
    """A buffer that needs memory: its size in bytes, and what it is for."""

    nbytes: int
    purpose: str

    def __str__(self) -> str:
        return f"{binary(self.nbytes)} for {self.purpose}"


class DoesNotFit(RuntimeError):
    """A program that needs more of a memory than the chip has; `memory` is 'HBM' or 'VMEM'.

    `largest`: the largest buffers, where the compiler lists them; `arguments`: the program's arguments, where
    it does not. `kind`: what the memory is for in the compiler's words ('HLO temporaries'). `scoped_vmem`:
    the compiler's own sentence, where one kernel asked for more VMEM than a kernel may have.
    """

    def __init__(
        self,
        memory: str,
        used_bytes: int,
        limit_bytes: int,
        largest: tuple[Allocation, ...] = (),
        scoped_vmem: str = "",
        *,
        kind: str = "",
        arguments: tuple[Allocation, ...] = (),
    ):
        super().__init__(memory, used_bytes, limit_bytes, largest, scoped_vmem)
        self.memory, self.used_bytes, self.limit_bytes = memory, used_bytes, limit_bytes
        self.largest, self.scoped_vmem, self.kind, self.arguments = largest, scoped_vmem, kind, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles every field: the default would lose the keyword-only ones."""
        return partial(DoesNotFit, kind=self.kind, arguments=self.arguments), self.args

    def with_arguments(self, arguments: tuple[Allocation, ...]) -> "DoesNotFit":
        """The same error, with the program's arguments where the compiler lists no buffers itself."""
        shown = arguments if self.memory == "HBM" and not self.largest else ()
        return DoesNotFit(
            self.memory,
            self.used_bytes,
            self.limit_bytes,
            self.largest,
            self.scoped_vmem,
            kind=self.kind,
            arguments=shown,
        )

    def __str__(self) -> str:
        if self.scoped_vmem:
            return (
                f"one kernel needs {binary(self.used_bytes)} of {self.memory} at once and may have "
                f"{binary(self.limit_bytes)}; use smaller tiles, or allow it more with vmem_limit_bytes"
            )
        remedies = {"HBM": "make the arrays smaller, or split them over more chips"}
        remedy = remedies.get(self.memory, "use smaller tiles")
        kind_note = f" for {self.kind}" if self.kind else ""
        return (
            f"the program needs {binary(self.used_bytes)} of {self.memory}{kind_note} and a chip has "
            f"{binary(self.limit_bytes)}{self._parts()}; {remedy}"
        )

    def _parts(self) -> str:
        """The largest buffers, or the arguments: the rest of the memory is for results and temporaries."""
        if self.largest:
            return f"; the largest: {'; '.join(map(str, self.largest[:3]))}"
        if not self.arguments:
            return ""
        total = binary(sum(each.nbytes for each in self.arguments))
        return f"; its arguments take {total} ({_listed(self.arguments)}), results and temporaries the rest"


def read(message: str) -> DoesNotFit | None:
    """The error that a compiler's message describes; None where the message is about something else."""
    if "RESOURCE_EXHAUSTED" not in message:
        return None
    found = next(filter(None, (form.search(message) for form in _FORMS)), None)
    if found is None:
        return None
    if found.re is _KERNEL:
        return DoesNotFit(
            found["memory"].upper(), _bytes(found["used"]), _bytes(found["limit"]), scoped_vmem=found["said"]
        )
    buffers = _ALLOCATION.findall(message)
    if found.re is _ONE_BUFFER:
        buffers = [(found["used"], found["rest"])]
    largest = tuple(_allocation(size, rest) for size, rest in buffers)
    kind = found.groupdict().get("kind") or ""
    return DoesNotFit(
        found["memory"].upper(), _bytes(found["used"]), _bytes(found["limit"]), largest, kind=kind
    )


def _listed(arguments: tuple[Allocation, ...], limit: int = 3) -> str:
    """The first `most` of the arguments, and the number of the others."""
    listed = "; ".join(f"{binary(each.nbytes)} for {each.purpose}" for each in arguments[:limit])
    others = len(arguments) - limit
    return f"{listed}; {others} smaller" if others > 0 else listed


def _allocation(size: str, rest: str) -> Allocation:
    """A buffer by its shape (its window's, where it has one) and the first sentence on what it is for."""
    shape = re.search(r"window shape is (\S+\])", rest) or re.search(r"[Ss]hape(?::| =) '?(\S+?\])", rest)
    purpose = re.search(r"[Tt]ag(?::| =) '?([^\n']*?)(?:\.\s|'|$)", rest, re.M)
    purpose = purpose or re.search(r"XLA label: (.*)$", rest, re.M)
    purpose = purpose[1].strip() if purpose else "a buffer"
    return Allocation(_bytes(size), f"{shape[1]}, {purpose}" if shape else purpose)


def _bytes(text: str) -> int:
    """The bytes of a size as XLA prints it: '15.75G', in powers of two."""
    return round(float(text.rstrip("KMGT")) * _SUFFIX[text.lstrip("0123456789.")])
