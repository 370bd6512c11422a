"""Tables and values that `plan` and `serve` share: fields, times, memory, and rejections."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from scalingbook_cli.answer import (
    DerivationLine,
    TextTable,
    added,
    figure,
    name_value_table,
    nbytes,
    part_label,
)
from scalingbook_lib import inference, training
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner import Rejected
from scalingbook_lib.units import DType, percent, si

type Way = training.Plan | inference.Layout
type Memory = training.TrainingMemory | inference.ServingMemory


def way_values(way: Way) -> dict[str, object]:
    """Every field of a plan or a layout, with dtypes by name."""
    named = {f.name: getattr(way, f.name) for f in fields(way)} | {"chips": way.chips}
    return {name: value.name if isinstance(value, DType) else value for name, value in named.items()}


def rejected_values(found: Iterable[Rejected]) -> list[dict[str, object]]:
    """The rejections of a search as dictionaries."""
    return [{"kind": r.kind, "count": r.count, "nearest": r.why} for r in found]


def check_expert_skew(model: Transformer, skew: float | None) -> None:
    """Refuse a skew of the load of experts for a model without experts."""
    if skew is not None and model.experts is None:
        raise ValueError(f"--expert-skew {skew:g}: {model.name} has no experts; leave the option out")


def assumed_table(sentences: Iterable[str]) -> tuple[TextTable, ...]:
    """What an answer assumes, a sentence per row; no table without any."""
    rows = tuple((sentence,) for sentence in sentences)
    return (TextTable("Assumed", ("",), rows, words=(0,)),) if rows else ()


def times(title: str, terms: Mapping[str, float], total_s: float, *more: tuple[str, str]) -> TextTable:
    """A table of a step's time by term with the share of each, and further rows."""
    rows = [(name, si(seconds, "s"), percent(seconds / total_s)) for name, seconds in terms.items()]
    rows += [("total", si(total_s, "s"), ""), *((name, value, "") for name, value in more)]
    return name_value_table(title, rows, ("term", "time", "share"))


def memory(held: Memory, chip: Chip) -> TextTable:
    """A table of a chip's memory by part, with its HBM and what is left of it."""
    parts = {**held.terms, "total": held.total, f"HBM of {chip.name}": chip.hbm_bytes}
    rows = [(part_label(name), nbytes(part)) for name, part in parts.items()]
    rows.append(("free", nbytes(free) if (free := chip.hbm_bytes - held.total) >= 0 else "none"))
    return name_value_table("Memory per chip", rows, ("part", "bytes"))


def search_lines(counts: str, rejected: Iterable[Rejected]) -> tuple[str, ...]:
    """The size of a search, and one line for every reason of rejection."""
    return (counts, *(f"Rejected: {one}" for one in rejected))


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
    return DerivationLine(
        name, " + ".join(map(part_label, terms)), added(map(figure, terms.values())), total, unit
    )
