"""The energy that chips use: the chips alone, with their nodes, or with the whole site.

Chapter: Energy and power.

>>> from scalingbook_lib.machines import chips
>>> print(energy(chips.H100, 30.84e6 * 3600))
21.6 GWh: the chips alone, at maximum power
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import Result, si

KWH_J = 3.6e6


@dataclass(frozen=True, slots=True)
class Boundary(Result):
    """The boundary of the energy count: node power over chip power, and site power over node power (PUE)."""

    name: str
    node: float = 1.0
    pue: float = 1.0

    def __str__(self) -> str:
        return f"{self.name}: {self.node * self.pue:.3g} times the chips' power"


CHIPS = Boundary("the chips alone, at maximum power")
# NVIDIA's DGX H100 user guide: at most 10.2 kW, with eight GPUs of 700 W.
NODE = Boundary("with their nodes", node=10.2e3 / (8 * 700))
# Google's environmental report of 2025: 1.09 over all its sites in 2024.
SITE = Boundary("with their nodes and the site", node=NODE.node, pue=1.09)
BOUNDARIES = (CHIPS, NODE, SITE)


@dataclass(frozen=True, slots=True)
class Energy(Result):
    """Energy in joules, counted within a boundary."""

    joules: float
    boundary: Boundary = CHIPS

    @property
    def mwh(self) -> float:
        """The energy in megawatt-hours."""
        return self.joules / KWH_J / 1e3

    def usd(self, usd_per_kwh: float) -> float:
        """The cost in USD at `usd_per_kwh`."""
        return self.joules / KWH_J * usd_per_kwh

    def __str__(self) -> str:
        return f"{si(self.joules / 3600, 'Wh')}: {self.boundary.name}"


def energy(chip: Chip, chip_s: float, boundary: Boundary = CHIPS) -> Energy:
    """Chip-seconds times the chip's maximum power, times the boundary's factors.

    An H100 and an H200 measured 93 to 101% of that in training steps and prefill, and two thirds of it in
    single-user decoding (`evidence/data/own_power.csv`). Raises a ValueError if the chip's power is not
    published.
    """
    if chip.power_w is None:
        raise ValueError(f"{chip.name} has no published power; choose another chip, or replace(power_w=...)")
    # W · s; both factors apply to all of it
    return Energy(chip_s * chip.power_w * boundary.node * boundary.pue, boundary)
