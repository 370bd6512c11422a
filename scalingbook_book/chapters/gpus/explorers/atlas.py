"""Explorer that compares two chips of the catalog, memory by memory and unit by unit."""

from collections.abc import Callable, Sequence

from scalingbook_book.reader.explorers.parts import (
    CHIPS_WITH_FLOPS,
    Cell,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    Scale,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import BF16, DTYPES, DType, binary, count, si

_BITS = {"16 bits": ("bf16", "fp16"), "8 bits": ("fp8", "int8"), "4 bits": ("fp4", "int4")}
_LOWEST, _HIGHEST = 1.0, 1e5  # FLOPs per byte
_CORES = {"Google": "TensorCore", "NVIDIA": "SM", "AMD": "CU"}
_UNITS = {"Google": "MXU", "NVIDIA": "Tensor Core", "AMD": "matrix core"}

type Row = tuple[str, Callable[[Chip], float | None], Callable[[Chip, float], str]]


def _atlas(*, one: str, other: str, bits: str, intensity: int) -> View:
    pair = chips.find(one), chips.find(other)
    kinds = [_kind(chip, bits) for chip in pair]
    reached = [roofline.attainable(intensity, c, k) for c, k in zip(pair, kinds, strict=True)]
    ridges = [rules.ridge(c, k) for c, k in zip(pair, kinds, strict=True)]
    return View(
        _verdict(_names(pair), kinds, ridges, reached, intensity),
        (
            _table("Memories, from the matrix units outward", _MEMORIES, pair),
            _table("Units, FLOPs/s and bandwidths", _rates(bits), pair),
            _roofs(pair, kinds, intensity, reached),
        ),
        (
            *(Readout(f"{n}: ridge", r, "FLOPs/byte") for n, r in zip(_names(pair), ridges, strict=True)),
            *(Readout(f"{n}: attainable", r, "FLOPs/s") for n, r in zip(_names(pair), reached, strict=True)),
        ),
        columns=2,
    )


def _names(pair: Sequence[Chip]) -> list[str]:
    """Both names; a chip beside itself is told apart by its place."""
    return [f"{c.name} ({i})" if pair[0] == pair[1] else c.name for i, c in enumerate(pair, 1)]


def _kind(chip: Chip, bits: str) -> DType:
    """The type of that width that the matrix unit knows; where it has none, the next wider one."""
    widths = list(_BITS)
    wanted = [name for width in widths[widths.index(bits) :: -1] for name in _BITS[width]]
    return next(
        (DTYPES[name] for name in wanted if name in chip.rates()), BF16
    )  # which then says what there is


# Tables


def _sized(chip: Chip, each: float | None) -> float | None:
    """All cores together."""
    return each and chip.cores and each * chip.cores


def _split(chip: Chip, total: float) -> str:
    """The capacity of all cores, and what one of them has."""
    cores = chip.cores or 1
    return f"{binary(total)}\n{cores} × {binary(total / cores)}" if cores > 1 else binary(total)


_MEMORIES: tuple[Row, ...] = (
    ("registers", lambda c: _sized(c, c.registers_bytes_per_core), _split),
    ("TMEM", lambda c: _sized(c, c.tmem_bytes_per_core), _split),
    ("SMEM/VMEM", lambda c: c.vmem_bytes or _sized(c, c.smem_bytes_per_core), _split),
    ("L2", lambda c: c.l2_bytes, lambda c, v: binary(v)),
    ("L3", lambda c: c.l3_bytes, lambda c, v: binary(v)),
    ("HBM", lambda c: c.hbm_bytes, lambda c, v: binary(v)),
)
_ABSENT = ("TMEM", "L2", "L3")  # what a chip without a figure does not have at all


def _rates(bits: str) -> tuple[Row, ...]:
    return (
        ("cores", lambda c: c.cores, lambda c, v: _counted(v, _CORES.get(c.vendor, "core"))),
        ("matrix units", lambda c: c.matrix_units, lambda c, v: _counted(v, _UNITS.get(c.vendor, "unit"))),
        ("per unit", lambda c: _peak(c, bits) / (c.matrix_units or 1), lambda c, v: si(v, "FLOPs/s")),
        ("peak", lambda c: _peak(c, bits), lambda c, v: f"{si(v, 'FLOPs/s')}\n{_kind(c, bits)}"),
        ("vector, fp32", lambda c: c.vector_flops_per_s, lambda c, v: si(v, "FLOPs/s")),
        ("HBM", lambda c: c.hbm_bytes_per_s, lambda c, v: si(v, "B/s")),
        ("links", _links, lambda c, v: f"{si(v, 'B/s')}\n{_wires(c)}"),
        ("power", lambda c: c.power_w, lambda c, v: si(v, "W")),
    )


def _peak(chip: Chip, bits: str) -> float:
    return chip.flops_per_s(_kind(chip, bits))


def _links(chip: Chip) -> float:
    """One way: all links into a domain, or those of one torus axis."""
    return roofline.levels(chip)["ICI" if chip.torus else "NVLink"]


def _wires(chip: Chip) -> str:
    return "one axis" if chip.torus else pluralize(chip.links, "link")


def _counted(n: float, what: str) -> str:
    return f"{n:,.0f}\n{what}{'s' * (n != 1)}"


def _table(title: str, rows: Sequence[Row], pair: tuple[Chip, Chip]) -> Grid:
    return Grid(
        title,
        [name for name, _, _ in rows],
        [*_names(pair), "ratio"],
        [_row(name, [value(chip) for chip in pair], written, pair) for name, value, written in rows],
    )


def _row(
    name: str, values: Sequence[float | None], written: Callable[[Chip, float], str], pair: Sequence[Chip]
) -> list[Cell]:
    most = max(v or 0 for v in values)
    cells = [
        Cell(written(chip, v), i, level=0.25 + 0.75 * v / most)
        if v
        else Cell("none" if name in _ABSENT else "not published")
        for i, (chip, v) in enumerate(zip(pair, values, strict=True))
    ]
    a, b = values
    return [*cells, Cell(_ratio(a / b) if a and b else "")]


def _ratio(ratio: float) -> str:
    return f"{count(ratio)} ×" if ratio >= 1 else f"1/{count(1 / ratio)}"


# Rooflines


def _roofs(pair: Sequence[Chip], kinds: Sequence[DType], intensity: int, reached: Sequence[float]) -> Chart:
    both = list(enumerate(zip(_names(pair), pair, kinds, strict=True)))
    peaks = [c.flops_per_s(k) for c, k in zip(pair, kinds, strict=True)]
    return Chart(
        Scale("arithmetic intensity", "FLOPs/byte", "log", _LOWEST, _HIGHEST),
        Scale("attainable FLOPs/s", "FLOPs/s", "log", 1e11, 2e16 if max(peaks) < 2e16 else 1e18),
        (
            *(_roof(f"{name}, HBM", c, k, c.hbm_bytes_per_s, i) for i, (name, c, k) in both),
            *(_roof(f"{name}, links", c, k, _links(c), i, dashed=True) for i, (name, c, k) in both),
            *(Points("", [intensity], [rate], color=i) for i, rate in enumerate(reached)),
        ),
        "Rooflines of HBM and of the links",
    )


def _roof(label: str, chip: Chip, kind: DType, rate: float, color: int, *, dashed: bool = False) -> Curve:
    ridge = rules.ridge(chip, kind, rate)
    xs = [_LOWEST, ridge] if dashed else [_LOWEST, ridge, _HIGHEST]
    return Curve(label, xs, [roofline.attainable(x, chip, kind, rate) for x in xs], color, dashed)


def _verdict(
    names: Sequence[str],
    kinds: Sequence[DType],
    ridges: Sequence[float],
    reached: Sequence[float],
    intensity: int,
) -> str:
    needs = [
        f"{name} {count(ridge)} ({kind})" for name, ridge, kind in zip(names, ridges, kinds, strict=True)
    ]
    waiting = [name for name, ridge in zip(names, ridges, strict=True) if intensity < ridge]
    who = {
        0: "both are compute-bound",
        1: f"only the {waiting[0]} is memory-bound" if waiting else "",
        2: "both are memory-bound",
    }[len(waiting)]
    ratio = max(reached) / min(reached)
    ahead = (
        f"the {names[reached.index(max(reached))]} attains {count(ratio)} times as many FLOPs/s"
        if ratio > 1
        else f"both attain {si(reached[0], 'FLOPs/s')}"
    )
    return (
        f"Ridge points in FLOPs/byte: {', '.join(needs)}. At an intensity of {count(intensity)}, {who}, "
        f"and {ahead}."
    )


ATLAS = Explorer(
    key="gpus.atlas",
    title="Two chips compared, level by level",
    question="How do the memories, units and bandwidths of two chips compare?",
    controls={
        "one": Chips("first chip", CHIPS_WITH_FLOPS, "H100"),
        "other": Chips("second chip", CHIPS_WITH_FLOPS, "TPU v5p"),
        "bits": Choice("operand width", tuple(_BITS)),
        "intensity": Slider("arithmetic intensity, FLOPs/byte", 1, 16384, 128, "pow2"),
    },
    view=_atlas,
)
