"""Routes every message of a collective through domains and a tree of switches, in exact fractions.

It knows nothing of formulas. A cluster is wired from its sizes: every chip has one wire each way into its
domain (or one to every peer of it) and one into its leaf; a unit of the tree has one wire up and down, as
wide as its chips' shares together. A step is a set of messages that are under way at once: it takes as long
as its busiest wire, plus the hop of the widest way. A `Sum` goes up once over every wire from its members to
the switch where they meet, is added there and comes down once to each receiver. In the end every chip must
hold exactly what the collective promises.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction as F


class Broken(AssertionError):
    """The schedule did something that chips and switches cannot do."""


@dataclass(frozen=True)
class Send:
    """`pieces` from one chip to another; `add`: the receiver adds them to what it holds of them."""

    source: int
    target: int
    pieces: tuple
    add: bool = False


@dataclass(frozen=True)
class Sum:
    """`pieces` of all members, added in the switch where their ways meet, to each of the targets.

    A target that is no member adds what comes down to its own, unless `copies`: then it has the sum instead.
    """

    members: tuple
    targets: tuple
    pieces: tuple
    copies: bool = False


class Wires:
    """Every wire by name, and which of them lie between two chips."""

    def __init__(self, levels):
        self.levels = levels
        self.n = math.prod(level.size for level in levels)
        self.below = [math.prod(v.size for v in levels[:i]) for i in range(len(levels) + 1)]

    def meets(self, chips):
        """The level at which the ways of these chips meet."""
        for i in range(len(self.levels)):
            if len({chip // self.below[i + 1] for chip in chips}) == 1:
                return i
        raise Broken("these chips are not in one cluster")

    def up(self, chip, top):
        """The wires from a chip up to the switches of level `top`, with what each carries a second."""
        port = self.levels[top].port
        first = next(i for i, level in enumerate(self.levels) if level.port == port)
        for i in range(first, top + 1):
            group = chip // self.below[i] if i > first else chip
            width = self.below[i] if i > first else 1
            yield (port, i, group), width * self.levels[i].bytes_per_s

    def way(self, source, target):
        top = self.meets([source, target])
        peer = self.levels[top].peer_bytes_per_s
        if peer:
            return {("peer", source, target): peer}, top
        wires = {("up", *name): rate for name, rate in self.up(source, top)}
        return wires | {("down", *name): rate for name, rate in self.up(target, top)}, top


@dataclass
class Run:
    """Step after step, or all wires at work all the time."""

    seconds: F
    busiest_s: F
    hops_s: F


def execute(name, steps, levels, nbytes, pieces):
    wires, carried, seconds, hops = Wires(levels), defaultdict(F), F(0), F(0)
    rates, chips = {}, [start(name, chip, wires.n) for chip in range(wires.n)]
    for step in steps:
        load, top, arrivals = defaultdict(F), 0, []
        for message in step:
            amount = F(nbytes) * len(message.pieces) / pieces
            used, level = _route(message, wires, chips, arrivals)
            top = max(top, level)
            for wire, rate in used.items():
                load[wire] += amount
                rates[wire] = rate
        for chip, piece, values, add in arrivals:
            _arrive(chips[chip], chip, piece, values, add)
        for wire, amount in load.items():
            carried[wire] += amount
        busiest = max((amount / rates[wire] for wire, amount in load.items()), default=F(0))
        seconds, hops = seconds + busiest, hops + (levels[top].hop_s if load else 0)
    check(name, chips)
    return Run(seconds, max((amount / rates[w] for w, amount in carried.items()), default=F(0)), hops)


def _route(message, wires, chips, arrivals):
    if isinstance(message, Send):
        for piece in message.pieces:
            values = _held(chips, message.source, piece)
            arrivals.append((message.target, piece, values, message.add))
        return wires.way(message.source, message.target)
    top = wires.meets([*message.members, *message.targets])
    if any(not level.reduces for level in wires.levels[: top + 1] if level.port == wires.levels[top].port):
        raise Broken(f"the switches of {wires.levels[top].name} cannot sum")
    used = {}
    for chip in message.members:
        used |= {("up", *name): rate for name, rate in wires.up(chip, top)}
    for chip in message.targets:
        used |= {("down", *name): rate for name, rate in wires.up(chip, top)}
    for piece in message.pieces:
        parts = [_held(chips, chip, piece) for chip in message.members]
        if sum(map(len, parts)) != len(frozenset().union(*parts)):
            raise Broken(f"{piece} would be counted twice")
        for chip in message.targets:
            arrivals.append((chip, piece, frozenset().union(*parts), _how(message, chip)))
    return used, top


def _how(message, chip):
    return "set" if message.copies or chip in message.members else True


def _held(chips, chip, piece):
    if piece not in chips[chip]:
        raise Broken(f"chip {chip} sends {piece}, which it does not have")
    return chips[chip][piece]


def _arrive(held, chip, piece, values, add):
    old = held.get(piece, frozenset())
    if add == "set":
        held[piece] = values
        return
    if add is False and piece in held and values <= old:
        raise Broken(f"chip {chip} gets {piece} a second time")
    if add is True and old & values:
        raise Broken(f"chip {chip} would add {piece} twice")
    held[piece] = values | old if add else values


def start(name, chip, n):
    if name == "AllGather":
        return {chip: frozenset([chip])}
    if name in ("ReduceScatter", "AllReduce"):
        return {block: frozenset([chip]) for block in range(n)}
    return {(chip, goal): frozenset([chip]) for goal in range(n)}


def check(name, chips):
    n, everyone = len(chips), frozenset(range(len(chips)))
    for chip, held in enumerate(chips):
        wanted = {
            "AllGather": {block: frozenset([block]) for block in range(n)},
            "ReduceScatter": {chip: everyone},
            "AllReduce": dict.fromkeys(range(n), everyone),
            "AllToAll": {(source, chip): frozenset([source]) for source in range(n)},
        }[name]
        for piece, values in wanted.items():
            if held.get(piece) != values:
                raise Broken(f"in the end chip {chip} does not hold {piece} as an {name} promises")
