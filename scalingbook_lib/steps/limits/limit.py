"""The batch or layer size above which a step is compute-bound, and the network level that limits it.

The collectives give the times; a level's own term is its time with all other levels infinitely fast. `rules`
has the limits of one chip in round numbers, which large clusters approach. Chapter: GPUs.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from scalingbook_lib.collectives import Network, Transfer
from scalingbook_lib.machines import Axis, Chip, ClusterError, Level, Machine, Slice, chips
from scalingbook_lib.rules import data_parallel_tokens, expert_parallel_width, tensor_parallel_degree
from scalingbook_lib.units import BF16, DType, Result, count

type Cost = Callable[..., Transfer]


def noun(machine: Machine) -> str:
    """The machine as a sentence names it: 'TPU v5p 4x4x8', '1,024 H100s'."""
    return machine.name if isinstance(machine, Slice) else machine.chip.counted(machine.chips)


@dataclass(frozen=True, slots=True)
class LevelLimit(Result):
    """The minimum value with which this level alone would not be the bottleneck."""

    level: str
    least: float

    def __str__(self) -> str:
        return f"{self.level} {count(round(self.least))}"


@dataclass(frozen=True, slots=True)
class Limit(Result):
    """The minimum value of `unit` with which compute takes at least as long as the collective."""

    what: str  # 'data parallelism over 1,024 H100s'
    unit: str  # 'tokens per chip', 'F'
    least: float
    terms: tuple[LevelLimit, ...] = ()

    @property
    def bound(self) -> str:
        """The level that is the bottleneck; '' if nothing is communicated."""
        return max(self.terms, key=lambda term: term.least).level if self.least else ""

    def term(self, level: str) -> float:
        """The minimum value with which that level alone would not be the bottleneck.

        Raises a ValueError if the limit does not use that level.
        """
        found = {term.level: term.least for term in self.terms}
        if level not in found:
            raise ValueError(
                f"{self.what} does not use level {level!r}; it uses {', '.join(found) or 'none'}"
            )
        return found[level]

    def holds(self, value: float) -> bool:
        """Whether that value is at least the limit."""
        return value >= self.least

    def __str__(self) -> str:
        if not self.least:
            return f"{self.what} needs no communication: it is compute-bound for any {self.unit}"
        said = f"{self.what}: compute-bound above {_amount(self.least, self.unit)}"
        rest = ", ".join(str(term) for term in self.terms if term.level != self.bound and term.least)
        return f"{said}; the bottleneck is {self.bound}" + (f" (alone: {rest})" if rest else "")


def limit(what: str, unit: str, scale: float, cost: Cost, networks: tuple[Network, ...]) -> Limit:
    """The limit `scale` · (seconds per byte), over all levels and over each level alone.

    It is 0 if there is no network level.
    """
    if not networks:
        return Limit(what, unit, 0.0)
    terms = tuple(LevelLimit(name, scale * s) for name, s in each_level(cost, 1, *networks).items())
    # times are linear in the bytes, so one byte is enough
    return Limit(what, unit, scale * cost(1, *networks).bandwidth_s, terms)


def each_level(cost: Cost, nbytes: float, *networks: Network) -> dict[str, float]:
    """The seconds that a collective occupies each level, by the level's name, from the inside out."""
    return {name: cost(nbytes, *alone).bandwidth_s for name, alone in singled(networks)}


def singled(networks: tuple[Network, ...]) -> tuple[tuple[str, tuple[Network, ...]], ...]:
    """For every level its name, and all levels with the others infinitely fast; torus axes count as one."""
    if not networks:
        return ()
    if any(isinstance(network, Axis) for network in networks):
        return (("torus", networks),)
    levels = [level for level in networks if isinstance(level, Level)]
    free = [replace(level, bytes_per_s=math.inf) for level in levels]
    return tuple((one.name, (*free[:k], one, *free[k + 1 :])) for k, one in enumerate(levels))


