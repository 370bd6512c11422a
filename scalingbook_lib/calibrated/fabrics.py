"""The times of collectives on each generation of links: `fabric(chip)` is the model to compute with.

`evidence.fabric_fit` fitted the recorded values to published measurements. Chapter: GPUs.
"""

from functools import cache

from scalingbook_lib.calibrated import records
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.collectives.attained import AttainedRate, Fabric
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import GB

CURVES = "ring", "in_switch", "exchange", "network"  # the kinds of transfer with a curve of their own
LINK_GENERATIONS = {
    "PCIe 4": 32,
    "PCIe 5": 64,
    "NVLink 2": 150,
    "NVLink 3": 300,
    "NVLink 4": 450,
    "NVLink 5": 1e9,
}


def generation(chip: Chip) -> str:
    """The generation of links within a host, by its unidirectional rate: 'NVLink 4', 'PCIe 5' and so on."""
    if chip.full_mesh:
        return "full mesh"
    rate = chip.links * chip.link_bytes_per_s / GB
    return next(name for name, most in LINK_GENERATIONS.items() if rate <= most)


def fabric_from(name: str, values: Values) -> Fabric:
    """The `Fabric` with these fitted values."""

    curves = {
        name: AttainedRate(**{figure: values[f"{name}_{figure}"] for figure in ("share", "late_s", "half_s")})
        for name in CURVES
    }
    rest = {figure: values[figure] for figure in ("launch_s", "step_s", "pair", "crowding", "network_s")}
    return Fabric(name=name, **curves, **rest)  # type: ignore[arg-type]


@cache
def fabric(chip: Chip) -> Fabric:
    """The fitted fabric of a chip's generation of links, or NVLink 4's if that was not measured."""
    lines = records.record("kernel_fits")["fabrics"]
    own = generation(chip)
    name = own if own in lines else "NVLink 4"
    return fabric_from(name, lines[name])
