"""Fit what kernels and links attain, and freeze it: `python -m tools.kernel_fits`, some seconds.

It reads `data/products.csv`, `data/attention.csv`, `data/decode_attention.csv` and the collectives of `data`
and of the library, and writes `kernel_fits.json` in scalingbook_lib/evidence/data.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import chain
from pathlib import Path

from scalingbook_lib.evidence import fabrics, kernels, resources
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.evidence.reading import chip as reading
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.units import dtype
from tools.environment import ROOT

FOLDER = Path(resources.__file__).parent / "data"
FEWEST = 4  # rows that make a line, but for chips whose kin has no more


def rows(path: Path) -> list[dict[str, str]]:
    """A table."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def products() -> Iterator[tuple[str, kernels.Timed]]:
    """Every measured product, by chip and type, by kind of chip and type, and by both with its software."""
    for row in rows(ROOT / "data/products.csv"):
        on, of = reading.chip(row["chip"]), row["dtype"]
        B, D, F = (int(row[name]) for name in "BDF")
        found = kernels.Timed(on, dtype(of.removesuffix("_block")), B, D, F, float(row["latency_us"]) / 1e6)
        software = kernels.software(row["source"])
        for name in ("TPU7x" if on.name.startswith("half") else on.name, "TPU" if on.torus else "GPU"):
            yield f"{name} | {of}", found
            if software:
                yield f"{name} | {of} | {software}", found


def attended(name: str) -> Iterator[tuple[str, kernels.Attended]]:
    """Every measured attention of a table, by chip, and all of them."""
    for row in rows(ROOT / f"data/{name}.csv"):
        on = reading.chip(row["system"])
        of = Attending(*(int(row[n]) for n in ("batch", "seq", "heads", "kv_heads", "head_dim")))
        found = kernels.Attended(on, of, name.startswith("decode"), float(row["latency_us"]) / 1e6)
        yield on.name, found
        yield "GPU", found


def collectives() -> Iterator[tuple[str, fabrics.Timed]]:
    """Every measured collective of chips that are joined by switches or through their host."""
    every = [*resources.rows("collectives"), *rows(ROOT / "data/added_collectives.csv")]
    for row in every:
        on = reading.chip(row["system"])
        if not on.torus and (row["time_us"] or len(row["busbw_GBps"].strip("0.")) > 1):  # two digits
            yield fabrics.generation(on), fabrics.timed(row, on)


def grouped[T](pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """The values of each name, sorted by name."""
    found: dict[str, list[T]] = defaultdict(list)
    for name, value in pairs:
        found[name].append(value)
    return dict(sorted(found.items()))


def fits() -> dict[str, dict[str, Values]]:
    """Every line of every table."""
    measured = grouped(products())
    attention = grouped(chain(attended("attention"), attended("decode_attention")))
    return {
        "products": {
            name: kernels.fit_products(timed) for name, timed in measured.items() if _stands(name, measured)
        },
        "attention": {name: kernels.fit_attention(timed) for name, timed in attention.items()},
        "fabrics": {name: fabrics.fit(timed) for name, timed in grouped(collectives()).items()},
    }


def _stands(name: str, measured: Mapping[str, list[kernels.Timed]]) -> bool:
    """Whether its rows are enough, or its kin's are as few."""
    chip, *of = name.split(" | ")
    like = " | ".join((kernels.GENERATIONS.get(chip, chip), *of))
    return len(measured[name]) >= FEWEST or len(measured.get(like, ())) < FEWEST


def frozen(found: Mapping[str, Mapping[str, Values]]) -> str:
    """One line of text for each line of a table, to three digits."""
    tables = []
    for name, lines in found.items():
        text = ",\n".join(f"  {json.dumps(line)}: {json.dumps(_rounded(v))}" for line, v in lines.items())
        tables.append(f' "{name}": {{\n{text}\n }}')
    return f'{{\n "date": "{date.today()}",\n' + ",\n".join(tables) + "\n}\n"


def _rounded(values: Values) -> dict[str, float]:
    return {name: float(f"{value:.3g}") for name, value in values.items()}


if __name__ == "__main__":
    (FOLDER / "kernel_fits.json").write_text(frozen(fits()), encoding="utf-8")
