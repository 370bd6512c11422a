"""What is one collective of a step, and what does it take on its links? Chapter: Training."""

from collections.abc import Callable
from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.machines import Chip
from scalingbook_lib.steps.placement import FREE, Rate
from scalingbook_lib.training.plan import PlanError
from scalingbook_lib.units import Result, si

type Rates = Callable[[str, str, int, int], Rate]
"""What a byte costs: mesh axes by letter, what is done, and over n groups of so many neighbors."""

GATHER, SCATTER, REDUCE = Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE
EXCHANGE, HOP = Collective.ALL_TO_ALL, Collective.PERMUTE
COPY = "copy"  # between a chip and its host
ASSUMED_TPU_HOST_BYTES_PER_S = 32e9  # that of v6e, for TPU7x, whose link to its host nobody publishes
RING, BACK = "ring", "ring of sums"  # an all-gather and a reduce-scatter, a piece at a time
MOVED_AS: dict[str, Collective] = {  # the collective whose time and bytes each has
    **{kind: kind for kind in Collective},
    COPY: HOP,
    RING: GATHER,
    BACK: SCATTER,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingCollective(Result):
    """One collective of a step over n chips: `nbytes` as `collectives` counts its array, `times` a step."""

    name: str
    what: str
    axes: str
    when: str  # "fwd" or "bwd"
    n: int
    nbytes: float
    times: float
    rate: Rate
    overlappable: bool
    once: bool  # a step, not with each microbatch: then only the arithmetic of one microbatch can hide it

    @property
    def each_s(self) -> float:
        """One of them: seconds for its bytes, and for its hops."""
        return self.nbytes * self.rate.s_per_byte + self.rate.hops_s  # 1/W and 1 - 1/n are in the rate

    @property
    def seconds(self) -> float:
        """All of them in one step, hidden or not."""
        return self.times * self.each_s

    @property
    def received(self) -> float:
        """Bytes that each chip takes in during one step, whatever the network."""
        return self.times * collectives.bytes_received(MOVED_AS[self.what], self.nbytes, self.n)

    def __str__(self) -> str:
        hides = "can overlap" if self.overlappable else "is waited for"
        return (
            f"{self.name} ({self.when}): {self.what} over {self.axes}{self.n} of {si(self.nbytes, 'B')}, "
            f"{self.times:,.4g} times, {si(self.seconds, 's')} ({self.rate.link}), {hides}"
        )


def row(
    rates: Rates,
    name: str,
    what: str,
    axes: str,
    when: str,
    *,
    n: int,
    nbytes: float,
    times: float,
    inside: int = 1,
    overlappable: bool = True,
    once: bool = False,
) -> TrainingCollective:
    """One collective over n groups of `inside` neighboring chips, at what a byte costs there."""
    return TrainingCollective(
        name=name,
        what=what,
        axes=axes,
        when=when,
        n=n,
        nbytes=nbytes,
        times=times,
        rate=rates(axes, what, inside, n),
        overlappable=overlappable,
        once=once,
    )


def host_known(chip: Chip) -> bool:
    """Whether somebody says how fast a chip reaches its host's memory, or it is assumed."""
    return bool(chip.host_bytes_per_s or chip.pcie_bytes_per_s or chip.torus)


def host_rate(chip: Chip) -> float:
    """Return the bytes per second from host to chip, one way; raises a PlanError without a rate."""
    if not host_known(chip):
        raise PlanError(
            f"the catalog has no host bandwidth for {chip.name}; write remat='save:...' and offload nothing"
        )
    return chip.host_bytes_per_s or chip.pcie_bytes_per_s or ASSUMED_TPU_HOST_BYTES_PER_S


def unpriced(*_: object) -> Rate:
    """The rates of who asks what is moved, and not how long it takes."""
    return FREE
