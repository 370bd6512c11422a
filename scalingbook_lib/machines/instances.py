"""The instances that clouds rent, by name, and the chips in them with the network that the instance has.

`instances.csv` has a row per instance: its chip, how many, the chips that scale-up links join (`domain`,
where several instances share one), and the bandwidth of its network to other instances in Gb/s, of which
every chip gets an equal share. A row without it takes the chip's own number.

>>> p4d = find("p4d.24xlarge")
>>> print(p4d)
p4d.24xlarge (AWS): 8 A100 40GB, 400 Gb/s of network
>>> p4d.joined(chips.find(p4d.chip)).dcn_bytes_per_s
6250000000.0
"""

import csv
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.units import Result

_ALIKE = 0.72  # of two spellings: 'p5.49xlarge' is near 'p5.48xlarge'
_PREFIX = re.compile(r"(standard_|ml\.)")  # of Azure's sizes, and of SageMaker's types


@dataclass(frozen=True, slots=True)
class Instance(Result):
    """One instance: `chips` chips of that name of the catalog, in a scale-up domain of `domain` chips.

    `network_bytes_per_s` is unidirectional, of the whole instance; None if no source documents it.
    """

    name: str
    cloud: str
    chip: str
    chips: int
    domain: int
    network_bytes_per_s: float | None
    source: Source = field(repr=False)

    @property
    def torus(self) -> bool:
        """Whether the chips form a torus, whose slices span instances."""
        return chips.ALL[self.chip].torus is not None

    @property
    def scale_up_chips(self) -> int | None:
        """The chips of a scale-up domain; None for a torus, whose links have no such domain."""
        return None if self.torus else self.domain

    @property
    def network_bytes_per_s_per_chip(self) -> float | None:
        """Each chip's equal share of the network, unidirectional; None if no source documents it."""
        return self.network_bytes_per_s and self.network_bytes_per_s / self.chips

    @property
    def network(self) -> str:
        """The bandwidth of the network as text, "" if it is not documented."""
        return f"{self.network_bytes_per_s * 8 / 1e9:,.5g} Gb/s" if self.network_bytes_per_s else ""

    def joined(self, chip: Chip) -> Chip:
        """The chip with this instance's hosts, domain and share of the network.

        The chip of a torus is unchanged, except for its network.
        """
        share = self.network_bytes_per_s_per_chip or chip.dcn_bytes_per_s
        if chip.torus:
            return in_hosts(chip, dcn_bytes_per_s=share, source=self.source)
        most = chip.domain_chips or chip.chips_per_host
        # between the two, the instance is several hosts of one domain, such as half an NVL72
        one_host = self.chips < chip.chips_per_host or self.chips > most
        host = self.chips if one_host else chip.chips_per_host
        return in_hosts(
            chip, chips_per_host=host, domain_chips=self.domain, dcn_bytes_per_s=share, source=self.source
        )

    def __str__(self) -> str:
        network = f", {self.network} of network" if self.network else ""
        return f"{self.name} ({self.cloud}): {self.chips} {self.chip}{network}"


def in_hosts(chip: Chip, *, source: Source, **figures: float | None) -> Chip:
    """The chip with those of the numbers that differ from its own, each with this source."""
    changed = {name: value for name, value in figures.items() if value and value != getattr(chip, name)}
    if not changed:
        return chip
    return replace(chip, **changed, sources={**chip.sources, **dict.fromkeys(changed, source)})  # type: ignore[arg-type]


def find(name: str) -> Instance | None:
    """The instance of that name in any case and with any separators; None if there is none."""
    return _by_spelling().get(_spelled(name))


def nearest(name: str) -> tuple[str, ...]:
    """The names of the instances that begin like this one or are spelled most like it, at most four."""
    known, key = _by_spelling(), _spelled(name)[:40]
    family = [one for one in known if len(key) > 1 and one.startswith(key)]  # 'p5', 'a3-mega'
    return tuple(known[one].name for one in (family or get_close_matches(key, known, 4, _ALIKE))[:4])


def every() -> tuple[Instance, ...]:
    """Every instance of the table, in its order."""
    return tuple(_by_spelling().values())


def _spelled(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", _PREFIX.sub("", name.strip().lower(), count=1))


@cache
def _by_spelling() -> Mapping[str, Instance]:
    # also works from the zip archive that a page loads
    text = pkgutil.get_data(__package__ or "", "instances.csv")
    assert text
    rows = csv.DictReader(text.decode().splitlines())
    return MappingProxyType({_spelled(row["instance"]): _instance(row) for row in rows})


def _instance(row: Mapping[str, str]) -> Instance:
    chips = int(row["chips"])
    return Instance(
        name=row["instance"],
        cloud=row["cloud"],
        chip=row["chip"],
        chips=chips,
        domain=int(row["domain"] or chips),
        network_bytes_per_s=float(row["network_gbps"]) * 1e9 / 8 if row["network_gbps"] else None,
        source=Source(text=row["says"], as_of=row["read"], url=row["url"], disagreement=row["but"]),
    )
