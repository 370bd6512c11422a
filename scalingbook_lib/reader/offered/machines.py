"""Which machine does a name on a control mean?"""

from functools import lru_cache

from scalingbook_lib.machines import Cluster, Machine, Slice, chips


def torus(name: str) -> Slice:
    """'TPU v5e 4x4'."""
    chip, _, shape = name.rpartition(" ")
    return Slice.of(chips.find(chip), shape)


@lru_cache(maxsize=64)  # one Slice or Cluster for all views, whose own caches then hold
def machine(name: str) -> Machine:
    """A torus, 'TPU v5e 4x4', or a cluster under switches, 'H100 × 4,096'."""
    chip, _, n = name.partition(" × ")
    return Cluster.of(chips.find(chip), int(n.replace(",", ""))) if n else torus(name)
