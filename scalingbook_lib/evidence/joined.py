"""On which machine were so many chips, where nobody says? In the largest domains, or in a cubic slice."""

from collections.abc import Iterator
from math import isqrt

from scalingbook_lib.machines import Cluster, Machine, Slice, SliceError, Torus
from scalingbook_lib.machines.chips import Chip

CARD_BYTES_PER_S = 12.5e9  # assumed where nobody says what network a chip has: a card of 100 Gb/s each


def machine(chip: Chip, chips: int) -> Machine:
    """Chips in equal domains under switches for all of them; or the smallest slice, as cubic as it comes.

    Of a GB200's domain of 72, powers of two use 64. A SliceError where no slice holds so many.
    """
    if chip.torus:
        for n in range(chips, chip.torus.pod_chips + 1):
            if shapes := list(_shapes(chip.torus, n)):
                return Slice(chip, min(shapes, key=lambda sides: max(sides) / min(sides)))
        raise SliceError(f"no slice of {chip.name} has {chips:,} chips")
    most = min(chip.domain_chips or chip.chips_per_host, chips)
    domain = max(n for n in range(1, most + 1) if chips % n == 0)
    nodes = chips // domain
    nic, ports = chip.dcn_bytes_per_s or CARD_BYTES_PER_S, 64 if nodes <= 32 else 2 * nodes
    return Cluster(chip=chip, chips=chips, domain=domain, ports=ports, nic_bytes_per_s=nic)


def _shapes(torus: Torus, n: int) -> Iterator[tuple[int, ...]]:
    """The sides of every slice with so many chips, the shortest first."""
    for a in (a for a in range(1, isqrt(n) + 1) if n % a == 0):
        rest = n // a
        squares = [(a, rest)]
        cubes = [(a, b, rest // b) for b in range(a, isqrt(rest) + 1) if rest % b == 0]
        yield from (sides for sides in (squares if torus.dims == 2 else cubes) if torus.exists(sides))
