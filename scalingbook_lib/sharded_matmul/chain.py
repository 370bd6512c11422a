"""Which link of a chain binds when a matrix is far from the vectors it multiplies, and which should move?

x · A in chunks of A: out of a host or another slice, over ICI, out of HBM and VMEM, through the matrix unit,
every stage at work on another chunk. Bring A to x, or x to A and y back. Chapter: TPUs.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives, roofline
from scalingbook_lib.machines import Slice
from scalingbook_lib.units import BF16, INT8, Told, si

HOSTS, SPLIT, FAR, OTHER = "host memory", "HBM, split", "HBM of the farthest chip", "another slice"
FETCH, SEND = "bring A to x", "bring x to A"
OUT, IN = "PCIe out", "PCIe in"  # the two PCIe stages of a way between slices


@dataclass(frozen=True, slots=True)
class Chain(Told):
    """x[B, n] · A[n, n] on a slice, x in bf16 on the chip at the origin, where y is wanted; A in int8.

    Arrays that are split lie in equal parts on all chips or their hosts. Every chunk of A is a collective or
    a message of its own; spreading x is timed as an AllGather, which is what it costs but for one share.
    """

    slice: Slice
    n: int
    B: int
    lies: str
    plan: str
    chunks: int

    @property
    def matrix_bytes(self) -> float:
        """All of A."""
        return INT8.bytes * self.n**2

    @property
    def vector_bytes(self) -> float:
        """All of x, and as much for y."""
        return BF16.bytes * self.B * self.n

    @property
    def workers(self) -> int:
        """The chips that multiply: the one that has x, the one that has A, or all."""
        return 1 if self.plan == FETCH or self.lies == FAR else self.slice.chips

    @property
    def pipeline(self) -> roofline.Pipeline:
        """Every stage that a chunk of A passes, or the part of x that belongs to it."""
        crosses = (self.matrix_bytes if self.plan == FETCH else self.vector_bytes) / self.chunks
        parts = self.slice.chips if self.plan == FETCH else 1  # every chip takes in its part; x lies on one
        before: dict[str, float] = {}
        if self.lies == HOSTS:
            before = self._over(PCIe=self.matrix_bytes / self.chunks / self.slice.chips)
        if self.lies == OTHER:
            before = self._between(crosses, parts)
        return roofline.pipeline(before | {"ICI": self._within(crosses)} | self._worked(), self.chunks)

    @property
    def back_s(self) -> float:
        """The time in which y comes to the origin where it was not made there."""
        there = self._between(self.vector_bytes, self.slice.chips) if self.lies == OTHER else {}
        return 0.0 if self.plan == FETCH else sum(there.values()) + self._within(self.vector_bytes)

    @property
    def total_s(self) -> float:
        """The pipeline, and y's way back."""
        return self.pipeline.total_s + self.back_s

    def _over(self, **nbytes: float) -> dict[str, float]:
        return dict(roofline.ladder(0, nbytes, self.slice.chip).level_s)

    def _between(self, nbytes: float, parts: int) -> dict[str, float]:
        """From slice to slice: out of HBM by PCIe, over the network, and in by PCIe, in equal parts."""
        times = self._over(PCIe=nbytes / parts, DCN=nbytes / parts)
        return {OUT: times["PCIe"], "DCN": times["DCN"], IN: times["PCIe"]}

    def _within(self, nbytes: float) -> float:
        """Over ICI: from the farthest chip, or gathered from all."""
        if self.lies != FAR:
            return collectives.all_gather(nbytes, *self.slice.axes).total_s
        far = tuple(axis.diameter_hops for axis in self.slice.axes)
        return self.slice.route(far, (0,) * len(far)).message(nbytes).total_s

    def _worked(self) -> dict[str, float]:
        """A chunk of A out of HBM, out of VMEM where its rate is documented, and multiplied."""
        share = self.matrix_bytes / self.chunks / self.workers
        known = roofline.levels(self.slice.chip)
        flops = 2 * self.B * self.n**2 / self.chunks / self.workers
        one = roofline.ladder(flops, {lv: share for lv in ("HBM", "VMEM") if lv in known}, self.slice.chip)
        return dict(one.level_s) | {"MXU": one.math_s}

    def __str__(self) -> str:
        return f"{self.plan}: {si(self.total_s, 's')}, paced by {self.pipeline.slowest}"
