"""What is asked of every program: its slice, the program itself, and what is predicted of it.

A prediction is FLOPs of a device, the bytes that it receives by kind of collective, and the bytes that it
holds. All products that a plain program does are counted: pairs that a mask throws away, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from scalingbook_lib.collectives import bytes_received
from scalingbook_lib.lab.compiler import aot, slices
from scalingbook_lib.machines import Chip, chips

type Moved = dict[str, float]  # bytes that a device receives, by collective and axes: "all-gather XC"

LETTERS = {"dp": "R", "fsdp": "X", "cp": "C", "tp": "Y"}  # of axes with other names


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program for a slice."""

    name: str
    topology: str

    @property
    def phase(self) -> str:
        """ "train", "prefill" or "decode"."""
        return self.name.partition(":")[0].partition(" ")[0]

    @property
    def chip(self) -> Chip:
        """What it is compiled for; of a TPU7x a device is a half."""
        known = slices.GENERATIONS[self.topology.partition(":")[0]]
        return chips.HALF_TPU7X if known is chips.TPU7X else known

    @property
    def chips(self) -> int:
        """Those of its slice."""
        return prod(map(int, self.topology.partition(":")[2].split("x")))

    @property
    def devices(self) -> int:
        """As JAX counts them."""
        return self.chips * (2 if self.topology.startswith("tpu7x") else 1)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The axes of its mesh."""
        raise NotImplementedError

    def compiled(self) -> aot.Program | Any:
        """The program, compiled."""
        raise NotImplementedError

    def flops(self) -> float:
        """Of the products of one device."""
        raise NotImplementedError

    def moved(self) -> Moved:
        """What a device receives."""
        raise NotImplementedError

    def held(self) -> float:
        """Bytes of a device."""
        raise NotImplementedError


def over(kind: str, axes: str) -> str:
    """Of Moved, the name of a collective over axes, which are its mesh's."""
    names = axes.split(",") if "," in axes or axes in LETTERS else axes
    return f"{kind} {''.join(sorted(LETTERS.get(name, name) for name in names))}"


def summed(sums: Any, sizes: Mapping[str, int]) -> Moved:
    moved: Moved = {}
    for (kind, axes), amount in sums.items():
        n = prod(sizes[axis] for axis in axes)
        key = over(kind, axes)
        moved[key] = moved.get(key, 0.0) + bytes_received(kind, amount.nbytes, n)
    return moved


def by_kind(moved: Moved) -> Moved:
    """The same over all axes."""
    found: Moved = {}
    for key, nbytes in moved.items():
        kind = key.partition(" ")[0]
        found[kind] = found.get(kind, 0.0) + nbytes
    return found
