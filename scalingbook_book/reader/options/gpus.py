"""The clusters that explorers of plans offer: powers of two, so that mesh axes fit their domains."""

from scalingbook_lib.machines import Cluster, chips

RACKS = "GB200, 64 of 72"  # jobs use 64 chips of a rack, a power of two
DOMAINS = {
    "H100": ("H100", 8),
    "B200": ("B200", 8),
    RACKS: ("GB200", 64),
    "GB300, 64 of 72": ("GB300", 64),
    "MI355X": ("MI355X", 8),
    "Trainium3": ("Trainium3", 64),
    "Gaudi3": ("Gaudi3", 8),
    "MI455X, 64 of 72": ("MI455X", 64),
    "Rubin, 64 of 72": ("Rubin", 64),
}
CLUSTERS = ("H100", "B200", RACKS)  # clusters whose curves are drawn side by side


def cluster(machine: str, n: int, **how: object) -> Cluster:
    """Return `n` chips of this kind in their scale-up domains."""
    chip, domain = DOMAINS[machine]
    return Cluster.of(chips.find(chip), n, domain=domain, **how)


def within(machine: str) -> str:
    """Return the name of the network level within a domain: 'NVLink', 'mesh', 'switches'."""
    return cluster(machine, DOMAINS[machine][1]).levels[0].name


def bottleneck_within(machine: str) -> str:
    """Return the name of the network within a domain as a sentence needs it: 'NVLink', 'the full mesh'."""
    level = within(machine)
    return {"mesh": "the full mesh", "switches": "the switches"}.get(level, level)


def domain_label(machine: str) -> str:
    """Return the size of the machine's domains as text: 'domains of 8'."""
    return f"domains of {DOMAINS[machine][1]}"
