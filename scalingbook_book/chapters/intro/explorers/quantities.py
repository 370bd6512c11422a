"""Explorer that converts a quantity to every unit and compares it with memories and models."""

from scalingbook_book.reader.explorers.parts import (
    ALL_CHIPS,
    Bars,
    Cell,
    Chips,
    Choice,
    Explorer,
    Grid,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    scales,
    sig3,
)
from scalingbook_lib import units
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP32, INT4, INT8, GiB, KiB, MiB, TiB, binary, count, si

_UNITS = {
    "bits": 1 / 8,
    "bytes": 1.0,
    "kB": units.KB,
    "KiB": KiB,
    "MB": units.MB,
    "MiB": MiB,
    "GB": units.GB,
    "GiB": GiB,
    "TB": units.TB,
    "TiB": TiB,
    "bf16 elements": BF16.bytes,
    "fp32 elements": FP32.bytes,
    "int8 elements": INT8.bytes,
    "int4 elements": INT4.bytes,
}
_BINARY = {"KiB": "kB", "MiB": "MB", "GiB": "GB", "TiB": "TB"}
_BINARY_OF = {decimal: binary for binary, decimal in _BINARY.items()}


def _holders(chip: chips.Chip) -> dict[str, float]:
    """Sizes in bytes, from a register tile to the memory of a pod."""
    pod = chips.V5P.torus.pod_chips if chips.V5P.torus else 0
    return {
        "a register tile, 8 × 128 fp32": 8 * 128 * FP32.bytes,
        "VMEM of TPU v5e": chips.V5E.vmem_bytes or 0,
        f"HBM of {chip.name}": chip.hbm_bytes,
        "Llama 3 70B in bf16": 70e9 * BF16.bytes,
        "HBM of a TPU v5p pod": pod * chips.V5P.hbm_bytes,
    }


def _trainer(*, amount: int, unit: str, chip: str) -> View:
    nbytes = amount * _UNITS[unit]
    on = chips.find(chip)
    holders = _holders(on)
    bars = Bars(
        Scale("size", "B", "log", 1, 1e16),
        tuple(holders),
        (Series("bytes", tuple(holders.values()), 0),),
        refs=(RefLine("your quantity", max(nbytes, 1.0)),),
    )
    return View(
        _sentence(amount, unit, nbytes),
        (bars, Grid("The same quantity", (), ("unit", "amount", "unit", "amount"), _table(nbytes, unit))),
        (
            Readout("time to read from HBM", nbytes / on.hbm_bytes_per_s, "s"),
            Readout("time over one link", nbytes / on.link_bytes_per_s, "s"),
            Readout("chips needed to hold it", nbytes / on.hbm_bytes, "", sig3(nbytes / on.hbm_bytes)),
        ),
    )


def _table(nbytes: float, given: str) -> list[list[Cell]]:
    names = list(_UNITS)
    half = len(names) // 2
    return [
        [
            Cell(text, 0 if name == given else None, level=0.4)
            for name in pair
            for text in (name, _amount(nbytes / _UNITS[name]))
        ]
        for pair in zip(names[:half], names[half:], strict=True)
    ]


def _amount(value: float) -> str:
    if 1e-3 <= value < 1e6:
        return f"{value:,.0f}" if value >= 1e4 else f"{value:.4g}"
    return scales.power(value, 4)


def _sentence(amount: int, unit: str, nbytes: float) -> str:
    given = f"{count(amount)} {unit}"
    other = _BINARY.get(unit) or _BINARY_OF.get(unit)
    if other is None:
        elements = f"{count(nbytes / 2)} element{'' if nbytes == 2 else 's'}"
        return f"{given} = {si(nbytes, 'B')} or {binary(nbytes)}, enough for {elements} in bf16."
    there = nbytes / _UNITS[other]
    gap = 100 * abs(_UNITS[unit] / _UNITS[other] - 1)
    compared = "larger" if unit in _BINARY else "smaller"
    return f"{given} = {there:.4g} {other}: a {unit} is {gap:.1f}% {compared} than a {other}."


UNITS = Explorer(
    key="intro.units",
    title="Unit converter",
    question="How large is this quantity in another unit, and what memory can hold it?",
    controls={
        "amount": Slider("amount", 1, 1024, 16, "log"),
        "unit": Choice("unit", tuple(_UNITS), "GiB"),
        "chip": Chips("chip", ALL_CHIPS, "TPU v5e"),
    },
    view=_trainer,
)
