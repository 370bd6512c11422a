"""Reads the TPU's instruction bundles (LLO) from the files that the compiler dumps.

A TPU core issues one bundle per cycle, with slots for each of its units. The program is counted as written:
the bundles of a loop's body count once.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from scalingbook_lib.units import Result, percent

BUNDLES = re.compile(r"^\d+-(.+?)-\d+-final_bundles\.txt$")
UTILIZATION = re.compile(r"^\d+-(.+?)-\d+-final_hlo-static-per-bundle-utilization\.txt$")
RUNTIME = ("<late-initialization>", "<late-finalization>", "TLP")  # kernels that surround every program
# A bundle's line begins with its address in hexadecimal, and optionally two letters that mark a loop.
_BUNDLE = re.compile(r"^\s*(?:0x[0-9a-f]+|0)\s+(?:[A-Z]{2})?\s*:")


@dataclass(frozen=True)
class Bundles(Result):
    """A kernel's bundles: their text, the slots that one bundle has, and how many of them each bundle uses.

    `source` is the path of scopes that the kernel comes from, if it is known.
    """

    kernel: str
    slots: tuple[str, ...]
    capacity: tuple[int, ...]
    used: tuple[tuple[int, ...], ...] = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)
    source: str = ""

    def containing(self, instruction: str) -> tuple[str, ...]:
        """The bundles that contain an instruction: `containing("vmatmul")`."""
        return tuple(line for line in self.lines if instruction in line)

    def utilization(self, slot: str) -> float:
        """The fraction of a unit's slots that are used, over all bundles.

        Raises a ValueError for an unknown slot.
        """
        k = self._index(slot)
        return sum(row[k] for row in self.used) / (self.capacity[k] * len(self.used) or 1)

    def idle(self, slot: str) -> int:
        """The number of bundles in which a unit is idle. Raises a ValueError for an unknown slot."""
        return sum(not row[self._index(slot)] for row in self.used)

    def _index(self, slot: str) -> int:
        if slot not in self.slots:
            raise ValueError(f"no unit {slot!r}; the slots are {', '.join(self.slots)}")
        return self.slots.index(slot)

    def __str__(self) -> str:
        used = {slot: share for slot in self.slots if (share := self.utilization(slot))}
        units = ", ".join(f"{slot} {percent(share)}" for slot, share in used.items())
        return f"{self.kernel}: {len(self.used):,} bundles; slots used: {units}"


def read(folder: Path) -> tuple[Bundles, ...]:
    """The kernels whose bundles a compiler dumped into a folder, in the order in which it wrote them."""
    uses = {m[1]: path for path in folder.iterdir() if (m := UTILIZATION.match(path.name))}
    texts = {m[1]: path for path in sorted(folder.iterdir()) if (m := BUNDLES.match(path.name))}
    kernels = (k for k in texts if k in uses and k not in RUNTIME)
    return tuple(_kernel(name, texts[name].read_text(), uses[name].read_text()) for name in kernels)


def _kernel(name: str, text: str, use: str) -> Bundles:
    # the file has a title, the slots' names, how many of each a bundle has, a title, and a row per bundle
    _, slots, capacity, _, *rows = use.strip().splitlines()
    return Bundles(
        name,
        tuple(slot.strip() for slot in slots.split(",")),
        tuple(map(int, capacity.split())),
        tuple(tuple(map(int, row.split())) for row in rows),
        # without comments and source locations
        tuple(
            re.sub(r"\s*/\*.*?(\*/|$)", "", line).rstrip()
            for line in text.splitlines()
            if _BUNDLE.match(line)
        ),
    )
