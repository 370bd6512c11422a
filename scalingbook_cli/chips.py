"""The command `scalingbook chips`: the catalogue as a table, or one chip with its sources."""

import click

from scalingbook_cli import parameter_types
from scalingbook_cli.answer import Answer, TextTable, answer_command, figure
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import binary, si


@click.command("chips", short_help="The chips of the catalogue, with sources.")
@click.argument("chip", type=parameter_types.CHIP, required=False)
@answer_command
def command(chip: Chip | None) -> Answer:
    """The chips of the catalogue, or all figures of one CHIP with their sources."""
    return _one(chip) if chip else _all()


def _all() -> Answer:
    found = tuple(chips.ALL.values())
    return Answer(
        summary=f"{len(found)} chips; every rate is a documented peak, every link one link in one direction; "
        "* announced",
        tables=(
            TextTable(
                "",
                ("chip", "16-bit", "8-bit", "4-bit", "memory", "its rate", "links", "link", "network"),
                tuple(map(_row, found)),
            ),
        ),
        values={"chips": [_values(chip) for chip in found]},
    )


def _row(chip: Chip) -> tuple[str, ...]:
    rates = chip.rates()
    sixteen, eight = rates.get("bf16") or rates.get("fp16"), rates.get("fp8") or rates.get("int8")
    return (
        chip.name + "*" * (chip.status == "announced"),
        si(sixteen, "FLOPs/s") if sixteen else "",
        si(eight, "FLOPs/s") if eight else "",
        si(rates["fp4"], "FLOPs/s") if "fp4" in rates else "",
        binary(chip.hbm_bytes),
        si(chip.hbm_bytes_per_s, "B/s"),
        str(chip.links),
        si(chip.link_bytes_per_s, "B/s"),
        si(chip.dcn_bytes_per_s, "B/s") if chip.dcn_bytes_per_s else "",
    )


def _one(chip: Chip) -> Answer:
    sources = {name: str(chip.sources[name]) for name in _figures(chip)}
    rows = tuple((name, figure(value), sources[name]) for name, value in _figures(chip).items())
    return Answer(
        summary=str(chip),
        tables=(TextTable("", ("figure, in base units", "value", "source"), rows, words=(0, 2)),),
        values=_values(chip) | {"sources": sources},
    )


def _values(chip: Chip) -> dict[str, object]:
    return {"name": chip.name, "vendor": chip.vendor, "status": chip.status, **_figures(chip)}


def _figures(chip: Chip) -> dict[str, float]:
    """The numeric figures of a chip."""
    return {name: value for name, value in chip.figures().items() if isinstance(value, int | float)}
