"""Executes a schedule chunk by chunk over every link, in exact fractions, and says when the last byte is in.

It believes nothing that the schedule says about itself: links are rebuilt from the torus's geometry, every
message must be over a link that exists, hold pieces that its sender has by then, and wait until the link is
free. In the end every chip must hold exactly what the collective promises. There is no global clock: a
message starts when its pieces have arrived and its link is free, and takes a hop and its bytes over the link.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction


class Broken(AssertionError):
    """The schedule did something that chips and links cannot do."""


@dataclass
class Run:
    seconds: Fraction
    link_bytes: dict
    step_bytes: list


def execute(schedule, axes, nbytes):
    """Run the schedule on links of these axes; raises Broken, or returns times and bytes."""
    chips = Chips(schedule)
    free, link_bytes, step_bytes = defaultdict(Fraction), defaultdict(Fraction), []
    for step in schedule.steps:
        carried = {}
        arrivals = []
        for send in step.sends:
            link, target = physical(send, axes)
            if link in carried:
                raise Broken(f"{link} carries two messages in one step")
            carried[link] = Fraction(nbytes) * len(send.pieces) / schedule.pieces
            ready, values = chips.take(send.link.source, send.pieces)
            axis = axes[send.link.axis]
            free[link] = max(ready, free[link]) + axis.hop_s + carried[link] / axis.link_bytes_per_s
            arrivals.append((send, target, values, free[link]))
        for send, _, _, _ in arrivals:
            if step.kind != "copy":
                chips.drop(send.link.source, send.pieces)
        for send, target, values, when in arrivals:
            chips.put(target, send.pieces, values, when, add=step.kind == "add")
        for link, amount in carried.items():
            link_bytes[link] += amount
        step_bytes.append(carried)
    chips.check()
    return Run(max(free.values(), default=Fraction(0)), dict(link_bytes), step_bytes)


def physical(send, axes):
    """The real link behind a message: (source, axis, way), and the chip where it ends."""
    sizes = [axis.size for axis in axes]
    place = list(_place(send.link.source, sizes))
    here, size = place[send.link.axis], sizes[send.link.axis]
    there = here + send.link.direction
    if abs(send.link.direction) != 1 or size == 1:
        raise Broken(f"{send.link} is no link")
    if not 0 <= there < size and not axes[send.link.axis].wrapped:
        raise Broken(f"{send.link} leaves the end of a line")
    place[send.link.axis] = there % size
    target = 0
    for size, i in zip(sizes, place, strict=True):
        target = target * size + i
    if target != send.target:
        raise Broken(f"{send.link} ends at chip {target}, not {send.target}")
    return tuple(send.link), target


def _place(chip, sizes):
    for i in range(len(sizes)):
        below = math.prod(sizes[i + 1 :])
        yield chip // below % sizes[i]


class Chips:
    """What every chip holds: for each piece, the set of chips whose values are in it, and when it arrived."""

    def __init__(self, schedule):
        self.name, self.n = schedule.name, schedule.chips
        self.parts = schedule.pieces // (self.n**2 if self.name == "AllToAll" else self.n)
        self.held = [{} for _ in range(self.n)]
        self.pairs = [(i, j) for i, j, _ in _routes(schedule)]
        for chip in range(self.n):
            for key in self.start(chip):
                self.held[chip][key] = (frozenset([chip]), Fraction(0))

    def keys(self, blocks):
        return [(block, part) for block in blocks for part in range(self.parts)]

    def start(self, chip):
        if self.name == "AllGather":
            return self.keys([chip])
        if self.name in ("ReduceScatter", "AllReduce"):
            return self.keys(range(self.n))
        return self.keys([(i, j) for i, j in self.pairs if i == chip])

    def end(self, chip):
        everyone = frozenset(range(self.n))
        if self.name == "AllGather":
            return {(block, part): frozenset([block]) for block, part in self.keys(range(self.n))}
        if self.name == "ReduceScatter":
            return dict.fromkeys(self.keys([chip]), everyone)
        if self.name == "AllReduce":
            return dict.fromkeys(self.keys(range(self.n)), everyone)
        return {((i, j), part): frozenset([i]) for (i, j), part in self.keys(self.pairs) if j == chip}

    def key(self, piece):
        if self.name in ("AllToAll", "CollectivePermute"):
            return (piece.origin, piece.goal), piece.part
        return (piece.goal if piece.origin is None else piece.origin), piece.part

    def take(self, chip, pieces):
        if len(set(pieces)) < len(pieces) or not pieces:
            raise Broken(f"chip {chip} sends a piece twice, or nothing")
        missing = [p for p in pieces if self.key(p) not in self.held[chip]]
        if missing:
            raise Broken(f"chip {chip} sends {missing[0]}, which it does not have")
        found = [self.held[chip][self.key(p)] for p in pieces]
        return max(when for _, when in found), [values for values, _ in found]

    def drop(self, chip, pieces):
        for piece in pieces:
            del self.held[chip][self.key(piece)]

    def put(self, chip, pieces, values, when, add):
        for piece, arrived in zip(pieces, values, strict=True):
            old, since = self.held[chip].get(self.key(piece), (frozenset(), Fraction(0)))
            if old & arrived:
                raise Broken(f"chip {chip} gets {piece} a second time")
            if old and not add:
                raise Broken(f"chip {chip} already holds a {piece}")
            self.held[chip][self.key(piece)] = (old | arrived, max(since, when))

    def check(self):
        for chip in range(self.n):
            held = {key: values for key, (values, _) in self.held[chip].items()}
            if held != self.end(chip):
                raise Broken(f"in the end chip {chip} does not hold what a {self.name} promises")


def _routes(schedule):
    if schedule.name == "AllToAll":
        return [(i, j, 0) for i in range(schedule.chips) for j in range(schedule.chips)]
    if schedule.name == "CollectivePermute":
        first = {p for step in schedule.steps for send in step.sends for p in send.pieces}
        return sorted({(p.origin, p.goal, 0) for p in first})
    return []
