"""The tables of all chips, instances and models, as HTML and as CSV.

`{chips-table}`, `{instances-table}` and `{models-table}` write a table from the library's catalog; the page's
script makes it sortable and filterable (`page/site/side-by-side.mjs`). The CSV files use base units.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from scalingbook_lib import models, rules
from scalingbook_lib.machines import Chip, chips, instances
from scalingbook_lib.machines.instances import Instance
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.units import BF16, FP16, binary, si
from web.extension.page_data import shows_the_library

FOLDER = "data"  # of the site, for the CSV files


@dataclass(frozen=True, slots=True)
class Column[T]:
    """A column: its heading, its name in the CSV file, its value, and the format of a cell."""

    heading: str
    field: str
    value: Callable[[T], float | str | None]
    shown: Callable[[float], str] = lambda value: f"{value:,.0f}"


def _rate(*names: str) -> Callable[[Chip], float | None]:
    """Return the first of these rates that the chip has, or None."""
    return lambda chip: next((chip.rates()[name] for name in names if name in chip.rates()), None)


def _ridge(chip: Chip) -> float | None:
    dtype = next((one for one in (BF16, FP16) if one.name in chip.rates()), None)
    return rules.ChipRatios(chip, dtype).ridge if dtype else None


def _as_of(chip: Chip) -> str:
    return max(chip.sources[name].as_of for name in chip.figures())


def _flops(value: float) -> str:
    return si(value, "FLOPs/s")


CHIPS: tuple[Column[Chip], ...] = (
    Column("Chip", "name", lambda c: c.name),
    Column("Vendor", "vendor", lambda c: c.vendor),
    Column("Status", "status", lambda c: c.status),
    Column("16-bit FLOPs/s", "bf16_flops_per_s", _rate("bf16", "fp16"), _flops),
    Column("8-bit FLOPs/s", "fp8_flops_per_s", _rate("fp8", "int8"), _flops),
    Column("4-bit FLOPs/s", "fp4_flops_per_s", _rate("fp4", "int4"), _flops),
    Column("Memory capacity", "hbm_bytes", lambda c: c.hbm_bytes, binary),
    Column("Memory bandwidth", "hbm_bytes_per_s", lambda c: c.hbm_bytes_per_s, lambda v: si(v, "B/s")),
    Column("Ridge point (16-bit FLOPs/byte)", "ridge_flops_per_byte", _ridge),
    Column("Links of a chip", "links", lambda c: c.links),
    Column("One link, one way", "link_bytes_per_s", lambda c: c.link_bytes_per_s, lambda v: si(v, "B/s")),
    Column("Scale-up domain (chips)", "domain_chips", lambda c: c.domain_chips),
    Column(
        "Network of a chip, one way", "dcn_bytes_per_s", lambda c: c.dcn_bytes_per_s, lambda v: si(v, "B/s")
    ),
    Column("Highest power", "power_w", lambda c: c.power_w, lambda v: f"{v:,.0f} W"),
    Column("Price per chip-hour", "usd_per_hour", lambda c: c.usd_per_hour, lambda v: f"${v:,.2f}"),
    Column("Source read on", "as_of", _as_of),
)


INSTANCES: tuple[Column[Instance], ...] = (
    Column("Instance", "name", lambda i: i.name),
    Column("Cloud", "cloud", lambda i: i.cloud),
    Column("Chip", "chip", lambda i: i.chip),
    Column("Chips", "chips", lambda i: i.chips),
    Column("Scale-up domain (chips)", "domain_chips", lambda i: i.scale_up_chips),
    Column(
        "Network of the instance, one way", "network_bytes_per_s", lambda i: i.network_bytes_per_s,
        lambda v: f"{v * 8 / 1e9:,.5g} Gb/s",
    ),
    Column(
        "Network of a chip, one way", "network_bytes_per_s_per_chip",
        lambda i: i.network_bytes_per_s_per_chip, lambda v: si(v, "B/s"),
    ),
    Column("Source read on", "as_of", lambda i: i.source.as_of),
)  # fmt: skip


def _billions(value: float) -> str:
    return f"{value / 1e9:.4g}B"


def _kv_bytes(model: Transformer) -> float:
    return float(kv_cache(model, 1).bytes_per_token)


def _dense_width(model: Transformer) -> float | None:
    """Return the width of a dense MLP, or None if every layer has experts instead."""
    dense = model.experts is None or model.experts.layers(model.L) < model.L
    return model.F if dense else None


MODELS: tuple[Column[Transformer], ...] = (
    Column("Model", "name", lambda m: m.name),
    Column("Parameters", "params", lambda m: m.params, _billions),
    Column("Active per token", "active_params", lambda m: m.active_params, _billions),
    Column("Layers (L)", "L", lambda m: m.L),
    Column("Width (D)", "D", lambda m: m.D),
    Column("Width of an MLP (F)", "F", _dense_width),
    Column("Query heads (N)", "N", lambda m: m.N),
    Column("KV heads (K)", "K", lambda m: m.K),
    Column("Elements of a head (H)", "H", lambda m: m.H),
    Column("Vocabulary (V)", "V", lambda m: m.V),
    Column("Experts (E)", "experts", lambda m: m.experts.E if m.experts else None),
    Column("Experts per token (k)", "experts_per_token", lambda m: m.experts.k if m.experts else None),
    Column("Width of an expert", "expert_width", lambda m: m.experts.F if m.experts else None),
    Column("KV cache per token (bf16)", "kv_bytes_per_token", _kv_bytes, binary),
    Column("Weights (bf16)", "bf16_weight_bytes", lambda m: 2 * m.params, lambda v: si(v, "B")),
)


def table[T](name: str, title: str, columns: tuple[Column[T], ...], rows: tuple[T, ...], sources: str) -> str:
    """Return the table as HTML; a cell carries the value by which its column is sorted.

    The first row is invisible and holds the widest text of each column, so that columns do not move while a
    browser receives the rows.
    """
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(column.heading)}</button></th>' for column in columns
    )
    widest = "".join(
        _cell(column, max(rows, key=lambda row: len(_text(column, column.value(row))))) for column in columns
    )
    body = "".join(f"<tr>{''.join(_cell(column, row) for column in columns)}</tr>" for row in rows)
    find = '<label>Filter <input type="search" autocomplete="off" spellcheck="false"></label>'
    return (
        '<div class="side-by-side"><p class="side-by-side-tools">'
        f'<span class="side-by-side-find js-only">{find} <span role="status"></span></span> '
        f'<a href="{FOLDER}/{name}.csv" download>Download as CSV</a>'
        f' <a href="{FOLDER}/datapackage.json" download>All data of the book, described</a></p>'
        f'<div class="table-wrapper" tabindex="0" role="region" aria-label="{escape(title)}">'
        f'<table class="table"><caption>{escape(title)}</caption><thead><tr>{heads}</tr>'
        f'<tr class="widest" aria-hidden="true">{widest}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{sources}</div>"
    )


def _text[T](column: Column[T], value: float | str | None) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else column.shown(value)


def _cell[T](column: Column[T], row: T) -> str:
    value = column.value(row)
    text = escape(_text(column, value))
    if value is None:
        return f'<td class="text-right">{text}</td>'
    if isinstance(value, str):
        return f'<th scope="row">{text}</th>' if column.field == "name" else f"<td>{text}</td>"
    return f'<td class="text-right" data-value="{float(value):.6g}">{text}</td>'


def markdown[T](columns: tuple[Column[T], ...], rows: tuple[T, ...]) -> str:
    """Return the table in Markdown, with the same cells as the page."""
    lines = [
        [column.heading for column in columns],
        ["---"] * len(columns),
        *([_text(column, column.value(row)) for column in columns] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write_csv[T](path: Path, columns: tuple[Column[T], ...], rows: tuple[T, ...]) -> None:
    """Write the same rows in base units, with each row's sources."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(column.field for column in columns), "source"])
        for row in rows:
            values = (column.value(row) for column in columns)
            writer.writerow(["" if value is None else value for value in values] + [_source(row)])


