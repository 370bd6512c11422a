"""Overlap of matmuls and communication, chunk by chunk: on a ring, and along a chain of memories and links.

A collective matmul on a ring multiplies one chunk while the next is in transit: every chip multiplies what it
has and passes it to its neighbor, so that no AllGather has to finish before the matmul begins. Source: Wang
et al., "Overlap Communication with Dependent Computation via Decomposition" (ASPLOS 2023).

Along a chain, x · A is pipelined in chunks of A: out of a host or another slice, over ICI, out of HBM and
VMEM, through the matrix unit. The model says which stage is the bottleneck, and whether to bring A to x or x
to A. Chapters: TPUs; Profiling; Programming in JAX.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives, roofline
from scalingbook_lib.machines import Axis, Chip, Slice
from scalingbook_lib.roofline import ChunkTurn
from scalingbook_lib.units import BF16, INT8, Result

UNIT, LINK, BACK = "matrix unit", "link", "link back"  # the stages of a `ChunkTurn`


@dataclass(frozen=True, slots=True)
class OverlapRun(Result):
    """The timeline of one chip and its links, turn by turn."""

    turns: tuple[ChunkTurn, ...]
    line = "total_s", "math_s", "exposed_s"

    @property
    def total_s(self) -> float:
        """The time in seconds until the last turn ends."""
        return max(turn.end_s for turn in self.turns)

    @property
    def math_s(self) -> float:
        """The time in seconds in which the chip computes."""
        return sum(turn.end_s - turn.start_s for turn in self.turns if turn.stage == UNIT)

    @property
    def comms_s(self) -> float:
        """The time in seconds until the last link finishes; links never wait."""
        return max(turn.end_s for turn in self.turns if turn.stage != UNIT)

    @property
    def exposed_s(self) -> float:
        """The exposed communication in seconds, during which the chip waits."""
        return self.total_s - self.math_s


@dataclass(frozen=True, kw_only=True)
class RingMatmul(Result):
    """In[B, D], 1/n of it on each of n chips, times the F columns of W on each chip: n chunks in n steps.

    `scatter` is the mirror image in time, Tmp · W -> Out[B, D]: partial sums move on, and each step adds to
    one. In every step a chunk goes to the next chip; over two `links`, one half goes in each direction.
    """

    B: float
    D: float
    F: float
    axis: Axis
    chip: Chip
    links: int = 1
    scatter: bool = False
    line = "total_s", "serial_s"

    @property
    def n(self) -> int:
        """The number of chips on the ring."""
        return self.axis.size

    @property
    def matmul_s(self) -> float:
        """The time in seconds to multiply one chunk at the documented peak."""
        return 2 * self.B * self.D * self.F / self.chip.bf16_flops_per_s / self.n  # 2 FLOPs per term

    @property
    def transfer_s(self) -> float:
        """The time in seconds to send one chunk to the neighbor: its bytes and the hop.

        Over two links, each link carries half of the chunk.
        """
        chunk_bytes = BF16.bytes * self.B * self.D / self.n  # each chip has 1/n of In
        return chunk_bytes / (self.links * self.axis.link_bytes_per_s) + self.axis.hop_s

    @property
    def step_s(self) -> float:
        """The time of one step in seconds: the longer of a matmul and a transfer, which overlap."""
        return max(self.matmul_s, self.transfer_s)

    @property
    def total_s(self) -> float:
        """The time in seconds of n matmuls and n - 1 transfers; one matmul overlaps with no transfer."""
        return self.matmul_s + (self.n - 1) * self.step_s  # the chip's own chunk is available immediately

    @property
    def serial_s(self) -> float:
        """The time in seconds of all transfers and all math, one after the other."""
        return self.n * self.matmul_s + (self.n - 1) * self.transfer_s

    @property
    def ratio(self) -> float:
        """C/W: the FLOPs that take as long as moving one byte over the links in use."""
        # 2 B D F / (n C) = 2 B D / (n W) gives F = C/W
        return self.chip.bf16_flops_per_s / (self.links * self.axis.link_bytes_per_s)

    @property
    def overlap_threshold_F(self) -> float:
        """The F per chip above which a matmul takes as long as a transfer: C/W, plus the hop latency."""
        # the matmul time grows with F, the transfer time does not
        return self.F * self.transfer_s / self.matmul_s

    def chunks(self, device: int, step: int) -> tuple[int, ...]:
        """The chunks that a device multiplies in a step, one for each direction in use.

        With `scatter`, they are the chunks whose partial sums it adds to. The first direction (the only one
        with a single link) goes to the next device: chunks come from the previous device, and sums end where
        they belong.
        """
        away = step + 1 if self.scatter else step
        return tuple(way % self.n for way in (device - away, device + away)[: self.links])

    def lockstep(self) -> OverlapRun:
        """The timeline in which matmuls and transfers run in lockstep.

        The unpaired matmul is last, or first with `scatter`.
        """
        steps = [k * self.step_s for k in range(self.n)]
        # a partial sum leaves after its matmul is added, a chunk leaves immediately
        moves = [self.matmul_s + at for at in steps] if self.scatter else steps
        products = [0.0, *moves] if self.scatter else steps
        timed = [(LINK, moves[:-1], self.transfer_s), (UNIT, products[: self.n], self.matmul_s)]
        return OverlapRun(
            tuple(ChunkTurn(name, k, at, at + t) for name, starts, t in timed for k, at in enumerate(starts))
        )

    def on_arrival(self, sides: int) -> OverlapRun:
        """The timeline in which whole chunks are multiplied as they arrive, from one or two `sides`."""
        turns, free = [ChunkTurn(UNIT, 0, 0.0, self.matmul_s)], self.matmul_s
        for k in range(1, self.n):
            hop, side = divmod(k - 1, sides)
            came = (hop + 1) * self.transfer_s  # chunk k travels k hops; with two sides, half as many
            start = max(free, came)  # the unit may still be busy, or the chunk still in transit
            free = start + self.matmul_s
            turns += [
                ChunkTurn((LINK, BACK)[side], k, hop * self.transfer_s, came),
                ChunkTurn(UNIT, k, start, free),
            ]
        return OverlapRun(tuple(turns))

    def gather_first(self) -> OverlapRun:
        """The timeline of a complete AllGather in both directions, followed by the matmul."""
        moved = collectives.all_gather(BF16.bytes * self.B * self.D, self.axis).total_s
        turns = [ChunkTurn(link, 0, 0.0, moved) for link in (LINK, BACK)]
        return OverlapRun((*turns, ChunkTurn(UNIT, 0, moved, moved + self.n * self.matmul_s)))

    @property
    def heading(self) -> str:
        """The number of chunks."""
        return f"{self.n} chunks on a ring"


HOSTS, SPLIT, FAR, OTHER = "host memory", "HBM, split", "HBM of the farthest chip", "another slice"
FETCH, SEND = "bring A to x", "bring x to A"
OUT, IN = "PCIe out", "PCIe in"  # the two PCIe stages of a path between slices


@dataclass(frozen=True, slots=True)
class MatvecChain(Result):
    """x[B, n] · A[n, n] on a slice, with x in bf16 and A in int8.

    x is on the chip at the origin, where y is needed. Sharded arrays lie in equal parts on all chips or their
    hosts. Every chunk of A is a separate collective or message; spreading x is timed as an AllGather, which
    it equals except for one shard.
    """

    slice: Slice
    n: int
    B: int
    location: str
    plan: str
    chunks: int
    line = "total_s", "return_s"

    @property
    def matrix_bytes(self) -> float:
        """The bytes of A."""
        return INT8.bytes * self.n**2

    @property
    def vector_bytes(self) -> float:
        """The bytes of x, which are also the bytes of y."""
        return BF16.bytes * self.B * self.n

    @property
    def workers(self) -> int:
        """The number of chips that multiply: the one that has x, the one that has A, or all."""
        return 1 if self.plan == FETCH or self.location == FAR else self.slice.chips

    @property
    def pipeline(self) -> roofline.CopyPipeline:
        """The pipeline of all stages that a chunk of A, or the part of x that belongs to it, passes."""
        crosses = (self.matrix_bytes if self.plan == FETCH else self.vector_bytes) / self.chunks
        # every chip receives its part of A; x is on one chip
        parts = self.slice.chips if self.plan == FETCH else 1
        before: dict[str, float] = {}
        if self.location == HOSTS:
            before = self._over(PCIe=self.matrix_bytes / self.chunks / self.slice.chips)
        if self.location == OTHER:
            before = self._between(crosses, parts)
        return roofline.pipeline(
            before | {"ICI": self._within(crosses)} | self._compute_stages(), self.chunks
        )

    @property
    def return_s(self) -> float:
        """The time in seconds to return y to the origin, if it was not computed there."""
        there = self._between(self.vector_bytes, self.slice.chips) if self.location == OTHER else {}
        return 0.0 if self.plan == FETCH else sum(there.values()) + self._within(self.vector_bytes)

    @property
    def total_s(self) -> float:
        """The time in seconds of the pipeline and of returning y."""
        return self.pipeline.total_s + self.return_s

    def _over(self, **nbytes: float) -> dict[str, float]:
        return dict(roofline.ladder(0, nbytes, self.slice.chip).level_s)

    def _between(self, nbytes: float, parts: int) -> dict[str, float]:
        """The seconds from slice to slice by stage: from HBM over PCIe, over the network, in over PCIe."""
        times = self._over(PCIe=nbytes / parts, DCN=nbytes / parts)
        return {OUT: times["PCIe"], "DCN": times["DCN"], IN: times["PCIe"]}

    def _within(self, nbytes: float) -> float:
        """The seconds over ICI: from the farthest chip, or gathered from all."""
        if self.location != FAR:
            return collectives.all_gather(nbytes, *self.slice.axes).total_s
        # the chip that is farthest along every axis
        far = tuple(axis.diameter_hops for axis in self.slice.axes)
        return self.slice.route(far, (0,) * len(far)).message(nbytes).total_s

    def _compute_stages(self) -> dict[str, float]:
        """The seconds to compute a chunk of A by stage: HBM, VMEM if its rate is documented, matrix unit."""
        share = self.matrix_bytes / self.chunks / self.workers  # one chip's part of a chunk of A
        known = roofline.levels(self.slice.chip)
        flops = 2 * self.B * self.n**2 / self.chunks / self.workers
        one = roofline.ladder(flops, {lv: share for lv in ("HBM", "VMEM") if lv in known}, self.slice.chip)
        return dict(one.level_s) | {"MXU": one.math_s}

    @property
    def heading(self) -> str:
        """The strategy and its bottleneck stage."""
        return f"{self.plan}, bottleneck {self.pipeline.slowest}"
