"""What do links attain in collectives? One line for each generation of links, fitted on published times.

`fabric(chip)` is what to compute with, `seconds` a row's time; `fit` is how the frozen `kernel_fits.json` was
made (`tools.kernel_fits`). Chapter: GPUs.
"""

import re
from collections.abc import Sequence
from functools import cache
from math import log, prod
from typing import Any, NamedTuple

from scalingbook_lib.collectives import FORMULAS, Collective
from scalingbook_lib.collectives.attained import Curve, Fabric
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.fitting import Expected, Values, far, fitted
from scalingbook_lib.evidence.reading.cells import Cells, Refused, needed, number, text, whole
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import Chip, Slice
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


type Networks = tuple[Any, ...]  # levels of switches, or axes of a torus


class Timed(NamedTuple):
    """A collective of `nbytes`, as `collectives` counts them, over levels of switches or axes of a torus."""

    chip: Chip
    networks: Networks
    what: str
    nbytes: float
    ring: bool = False
    bench: bool = False
    seconds: float = 0.0


def timed(row: Cells, chip: Chip) -> Timed:
    """A row of a table of collectives; a ValueError where it has no collective, size, count or time."""
    what, tool = Collective.named(text(row, "collective")), text(row, "algo_or_tool")
    n, size = needed(row, "n_devices"), needed(row, "size_bytes")
    return Timed(
        chip=chip,
        networks=networks(chip, n, whole(row, "n_nodes") or 1, text(row, "system")),
        what=what,
        nbytes=size * n if what is Collective.ALL_TO_ALL else size,  # the source counts one chip's part
        ring=tool.startswith("Ring"),
        bench="all_reduce_bench" in tool,
        seconds=(number(row, "time_us") or _rated_us(row, what, n, size)) / 1e6,
    )


def _rated_us(row: Cells, what: str, n: int, size: int) -> float:
    """From the rate of the array, or of the bus, which an all-reduce passes twice; if it has two digits."""
    passes = 2 if what is Collective.ALL_REDUCE else 1
    for column, share in (("busbw_GBps", passes * (n - 1) / n), ("algbw_GBps", 1.0)):
        rate = number(row, column)
        if rate and len(text(row, column).replace(".", "").strip("0")) > 1:
            return share * size / rate / 1e3
    raise Refused("the row prints no time_us, and no rate of two digits")


def networks(chip: Chip, n: int, nodes: int = 1, system: str = "") -> Networks:
    """What joins so many chips.

    Cards without links of their own are joined by their host; hosts that are not filled are smaller domains,
    but where a rack of many hosts is one domain. Of a torus it is the axis of so many chips, in a slice that
    the system's name tells, or all of it.
    """
    if not chip.torus:
        hosted = chip.links == 1 or (nodes > 1 and chip.domain_chips == chip.chips_per_host)
        return Cluster.of(chip, n, domain=min(chip.chips_per_host, -(-n // nodes)) if hosted else 0).levels
    shape = re.search(r"\d+(x\d+)+", system)
    axes = Slice.of(chip, shape[0]).axes if shape else (chip.axis(n),)
    along = axes if prod(axis.size for axis in axes) == n else tuple(a for a in axes if a.size == n)[:1]
    if not along:
        raise Refused(f"{n} devices are no axis of {system}")
    return along


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


def seconds(row: Timed, one: Fabric | None = None) -> float:
    """The time of a row, with what its tool times besides: on a torus, of links at their documented share.

    Under switches, by the fabric of its chip unless another is given.
    """
    if row.chip.torus:
        ideal = FORMULAS[row.what](row.nbytes, *row.networks)
        return TORUS_S + ideal.latency_s + ideal.bandwidth_s / row.chip.link_achieved_fraction
    found = (one or fabric(row.chip)).seconds(row.what, row.nbytes, *row.networks, ring=row.ring)
    return found + BENCH_S * row.bench


def fit(rows: Sequence[Timed]) -> Values:
    """The figures of one generation that make the errors of these rows least."""

    def errors(values: Values) -> list[float]:
        one = made("", values)
        return [far(log(seconds(row, one) / row.seconds), NOISE) for row in rows]

    return fitted(EXPECTED | (HOSTED if rows[0].chip.links == 1 else {}), errors)


@cache
def fabric(chip: Chip) -> Fabric:
    """What the links of a chip attain: its generation's line, or NVLink 4's."""
    lines = resources.record("kernel_fits")["fabrics"]
    own = generation(chip)
    name = own if own in lines else "NVLink 4"
    return made(name, lines[name])
