"""The base class of compiled programs: the slice, the program, and its predictions.

Predictions are FLOPs per device, bytes received by kind of collective, and bytes held. All matmuls of the
plain program count, including masked pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from scalingbook_lab.compiler import aot, slices
from scalingbook_lib.collectives import bytes_received
from scalingbook_lib.machines import Chip, chips

type Moved = dict[str, float]  # bytes that a device receives, by collective and axes: "all-gather XC"

LETTERS = {"dp": "R", "fsdp": "X", "cp": "C", "tp": "Y"}  # letters of axes that have other names elsewhere


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
        """The chip that it is compiled for; a TPU7x device is half a chip."""
        known = slices.GENERATIONS[self.topology.partition(":")[0]]
        return chips.HALF_TPU7X if known is chips.TPU7X else known

    @property
    def chips(self) -> int:
        """The chips of its slice."""
        return prod(map(int, self.topology.partition(":")[2].split("x")))

    @property
    def devices(self) -> int:
        """The devices of its slice, as JAX counts them."""
        return self.chips * (2 if self.topology.startswith("tpu7x") else 1)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of its mesh axes."""
        raise NotImplementedError

    def compiled(self) -> aot.Program | Any:
        """Return the compiled program."""
        raise NotImplementedError

    def flops(self) -> float:
        """Predicted matmul FLOPs of one device."""
        raise NotImplementedError

    def moved(self) -> Moved:
        """Predicted bytes that a device receives."""
        raise NotImplementedError

    def held(self) -> float:
        """Predicted bytes that a device holds."""
        raise NotImplementedError


def over(kind: str, axes: str) -> str:
    """Return the key in `Moved` of a collective over mesh axes."""
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
    """Return the bytes summed over all axes, by kind of collective."""
    found: Moved = {}
    for key, nbytes in moved.items():
        kind = key.partition(" ")[0]
        found[kind] = found.get(kind, 0.0) + nbytes
    return found
