"""Fit kernel and link efficiencies and record them: `python -m tools.kernel_fits`, a few seconds.

It reads `own_grouped.csv`, `data/products.csv`, `data/attention.csv`, `data/decode_attention.csv` and the
collectives of `data` and of the library, and writes `kernel_fits.json` in scalingbook_lib/calibrated/data.
`data/kernel_fits_left_out.json` has the fits without each chip, by which the accuracy page says what to
expect of an unmeasured chip.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Protocol

from scalingbook_lib import evidence
from scalingbook_lib.calibrated import fabrics, kernels, records
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.evidence import fabric_fit, kernel_fit, resources
from scalingbook_lib.evidence.reading import chip as reading
from scalingbook_lib.evidence.scoring.report import Scored
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.units import dtype
from tools.environment import ROOT

FOLDER = Path(records.__file__).parent / "data"
LEFT_OUT = ROOT / "data" / "kernel_fits_left_out.json"
FEWEST = 4  # minimum rows for a fit, unless a chip's variant has fewer


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def products() -> Iterator[tuple[str, kernel_fit.MeasuredMatmul]]:
    """Yield every measured matmul by chip and dtype, by GPU or TPU and dtype, and by both with library."""
    for row in rows(ROOT / "data/products.csv"):
        on, of = reading.chip(row["chip"]), row["dtype"]
        B, D, F = (int(row[name]) for name in "BDF")
        found = kernel_fit.MeasuredMatmul(
            on, dtype(of.removesuffix("_block")), B, D, F, float(row["latency_us"]) / 1e6
        )
        software = kernels.kernel_library(row["source"])
        for name in ("TPU7x" if on.name.startswith("half") else on.name, "TPU" if on.torus else "GPU"):
            yield f"{name} | {of}", found
            if software:
                yield f"{name} | {of} | {software}", found


def grouped_products() -> Iterator[tuple[str, kernel_fit.MeasuredGrouped]]:
    """Every measured grouped matmul, and the dense one of as many rows ("dense"), by chip and dtype."""
    for row in resources.rows("own_grouped"):
        on, experts = reading.chip(row["chip"]), int(row["experts"])
        sizes = (int(row[name]) for name in ("rows_of_each", "K", "N"))
        seconds = float(row["microseconds"]) / 1e6
        found = kernel_fit.MeasuredGrouped(on, dtype(row["dtype"]), experts, *sizes, seconds=seconds)
        yield f"{on.name} | {row['dtype']}{' | dense' if row['what'] == 'dense' else ''}", found


def attended(name: str) -> Iterator[tuple[str, kernel_fit.AttentionTime]]:
    """Yield every measured attention of a table, by chip, and under "GPU"."""
    for row in rows(ROOT / f"data/{name}.csv"):
        on = reading.chip(row["system"])
        of = Attending(*(int(row[n]) for n in ("batch", "seq", "heads", "kv_heads", "head_dim")))
        found = kernel_fit.AttentionTime(on, of, name.startswith("decode"), float(row["latency_us"]) / 1e6)
        yield on.name, found
        yield "GPU", found


def collectives() -> Iterator[tuple[str, fabric_fit.MeasuredCollective]]:
    """Yield every measured collective on switches or through the host, by generation of links."""
    every = [*resources.rows("collectives"), *rows(ROOT / "data/added_collectives.csv")]
    for row in every:
        on = reading.chip(row["system"])
        if not on.torus and (row["time_us"] or len(row["busbw_GBps"].strip("0.")) > 1):  # two digits
            yield fabrics.generation(on), fabric_fit.measured_collective(row, on)


class Measured(Protocol):
    """A row of any of these tables."""

    @property
    def chip(self) -> Chip: ...


type Fits = dict[str, dict[str, Values]]
type Changes = dict[str, dict[str, Values | None]]


def grouped[T: Measured](pairs: Iterable[tuple[str, T]], without: str = "") -> dict[str, tuple[T, ...]]:
    """Return the rows of each name, sorted by name, without those of one chip."""
    found: dict[str, list[T]] = defaultdict(list)
    for name, value in pairs:
        if value.chip.name != without:
            found[name].append(value)
    return {name: tuple(values) for name, values in sorted(found.items())}


# leaving out a chip changes few fits; the others are cached
_products, _grouped, _attention, _fabric = map(
    cache, (kernel_fit.fit_products, kernel_fit.fit_grouped, kernel_fit.fit_attention, fabric_fit.fit)
)


def fits(without: str = "") -> Fits:
    """Return every fit of every table to three digits, from the rows of all chips but one."""
    measured = grouped(products(), without)
    attention = grouped(chain(attended("attention"), attended("decode_attention")), without)
    found = {
        "products": {name: _products(timed) for name, timed in measured.items() if _stands(name, measured)},
        "grouped": {name: _grouped(timed) for name, timed in grouped(grouped_products(), without).items()},
        "attention": {name: _attention(timed) for name, timed in attention.items()},
        "fabrics": {name: _fabric(timed) for name, timed in grouped(collectives(), without).items()},
    }
    return {table: {line: rounded(v) for line, v in lines.items()} for table, lines in found.items()}


def left_out(chip: str) -> Changes:
    """Return the fits that change without that chip: new values, or None for a fit that disappears."""
    every, others = fits(), fits(chip)
    return {
        table: {
            name: others[table].get(name)
            for name in sorted({*lines, *others[table]})
            if others[table].get(name) != lines.get(name)
        }
        for table, lines in every.items()
        if table != "grouped"  # measured on one chip alone
    }


def measured_chips() -> list[str]:
    """Return every chip with measurements."""
    rows = chain(products(), attended("attention"), attended("decode_attention"), collectives())
    return sorted({row.chip.name for _, row in rows})


@contextmanager
def without(changes: Changes) -> Iterator[None]:
    """Let the library use these fits during the block."""
    record = records.record("kernel_fits")
    kept = dict(record)
    _compute_by(record, {table: _changed(kept[table], changed) for table, changed in changes.items()})
    try:
        yield
    finally:
        _compute_by(record, kept)


def blind(rows: Iterable[Scored], *tables: str) -> Iterator[tuple[str, float]]:
    """Yield each row's id, and its prediction over the measurement by fits without its chip.

    Only for chips with fits in these tables; a torus is predicted by documented rates.
    """
    found = resources.grouped((row for row in rows if row.found), lambda row: row.found and row.found.chip)
    for chip, changes in json.loads(LEFT_OUT.read_text(encoding="utf-8")).items():
        if chip in found and any(changes[table] for table in tables):
            with without(changes):
                again = evidence.score([row.row for row in found[chip]]).found
            yield from ((row.id, 1 + new.error) for row, new in zip(found[chip], again, strict=True))


def _changed(lines: Mapping[str, Values], changed: Mapping[str, Values | None]) -> dict[str, Values]:
    return {name: values for name, values in {**lines, **changed}.items() if values is not None}


def _compute_by(record: dict[str, object], tables: Mapping[str, object]) -> None:
    record.update(tables)
    for remembered in (kernels.products, kernels.grouped, kernels.attention, fabrics.fabric):
        remembered.cache_clear()


def _stands(name: str, measured: Mapping[str, tuple[kernel_fit.MeasuredMatmul, ...]]) -> bool:
    """Return whether a name has enough rows for a fit, or its variant has as few."""
    chip, *of = name.split(" | ")
    like = " | ".join((kernels.SAME_ARCHITECTURE.get(chip, chip), *of))
    return len(measured[name]) >= FEWEST or len(measured.get(like, ())) < FEWEST


def frozen(found: Mapping[str, Mapping[str, object]]) -> str:
    """Return the record as JSON text, one line per fit."""
    tables = []
    for name, lines in found.items():
        text = ",\n".join(f"  {json.dumps(line)}: {json.dumps(v)}" for line, v in lines.items())
        tables.append(f" {json.dumps(name)}: {{\n{text}\n }}")
    return f'{{\n "date": "{date.today()}",\n' + ",\n".join(tables) + "\n}\n"


def rounded(values: Values) -> Values:
    """Values rounded to three digits."""
    return {name: float(f"{value:.3g}") for name, value in values.items()}


if __name__ == "__main__":
    (FOLDER / "kernel_fits.json").write_text(frozen(fits()), encoding="utf-8")
    LEFT_OUT.write_text(frozen({chip: left_out(chip) for chip in measured_chips()}), encoding="utf-8")
