"""The command `scalingbook chips`: the catalog and the instances as tables, or one with its sources."""

import click

from scalingbook_cli import parameter_types
from scalingbook_cli.answer import Answer, TextTable, answer_command, figure
from scalingbook_lib.machines import Chip, chips, instances
from scalingbook_lib.machines.instances import Instance
from scalingbook_lib.units import GB, GiB, rounded

COLUMNS = (
    "chip",
    *(f"{width}\nTFLOPs/s" for width in ("16-bit", "8-bit", "4-bit")),
    "memory\nGiB",
    "memory\nGB/s",
    "links",
    *(f"{what}\nGB/s" for what in ("link", "network")),
)
INSTANCE_COLUMNS = ("instance", "cloud", "chip", "chips", "domain\nchips", "network\nGb/s", "per chip\nGB/s")


@click.command("chips", short_help="The chips of the catalog and their specifications, with sources.")
@click.argument("chip", type=parameter_types.CHIP, required=False)
@click.option(
    "--instances", "listed", is_flag=True, help="List the instances of clouds, which are machines by name."
)
@answer_command
def command(chip: Chip | None, listed: bool) -> Answer:
    """List the chips of the catalog, or all specifications of one CHIP with their sources.

    With --instances, list the instances of clouds, with CHIP those that have it.
    """
    if listed:
        return _instances(chip)
    return _one(chip) if chip else _all()


def _instances(chip: Chip | None) -> Answer:
    found = [one for one in instances.every() if chip is None or one.chip == chip.name]
    if not found and chip:
        raise ValueError(f"no instance in the catalog has {chip.name}; write a number of chips, as in h100:8")
    return Answer(
        summary=f"{len(found)} instances; the network's bandwidth in one direction; a machine of several is "
        f"written as in {found[0].name}:4",
        tables=(TextTable("", INSTANCE_COLUMNS, tuple(map(_instance_row, found)), words=(0, 1, 2)),),
        values={"instances": [_instance_values(one) for one in found]},
    )


def _instance_row(one: Instance) -> tuple[str, ...]:
    return (
        one.name,
        one.cloud,
        one.chip,
        str(one.chips),
        str(one.scale_up_chips or ""),
        _in_units(one.network_bytes_per_s, 1e9 / 8),
        _in_units(one.network_bytes_per_s_per_chip, GB),
    )


def _instance_values(one: Instance) -> dict[str, object]:
    return {
        "name": one.name,
        "cloud": one.cloud,
        "chip": one.chip,
        "chips": one.chips,
        "domain_chips": one.scale_up_chips,
        "network_bytes_per_s": one.network_bytes_per_s,
        "source": str(one.source),
        "url": one.source.url,
    }


def _all() -> Answer:
    found = tuple(chips.ALL.values())
    return Answer(
        summary=f"{len(found)} chips: documented dense peaks; link and network bandwidth in one direction; "
        "* = announced",
        tables=(
            TextTable(
                "",
                COLUMNS,
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
        *(_in_units(rate, 1e12) for rate in (sixteen, eight, rates.get("fp4"))),
        _in_units(chip.hbm_bytes, GiB),
        _in_units(chip.hbm_bytes_per_s, GB),
        str(chip.links),
        *(_in_units(rate, GB) for rate in (chip.link_bytes_per_s, chip.dcn_bytes_per_s)),
    )


def _in_units(value: float | None, unit: float) -> str:
    """A specification in that unit with four significant digits, or "" for an unknown one."""
    return f"{rounded(value / unit, 4):,.10g}" if value else ""


def _one(chip: Chip) -> Answer:
    sources = {name: str(chip.sources[name]) for name in _figures(chip)}
    rows = tuple((name, figure(value), sources[name]) for name, value in _figures(chip).items())
    return Answer(
        summary=str(chip),
        tables=(TextTable("", ("specification (base units)", "value", "source"), rows, words=(0, 2)),),
        values=_values(chip) | {"sources": sources},
    )


def _values(chip: Chip) -> dict[str, object]:
    return {"name": chip.name, "vendor": chip.vendor, "status": chip.status, **_figures(chip)}


def _figures(chip: Chip) -> dict[str, float]:
    """The numeric specifications of a chip."""
    return {name: value for name, value in chip.figures().items() if isinstance(value, int | float)}
