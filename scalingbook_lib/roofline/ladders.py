"""Which of a chip's memories and links limits an operation that uses several of them?"""

from collections.abc import Mapping
from dataclasses import dataclass

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import BF16, DType, Told, si


def levels(chip: Chip) -> dict[str, float]:
    """Every documented bandwidth of the chip, one way: ICI is one axis with wrap-around, NVLink all links."""
    ladder = {
        "VMEM": chip.vmem_bytes_per_s,
        "HBM": chip.hbm_bytes_per_s,
        "ICI": 2 * chip.link_bytes_per_s if chip.torus else None,
        "NVLink": None if chip.torus else chip.links * chip.link_bytes_per_s,
        "PCIe": chip.pcie_bytes_per_s,
        "DCN": chip.dcn_bytes_per_s,
    }
    return {name: rate for name, rate in ladder.items() if rate}


@dataclass(frozen=True, slots=True)
class Ladder(Told):
    """One operation against several bandwidths at once: a time for the math and one for every level."""

    math_s: float
    level_s: Mapping[str, float]

    @property
    def terms(self) -> dict[str, float]:
        """Every term by name, the longest first."""
        return dict(sorted({"math": self.math_s, **self.level_s}.items(), key=lambda term: -term[1]))

    @property
    def slowest(self) -> str:
        """The term that bounds the time."""
        return next(iter(self.terms))

    @property
    def lower_s(self) -> float:
        """The time if everything overlaps."""
        return max(self.terms.values())

    @property
    def upper_s(self) -> float:
        """The time if nothing overlaps."""
        return sum(self.terms.values())

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {si(seconds, 's')}" for name, seconds in self.terms.items())
        return f"{self.slowest} takes longest: {terms}"


def ladder(flops: float, nbytes: Mapping[str, float], chip: Chip, dtype: DType = BF16) -> Ladder:
    """An operation that moves bytes over several levels: `ladder(f, {"HBM": 1e9, "ICI": 1e8}, V5E)`."""
    known = levels(chip)
    for name in nbytes:
        if name not in known:
            raise ValueError(
                f"{chip.name} has no documented {name} bandwidth; write one of {', '.join(known)}"
            )
    level_s = {name: moved / known[name] for name, moved in nbytes.items()}
    return Ladder(flops / chip.flops_per_s(dtype), level_s)


def bytes_in_flight(bytes_per_s: float, latency_s: float) -> float:
    """What must be under way at any moment to use a bandwidth fully (Little's law): rate · latency."""
    return bytes_per_s * latency_s
