"""What is one collective of a step, and what does it take on its links? Chapter: Training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.steps.placement import FREE, Rate
from scalingbook_lib.units import Told, si

type Rates = Callable[
    [Collective, int, int], Rate
]  # a collective over `size` groups of `inside` neighboring chips

GATHER, SCATTER, REDUCE = Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE
EXCHANGE, HOP = Collective.ALL_TO_ALL, Collective.PERMUTE
COPY = "copy"  # between a chip and its host
RING, BACK = "ring", "ring of sums"  # an all-gather and a reduce-scatter, a piece at a time
MOVED_AS: dict[str, Collective] = {  # the collective whose time and bytes each has
    **{kind: kind for kind in Collective},
    COPY: HOP,
    RING: GATHER,
    BACK: SCATTER,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic(Told):
    """One collective of a step over n chips: `nbytes` as `collectives` counts its array, `times` a step."""

    name: str
    what: str
    axes: str
    when: str  # "fwd" or "bwd"
    n: int
    nbytes: float
    times: float
    each_s: float  # one of them
    overlappable: bool
    once: bool  # a step, not with each microbatch: then only the arithmetic of one microbatch can hide it
    link: str

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
            f"{self.times:,.4g} times, {si(self.seconds, 's')} ({self.link}), {hides}"
        )


class Links(NamedTuple):
    """What a byte costs: collectives over the machine's axes, an exchange of tokens, the network of pods."""

    rates: Rates
    experts: Callable[[int, int], Rate]
    pods: Rate
    host: Rate = FREE

    def row(
        self,
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
    ) -> Traffic:
        """One collective over n groups of `inside` neighbors."""
        if axes in "SH":
            rate = self.pods if axes == "S" else self.host
        else:
            rate = self.experts(inside, n) if axes == "Z" else self.rates(MOVED_AS[what], inside, n)
        return Traffic(
            name=name,
            what=what,
            axes=axes,
            when=when,
            n=n,
            nbytes=nbytes,
            times=times,
            each_s=nbytes * rate.s_per_byte + rate.hops_s,
            overlappable=overlappable,
            once=once,
            link=rate.link,
        )


UNPRICED = Links(lambda *_: FREE, lambda *_: FREE, FREE)  # for who asks what is moved, and not how long
