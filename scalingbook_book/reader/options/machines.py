"""Machines by the name that a control shows."""

from functools import lru_cache

from scalingbook_lib.machines import Cluster, Machine, Slice, chips


def torus(name: str) -> Slice:
    """The slice of that name, as in 'TPU v5e 4x4'."""
    chip, _, shape = name.rpartition(" ")
    return Slice.of(chips.find(chip), shape)


@lru_cache(maxsize=64)  # one Slice or Cluster for all views, whose own caches then hold
def machine(name: str) -> Machine:
    """The torus, as in 'TPU v5e 4x4', or the cluster of switches, as in 'H100 × 4,096', of that name."""
    chip, _, n = name.partition(" × ")
    return switched(chips.find(chip), int(n.replace(",", ""))) if n else torus(name)


def switched(chip: chips.Chip, n: int) -> Cluster:
    """`n` chips in full domains, or 64 of each rack of 72 where they do not fill racks, as jobs are run."""
    domain = chip.domain_chips or n
    return Cluster.of(chip, n, domain=1 << domain.bit_length() - 1 if n > domain and n % domain else 0)
