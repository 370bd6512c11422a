"""The fit of the times of collectives on each generation of links to published measurements.

`predicted_s` is the time of one row by the model of `calibrated.fabrics`; `fit` made the recorded
`kernel_fits.json` (`tools.kernel_fits`). Chapter: GPUs.
"""

import re
from collections.abc import Sequence
from math import log, prod
from typing import Any, NamedTuple

from scalingbook_lib.calibrated.fabrics import fabric, fabric_from
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.collectives import FORMULAS, Collective
from scalingbook_lib.collectives.attained import Fabric
from scalingbook_lib.evidence.fitting import Prior, fitted, pseudo_huber
from scalingbook_lib.evidence.reading.cells import Cells, UnpredictedRow, needed, number, text, whole
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import Chip, Slice

NOISE = 0.1
TORUS_LAUNCH_S = 3e-6  # launch of a TPU collective: 128 KiB over 3 hops of v5e take 8 µs, formula 5
BENCHMARK_OVERHEAD_S = 2.4e-5  # added by PyTorch's all_reduce_bench.py on H200 and B200
CURVE_PRIORS = {  # share of the bandwidth, late seconds, time at which half of them apply
    "ring": (0.75, 2e-5, 8e-6),
    "in_switch": (0.9, 6e-5, 3e-5),
    "exchange": (0.65, 1e-5, 5e-6),
    "network": (0.95, 1e-4, 1e-4),
}
PRIORS = {
    "launch_s": Prior(6e-6, 0.5, 1e-7, 1e-3),
    "step_s": Prior(1e-6, 0.5, 1e-8, 1e-3),
    "pair": Prior(0.8, 0.2, 0.1, 8.0),
    "crowding": Prior(1e-3, 1e-3, 1e-4, 3.0),  # zero under switches
    "network_s": Prior(1.7e-4, 0.5, 1e-6, 1e-2),
} | {
    f"{name}_{figure}": Prior(value, spread, low, high)
    for name, values in CURVE_PRIORS.items()
    for figure, value, (spread, low, high) in zip(
        ("share", "late_s", "half_s"),
        values,
        ((0.15, 0.02, 1.1), (1.0, 1e-9, 1e-2), (1.0, 1e-9, 1e-2)),
        strict=True,
    )
}
HOST_PRIORS = {"crowding": Prior(1.0, 1.0, 1e-3, 3.0), "pair": Prior(1.0, 1e-3, 0.9, 1.1)}
"""Without a switch, the path leads through the host, whose bandwidth the chips share."""


type Networks = tuple[Any, ...]  # switch levels, or torus axes


class MeasuredCollective(NamedTuple):
    """A collective of `nbytes`, as `collectives` counts them, over switch levels or torus axes."""

    chip: Chip
    networks: Networks
    what: str
    nbytes: float
    ring: bool = False
    bench: bool = False
    seconds: float = 0.0


def measured_collective(row: Cells, chip: Chip) -> MeasuredCollective:
    """A row of a table of collectives.

    Raises a ValueError if the row has no collective, size, number of devices or time.
    """
    what, tool = Collective.named(text(row, "collective")), text(row, "algo_or_tool")
    n, size = needed(row, "n_devices"), needed(row, "size_bytes")
    return MeasuredCollective(
        chip=chip,
        networks=networks(chip, n, whole(row, "n_nodes") or 1, text(row, "system")),
        what=what,
        nbytes=size * n if what is Collective.ALL_TO_ALL else size,  # the source counts one chip's share
        ring=tool.startswith("Ring"),
        bench="all_reduce_bench" in tool,
        seconds=(number(row, "time_us") or _time_from_rate_us(row, what, n, size)) / 1e6,
    )


def _time_from_rate_us(row: Cells, what: str, n: int, size: int) -> float:
    """The time in µs from the array's or the bus bandwidth, if that has at least two digits.

    An all-reduce passes the bus twice.
    """
    passes = 2 if what is Collective.ALL_REDUCE else 1
    for column, share in (("busbw_GBps", passes * (n - 1) / n), ("algbw_GBps", 1.0)):
        rate = number(row, column)
        if rate and len(text(row, column).replace(".", "").strip("0")) > 1:
            return share * size / rate / 1e3
    raise UnpredictedRow("the row has no time_us and no rate with two significant digits")


def networks(chip: Chip, n: int, nodes: int = 1, system: str = "") -> Networks:
    """The switch levels or torus axes that join `n` chips.

    PCIe boards without links of their own are joined by their host. Partly filled hosts form smaller domains,
    except in a rack-scale domain. On a torus it is the axis of that size, in the slice that the system's name
    gives. Raises `UnpredictedRow` if the slice has no such axis.
    """
    if not chip.torus:
        hosted = nodes > 1 and chip.domain_chips == chip.chips_per_host
        return Cluster.of(chip, n, domain=min(chip.chips_per_host, -(-n // nodes)) if hosted else 0).levels
    shape = re.search(r"\d+(x\d+)+", system)
    axes = Slice.of(chip, shape[0]).axes if shape else (chip.axis(n),)
    along = axes if prod(axis.size for axis in axes) == n else tuple(a for a in axes if a.size == n)[:1]
    if not along:
        raise UnpredictedRow(f"{n} devices are no axis of {system}")
    return along


def predicted_s(row: MeasuredCollective, one: Fabric | None = None) -> float:
    """The predicted time of a row in seconds, including what its benchmark adds.

    On a torus, the formula with links at their documented efficiency; under switches, the fabric of its chip,
    unless another is given.
    """
    if row.chip.torus:
        ideal = FORMULAS[row.what](row.nbytes, *row.networks)
        return TORUS_LAUNCH_S + ideal.latency_s + ideal.bandwidth_s / row.chip.link_achieved_fraction
    found = (one or fabric(row.chip)).seconds(row.what, row.nbytes, *row.networks, ring=row.ring)
    return found + BENCHMARK_OVERHEAD_S * row.bench


def fit(rows: Sequence[MeasuredCollective]) -> Values:
    """The values of one generation that minimize the errors of these rows."""

    def errors(values: Values) -> list[float]:
        one = fabric_from("", values)
        return [pseudo_huber(log(predicted_s(row, one) / row.seconds), NOISE) for row in rows]

    return fitted(PRIORS | (HOST_PRIORS if rows[0].chip.joined == "PCIe" else {}), errors)
