"""How large should a bucket be? Tokens sent to experts on other devices in buckets of one size."""

import math
from bisect import bisect
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random

from scalingbook_lib import collectives
from scalingbook_lib.chapters.transformers.explorers.router import chances
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.torus import Axis
from scalingbook_lib.reader.explorers.controls import Slider
from scalingbook_lib.reader.explorers.explorer import Explorer
from scalingbook_lib.reader.explorers.view import (
    Bars,
    Cell,
    Chart,
    Curve,
    Grid,
    Points,
    Readout,
    Scale,
    Series,
    View,
)
from scalingbook_lib.units import BF16, Told, percent

D = 4096  # the width of a token that is sent, in bf16
FACTORS = tuple(i / 10 for i in range(5, 41))  # 0.5 to 4

type Loads = tuple[tuple[int, ...], ...]  # visits by sending and receiving device


@dataclass(frozen=True)
class Buckets(Told):
    """Visits between n devices of S tokens each, k a token, and buckets of `capacity` for each pair."""

    loads: Loads
    S: int
    k: int
    capacity: int

    @property
    def n(self) -> int:
        """How many devices."""
        return len(self.loads)

    @property
    def visits(self) -> int:
        """All visits of all tokens."""
        return self.n * self.S * self.k

    @property
    def kept(self) -> Loads:
        """The visits that find room."""
        return tuple(tuple(min(load, self.capacity) for load in row) for row in self.loads)

    @property
    def dropped(self) -> float:
        """The share of visits that find none."""
        return 1 - sum(map(sum, self.kept)) / self.visits

    @property
    def empty(self) -> float:
        """The share of all places that are sent with nothing in them."""
        return 1 - sum(map(sum, self.kept)) / (self.n * self.n * self.capacity)

    @property
    def padded_bytes(self) -> float:
        """What a device hands to the AllToAll: n buckets of tokens, full or not."""
        return self.n * self.capacity * D * BF16.bytes

    @property
    def ragged_bytes(self) -> float:
        """What it would hand to one that sends each visit and no more: its S · k visits."""
        return self.S * self.k * D * BF16.bytes

    @property
    def arriving(self) -> tuple[int, ...]:
        """Visits that come to each device."""
        return tuple(map(sum, zip(*self.loads, strict=True)))

    def __str__(self) -> str:
        return f"{self.n} devices, room for {self.capacity} a pair: {percent(self.dropped)} dropped"


def capacity(factor: float, S: int, k: int, n: int) -> int:
    """⌈f · S k / n⌉: what one device would send to each if all were visited alike, times a factor."""
    return math.ceil(factor * S * k / n - 1e-9)


@lru_cache(maxsize=64)
def loads(E: int, k: int, skew: float, n: int, S: int, draw: int) -> Loads:
    """Visits drawn by chance: every token to k different experts, an expert of rank r as r^-skew, or surely.

    Experts lie on the devices in the order of their rank. One random number a token chooses all k of its
    experts: those where a ladder of steps 1 apart, started there, meets the summed chances in mixed order.
    """
    chance, random = chances(E, k, skew), Random(f"{E} {k} {skew} {n} {draw}")
    return tuple(_sent(chance, k, n, S, random) for _ in range(n))


