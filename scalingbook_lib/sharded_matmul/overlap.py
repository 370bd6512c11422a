"""How do products and moves overlap, chunk by chunk: on a ring, and along a chain of memories and links?

A collective matmul on a ring multiplies one chunk while the next is on its way: every chip multiplies what
it has and passes it on to its neighbor, so that no AllGather has to end before the product begins. Source:
Wang et al., "Overlap Communication with Dependent Computation via Decomposition" (ASPLOS 2023).

Along a chain, x · A in chunks of A: out of a host or another slice, over ICI, out of HBM and VMEM, through
the matrix unit, every stage at work on another chunk. Which link binds, and which should move: bring A to
x, or x to A and y back? Chapters: TPUs, Profiling, Programming in JAX.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives, roofline
from scalingbook_lib.machines import Axis, Chip, Slice
from scalingbook_lib.roofline import ChunkTurn
from scalingbook_lib.units import BF16, INT8, Result, si

UNIT, LINK, BACK = "matrix unit", "link", "link back"  # the stages of a `ChunkTurn`


@dataclass(frozen=True, slots=True)
class OverlapRun(Result):
    """What one chip and its links do, turn by turn."""

    turns: tuple[ChunkTurn, ...]

    @property
    def total_s(self) -> float:
        """When the last turn ends."""
        return max(turn.end_s for turn in self.turns)

    @property
    def math_s(self) -> float:
        """The time in which the chip computes."""
        return sum(turn.end_s - turn.start_s for turn in self.turns if turn.stage == UNIT)

    @property
    def comms_s(self) -> float:
        """When the last link falls silent: links never wait."""
        return max(turn.end_s for turn in self.turns if turn.stage != UNIT)

    @property
    def exposed_s(self) -> float:
        """The time in which the chip waits: communication that nothing hides."""
        return self.total_s - self.math_s

    def __str__(self) -> str:
        return f"{si(self.total_s, 's')}, of which the chip waits {si(self.exposed_s, 's')}"


@dataclass(frozen=True, kw_only=True)
class RingMatmul(Result):
    """In[B, D], 1/n of it on each of n chips, times the F columns of W that a chip has: n chunks in n steps.

    With `scatter` its mirror image in time, Tmp · W -> Out[B, D]: sums move on, and each step adds to one.
    In every step a chunk goes to the next chip; over two `links` one half of it, and the other half back.
    """

    B: float
    D: float
    F: float
    axis: Axis
    chip: Chip
    links: int = 1
    scatter: bool = False

    @property
    def n(self) -> int:
        """The chips of the ring."""
        return self.axis.size

    @property
    def product_s(self) -> float:
        """The arithmetic of one chunk, at the documented peak."""
        return 2 * self.B * self.D * self.F / self.chip.bf16_flops_per_s / self.n  # 2 FLOPs a term

    @property
    def move_s(self) -> float:
        """One chunk to the neighbor, in halves over two links: its bytes, and the hop."""
        chunk_bytes = BF16.bytes * self.B * self.D / self.n  # each chip has 1/n of In
        return chunk_bytes / (self.links * self.axis.link_bytes_per_s) + self.axis.hop_s

    @property
    def step_s(self) -> float:
        """A product and a move at once: the longer of the two."""
        return max(self.product_s, self.move_s)  # the unit and the links work side by side

    @property
    def total_s(self) -> float:
        """n products and n - 1 moves, of which one product has no move beside it."""
        return self.product_s + (self.n - 1) * self.step_s  # the chip's own chunk is there at once

    @property
    def serial_s(self) -> float:
        """All of the moves, and then all of the arithmetic, or the other way round."""
        return self.n * self.product_s + (self.n - 1) * self.move_s

    @property
    def ratio(self) -> float:
        """C/W: FLOPs that take as long as a byte over the links in use."""
        # 2 B D F / (n C) = 2 B D / (n W) gives F = C/W
        return self.chip.bf16_flops_per_s / (self.links * self.axis.link_bytes_per_s)

    @property
    def hidden_from(self) -> float:
        """The F of a chip from which on a product takes as long as a move: C/W, and the hop's own delay."""
        # a product grows with F, a move does not
        return self.F * self.move_s / self.product_s

    def chunks(self, device: int, step: int) -> tuple[int, ...]:
        """Which chunk a device multiplies in a step, or of whom it adds to; one for each way in use.

        The first way, and the only one of one, goes to the next device: chunks come from the one before, and
        sums end where they belong.
        """
        away = step + 1 if self.scatter else step
        return tuple(way % self.n for way in (device - away, device + away)[: self.links])

    def in_steps(self) -> OverlapRun:
        """Products and moves keep step; the product without a move is the last, or for sums the first."""
        steps = [k * self.step_s for k in range(self.n)]
        # a sum leaves when its product is added, a chunk at once
        moves = [self.product_s + at for at in steps] if self.scatter else steps
        products = [0.0, *moves] if self.scatter else steps
        timed = [(LINK, moves[:-1], self.move_s), (UNIT, products[: self.n], self.product_s)]
        return OverlapRun(
            tuple(ChunkTurn(name, k, at, at + t) for name, starts, t in timed for k, at in enumerate(starts))
        )

    def as_they_come(self, sides: int) -> OverlapRun:
        """Whole chunks, from one side or in turn from both, each multiplied once there; its own first."""
        turns, free = [ChunkTurn(UNIT, 0, 0.0, self.product_s)], self.product_s
        for k in range(1, self.n):
            hop, side = divmod(k - 1, sides)
            came = (hop + 1) * self.move_s  # chunk k comes over k hops, two sides halve them
            start = max(free, came)  # the unit may be busy still, or the chunk on its way
            free = start + self.product_s
            turns += [
                ChunkTurn((LINK, BACK)[side], k, hop * self.move_s, came),
                ChunkTurn(UNIT, k, start, free),
            ]
        return OverlapRun(tuple(turns))

    def gathered_first(self) -> OverlapRun:
        """The whole AllGather, both ways round the ring, and only then the product."""
        moved = collectives.all_gather(BF16.bytes * self.B * self.D, self.axis).total_s
        turns = [ChunkTurn(link, 0, 0.0, moved) for link in (LINK, BACK)]
        return OverlapRun((*turns, ChunkTurn(UNIT, 0, moved, moved + self.n * self.product_s)))

    def __str__(self) -> str:
        total, serial = si(self.total_s, "s"), si(self.serial_s, "s")
        return f"{self.n} chunks on a ring: {total}, one after the other {serial}"


