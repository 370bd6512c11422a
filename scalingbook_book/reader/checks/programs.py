"""Compare the data that a reader's program moves between devices with the expected collectives.

`code_exercises.judge` runs and compiles the program. Its verdict is a plain value, so a check can use it
without JAX.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape

from scalingbook_lib.units import Result, si

SOLVED = "solved in the notebook"  # the answer of a reader whose notebook has judged the program


@dataclass(frozen=True, slots=True)
class CollectiveCount(Result):
    """One kind of collective over some mesh axes: the bytes of all its runs, and the number of runs.

    Bytes are counted as `hlo` counts them. In an expected collective, `times` may be None (any number).
    """

    kind: str
    axes: str
    nbytes: int
    times: int | None = None

    @property
    def over(self) -> str:
        """The collective and its axes, as in 'all-gather over Y'."""
        return f"{self.kind} over {self.axes}"

    def __str__(self) -> str:
        often = "" if self.times is None else f"{self.times}×, "
        return f"{self.over}: {often}{si(self.nbytes, 'B')}"


type Asked = Mapping[str, int | tuple[int, int]]


def moves(asked: Asked) -> tuple[CollectiveCount, ...]:
    """Return the expected collectives.

    Each value is the bytes of all runs, `{"all-gather X": 4096}`, or runs and bytes, `(3, 4096)`. A permute
    may state its shift, `"collective-permute Y -1"`; then every such permute must have that shift.
    """
    return tuple(_move(name, amount) for name, amount in asked.items())


def _move(name: str, amount: int | tuple[int, int]) -> CollectiveCount:
    kind, _, axes = name.partition(" ")
    times, nbytes = amount if isinstance(amount, tuple) else (None, amount)
    return CollectiveCount(kind, axes, nbytes, times)


@dataclass(frozen=True, slots=True)
class ProgramVerdict(Result):
    """The judgment on a program: its wrong result if any, its collectives, and other faults.

    `asked` is the upper bound on what it may move, or None if data movement is not judged. `also` are faults
    of a program whose result is right. `picture` shows a wrong result as text, device by device; `drawing`,
    in HTML, also shows a right result in the wrong place.
    """

    wrong: str = ""
    moves: tuple[CollectiveCount, ...] = ()
    key: str = ""
    asked: tuple[CollectiveCount, ...] | None = None
    also: tuple[str, ...] = ()
    picture: str = field(default="", compare=False)
    drawing: str = field(default="", compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the result is right and the program moves no more than expected."""
        return not self.wrong and not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults of a program whose result is right."""
        return (*self.also, *(() if self.asked is None else against(self.moves, self.asked)))

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.picture}".rstrip()

    def _repr_html_(self) -> str | None:
        return f"<p>{escape(self.sentence)}</p>{self.drawing}" if self.drawing else None

    @property
    def sentence(self) -> str:
        """The verdict as one sentence, without the drawing."""
        if self.wrong:
            return f"wrong result: {self.wrong}"
        if self.faults:
            return f"right result, but {'; '.join(self.faults)}"
        moved = "; ".join(map(str, self.moves))
        return f"right result; it runs {moved}" if moved else "right result, without communication"


def right(asked: Asked) -> ProgramVerdict:
    """Return the verdict on a program with the right result and exactly these collectives."""
    return ProgramVerdict(moves=moves(asked))


def same(found: tuple[CollectiveCount, ...], known: tuple[CollectiveCount, ...]) -> bool:
    """Return whether these are the known collectives in any order, with equal counts if any are stated."""
    often = {(move.kind, move.axes): move.times for move in known}
    seen = {replace(move, times=often.get((move.kind, move.axes)) and move.times) for move in found}
    return seen == set(known)


def against(found: tuple[CollectiveCount, ...], asked: tuple[CollectiveCount, ...]) -> tuple[str, ...]:
    """Return the differences between these collectives and the expected ones, as sentences."""
    return tuple(_against(found, asked))


def _against(found: tuple[CollectiveCount, ...], asked: tuple[CollectiveCount, ...]) -> Iterator[str]:
    wanted = {(move.kind, move.axes): move for move in asked}
    done = {(move.kind, move.axes) for move in found}
    for move in found:
        if (want := wanted.get((move.kind, move.axes))) is None:
            yield f"{move.over} ({si(move.nbytes, 'B')}) is not needed"
        elif move.nbytes > want.nbytes:
            yield f"{move.over} moves {move.nbytes / want.nbytes:.3g} times the bytes that it should"
        elif want.times is not None and move.times != want.times:
            yield f"{move.over} runs {_often(move.times)}, but should run {_often(want.times)}"
    for want in asked:
        if want.times and (want.kind, want.axes) not in done:
            yield f"{want.over} should run but does not"


def _often(times: int | None) -> str:
    return {None: "an unknown number of times", 1: "once", 2: "twice"}.get(times, f"{times} times")
