"""Explorer of the growth of TPUs by generation: any number of a chip, or two of them, with their sources."""

import textwrap

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    View,
)
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import si

_NONE = "nothing: the number itself"
_FIGURES = {
    "FLOPs/s in bf16": ("bf16_flops_per_s", "FLOPs/s"),
    "int8 operations/s": ("int8_ops_per_s", "OPs/s"),
    "FLOPs/s in fp8": ("fp8_flops_per_s", "FLOPs/s"),
    "FLOPs/s of the vector unit": ("vector_flops_per_s", "FLOPs/s"),
    "HBM": ("hbm_bytes", "B"),
    "HBM bandwidth": ("hbm_bytes_per_s", "B/s"),
    "VMEM": ("vmem_bytes", "B"),
    "one link, one direction": ("link_bytes_per_s", "B/s"),
    "PCIe": ("pcie_bytes_per_s", "B/s"),
    "DCN": ("dcn_bytes_per_s", "B/s"),
}
_OVER = ("HBM bandwidth", "one link, one direction", "PCIe", "DCN")
_SAME = 0.005
_LINE = 52  # characters that fit on a phone


def _generations(*, figure: str, per: str, chip: str) -> View:
    values = {on.name: value for on in chips.TPUS if (value := ratio(on, figure, per)) is not None}
    if not values:
        raise ValueError(
            f"{figure} and {per} are not documented together for any generation; choose another number"
        )
    unit = _unit(figure, per)
    bars = Bars(
        Scale("value", unit),
        tuple(values),
        (Series(figure, tuple(values.values()), 0),),
        title=_named(figure, per),
    )
    return View(
        _verdict(values, figure, per),
        (bars, _sources(chips.find(chip), [name for name in (figure, per) if name != _NONE])),
        _readouts(values, chip, unit),
    )


def _readouts(values: dict[str, float], chip: str, unit: str) -> tuple[Readout, ...]:
    """The chosen generation's value, and the ends of all."""
    most, least = (end(values, key=lambda name: values[name]) for end in (max, min))
    own = [Readout(chip, values[chip], unit)] if chip in values else []
    return (
        *own,
        Readout(f"highest: {most}", values[most], unit),
        Readout(f"lowest: {least}", values[least], unit),
    )


def ratio(on: Chip, figure: str, per: str) -> float | None:
    """A figure of a chip, or a figure over another, or None if one is not documented."""
    names = [_FIGURES[name][0] for name in (figure, per) if name != _NONE]
    found = [getattr(on, name) for name in names]
    if None in found:
        return None
    return found[0] / found[1] if len(found) == 2 else found[0]


def _unit(figure: str, per: str) -> str:
    """The unit of a figure, or of a figure over a bandwidth."""
    unit = _FIGURES[figure][1]
    if per == _NONE:
        return unit
    return {"B": "s", "B/s": "×"}.get(unit, f"{unit.removesuffix('/s')}/byte")


def _named(figure: str, per: str) -> str:
    return figure if per == _NONE else f"{figure} over {per}"


def _sources(on: Chip, figures: list[str]) -> Grid:
    """The sources of the chosen numbers for this generation."""
    told = [_told(on, figure) for figure in figures]
    return Grid(f"{on.name}: sources of the numbers", (), (), [[Cell(text, level=0.5)] for text in told])


def _told(on: Chip, figure: str) -> str:
    name, unit = _FIGURES[figure]
    value = getattr(on, name)
    if value is None:
        return f"{figure}: not documented"
    lines = textwrap.wrap(f"{on.sources[name]}", _LINE)
    return "\n".join([f"{figure}: {si(value, unit, 4)}", *lines])


def _verdict(values: dict[str, float], figure: str, per: str) -> str:
    first, *_, last = [*values, *values]  # the same where only one is known
    missing = [on.name for on in chips.TPUS if on.name not in values]
    said = f"From {first} to {last}, {_named(figure, per)} {_grew(values[last] / values[first])}."
    return f"{said} It is not documented for {', '.join(missing)}." if missing else said


def _grew(times: float) -> str:
    if abs(times - 1) < _SAME:
        return "stayed the same"
    return f"grew by a factor of {times:.3g}" if times > 1 else f"fell by a factor of {1 / times:.3g}"


GENERATIONS = Explorer(
    key="tpus.generations",
    title="TPU generations compared",
    question="What has grown from one TPU generation to the next, and what has not kept up?",
    controls={
        "figure": Choice("number", tuple(_FIGURES), "FLOPs/s in bf16"),
        "per": Choice("divided by", (_NONE, *_OVER), "HBM bandwidth"),
        "chip": Choice("show the sources for", tuple(chip.name for chip in chips.TPUS), "TPU v5e"),
    },
    view=_generations,
)
