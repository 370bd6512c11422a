"""How large should a bucket be? Tokens sent to experts on other devices in buckets of one size."""

import math

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Chart,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib import collectives
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.models.arithmetic import experts
from scalingbook_lib.models.arithmetic.experts import Buckets, capacity
from scalingbook_lib.units import BF16, percent

D = 4096  # the width of a token that is sent
TOKEN_BYTES = D * BF16.bytes
FACTORS = tuple(i / 10 for i in range(5, 41))  # 0.5 to 4


def _buckets(*, E: int, k: int, n: int, S: int, skew: float, factor: float, draw: int) -> View:
    k = min(k, E)
    b = Buckets(experts.sample_routing(E, k, skew, n=n, S=S, seed=draw), S, k, capacity(factor, S, k, n))
    return View(
        _verdict(b, factor),
        (_pairs(b), _trade(b, factor), _bytes(b)),
        (
            Readout("room for a pair", b.capacity, "", f"{b.capacity:,} tokens"),
            Readout.percent("dropped", b.dropped),
            Readout.percent("empty places", b.empty),
            Readout("sent over needed", b.padded_bytes(TOKEN_BYTES) / b.ragged_bytes(TOKEN_BYTES), "×"),
            Readout("padded AllToAll, v5e ring", exchange_s(b), "s"),
        ),
        columns=2,
    )


def exchange_s(b: Buckets) -> float:
    """The padded AllToAll, one way, on a ring of TPU v5e."""
    ring = Axis(b.n, True, chips.V5E.link_bytes_per_s, chips.V5E.hop_s)
    return collectives.all_to_all(b.n * b.padded_bytes(TOKEN_BYTES), ring).total_s


# What is shown


def _pairs(b: Buckets) -> Grid:
    """What each device sends to each, and below it what comes to each and what of that finds room."""
    names = [str(i) for i in range(b.n)]
    cells = [[_pair(b, i, j, load) for j, load in enumerate(row)] for i, row in enumerate(b.loads)]
    kept = [sum(column) for column in zip(*b.accepted, strict=True)]
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
    busiest = max(b.arriving) * TOKEN_BYTES
    return Bars(
        Scale("bytes in one AllToAll", "B"),
        ["buckets: sent and received", "ragged: sent", "ragged: busiest receives"],
        (Series("bytes", [b.padded_bytes(TOKEN_BYTES), b.ragged_bytes(TOKEN_BYTES), busiest], 0),),
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
