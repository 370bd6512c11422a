"""What did a reader's program do, and was that asked for?

`lab.judge` runs and compiles it; its verdict is a plain value, so that a check can take it without JAX.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from scalingbook_lib.units import Told, si

SOLVED = "solved in the notebook"  # what the box of a page says for a reader whose notebook has judged


@dataclass(frozen=True, slots=True)
class Move(Told):
    """One kind of collective over some mesh axes: the bytes of all its runs, and how often it runs.

    Bytes are counted as `hlo` counts them. Where they are asked for, times may be None.
    """

    kind: str
    axes: str
    nbytes: int
    times: int | None = None

    @property
    def over(self) -> str:
        """Its name: 'all-gather over Y'."""
        return f"{self.kind} over {self.axes}"

    def __str__(self) -> str:
        often = "" if self.times is None else f"{self.times}×, "
        return f"{self.over}: {often}{si(self.nbytes, 'B')}"


type Asked = Mapping[str, int | tuple[int, int]]


def moves(asked: Asked) -> tuple[Move, ...]:
    """What is asked for: bytes of all runs, `{"all-gather X": 4096}`, or times and bytes, `(3, 4096)`.

    A permute may say how far, `"collective-permute Y -1"`: then all of them have to.
    """
    return tuple(_move(name, amount) for name, amount in asked.items())


def _move(name: str, amount: int | tuple[int, int]) -> Move:
    kind, _, axes = name.partition(" ")
    times, nbytes = amount if isinstance(amount, tuple) else (None, amount)
    return Move(kind, axes, nbytes, times)


@dataclass(frozen=True, slots=True)
class Verdict(Told):
    """What became of a program: what is wrong with its result, what it moves, and what else is to be said.

    `asked` is what it had to move at most; None where that is not judged. `also` are faults of a program
    whose result is right. `picture` draws a wrong result, device by device.
    """

    wrong: str = ""
    moves: tuple[Move, ...] = ()
    key: str = ""
    asked: tuple[Move, ...] | None = None
    also: tuple[str, ...] = ()
    picture: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        """The right result, and no more moved than was asked for."""
        return not self.wrong and not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """What is to be said against a program whose result is right."""
        return (*self.also, *(() if self.asked is None else against(self.moves, self.asked)))

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.picture}".rstrip()

    @property
    def sentence(self) -> str:
        """What it says without a drawing."""
        if self.wrong:
            return f"wrong result: {self.wrong}"
        if self.faults:
            return f"right result, but {'; '.join(self.faults)}"
        moved = "; ".join(map(str, self.moves))
        return f"right result; it runs {moved}" if moved else "right result, and nothing moves"


def right(asked: Asked) -> Verdict:
    """The verdict on a program that does this and has the right result."""
    return Verdict(moves=moves(asked))


def same(found: tuple[Move, ...], known: tuple[Move, ...]) -> bool:
    """Are these the moves that are known, in whatever order, and as often where that is said?"""
    often = {(move.kind, move.axes): move.times for move in known}
    seen = {replace(move, times=often.get((move.kind, move.axes)) and move.times) for move in found}
    return seen == set(known)


def against(found: tuple[Move, ...], asked: tuple[Move, ...]) -> tuple[str, ...]:
    """What speaks against these moves where others were asked for."""
    return tuple(_against(found, asked))


def _against(found: tuple[Move, ...], asked: tuple[Move, ...]) -> Iterator[str]:
    wanted = {(move.kind, move.axes): move for move in asked}
    done = {(move.kind, move.axes) for move in found}
    for move in found:
        if (want := wanted.get((move.kind, move.axes))) is None:
            yield f"{move.over} ({si(move.nbytes, 'B')}) need not run"
        elif move.nbytes > want.nbytes:
            yield f"{move.over} moves {move.nbytes / want.nbytes:.3g} times the bytes that it has to"
        elif want.times is not None and move.times != want.times:
            yield f"{move.over} runs {_often(move.times)}, and {_often(want.times)} is asked for"
    for want in asked:
        if want.times and (want.kind, want.axes) not in done:
            yield f"{want.over} is asked for and does not run"


def _often(times: int | None) -> str:
    return {None: "an unknown number of times", 1: "once", 2: "twice"}.get(times, f"{times} times")
