"""What must be large enough for the chips, and not the network, to set the pace? And which level says so?

The collectives give the times; a level's own term is its time with all other levels infinitely fast.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from scalingbook_lib.collectives import Network, Transfer
from scalingbook_lib.machines import Axis, ClusterError, Level, Machine, Slice
from scalingbook_lib.units import Told, count

type Cost = Callable[..., Transfer]


@dataclass(frozen=True, slots=True)
class Term(Told):
    """What one level alone would ask for."""

    level: str
    least: float

    def __str__(self) -> str:
        return f"{self.level} {count(round(self.least))}"


@dataclass(frozen=True, slots=True)
class Limit(Told):
    """How large something must be for the arithmetic to take longer than the collective: `least` or more."""

    what: str  # 'data parallelism over 1,024 H100'
    unit: str  # 'tokens per chip', 'F'
    least: float
    terms: tuple[Term, ...] = ()

    @property
    def bound(self) -> str:
        """The level that asks for most; '' where nothing is to be moved."""
        return max(self.terms, key=lambda term: term.least).level if self.least else ""

    def term(self, level: str) -> float:
        """What that level alone would ask for."""
        found = {term.level: term.least for term in self.terms}
        if level not in found:
            raise ValueError(f"{self.what} uses no level {level!r}; it uses {', '.join(found) or 'none'}")
        return found[level]

    def holds(self, value: float) -> bool:
        """Whether that value is enough."""
        return value >= self.least

    def __str__(self) -> str:
        if not self.least:
            return f"{self.what} moves nothing: any {self.unit} will do"
        asked = f"{self.what} needs {_amount(self.least, self.unit)} for the arithmetic to take longer"
        rest = ", ".join(str(term) for term in self.terms if term.level != self.bound and term.least)
        return f"{asked}: {self.bound} binds" + (f" (alone: {rest})" if rest else "")


def limit(what: str, unit: str, scale: float, cost: Cost, networks: tuple[Network, ...]) -> Limit:
    """`scale` · the seconds a byte takes, over all levels and over each alone; nothing over none."""
    if not networks:
        return Limit(what, unit, 0.0)
    terms = tuple(Term(name, scale * s) for name, s in each_level(cost, 1, *networks).items())
    return Limit(what, unit, scale * cost(1, *networks).bandwidth_s, terms)


def each_level(cost: Cost, nbytes: float, *networks: Network) -> dict[str, float]:
    """The seconds that a collective keeps each level busy, by its name, from the inside out."""
    return {name: cost(nbytes, *alone).bandwidth_s for name, alone in singled(networks)}


def singled(networks: tuple[Network, ...]) -> tuple[tuple[str, tuple[Network, ...]], ...]:
    """For every level its name, and all with the others infinitely fast; torus axes are one."""
    if not networks:
        return ()
    if any(isinstance(network, Axis) for network in networks):
        return (("torus", networks),)
    levels = [level for level in networks if isinstance(level, Level)]
    free = [replace(level, bytes_per_s=math.inf) for level in levels]
    return tuple((one.name, (*free[:k], one, *free[k + 1 :])) for k, one in enumerate(levels))


def inner(machine: Machine, size: int) -> tuple[Network, ...]:
    """What joins a group of the `size` innermost chips."""
    if isinstance(machine, Slice):
        return _axes(machine, size, "Y")
    if not 1 <= size <= machine.chips:
        raise ClusterError(
            f"a group of {size:,} chips is no part of {machine.name}; write 1 to {machine.chips:,}"
        )
    return tuple(level for level in replace(machine, chips=size).levels if level.size > 1)


def outer(machine: Machine, inside: int) -> tuple[Network, ...]:
    """What joins the chips that hold the same part, where each `inside` neighbors split an array."""
    return _axes(machine, inside, "X")


def _axes(machine: Machine, inside: int, letter: str) -> tuple[Network, ...]:
    if inside < 1 or machine.chips % inside:
        raise ClusterError(
            f"groups of {inside:,} do not divide {machine.name} ({machine.chips:,} chips); "
            "write a divisor of the number of chips"
        )
    return machine.mesh(Y=inside, X=machine.chips // inside).axes(letter)


def at_least(least: float, **given: float) -> None:
    """Refuse what cannot be, by name."""
    for name, value in given.items():
        if not value >= least:
            raise ValueError(f"{name}={value}: write a number of at least {least:g}")


def _amount(value: float, unit: str) -> str:
    written = count(math.ceil(round(value, 6)))
    return f"{unit} ≥ {written}" if unit == "F" else f"{written} {unit}"
