"""Who was at which place in which step of an engine?

`Timeline.of(engine)` prints a line for each place and a column for each step: a capital letter reads its
prompt, a small one only writes a word, a point is an empty place. Chapter: Inference.
"""

from dataclasses import dataclass
from string import ascii_uppercase
from typing import Self

from scalingbook_lib.lab.serve.engine import Engine
from scalingbook_lib.lab.serve.requests import Played, State
from scalingbook_lib.units import Told

type Place = tuple[bool, int, int]  # on the devices that write, group, slot


@dataclass(frozen=True, slots=True)
class Timeline(Told):
    """What each place did in each step: a ticket, and whether it read or wrote."""

    places: tuple[Place, ...]
    steps: tuple[dict[Place, str], ...]  # a letter for each place in use
    words: tuple[int, ...]  # written in each step

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """What an engine did so far."""
        workers = [(engine.writer, True)]
        if engine.reader is not engine.writer:
            workers.insert(0, (engine.reader, False))
        places = [(writes, g, i) for w, writes in workers for g in range(w.groups) for i in range(w.slots)]
        steps = tuple(_letters(step) for step in engine.played)
        return cls(tuple(places), steps, tuple(sum(p.word for p in step) for step in engine.played))

    @property
    def occupancy(self) -> float:
        """The share of places and steps in which somebody was there."""
        return sum(map(len, self.steps)) / (len(self.places) * len(self.steps) or 1)

    def line(self, place: Place) -> str:
        """One place, a character for each step."""
        return "".join(step.get(place, ".") for step in self.steps)

    def __str__(self) -> str:
        apart = any(not writes for writes, *_ in self.places)
        name = {True: "writes" if apart else "place", False: "reads"}
        rows = [f"{name[place[0]]} {place[1]}.{place[2]}  {self.line(place)}" for place in self.places]
        return "\n".join([*rows, f"{self.occupancy:.0%} of all places and steps are used"])


def _letters(step: list[Played]) -> dict[Place, str]:
    """The letter of each request at its place: after 26 of them, from the start."""
    reads = {p[:3] for p in step if p.state is State.READING}
    letters = {p[:3]: ascii_uppercase[p.ticket % 26] for p in step}
    return {place: letter if place in reads else letter.lower() for place, letter in letters.items()}