def _source(row: object) -> str:
    if isinstance(row, Chip):
        return " | ".join(dict.fromkeys(str(row.sources[name]) for name in row.figures()))
    if isinstance(row, Instance):
        return f"{row.source} | {row.source.url}"
    return row.source if isinstance(row, Transformer) else ""


def _chip_sources() -> str:
    """Return the source of each number of each chip, folded."""
    listed = "".join(f"<dt>{escape(chip.name)}</dt><dd>{_figures(chip)}</dd>" for chip in chips.ALL.values())
    return f"<details><summary>Source and date of every number</summary><dl>{listed}</dl></details>"


def _figures(chip: Chip) -> str:
    by_source: dict[str, list[str]] = {}
    for name in chip.figures():
        by_source.setdefault(str(chip.sources[name]), []).append(name)
    return "; ".join(f"{escape(said)} ({escape(', '.join(names))})" for said, names in by_source.items())


class ChipsTable(SphinxDirective):
    """The directive that lists all chips of the catalog."""

    def run(self) -> list[nodes.Node]:
        """Return one table, rebuilt when the library changes."""
        shows_the_library(self.env)
        title = "Numbers of one chip: peak FLOPs/s are dense, link and network rates are one way"
        html = table("chips", title, CHIPS, tuple(chips.ALL.values()), _chip_sources())
        return [nodes.raw("", html, format="html")]


class InstancesTable(SphinxDirective):
    """The directive that lists all instances of clouds that the catalog has."""

    def run(self) -> list[nodes.Node]:
        """Return one table, rebuilt when the library changes."""
        shows_the_library(self.env)
        title = "The chips and the network of one instance"
        return [nodes.raw("", table("instances", title, INSTANCES, instances.every(), ""), format="html")]


class ModelsTable(SphinxDirective):
    """The directive that lists all models of the catalog."""

    def run(self) -> list[nodes.Node]:
        """Return one table, rebuilt when the library changes."""
        shows_the_library(self.env)
        title = "Shapes and sizes of the catalog's models, counted weight by weight"
        return [nodes.raw("", table("models", title, MODELS, models.CATALOG, ""), format="html")]


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the CSV files."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    write_csv(folder / "chips.csv", CHIPS, tuple(chips.ALL.values()))
    write_csv(folder / "instances.csv", INSTANCES, instances.every())
    write_csv(folder / "models.csv", MODELS, models.CATALOG)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("chips-table", ChipsTable)
    app.add_directive("instances-table", InstancesTable)
    app.add_directive("models-table", ModelsTable)
    app.connect("build-finished", finish)
    return {}
