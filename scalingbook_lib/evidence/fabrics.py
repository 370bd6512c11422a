"""What do links attain in collectives? One line for each generation of links, fitted on published times.

`fabric(chip)` is what to compute with, `seconds` a row's time; `fit` is how the frozen `kernel_fits.json` was
made (`tools.kernel_fits`). Chapter: GPUs.
"""

from collections.abc import Sequence
from functools import cache
from math import log
from typing import NamedTuple

from scalingbook_lib.collectives import FORMULAS, Collective
from scalingbook_lib.collectives.attained import Curve, Fabric
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.fitting import Expected, Values, far, fitted
from scalingbook_lib.machines.chips import Axis, Chip
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.units import GB

NOISE = 0.1
TORUS_S = 3e-6  # a collective of TPUs starts: 128 KiB over three hops of a v5e take 8 µs, its formula says 5
BENCH_S = 2.4e-5  # what PyTorch's all_reduce_bench.py times besides, on H200 and B200 alike
CURVES = {  # share, seconds late, half of them at
    "ring": (0.75, 2e-5, 8e-6),
    "in_switch": (0.9, 6e-5, 3e-5),
    "exchange": (0.65, 1e-5, 5e-6),
    "network": (0.95, 1e-4, 1e-4),
}
EXPECTED = {
    "launch_s": Expected(6e-6, 0.5, 1e-7, 1e-3),
    "step_s": Expected(1e-6, 0.5, 1e-8, 1e-3),
    "pair": Expected(0.8, 0.2, 0.1, 8.0),
    "crowding": Expected(1e-3, 1e-3, 1e-4, 3.0),  # switches: none
    "network_s": Expected(1.7e-4, 0.5, 1e-6, 1e-2),
} | {
    f"{name}_{figure}": Expected(value, spread, low, high)
    for name, values in CURVES.items()
    for figure, value, (spread, low, high) in zip(
        ("share", "late_s", "half_s"),
        values,
        ((0.15, 0.02, 1.1), (1.0, 1e-9, 1e-2), (1.0, 1e-9, 1e-2)),
        strict=True,
    )
}
HOSTED = {"crowding": Expected(1.0, 1.0, 1e-3, 3.0), "pair": Expected(1.0, 1e-3, 0.9, 1.1)}
"""Without a switch the way leads through the host, and narrows with the chips that share it."""

GENERATIONS = {"PCIe 4": 32, "PCIe 5": 64, "NVLink 2": 150, "NVLink 3": 300, "NVLink 4": 450, "NVLink 5": 1e9}


class Timed(NamedTuple):
    """A measured collective of `nbytes`, as `collectives` counts them, in a cluster."""

    cluster: Cluster
    what: str
    nbytes: float
    ring: bool
    bench: bool
    seconds: float


def timed(row: resources.Row, chip: Chip) -> Timed:
    """A row of a table of collectives; a ValueError where it has no collective, size, count or time."""
    what, n, size = Collective.named(row["collective"]), int(row["n_devices"]), float(row["size_bytes"])
    passes = 2 if what is Collective.ALL_REDUCE else 1
    bus_s = float(row["busbw_GBps"] or 0) * 1e9
    seconds = float(row["time_us"] or 0) / 1e6 or (n - 1) / n * passes * size / bus_s
    return Timed(
        cluster=cluster(chip, n, int(row.get("n_nodes") or 1)),
        what=what,
        nbytes=size * n if what is Collective.ALL_TO_ALL else size,  # the source counts one chip's part
        ring=row["algo_or_tool"].startswith("Ring"),
        bench="all_reduce_bench" in row["algo_or_tool"],
        seconds=seconds,
    )


def cluster(chip: Chip, n: int, nodes: int = 1) -> Cluster:
    """So many chips; cards without links of their own are joined by their host.

    Hosts that are not filled are smaller domains, but where a rack of many hosts is one domain.
    """
    hosted = chip.links == 1 or (nodes > 1 and chip.domain_chips == chip.chips_per_host)
    return Cluster.of(chip, n, domain=min(chip.chips_per_host, -(-n // nodes)) if hosted else 0)


def generation(chip: Chip) -> str:
    """'NVLink 4', 'PCIe 5' ...: what joins the chips of a host, by its rate one way."""
    if chip.full_mesh:
        return "full mesh"
    rate = chip.links * chip.link_bytes_per_s / GB
    return next(name for name, most in GENERATIONS.items() if rate <= most)


def made(name: str, values: Values) -> Fabric:
    """The fabric of these figures."""

    curves = {
        way: Curve(**{figure: values[f"{way}_{figure}"] for figure in ("share", "late_s", "half_s")})
        for way in CURVES
    }
    rest = {figure: values[figure] for figure in ("launch_s", "step_s", "pair", "crowding", "network_s")}
    return Fabric(name=name, **curves, **rest)  # type: ignore[arg-type]


def seconds(one: Fabric, row: Timed) -> float:
    """The time of a row, with what its tool times besides."""
    found = one.seconds(row.what, row.nbytes, *row.cluster.levels, ring=row.ring)
    return found + BENCH_S * row.bench


def torus_s(what: str, nbytes: float, chip: Chip, *axes: Axis) -> float:
    """The time of a collective of TPUs along these axes, whose links reach their documented share."""
    ideal = FORMULAS[Collective.named(what)](nbytes, *axes)
    return TORUS_S + ideal.latency_s + ideal.bandwidth_s / chip.link_achieved_fraction


def fit(rows: Sequence[Timed]) -> Values:
    """The figures of one generation that make the errors of these rows least."""

    def errors(values: Values) -> list[float]:
        one = made("", values)
        return [far(log(seconds(one, row) / row.seconds), NOISE) for row in rows]

    hosted = rows[0].cluster.chip.links == 1
    return fitted(EXPECTED | (HOSTED if hosted else {}), errors)


@cache
def fabric(chip: Chip) -> Fabric:
    """What the links of a chip attain: its generation's line, or NVLink 4's."""
    lines = resources.record("kernel_fits")["fabrics"]
    own = generation(chip)
    name = own if own in lines else "NVLink 4"
    return made(name, lines[name])
