"""TPU slices, their tori and bandwidths, and the mesh axes laid over them.

A slice is an available torus of chips; a mesh names products of its axes. Chapters: TPUs; Sharding.

>>> from scalingbook_lib.machines import chips
>>> print(Slice.of(chips.V5P, "4x4x8"))
TPU v5p 4x4x8: 128 chips on 32 hosts; rings of 4, 4 and 8; bisection bandwidth 3.2 TB/s in each direction
"""

import itertools
import math
from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.machines.machine import ChipGroup, MachineMesh
from scalingbook_lib.machines.routes import Route
from scalingbook_lib.machines.torus import Axis, Shape, SliceError, read_shape, write_shape
from scalingbook_lib.units import si
from scalingbook_lib.words import join_and, pluralize


@dataclass(frozen=True)
class Slice(ChipGroup):
    """Chips connected as a torus, such as TPU v5p in 4x4x8.

    Raises a SliceError for a shape that is not offered.
    """

    chip: Chip
    shape: Shape

    @classmethod
    def of(cls, chip: Chip, shape: str) -> "Slice":
        """The slice of a written shape, as in `Slice.of(chips.V5P, "4x4x8")`."""
        return cls(chip, read_shape(shape))

    def __post_init__(self) -> None:
        torus = self.chip.topology()
        if not torus.exists(self.shape):
            read, near = write_shape(self.shape), ", ".join(map(write_shape, torus.nearest(self.shape)))
            raise SliceError(f"{self.chip.name} is not offered as {read}; the nearest slices are {near}")

    @property
    def name(self) -> str:
        """The name, as in 'TPU v5p 4x4x8'."""
        return f"{self.chip.name} {write_shape(self.shape)}"

    @property
    def chips(self) -> int:  # type: ignore[override]  # the shape says how many
        """The number of chips."""
        return math.prod(self.shape)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The torus axes, in the order of the shape."""
        wraps = self.chip.topology().wrapped_axes(self.shape)
        return tuple(self.chip.axis(n, wrapped=w) for n, w in zip(self.shape, wraps, strict=True))

    @property
    def links(self) -> int:
        """The number of cables; each connects two chips and carries `link_bytes_per_s` in each direction."""
        # chips / n lines run along an axis of n; closing one into a ring takes one more cable
        return sum(self.chips // a.size * (a.size if a.wrapped else a.size - 1) for a in self.axes)

    @property
    def diameter_hops(self) -> int:
        """The number of hops between the two chips farthest apart."""
        return sum(a.diameter_hops for a in self.axes)  # axes are crossed one after the other

    @property
    def mean_hops(self) -> float:
        """The mean distance in hops of two chips drawn at random."""
        return sum(a.mean_hops for a in self.axes)  # coordinates are drawn independently

    @property
    def bisection_bytes_per_s(self) -> float:
        """The bisection bandwidth in one direction, in bytes/s; inf for one chip."""
        # cutting an axis cuts each of its lines once, and a ring at a second place too: W of the axis
        cuts = [self.chips // a.size * a.bytes_per_s for a in self.axes if a.size > 1]
        return min(cuts, default=math.inf)  # one chip has no cut

    def route(self, source: tuple[int, ...], target: tuple[int, ...]) -> Route:
        """The shortest paths between two chips, as in `slice.route((0, 0), (3, 3))`."""
        return Route.between(self.axes, source, target)

    def mesh(self, **sizes: int) -> "SliceMesh":
        """The slice with named mesh axes, each a product of whole torus axes: `slice.mesh(X=4, Y=16)`."""
        return SliceMesh(self, tuple(sizes.items()))

    def __str__(self) -> str:
        sizes = [str(axis.size) for axis in self.axes if axis.wrapped]
        rings = f"ring{'s' * (len(sizes) > 1)} of {join_and(sizes)}" if sizes else "no axis wraps"
        chips, hosts = pluralize(self.chips, "chip"), pluralize(self.hosts, "host")
        cut = f"; bisection bandwidth {si(self.bisection_bytes_per_s, 'B/s')} in each direction"
        return f"{self.name}: {chips} on {hosts}; {rings}{cut * (self.chips > 1)}"


class SliceMesh(MachineMesh[Axis]):
    """Mesh axes laid over a slice; each is a product of whole torus axes."""

    machine: Slice
    refused = SliceError

    def _lay(self) -> dict[str, tuple[Axis, ...]]:
        """The first assignment, in the order of the torus, of each torus axis to one mesh axis."""
        if not self.named or min(size for _, size in self.named) < 1:
            raise SliceError("a mesh needs at least one axis, of at least one chip, as in mesh(X=4, Y=16)")
        # all assignments are tried: a torus has at most three axes, and a mesh only a few more
        torus = [a for a in self.machine.axes if a.size > 1]
        asked = self.sizes
        for owners in itertools.product(asked, repeat=len(torus)):
            given = dict.fromkeys(asked, 1)
            for owner, axis in zip(owners, torus, strict=True):
                given[owner] *= axis.size
            if given == asked:
                pairs = list(zip(owners, torus, strict=True))
                return {name: tuple(axis for owner, axis in pairs if owner == name) for name in asked}
        raise SliceError(
            f"a mesh of {self._wanted()} does not fit {self.machine.name}: each mesh axis is a product of "
            f"whole torus axes ({', '.join(str(a.size) for a in torus)}), and all {self.machine.chips} chips "
            "are used"
        )

    def axes(self, names: str) -> tuple[Axis, ...]:
        """The torus axes under these mesh axes, as in `axes("XY")`."""
        return tuple(itertools.chain.from_iterable(self._laid[name] for name in self._known(names)))

    def bytes_per_s(self, names: str) -> float:
        """The bytes/s that one chip can receive along all torus axes of these mesh axes at once.

        Links of different axes are different wires, so their rates add.
        """
        return sum(a.bytes_per_s for a in self.axes(names))
