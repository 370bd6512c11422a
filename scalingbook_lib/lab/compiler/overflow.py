"""What did not fit, into which memory, and by how much?

XLA reports an overflow as a RESOURCE_EXHAUSTED error with pages of text; here it is an error with figures.
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
    """One of the buffers that asked for room."""

    nbytes: int
    what: str

    def __str__(self) -> str:
        return f"{binary(self.nbytes)} for {self.what}"


class DoesNotFit(RuntimeError):
    """A program that needs more of a memory than the chip has; `memory` is 'HBM' or 'VMEM'.

    `largest`: the largest buffers, where the compiler lists them; `arguments`: the program's arguments,
    where it does not. `kind`: what the memory is for in its words ('HLO temporaries'). `said`: the
    compiler's own words, where one kernel asked for more of VMEM than a kernel may have.
    """

    def __init__(
        self,
        memory: str,
        used_bytes: int,
        limit_bytes: int,
        largest: tuple[Allocation, ...] = (),
        said: str = "",
        *,
        kind: str = "",
        arguments: tuple[Allocation, ...] = (),
    ):
        super().__init__(memory, used_bytes, limit_bytes, largest, said)
        self.memory, self.used_bytes, self.limit_bytes = memory, used_bytes, limit_bytes
        self.largest, self.said, self.kind, self.arguments = largest, said, kind, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        """All of it goes to another process, also what is told by name."""
        return partial(DoesNotFit, kind=self.kind, arguments=self.arguments), self.args

    def asked_for(self, arguments: tuple[Allocation, ...]) -> "DoesNotFit":
        """The same error, with the program's arguments where the compiler lists nothing itself."""
        shown = arguments if self.memory == "HBM" and not self.largest else ()
        return DoesNotFit(
            self.memory,
            self.used_bytes,
            self.limit_bytes,
            self.largest,
            self.said,
            kind=self.kind,
            arguments=shown,
        )

    def __str__(self) -> str:
        if self.said:
            return (
                f"one kernel needs {binary(self.used_bytes)} of {self.memory} at once and may have "
                f"{binary(self.limit_bytes)}; use smaller tiles, or allow it more with vmem_limit_bytes"
            )
        smaller = {"HBM": "make the arrays smaller, or split them over more chips"}
        instead = smaller.get(self.memory, "use smaller tiles")
        use = f" for {self.kind}" if self.kind else ""
        return (
            f"the program needs {binary(self.used_bytes)} of {self.memory}{use} and a chip has "
            f"{binary(self.limit_bytes)}{self._parts()}; {instead}"
        )

    def _parts(self) -> str:
        """The largest buffers, or what the arguments take: the rest is what the program computes."""
        if self.largest:
            return f"; the largest: {'; '.join(map(str, self.largest[:3]))}"
        if not self.arguments:
            return ""
        total = binary(sum(each.nbytes for each in self.arguments))
        return f"; its arguments take {total} ({_listed(self.arguments)}), results and temporaries the rest"


def read(message: str) -> DoesNotFit | None:
    """The overflow that an error of the compiler speaks of; None where it speaks of something else."""
    if "RESOURCE_EXHAUSTED" not in message:
        return None
    found = next(filter(None, (form.search(message) for form in _FORMS)), None)
    if found is None:
        return None
    if found.re is _KERNEL:
        return DoesNotFit(
            found["memory"].upper(), _bytes(found["used"]), _bytes(found["limit"]), said=found["said"]
        )
    buffers = _ALLOCATION.findall(message)
    if found.re is _ONE_BUFFER:
        buffers = [(found["used"], found["rest"])]
    largest = tuple(_allocation(size, rest) for size, rest in buffers)
    kind = found.groupdict().get("kind") or ""
    return DoesNotFit(
        found["memory"].upper(), _bytes(found["used"]), _bytes(found["limit"]), largest, kind=kind
    )


def _listed(arguments: tuple[Allocation, ...], most: int = 3) -> str:
    """The first of them, and how many more there are."""
    named = "; ".join(f"{binary(each.nbytes)} for {each.what}" for each in arguments[:most])
    more = len(arguments) - most
    return f"{named}; {more} smaller" if more > 0 else named


def _allocation(size: str, rest: str) -> Allocation:
    """A buffer by its shape, a window's own where there is one, and the first sentence on what it is for."""
    shape = re.search(r"window shape is (\S+\])", rest) or re.search(r"[Ss]hape(?::| =) '?(\S+?\])", rest)
    what = re.search(r"[Tt]ag(?::| =) '?([^\n']*?)(?:\.\s|'|$)", rest, re.M)
    what = what or re.search(r"XLA label: (.*)$", rest, re.M)
    words = what[1].strip() if what else "a buffer"
    return Allocation(_bytes(size), f"{shape[1]}, {words}" if shape else words)


def _bytes(text: str) -> int:
    return round(float(text.rstrip("KMGT")) * _SUFFIX[text.lstrip("0123456789.")])
