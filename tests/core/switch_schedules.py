"""Which chip sends what to whom, level by level: what the switch simulator carries out."""

import itertools
from collections import defaultdict

from switch_simulator import Send, Sum, Wires


def peers(chip, wires, i):
    """The chips that differ from this one in their place on level i alone."""
    low, size = wires.below[i], wires.levels[i].size
    place = chip // low % size
    return [chip + (other - place) * low for other in range(size) if other != place]


def gather(levels):
    """From the outside in: each chip sends all that it has to its peers of the level."""
    wires, steps = Wires(levels), []
    has = {chip: {chip} for chip in range(wires.n)}
    for i in reversed(range(len(levels))):
        steps.append([Send(c, p, tuple(sorted(has[c]))) for c in has for p in peers(c, wires, i)])
        has = {c: has[c].union(*(has[p] for p in peers(c, wires, i))) for c in has}
    return steps


def scatter(levels):
    """From the inside out: each chip sends its peers the sums of what they answer for, and forgets them."""
    wires, steps = Wires(levels), []
    mine = {chip: set(range(wires.n)) for chip in range(wires.n)}
    for i in range(len(levels)):
        keep = {c: _kept(c, wires, i, mine[c]) for c in mine}
        steps.append(
            [Send(c, p, tuple(sorted(mine[c] & keep[p])), add=True) for c in mine for p in peers(c, wires, i)]
        )
        mine = keep
    return steps


def _kept(chip, wires, i, blocks):
    low, size = wires.below[i], wires.levels[i].size
    return {block for block in blocks if block // low % size == chip // low % size}


def reduce(levels):
    return scatter(levels) + gather_after(levels)


def gather_after(levels):
    """The gather of a reduce: the receiver replaces its stale part by the finished sum."""
    return [[Send(s.source, s.target, s.pieces, add="set") for s in step] for step in gather(levels)]


def exchange(levels):
    """First within the domain to the receiver's rail, then over the network to the receiver."""
    wires = Wires(levels)
    g = wires.below[sum(level.port == levels[0].port for level in levels)]
    rails, network = defaultdict(list), defaultdict(list)
    for source, goal in itertools.product(range(wires.n), repeat=2):
        middle = source // g * g + goal % g
        if middle != source:
            rails[source, middle].append((source, goal))
        if middle != goal:
            network[middle, goal].append((source, goal))
    return [[Send(a, b, tuple(found)) for (a, b), found in step.items()] for step in (rails, network) if step]


def sum_in_switches(levels):
    """The switch adds each chip's part, which it fetches from all; the chip sends the sum, copied to all."""
    everyone = tuple(range(Wires(levels).n))
    return [
        [Sum(everyone, (chip,), (chip,)) for chip in everyone],
        [Sum((chip,), everyone, (chip,), copies=True) for chip in everyone],
    ]


def sum_on_rails(levels, domains_sum):
    """Scatter in the domain, sum each rail in the network's switches, gather in the domain."""
    g, n = levels[0].size, Wires(levels).n
    blocks = [tuple(range(rail, n, g)) for rail in range(g)]
    ways = [(first + rail, rail, _others(first, g, rail)) for first in range(0, n, g) for rail in range(g)]
    domain = {chip: tuple(sorted((chip, *others))) for chip, _, others in ways}
    across = [Sum(rail, rail, rail) for rail in blocks]
    if domains_sum:  # the switch adds what it gets from all, and copies what it gets from one to all
        into = [Sum(domain[chip], (chip,), blocks[rail]) for chip, rail, _ in ways]
        out = [Sum((chip,), domain[chip], blocks[rail], copies=True) for chip, rail, _ in ways]
    else:
        into = [Send(other, chip, blocks[rail], add=True) for chip, rail, others in ways for other in others]
        out = [Send(chip, other, blocks[rail], add="set") for chip, rail, others in ways for other in others]
    return [into, across, out]


def _others(first, g, rail):
    return tuple(first + other for other in range(g) if other != rail)
