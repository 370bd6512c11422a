"""The machine that is assumed for a number of chips: the largest domains, or the most cubic slice."""

from collections.abc import Iterator
from math import isqrt

from scalingbook_lib.machines import Cluster, Machine, Slice, SliceError, Torus
from scalingbook_lib.machines.chips import Chip

DEFAULT_NIC_BYTES_PER_S = 12.5e9  # assumed where the network is unknown: one 100 Gb/s NIC per chip


def default_machine(chip: Chip, chips: int, group: int = 1) -> Machine:
    """Equal scale-up domains under switches that reach all of them, or the smallest, most cubic slice.

    Of a GB200's domain of 72, powers of two use 64 chips. If possible, a domain holds whole groups of `group`
    chips, such as the groups of tensor parallelism: 12 GPUs are two nodes of 6, but three nodes of 4 for
    groups of 4. Raises a SliceError if no slice has as many chips.
    """
    if chip.torus:
        for n in range(chips, chip.torus.pod_chips + 1):
            if shapes := list(_slice_shapes(chip.torus, n)):
                return Slice(chip, min(shapes, key=lambda sides: max(sides) / min(sides)))
        raise SliceError(f"no slice of {chip.name} has {chips:,} chips")
    most = min(chip.domain_chips or chip.chips_per_host, chips)
    domain = max((n for n in range(1, most + 1) if chips % n == 0), key=lambda n: (n % group == 0, n))
    nodes = chips // domain
    nic, ports = chip.dcn_bytes_per_s or DEFAULT_NIC_BYTES_PER_S, 64 if nodes <= 32 else 2 * nodes
    return Cluster(chip=chip, chips=chips, domain=domain, ports=ports, nic_bytes_per_s=nic)


def _slice_shapes(torus: Torus, n: int) -> Iterator[tuple[int, ...]]:
    """The sides of every slice of exactly `n` chips, in ascending order."""
    for a in (a for a in range(1, isqrt(n) + 1) if n % a == 0):
        rest = n // a
        squares = [(a, rest)]
        cubes = [(a, b, rest // b) for b in range(a, isqrt(rest) + 1) if rest % b == 0]
        yield from (sides for sides in (squares if torus.dims == 2 else cubes) if torus.exists(sides))
