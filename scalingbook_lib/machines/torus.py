"""The torus that connects the chips of a slice: its axes, its wraparound links and the shapes that exist.

The module has the geometry only: a chip's rates are in `chip`, the slice as a machine in `slices`.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

type Shape = tuple[int, ...]


class SliceError(ValueError):
    """An error for a slice or a mesh that does not exist; the message names the nearest that do."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One torus axis as a collective sees it: `size` chips on a ring (wrapped) or on a line.

    `link_bytes_per_s` is one link in one direction.
    """

    size: int
    wrapped: bool
    link_bytes_per_s: float
    hop_s: float

    def __post_init__(self) -> None:
        if self.size < 1 or self.link_bytes_per_s <= 0 or self.hop_s < 0:
            raise ValueError(
                f"axis of {self.size} chips, {self.link_bytes_per_s} B/s per link, {self.hop_s} s per hop: "
                "write a size of at least 1, a positive rate and no negative time"
            )

    @property
    def bytes_per_s(self) -> float:
        """The bytes/s that one chip can receive along this axis (W): two links on a ring, one on a line."""
        return 2 * self.link_bytes_per_s if self.wrapped else self.link_bytes_per_s

    @property
    def diameter_hops(self) -> int:
        """The number of hops between the two chips that are farthest apart."""
        # on a ring, the farther half is closer in the other direction
        return self.size // 2 if self.wrapped else self.size - 1

    @property
    def mean_hops(self) -> float:
        """The mean distance in hops of two chips drawn at random (a chip may be drawn twice)."""
        n = self.size
        if not self.wrapped:
            return (n * n - 1) / (3 * n)  # Σ |i - j| over n² pairs
        return n / 4 if n % 2 == 0 else (n * n - 1) / (4 * n)  # Σ of min(d, n - d) over d, over n


@dataclass(frozen=True, kw_only=True)
class Torus:
    """The topology of one TPU generation: its pod, its small slices, its cubes and its wraparound rule.

    Slices exist in every shape of `small`; with cubes, also in every product of multiples of `cube` up to the
    pod's chips, in any order of the sides. With `wrap_at`, an axis closes into a ring only at that size (v5e
    and v6e: 16); with cubes, every axis of a slice of whole cubes does, because optical circuit switches
    connect them. Twisted tori are recognized (`twistable`) but not modeled.
    """

    dims: int
    pod_chips: int
    small: tuple[Shape, ...]
    cube: int = 0
    max_axis: int = 256
    wrap_at: int = 0

    def wraps(self, size: int) -> bool:
        """Whether an axis of that size is a ring, in a slice large enough to have rings at all."""
        # v5e and v6e close an axis only at its full length; optical circuit switches close cubes at any
        # multiple
        return size == self.wrap_at if self.wrap_at else self.cube > 0 and size % self.cube == 0

    def wrapped_axes(self, shape: Shape) -> tuple[bool, ...]:
        """For each axis of a slice, whether it is a ring: with cubes, either all axes wrap or none does."""
        if self.cube:
            # a slice within one cube does not reach the optical circuit switches
            return (self._of_cubes(shape),) * len(shape)
        return tuple(self.wraps(size) for size in shape)

    def twistable(self, shape: Shape) -> bool:
        """Whether the shape is also offered as a twisted torus: k x k x 2k or k x 2k x 2k, of whole cubes."""
        a, _, c = sides = sorted(shape) if len(shape) == 3 else [0, 0, 0]
        return a > 0 and c == 2 * a and set(sides) == {a, c} and self._of_cubes(shape)

    def exists(self, shape: Shape) -> bool:
        """Whether a slice of that shape is offered."""
        if len(shape) != self.dims or min(shape) < 1:
            return False
        fits = math.prod(shape) <= self.pod_chips and max(shape) <= self.max_axis
        return sorted(shape) in map(sorted, self.small) or (self._of_cubes(shape) and fits)

    def shapes(self) -> Iterator[Shape]:
        """Every shape that exists, once each: the small ones, then those of cubes."""
        yield from self.small
        if self.cube:
            # optical circuit switches connect whole cubes (jouppi2023tpuv4)
            sides = range(self.cube, self.max_axis + 1, self.cube)
            for shape in itertools.product(*[sides] * (self.dims - 1)):
                room = self.pod_chips // math.prod(shape)  # chips left for the last side
                last = range(shape[-1], min(room, self.max_axis) + 1, self.cube)
                yield from ((*shape, side) for side in last if list(shape) == sorted(shape))

    def _of_cubes(self, shape: Shape) -> bool:
        return self.cube > 0 and all(size % self.cube == 0 for size in shape)

    def nearest(self, shape: Shape, count: int = 3) -> tuple[Shape, ...]:
        """The `count` existing shapes closest to this one.

        They are ordered by the log-ratios of their sides, then by their chips.
        """
        rank = max(self.dims, len(shape))
        wanted = [1] * (rank - len(shape)) + sorted(max(size, 1) for size in shape)

        def distance(other: Shape) -> tuple[float, float]:
            sides = zip(wanted, [1] * (rank - self.dims) + sorted(other), strict=True)
            octaves = [math.log2(a / b) for a, b in sides]  # twice as long is as far off as half
            return round(sum(map(abs, octaves)), 9), abs(sum(octaves))

        return tuple(sorted(self.shapes(), key=distance)[:count])


def read_shape(text: str) -> Shape:
    """The sides of a written shape, '4x4x8' as (4, 4, 8). Raises a SliceError if it is not a shape."""
    try:
        return tuple(int(side) for side in text.lower().replace("×", "x").split("x"))
    except ValueError:
        raise SliceError(f"{text[:40]!r} is not a slice shape; write one as in 4x8 or 4x4x4") from None


def write_shape(shape: Shape) -> str:
    """The shape as text, (4, 4, 8) as '4x4x8'."""
    return "x".join(map(str, shape))