HOSTS, SPLIT, FAR, OTHER = "host memory", "HBM, split", "HBM of the farthest chip", "another slice"
FETCH, SEND = "bring A to x", "bring x to A"
OUT, IN = "PCIe out", "PCIe in"  # the two PCIe stages of a way between slices


@dataclass(frozen=True, slots=True)
class MatvecChain(Result):
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
    def pipeline(self) -> roofline.CopyPipeline:
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
        # the chip that is farthest along every axis
        far = tuple(axis.diameter_hops for axis in self.slice.axes)
        return self.slice.route(far, (0,) * len(far)).message(nbytes).total_s

    def _worked(self) -> dict[str, float]:
        """A chunk of A out of HBM, out of VMEM where its rate is documented, and multiplied."""
        share = self.matrix_bytes / self.chunks / self.workers  # one chip's part of a chunk of A
        known = roofline.levels(self.slice.chip)
        flops = 2 * self.B * self.n**2 / self.chunks / self.workers
        one = roofline.ladder(flops, {lv: share for lv in ("HBM", "VMEM") if lv in known}, self.slice.chip)
        return dict(one.level_s) | {"MXU": one.math_s}

    def __str__(self) -> str:
        return f"{self.plan}: {si(self.total_s, 's')}, paced by {self.pipeline.slowest}"
