"""The tables of the page "Predicted and compiled": groups of programs, large errors, every program.

A group is training in one of two styles, prefill, or decode. Collectives are listed by kind and axes; those
with less than a hundredth of a group's bytes are combined.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

from scalingbook_lib.evidence.compiled import cycles
from scalingbook_lib.evidence.scores import signed
from scalingbook_lib.units import si
from tools.compiled.beside import FLOPS, MEASURES, MOVED, Beside, every, reasons
from tools.compiled.case import over
from tools.compiled.trained import Lab, Step
from tools.published import Cells, share, table

SMALL, WORST = 0.01, 10
FEW, MANY = 64, 1024  # rows of a product: its weights bind, or its arithmetic does


@dataclass(frozen=True)
class Group:
    """Programs that a table summarizes together."""

    name: str
    own: tuple[Beside, ...]

    @property
    def ratios(self) -> list[float]:
        """The compiler's cycles over the roofline, where they are known."""
        return [ratio for one in self.own if (ratio := one.over_roofline)]


GROUPS: Mapping[str, tuple[str, Callable[[Beside], bool]]] = {
    "styles": ("training, in other people's style", lambda one: isinstance(one.case, Step)),
    "hand": ("training, by hand", lambda one: isinstance(one.case, Lab)),
    "prompts": ("prompts read", lambda one: one.case.phase == "prefill"),
    "decoding": ("decoding", lambda one: one.case.phase == "decode"),
}


def grouped(key: str) -> Group:
    """One of `GROUPS`."""
    name, is_in = GROUPS[key]
    return Group(name, tuple(filter(is_in, every())))


@dataclass(slots=True)
class Line:
    """A kind of collective over some axes: in how many programs, how often, and bytes received."""

    programs: int = 0
    runs: int = 0
    compiled: float = 0.0
    predicted: float = 0.0

    def add(self, other: "Line") -> None:
        """Add another line to this one."""
        self.programs += other.programs
        self.runs += other.runs
        self.compiled += other.compiled
        self.predicted += other.predicted

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a table row."""
        said = (_bytes(nbytes) if nbytes else "none" for nbytes in (self.compiled, self.predicted))
        return str(self.programs), f"{self.runs:,}", *said


def lines(own: tuple[Beside, ...]) -> dict[str, Line]:
    """Compiled and predicted bytes of these programs, by collective and axes."""
    found: dict[str, Line] = {}
    for one in own:
        here: dict[str, Line] = {}
        for key, (runs, nbytes) in one.facts.collectives.items():
            line = here.setdefault(over(*key.split(" ")), Line(programs=1))
            line.runs += runs
            line.compiled += nbytes
        for key, nbytes in one.case.moved().items():
            here.setdefault(key, Line()).predicted += nbytes
        for key, line in here.items():
            found.setdefault(key, Line()).add(line)
    return found


def collectives(key: str) -> Cells:
    """The collectives of a group, by descending bytes."""
    found, small, kinds = lines(grouped(key).own), Line(), 0
    least = SMALL * sum(line.compiled for line in found.values())
    for key, line in sorted(found.items(), key=lambda pair: -pair[1].compiled):
        if max(line.compiled, line.predicted) >= least:
            yield key, *line.cells
        else:
            small.add(line)
            kinds += 1
    if kinds:
        yield f"{kinds} more, under {share(SMALL, 0)} each", "", *small.cells[1:]


def largest(key: str) -> tuple[str, str]:
    """The program of a group that receives the most bytes, and its share of the group's total."""
    received = {one.case.name.partition(": ")[2]: one.compiled[MOVED] for one in grouped(key).own}
    name = max(received, key=lambda name: received[name])
    return name, share(received[name] / sum(received.values()), 0)


def cycled() -> Cells:
    """The compiler's estimate over the roofline, by group, and for single matmuls."""
    for group in map(grouped, GROUPS):
        yield group.name, f"{len(group.ratios)} of {len(group.own)}", *_spread(group.ratios)
    for name, has in ((f"products of {FEW} rows or fewer", range(FEW + 1)),
                      (f"products of {MANY:,} rows or more", range(MANY, 10**6))):  # fmt: skip
        ratios = [
            one.ratio_to_roofline(M) for one in cycles.ESTIMATES.values() for M in one.cycles if M in has
        ]
        yield name, f"{len(ratios)} of {len(ratios)}", *_spread(ratios)


def _spread(ratios: list[float]) -> Iterator[str]:
    """Median, minimum and maximum."""
    yield from (f"{f(ratios):.2f}" for f in (median, min, max)) if ratios else ("", "", "")


def worst() -> Cells:
    """The largest errors, by factor."""
    far = [(one, measure) for one in every() for measure in one.far]
    far.sort(key=lambda pair: -abs(_times(pair[0].far[pair[1]])))
    for one, measure in far[:WORST]:
        (rule,) = (r for r in reasons(one) if r.measure == measure)
        yield _name(one, whole=True), f"{measure}, {signed(one.far[measure], 0)}", rule.name


def _times(error: float) -> float:
    """The error as a factor, in either direction, minus 1."""
    return max(1 + error, 1 / (1 + error)) - 1


def folded() -> str:
    """All programs and all collectives of each group, folded."""
    return "\n\n".join(block for group in map(grouped, GROUPS) for block in _blocks(group))


def _blocks(group: Group) -> Iterator[str]:
    name = group.name[0].upper() + group.name[1:]
    head = "| program | FLOPs | received | held | cycles |\n|---|---|---|---|---|\n"
    yield _details(f"{name}: {len(group.own)} programs", head + table(map(_program, group.own)))
    rows = [row for one in group.own if (row := _moved(one))]
    head = "| program | collectives: how often, and bytes received |\n|---|---|\n"
    yield _details(f"{name}: their collectives", head + table(rows))


def _details(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _program(one: Beside) -> tuple[str, ...]:
    over = one.over_roofline
    cells = (_figure(one, measure) for measure in MEASURES)
    return _name(one), *cells, "" if over is None else f"{over:.2f}"


def _figure(one: Beside, measure: str) -> str:
    """The compiled value and the prediction's error."""
    if measure not in one.errors:
        return ""
    error, unit = one.errors[measure], "" if measure == FLOPS else "B"
    said = "" if abs(error) < 5e-4 else f", {signed(error)}"
    return si(one.compiled[measure], unit, 3) + said


def _moved(one: Beside) -> tuple[str, ...]:
    """The collectives of a program with more than a thousandth of its bytes; () if there are none."""
    found = lines((one,))
    least = SMALL / 10 * one.compiled[MOVED]
    kept = sorted(found.items(), key=lambda pair: -pair[1].compiled)
    said = [f"{key} {line.runs:,}×, {_bytes(line.compiled)}" for key, line in kept if line.compiled > least]
    return (_name(one), "; ".join(said)) if said else ()


def _name(one: Beside, *, whole: bool = False) -> str:
    """The program's name with its slice."""
    name = one.case.name if whole else one.case.name.partition(": ")[2]
    where = one.case.topology.replace(":", " ")
    return f"{name}; {where}".replace("microbatch", "micro\N{SOFT HYPHEN}batch")  # for narrow screens


_bytes = partial(si, unit="B", digits=3)