def inner(machine: Machine, size: int) -> tuple[Network, ...]:
    """The networks that connect a group of the `size` innermost chips.

    Raises an error if the machine has no such group.
    """
    if isinstance(machine, Slice):
        return _axes(machine, size, "Y")
    if not 1 <= size <= machine.chips:
        raise ClusterError(
            f"a group of {size:,} chips is not a part of {machine.name}; write 1 to {machine.chips:,}"
        )
    return tuple(level for level in replace(machine, chips=size).levels if level.size > 1)


def outer(machine: Machine, inside: int) -> tuple[Network, ...]:
    """The networks that connect chips with the same shard, if each `inside` neighbors share an array.

    Raises an error if groups of `inside` chips do not divide the machine.
    """
    return _axes(machine, inside, "X")


def _axes(machine: Machine, inside: int, letter: str) -> tuple[Network, ...]:
    if inside < 1 or machine.chips % inside:
        raise ClusterError(
            f"groups of {inside:,} do not divide {machine.name} ({machine.chips:,} chips); "
            "write a divisor of the number of chips"
        )
    return machine.mesh(Y=inside, X=machine.chips // inside).axes(letter)


def _amount(value: float, unit: str) -> str:
    written = count(math.ceil(round(value, 6)))
    return f"{unit} = {written}" if unit == "F" else f"{written} {unit}"


MACHINES = ("A100", "H100", "H200", "B200", "B300", "GB200", "GB300", "MI300X")


@dataclass(frozen=True, slots=True)
class Rules(Result):
    """C/W within a domain and C/W_n across domains, and the TP and EP limits that follow.

    These are rules of thumb: (1 - 1/n) is taken as 1. `F` is the width that `tensor_degree` is for.
    """

    chip: str
    domain: int
    domain_tokens: float  # data parallelism alone in one domain, tokens per chip
    network_tokens: float  # across domains, with the weights sharded within each domain
    F: int
    tensor_degree: float  # F W / C; the exact limit applies to Y - 1
    expert_F: float  # within a domain: C / W
    far_expert_F: float  # across many domains: g C / W_n

    def __str__(self) -> str:
        return (
            f"{self.chip}, domains of {self.domain}: DP needs {count(round(self.domain_tokens))} tokens "
            f"per chip within a domain and {count(round(self.network_tokens))} across domains, TP degree "
            f"{self.tensor_degree:.3g} for F = {count(self.F)}, EP needs experts "
            f"{count(round(self.expert_F))} wide within a domain and {count(round(self.far_expert_F))} across"
        )


def rules(chip: Chip, F: int = 28672, dtype: DType = BF16) -> Rules:
    """The limits of a chip with its own domain and network, at documented peaks.

    Raises a ValueError if the chip has no documented domain of switches or network.
    """
    domain, nic = chip.domain_chips, chip.dcn_bytes_per_s
    if not domain or not nic:
        what = "domain of switches (use `data_parallel` on a Slice)" if not domain else "network bandwidth"
        raise ValueError(f"{chip.name} has no {what}; rules are for {', '.join(MACHINES)}")
    W = chip.domain_bytes_per_s()  # bytes/s of a chip, unidirectional
    return Rules(
        chip=chip.name,
        domain=domain,
        domain_tokens=data_parallel_tokens(chip, dtype=dtype, bytes_per_s=W),
        # the g chips of each domain gather one replica through g NICs: W_n = g W_nic
        network_tokens=data_parallel_tokens(chip, dtype=dtype, bytes_per_s=domain * nic),
        F=F,
        tensor_degree=tensor_parallel_degree(F, chip, dtype=dtype, bytes_per_s=W),
        expert_F=expert_parallel_width(chip, gated=False, dtype=dtype, bytes_per_s=W),
        far_expert_F=expert_parallel_width(chip, gated=False, dtype=dtype, bytes_per_s=nic),
    )


def table(names: Iterable[str] = MACHINES, F: int = 28672) -> tuple[Rules, ...]:
    """The rules of every machine in the chapter."""
    return tuple(rules(chips.find(name), F) for name in names)
