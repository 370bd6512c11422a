"""One collective of a training step, and its time on the links. Chapter: Training."""

from collections.abc import Callable
from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.machines import Chip
from scalingbook_lib.steps.placement import FREE, Rate
from scalingbook_lib.training.plan import PlanError
from scalingbook_lib.units import Result, si

type Rates = Callable[[str, str, int, int], Rate]
"""Returns a link rate for the letters of mesh axes, a collective, `inside` and n."""

GATHER, SCATTER, REDUCE = Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE
EXCHANGE, HOP = Collective.ALL_TO_ALL, Collective.PERMUTE
COPY = "copy"  # between a chip and its host
ASSUMED_TPU_HOST_BYTES_PER_S = 32e9  # the rate of v6e, used for TPU7x, whose host link is not published
RING, BACK = "ring", "ring of sums"  # an all-gather and a reduce-scatter, one shard at a time
MOVED_AS: dict[str, Collective] = {  # the collective whose formulas apply
    **{kind: kind for kind in Collective},
    COPY: HOP,
    RING: GATHER,
    BACK: SCATTER,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingCollective(Result):
    """One collective over n chips, `times` per step; `nbytes` is the array, as `collectives` counts it."""

    name: str
    what: str
    axes: str
    when: str  # "fwd" or "bwd"
    n: int
    nbytes: float
    times: float
    rate: Rate
    overlappable: bool
    once: bool  # once per step instead of once per microbatch; only one microbatch's compute can hide it

    @property
    def each_s(self) -> float:
        """The seconds of one such collective: its bytes and its hops."""
        return self.nbytes * self.rate.s_per_byte + self.rate.hops_s  # 1/W and 1 - 1/n are in the rate

    @property
    def seconds(self) -> float:
        """The seconds of all of them in one step, whether hidden or exposed."""
        return self.times * self.each_s

    @property
    def received(self) -> float:
        """The bytes that each chip receives in one step, whatever the network."""
        return self.times * collectives.bytes_received(MOVED_AS[self.what], self.nbytes, self.n)

    def __str__(self) -> str:
        hides = "can overlap" if self.overlappable else "is exposed"
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
    """Return a collective over n groups of `inside` neighboring chips, at the rate of their links."""
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
    """Return whether the bandwidth of the link to the host is known or assumed."""
    return bool(chip.host_bytes_per_s or chip.pcie_bytes_per_s or chip.torus)


def host_rate(chip: Chip) -> float:
    """Return the bytes per second from host to chip in one direction; raises a PlanError if unknown."""
    if not host_known(chip):
        raise PlanError(
            f"the catalog has no host bandwidth for {chip.name}; give one, as in --figure "
            "pcie_bytes_per_s=63G, or offload nothing"
        )
    return chip.host_bytes_per_s or chip.pcie_bytes_per_s or ASSUMED_TPU_HOST_BYTES_PER_S


def unpriced(*_: object) -> Rate:
    """Return a rate of zero, for callers that need the bytes but not the time."""
    return FREE
