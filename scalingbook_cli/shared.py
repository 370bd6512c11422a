"""Tables and values that `plan` and `serve` share: fields, times, memory, and rejections."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from scalingbook_cli.answer import DerivationLine, TextTable, added, figure, name_value_table, nbytes
from scalingbook_lib import inference, training
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.planner import Rejected
from scalingbook_lib.units import DType, si

type Way = training.Plan | inference.Layout
type Memory = training.TrainingMemory | inference.ServingMemory


def way_values(way: Way) -> dict[str, object]:
    """Every field of a plan or a layout, with dtypes by name."""
    named = {f.name: getattr(way, f.name) for f in fields(way)} | {"chips": way.chips}
    return {name: value.name if isinstance(value, DType) else value for name, value in named.items()}


def rejected_values(found: Iterable[Rejected]) -> list[dict[str, object]]:
    """The rejections of a search as dictionaries."""
    return [{"kind": r.kind, "count": r.count, "nearest": r.why} for r in found]


def times(title: str, terms: Mapping[str, float], total_s: float, *more: tuple[str, str]) -> TextTable:
    """A table of a step's time by term, with further rows."""
    rows = [(name, si(seconds, "s")) for name, seconds in {**terms, "the step": total_s}.items()]
    return name_value_table(title, (*rows, *more), ("term", "time"))


def memory(held: Memory, chip: Chip) -> TextTable:
    """A table of a chip's memory by part, with its HBM."""
    parts = {**held.terms, "all": held.total, chip.name: chip.hbm_bytes}
    rows = ((name, nbytes(part)) for name, part in parts.items())
    return name_value_table("Memory of one chip", rows, ("part", "bytes"))


def memory_values(held: Memory, chip: Chip) -> dict[str, object]:
    """The same for JSON."""
    return {
        "memory_bytes": held.total,
        "memory_bytes_by_part": held.terms,
        "hbm_bytes": chip.hbm_bytes,
        "fits": held.fits,
    }


def sum_line(name: str, terms: Mapping[str, float], total: float, unit: str) -> DerivationLine:
    """A derivation line for a total as the sum of its terms."""
    return DerivationLine(name, " + ".join(terms), added(map(figure, terms.values())), total, unit)
