"""Which clusters do the explorers of plans offer? Powers of two, so that axes fit their domains."""

from scalingbook_lib.machines import Cluster, chips

RACKS = "GB200, 64 of 72"  # jobs take 64 chips of a rack, a power of two
DOMAINS = {"H100": ("H100", 8), "B200": ("B200", 8), RACKS: ("GB200", 64)}
CLUSTERS = tuple(DOMAINS)


def cluster(machine: str, n: int, **how: object) -> Cluster:
    """`n` chips of that kind in its domains."""
    chip, domain = DOMAINS[machine]
    return Cluster.of(chips.find(chip), n, domain=domain, **how)


def joined(machine: str) -> str:
    """'domains of 8'."""
    return f"domains of {DOMAINS[machine][1]}"
