"""Explorer of bucket sizes: expert dispatch with buckets of a fixed capacity, with drops and padding."""

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
            Readout("slots per bucket", b.capacity, "", f"{b.capacity:,} tokens"),
            Readout.percent("dropped", b.dropped),
            Readout.percent("empty slots", b.empty),
            Readout(
                "bytes sent / bytes needed", b.padded_bytes(TOKEN_BYTES) / b.ragged_bytes(TOKEN_BYTES), "×"
            ),
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
    """The tokens that each device routes to each, and below them how many arrive and how many are kept."""
    names = [str(i) for i in range(b.n)]
    cells = [[_pair(b, i, j, load) for j, load in enumerate(row)] for i, row in enumerate(b.loads)]
    kept = [sum(column) for column in zip(*b.accepted, strict=True)]
    sums = [[_sum(b, load) for load in loads] for loads in (b.arriving, kept)]
    title = f"Tokens from (rows) and to (columns) each device; {b.capacity:,} slots per bucket"
    return Grid(title, [*names, "all", "kept"], names, cells + sums)


def _sum(b: Buckets, load: int) -> Cell:
    """The tokens for a device's experts, shaded by their share of the busiest device's tokens."""
    note = f"{load:,} tokens for its experts, {load / (b.S * b.k):.2f} times the average"
    return Cell(str(load), 0, note, level=load / max(b.arriving))


def _pair(b: Buckets, source: int, target: int, load: int) -> Cell:
    """A bucket, shaded by how full it is, in another color if it overflows."""
    over = load - b.capacity
    note = f"{source} to {target}: {load} tokens, " + (
        f"{over} dropped" if over > 0 else f"{-over} slots empty"
    )
    return Cell(str(load), 1 if over > 0 else 2, note, level=0.15 + 0.85 * min(load / b.capacity, 1.0))


def _trade(b: Buckets, factor: float) -> Chart:
    """Dropped tokens and empty slots over the capacity factor, for the same routing."""
    tried = [Buckets(b.loads, b.S, b.k, capacity(f, b.S, b.k, b.n)) for f in FACTORS]
    return Chart(
        Scale("capacity factor", "", low=FACTORS[0], high=FACTORS[-1]),
        Scale("fraction", "%", low=0, high=100),
        (
            Curve("empty slots", FACTORS, [100 * t.empty for t in tried], 2),
            Curve("dropped", FACTORS, [100 * t.dropped for t in tried], 1),
            Points("", [factor, factor], [100 * b.empty, 100 * b.dropped], ("", ""), 3),
        ),
        "The same routing with other capacity factors",
    )


def _bytes(b: Buckets) -> Bars:
    """A ragged AllToAll drops and pads nothing, but the busiest device receives more."""
    busiest = max(b.arriving) * TOKEN_BYTES
    return Bars(
        Scale("bytes in one AllToAll", "B"),
        ["buckets: sent and received", "ragged: sent", "ragged: busiest device receives"],
        (Series("bytes", [b.padded_bytes(TOKEN_BYTES), b.ragged_bytes(TOKEN_BYTES), busiest], 0),),
        title=f"Bytes per device, for tokens of width {D:,} in bf16",
    )


# What there is to discover


def _verdict(b: Buckets, factor: float) -> str:
    even = b.S * b.k / b.n
    said = f"Each device routes {even:,.4g} tokens to each device on average, "
    said += f"and a bucket has {b.capacity:,} slots. "
    said += f"{percent(b.dropped)} of the routed tokens are dropped, "
    said += f"and {percent(b.empty)} of the slots are sent empty"
    need = max(map(max, b.loads)) / even
    if need > factor:
        said += f". Dropping no tokens takes a capacity factor of {math.ceil(100 * need) / 100:.2f}"
    times = max(b.arriving) / (b.S * b.k)
    if times > 1.2:
        said += f". Even then, the busiest device would do {times:.2g} times the average work"
    return f"{said}."


BUCKETS = Explorer(
    key="jax.buckets",
    title="Expert dispatch: capacity, drops and padding",
    question="How many tokens are dropped because their bucket is full, and how many slots are sent empty?",
    controls={
        "E": Slider("experts E", 8, 256, 64, "pow2"),
        "k": Slider("experts per token k", 1, 8, 2),
        "n": Slider("devices n", 2, 8, 8, "pow2"),
        "S": Slider("tokens per device", 32, 1024, 256, "pow2"),
        "skew": Slider("skew of the router", 0.0, 2.0, 0.0, step=0.1),
        "factor": Slider("capacity factor", 0.5, 4.0, 1.25, step=0.05),
        "draw": Slider("random seed", 1, 20, 1),
    },
    view=_buckets,
)
