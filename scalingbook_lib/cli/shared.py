"""What do `plan` and `serve` show alike? Ways, times by term, memory, and what a search rejected."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from scalingbook_lib import inference, training
from scalingbook_lib.cli.answer import DerivationLine, TextTable, added, figure, listed, nbytes
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.planner import Rejected
from scalingbook_lib.units import DType, si

type Way = training.Plan | inference.Layout
type Memory = training.TrainingMemory | inference.ServingMemory


def way_values(way: Way) -> dict[str, object]:
    """Every field of a plan or a layout, a data type by its name."""
    named = {f.name: getattr(way, f.name) for f in fields(way)} | {"chips": way.chips}
    return {name: value.name if isinstance(value, DType) else value for name, value in named.items()}


def rejected_values(found: Iterable[Rejected]) -> list[dict[str, object]]:
    """What a search left out."""
    return [{"kind": r.kind, "count": r.count, "nearest": r.why} for r in found]


def times(title: str, terms: Mapping[str, float], total_s: float, *more: tuple[str, str]) -> TextTable:
    """A step's time by term, and what follows from it."""
    rows = [(name, si(seconds, "s")) for name, seconds in {**terms, "the step": total_s}.items()]
    return listed(title, (*rows, *more), ("term", "time"))


def memory(held: Memory, chip: Chip) -> TextTable:
    """What a chip holds, beside its HBM."""
    parts = {**held.terms, "all": held.total, chip.name: chip.hbm_bytes}
    rows = ((name, nbytes(part)) for name, part in parts.items())
    return listed("Memory of one chip", rows, ("part", "bytes"))


def memory_values(held: Memory, chip: Chip) -> dict[str, object]:
    """The same for programs."""
    return {
        "memory_bytes": held.total,
        "memory_bytes_by_part": held.terms,
        "hbm_bytes": chip.hbm_bytes,
        "fits": held.fits,
    }


def sum_line(name: str, terms: Mapping[str, float], total: float, unit: str) -> DerivationLine:
    """A whole as the sum of its terms."""
    return DerivationLine(name, " + ".join(terms), added(map(figure, terms.values())), total, unit)
