"""How does a collective matmul run on a ring, which multiplies one chunk while the next is on its way?

Every chip multiplies what it has and passes it on to its neighbor, so that no AllGather has to end before
the product begins. Source: Wang et al., "Overlap Communication with Dependent Computation via Decomposition"
(ASPLOS 2023). Chapters: Profiling, Programming in JAX.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.machines import Axis, Chip
from scalingbook_lib.roofline import Turn
from scalingbook_lib.units import BF16, Told, si

UNIT, LINK, BACK = "matrix unit", "link", "link back"  # the stages of a `Turn`


@dataclass(frozen=True, slots=True)
class Run(Told):
    """What one chip and its links do, turn by turn."""

    turns: tuple[Turn, ...]

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
class RingMatmul(Told):
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
        return 2 * self.B * self.D * self.F / self.chip.bf16_flops_per_s / self.n

    @property
    def move_s(self) -> float:
        """One chunk to the neighbor, in halves over two links: its bytes, and the hop."""
        chunk_bytes = BF16.bytes * self.B * self.D / self.n
        return chunk_bytes / (self.links * self.axis.link_bytes_per_s) + self.axis.hop_s

    @property
    def step_s(self) -> float:
        """A product and a move at once: the longer of the two."""
        return max(self.product_s, self.move_s)

    @property
    def total_s(self) -> float:
        """n products and n - 1 moves, of which one product has no move beside it."""
        return self.product_s + (self.n - 1) * self.step_s

    @property
    def serial_s(self) -> float:
        """All of the moves, and then all of the arithmetic, or the other way round."""
        return self.n * self.product_s + (self.n - 1) * self.move_s

    @property
    def ratio(self) -> float:
        """C/W: FLOPs that take as long as a byte over the links in use."""
        return self.chip.bf16_flops_per_s / (self.links * self.axis.link_bytes_per_s)

    @property
    def hidden_from(self) -> float:
        """The F of a chip from which on a product takes as long as a move: C/W, and the hop's own delay."""
        return self.F * self.move_s / self.product_s

    def chunks(self, device: int, step: int) -> tuple[int, ...]:
        """Which chunk a device multiplies in a step, or of whom it adds to; one for each way in use.

        The first way, and the only one of one, goes to the next device: chunks come from the one before, and
        sums end where they belong.
        """
        away = step + 1 if self.scatter else step
        return tuple(way % self.n for way in (device - away, device + away)[: self.links])

    def in_steps(self) -> Run:
        """Products and moves keep step; the product without a move is the last, or for sums the first."""
        steps = [k * self.step_s for k in range(self.n)]
        # a sum leaves when its product is added, a chunk at once
        moves = [self.product_s + at for at in steps] if self.scatter else steps
        products = [0.0, *moves] if self.scatter else steps
        timed = [(LINK, moves[:-1], self.move_s), (UNIT, products[: self.n], self.product_s)]
        return Run(
            tuple(Turn(name, k, at, at + t) for name, starts, t in timed for k, at in enumerate(starts))
        )

    def as_they_come(self, sides: int) -> Run:
        """Whole chunks, from one side or in turn from both, each multiplied once there; its own first."""
        turns, free = [Turn(UNIT, 0, 0.0, self.product_s)], self.product_s
        for k in range(1, self.n):
            hop, side = divmod(k - 1, sides)
            came = (hop + 1) * self.move_s
            start = max(free, came)  # the unit may be busy still, or the chunk on its way
            free = start + self.product_s
            turns += [Turn((LINK, BACK)[side], k, hop * self.move_s, came), Turn(UNIT, k, start, free)]
        return Run(tuple(turns))

    def gathered_first(self) -> Run:
        """The whole AllGather, both ways round the ring, and only then the product."""
        moved = collectives.all_gather(BF16.bytes * self.B * self.D, self.axis).total_s
        turns = [Turn(link, 0, 0.0, moved) for link in (LINK, BACK)]
        return Run((*turns, Turn(UNIT, 0, moved, moved + self.n * self.product_s)))

    def __str__(self) -> str:
        total, serial = si(self.total_s, "s"), si(self.serial_s, "s")
        return f"{self.n} chunks on a ring: {total}, one after the other {serial}"
