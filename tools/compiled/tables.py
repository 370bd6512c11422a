"""The tables of the page "Predicted and compiled": groups of programs, large errors, and every program.

A group is training partitioned by XLA, training with explicit collectives, prefill, or decode. Collectives
are listed by kind and axes; those with less than a hundredth of a group's bytes are combined.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

from scalingbook_lib.evidence.compiled import cycles
from scalingbook_lib.evidence.scores import signed
from scalingbook_lib.units import si
from tools.compiled.beside import FLOPS, HELD, MOVED, Beside, every, reasons
from tools.compiled.case import over
from tools.compiled.trained import Lab, Step
from tools.published import Cells, Records, share

SMALL, WORST = 0.01, 10
COLUMNS = {FLOPS: "flops", MOVED: "bytes_received", HELD: "bytes_held"}
FEW, MANY = 64, 1024  # rows of a matmul: memory-bound up to FEW, compute-bound from MANY


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
    "styles": ("training, partitioned by XLA", lambda one: isinstance(one.case, Step)),
    "hand": ("training, explicit collectives", lambda one: isinstance(one.case, Lab)),
    "prompts": ("prefill", lambda one: one.case.phase == "prefill"),
    "decoding": ("decode", lambda one: one.case.phase == "decode"),
}


def grouped(key: str) -> Group:
    """Return one of `GROUPS`."""
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
    """Return the collectives of a group, by descending bytes."""
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
    """Return the program of a group that receives the most bytes, and its share of the group's total."""
    received = {one.case.name.partition(": ")[2]: one.compiled[MOVED] for one in grouped(key).own}
    name = max(received, key=lambda name: received[name])
    return name, share(received[name] / sum(received.values()), 0)


def middle(key: str) -> float:
    """Return the median of the compiler's estimates over the roofline in a group."""
    return median(grouped(key).ratios)


def cycled() -> Cells:
    """Return the compiler's estimate over the roofline, by group, and for single matmuls."""
    for group in map(grouped, GROUPS):
        yield group.name, f"{len(group.ratios)} of {len(group.own)}", *_spread(group.ratios)
    for name, has in ((f"single matmuls, {FEW} rows or fewer", range(FEW + 1)),
                      (f"single matmuls, {MANY:,} rows or more", range(MANY, 10**6))):  # fmt: skip
        ratios = [
            one.ratio_to_roofline(M) for one in cycles.ESTIMATES.values() for M in one.cycles if M in has
        ]
        yield name, f"{len(ratios)} of {len(ratios)}", *_spread(ratios)


def _spread(ratios: list[float]) -> Iterator[str]:
    """Median, minimum and maximum."""
    yield from (f"{f(ratios):.2f}" for f in (median, min, max)) if ratios else ("", "", "")


def worst() -> Cells:
    """Return the largest errors, by factor."""
    far = [(one, measure) for one in every() for measure in one.far]
    far.sort(key=lambda pair: -abs(_times(pair[0].far[pair[1]])))
    for one, measure in far[:WORST]:
        (rule,) = (r for r in reasons(one) if r.measure == measure)
        yield _name(one), f"{measure}, {signed(one.far[measure], 0)}", rule.name


def _times(error: float) -> float:
    """Return the error as a factor, in either direction, minus 1."""
    return max(1 + error, 1 / (1 + error)) - 1


def programs() -> Records:
    """Return every program: compiled and predicted values of one device, and its collectives."""
    for one in every():
        yield {
            "program": one.case.name,
            "class": one.kind,
            "topology": one.case.topology,
            "chips": one.case.chips,
            **{
                f"{which}_{name}": values.get(measure)
                for measure, name in COLUMNS.items()
                for which, values in (("compiled", one.compiled), ("predicted", one.predicted))
            },
            "estimated_over_roofline": one.over_roofline,
            "collectives": _moved(one),
        }


def _moved(one: Beside) -> str:
    """Return the collectives of a program: how often each runs, and the bytes that a device receives."""
    found = sorted(lines((one,)).items(), key=lambda pair: -pair[1].compiled)
    return "; ".join(f"{key} {line.runs}x {line.compiled:.4g} B" for key, line in found if line.runs)


def _name(one: Beside) -> str:
    """Return the program's name with its slice."""
    name = f"{one.case.name}; {one.case.topology.replace(':', ' ')}"
    return name.replace("microbatch", "micro\N{SOFT HYPHEN}batch")  # for narrow screens


_bytes = partial(si, unit="B", digits=3)
