"""Look up machines by the name that a control shows."""

from functools import lru_cache

from scalingbook_lib.machines import Cluster, Machine, Slice, chips


def torus(name: str) -> Slice:
    """Return the slice with this name, as in 'TPU v5e 4x4'."""
    chip, _, shape = name.rpartition(" ")
    return Slice.of(chips.find(chip), shape)


@lru_cache(maxsize=64)  # one Slice or Cluster for all views, so that their own caches are shared
def machine(name: str) -> Machine:
    """Return the torus, as in 'TPU v5e 4x4', or the switched cluster, as in 'H100 × 4,096'."""
    chip, _, n = name.partition(" × ")
    return switched(chips.find(chip), int(n.replace(",", ""))) if n else torus(name)


def switched(chip: chips.Chip, n: int) -> Cluster:
    """Return `n` chips in full domains, or 64 of each rack of 72 if they do not fill racks, as jobs run."""
    domain = chip.domain_chips or n
    return Cluster.of(chip, n, domain=1 << domain.bit_length() - 1 if n > domain and n % domain else 0)