def _sent(chance: tuple[float, ...], k: int, n: int, S: int, random: Random) -> tuple[int, ...]:
    """The visits that one device's S tokens pay to each device."""
    E = len(chance)
    order = random.sample(range(E), E)
    summed = list(accumulate(chance[e] for e in order))
    edges = sorted({edge % 1 for edge in summed})
    drawn: dict[int, int] = {}
    for _ in range(S):
        at = bisect(edges, random.random())
        drawn[at] = drawn.get(at, 0) + 1
    found = [0] * n
    for at, tokens in drawn.items():
        start = (edges[at - 1] if at else 0.0) / 2 + (edges[at] if at < len(edges) else 1.0) / 2
        for rung in range(k):
            expert = order[min(bisect(summed, start + rung), E - 1)]
            found[expert * n // E] += tokens
    return tuple(found)


def _buckets(E: int, k: int, n: int, S: int, skew: float, factor: float, draw: int) -> View:
    k = min(k, E)
    sent = loads(E, k, skew, n, S, draw)
    b = Buckets(sent, S, k, capacity(factor, S, k, n))
    return View(
        _verdict(b, factor),
        (_pairs(b), _trade(b, factor), _bytes(b)),
        (
            Readout("room for a pair", b.capacity, "", f"{b.capacity:,} tokens"),
            Readout("dropped", b.dropped, "", percent(b.dropped)),
            Readout("empty places", b.empty, "", percent(b.empty)),
            Readout("sent over needed", b.padded_bytes / b.ragged_bytes, "×"),
            Readout("padded AllToAll, v5e ring", exchange_s(b), "s"),
        ),
        columns=2,
    )


def exchange_s(b: Buckets) -> float:
    """The padded AllToAll, one way, on a ring of TPU v5e."""
    ring = Axis(b.n, True, chips.V5E.link_bytes_per_s, chips.V5E.hop_s)
    return collectives.all_to_all(b.n * b.padded_bytes, ring).total_s


# What is shown


def _pairs(b: Buckets) -> Grid:
    """What each device sends to each, and below it what comes to each and what of that finds room."""
    names = [str(i) for i in range(b.n)]
    cells = [[_pair(b, i, j, load) for j, load in enumerate(row)] for i, row in enumerate(b.loads)]
    kept = [sum(column) for column in zip(*b.kept, strict=True)]
    sums = [[_sum(b, load) for load in loads] for loads in (b.arriving, kept)]
    title = f"Tokens from (down) and to (across); room for {b.capacity:,}"
    return Grid(title, [*names, "all", "kept"], names, cells + sums)


def _sum(b: Buckets, load: int) -> Cell:
    """A device's work: as strong as it is near the most that comes to any."""
    note = f"{load:,} tokens for its experts, {load / (b.S * b.k):.2f} times the even share"
    return Cell(str(load), 0, note, level=load / max(b.arriving))


def _pair(b: Buckets, source: int, target: int, load: int) -> Cell:
    """A bucket: as strong as it is full, in another color where it runs over."""
    over = load - b.capacity
    note = f"{source} to {target}: {load} tokens, " + (
        f"{over} too many" if over > 0 else f"{-over} places empty"
    )
    return Cell(str(load), 1 if over > 0 else 2, note, level=0.15 + 0.85 * min(load / b.capacity, 1.0))


def _trade(b: Buckets, factor: float) -> Chart:
    """Drops and empty places over the capacity factor, for the same tokens."""
    tried = [Buckets(b.loads, b.S, b.k, capacity(f, b.S, b.k, b.n)) for f in FACTORS]
    return Chart(
        Scale("capacity factor", "", low=FACTORS[0], high=FACTORS[-1]),
        Scale("share", "%", low=0, high=100),
        (
            Curve("empty places", FACTORS, [100 * t.empty for t in tried], 2),
            Curve("dropped", FACTORS, [100 * t.dropped for t in tried], 1),
            Points("", [factor, factor], [100 * b.empty, 100 * b.dropped], ("", ""), 3),
        ),
        "The same tokens in other buckets",
    )


def _bytes(b: Buckets) -> Bars:
    """Ragged, nothing is dropped and nothing is empty; but the busiest device has to wait for all that."""
    busiest = max(b.arriving) * D * BF16.bytes
    return Bars(
        Scale("bytes in one AllToAll", "B"),
        ["buckets: sent and received", "ragged: sent", "ragged: busiest receives"],
        (Series("bytes", [b.padded_bytes, b.ragged_bytes, busiest], 0),),
        title=f"What a device moves, of tokens {D:,} wide in bf16",
    )


# What there is to discover


def _verdict(b: Buckets, factor: float) -> str:
    even = b.S * b.k / b.n
    said = f"A pair of devices shares {even:,.4g} tokens on average, and {b.capacity:,} find room: "
    said += (
        f"{_share(b.dropped)} of the visits are dropped, and {_share(b.empty)} of the places sent are empty"
    )
    need = max(map(max, b.loads)) / even
    if need > factor:
        said += f"; to drop none takes a factor of {math.ceil(100 * need) / 100:.2f}"
    times = max(b.arriving) / (b.S * b.k)
    if times > 1.2:
        said += f", and the busiest device would still have {times:.2g} times its share of the work"
    return f"{said}."


def _share(part: float) -> str:
    return percent(part) if part else "none"


BUCKETS = Explorer(
    key="jax.buckets",
    title="Buckets for experts",
    question="How many tokens find no room in a bucket, and how much of the buckets is sent empty?",
    controls={
        "E": Slider("experts E", 8, 256, 64, "pow2"),
        "k": Slider("visited by a token, k", 1, 8, 2),
        "n": Slider("devices n", 2, 8, 8, "pow2"),
        "S": Slider("tokens of each device", 32, 1024, 256, "pow2"),
        "skew": Slider("skew of the router", 0.0, 2.0, 0.0, step=0.1),
        "factor": Slider("capacity factor", 0.5, 4.0, 1.25, step=0.05),
        "draw": Slider("another draw", 1, 20, 1),
    },
    view=_buckets,
)
