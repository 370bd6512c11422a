"""What does a data sheet say once its factors are undone, and what follows for any chip of the catalogue?"""

from scalingbook_book.reader.explorers.parts import (
    ALL_CHIPS,
    Bars,
    Cell,
    Chips,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    Slider,
    Switch,
    View,
)
from scalingbook_lib import rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.machines.datasheet import per_chip_figure
from scalingbook_lib.units import DTYPES, FP8, binary, count, si

_RACK = 72


def _unmask(*, rate: float, link: float, sparse: bool, both: bool, rack: bool, gib: bool) -> View:
    pieces = _RACK if rack else 1
    dense = per_chip_figure(1e15 * rate, sparse=sparse, pieces=pieces)
    reach = per_chip_figure(1e12 * link, bidirectional=both, pieces=pieces)
    memory, bandwidth = per_chip_figure(288e9, binary=3 * gib), 8e12
    naive = 1e15 * rate / 1e12 / link
    values = {"as printed": (rate, link), "meant": (dense / 1e15, reach / 1e12)}
    bars = Bars(
        Scale("PFLOPs/s; TB/s", "", "log", 0.01),
        ("products", "way out"),
        [Series(name, list(row), color) for color, (name, row) in enumerate(values.items())],
    )
    return View(
        f"One chip multiplies {si(dense, 'FLOPs/s')} and sends {si(reach, 'B/s')}: its ridge is "
        f"{count(dense / bandwidth)}, and each byte sent wants {count(dense / reach)} FLOPs "
        f"({count(naive)} as printed).",
        (bars,),
        (
            Readout("products", dense, "FLOPs/s"),
            Readout("way out, one way", reach, "B/s"),
            Readout("memory", memory, "B", binary(memory)),
            Readout("C/W of the domain", dense / reach, "", count(dense / reach)),
        ),
    )


UNMASK = Explorer(
    key="machines.unmask",
    title="Unmask the data sheet",
    question="Which factors of two, and of 72, stand between what is printed and one dense chip, one way?",
    controls={
        "rate": Slider("PFLOPs/s as printed", 1.0, 4000.0, 40.0, "log"),
        "link": Slider("TB/s of links as printed", 0.1, 400.0, 3.6, "log"),
        "sparse": Switch("the rate counts sparsity"),
        "both": Switch("the links count both ways"),
        "rack": Switch(f"both are of a rack of {_RACK}"),
        "gib": Switch("288 GB of memory are GiB"),
    },
    view=_unmask,
)


def _limits(chip: Chip, bits: str) -> dict[str, float]:
    """Of one chip; what nobody publishes is left out."""
    best = {
        "4 bits": ("fp4", "fp8", "bf16", "fp16"),
        "8 bits": ("fp8", "bf16", "fp16"),
        "16 bits": ("bf16", "fp16"),
    }
    kinds = [name for name in best[bits] if name in chip.rates()]
    alone = {
        "memory": chip.hbm_bytes,
        "its rate": chip.hbm_bytes_per_s,
        "sweep": rules.ChipRatios(chip, FP8).hbm_read_time_s,
    }
    if not kinds:
        return alone
    sheet = rules.ChipRatios(chip, DTYPES[kinds[0]])
    return alone | {
        "products": sheet.flops_per_s,
        "way out": sheet.scale_up_bytes_per_s,
        "ridge": sheet.ridge,
        "C/W domain": sheet.balance,
        "expert width": sheet.expert_width,
    }


_UNITS = {"memory": "B", "its rate": "B/s", "sweep": "s", "products": "FLOPs/s", "way out": "B/s"}


def _six(*, one: str, other: str, bits: str) -> View:
    pair = [chips.find(name) for name in (one, other)]
    both = [_limits(chip, bits) for chip in pair]
    rows = [
        name
        for name in ("products", *_UNITS, "ridge", "C/W domain", "expert width")
        if name in both[0] | both[1]
    ]
    rows = list(dict.fromkeys(rows))
    cells = [
        [
            Cell(si(limits[name], _UNITS.get(name, "")), i) if name in limits else Cell("not published")
            for i, limits in enumerate(both)
        ]
        for name in rows
    ]
    said = "; ".join(
        f"{chip.name}{' (announced)' * (chip.status == 'announced')} has a ridge of {count(limits['ridge'])}"
        if "ridge" in limits
        else f"{chip.name} has no published rate in {bits} or wider"
        for chip, limits in zip(pair, both, strict=True)
    )
    names = [one, other] if one != other else [f"{one} (1)", f"{other} (2)"]
    return View(
        f"{said}. {_reread(pair)}",
        (Grid(f"In {bits}, or the next wider type that has a rate", rows, names, cells),),
        tuple(
            Readout(f"{name}: sweep", limits["sweep"], "s") for name, limits in zip(names, both, strict=True)
        ),
    )


def _reread(pair: list[Chip]) -> str:
    first, second = (rules.ChipRatios(chip, FP8).hbm_read_time_s for chip in pair)
    return f"A full memory is read {count(1 / first)} times a second, or {count(1 / second)}."


SIX = Explorer(
    key="machines.six",
    title="Six numbers",
    question="What follows from the sheet of one chip, beside another's?",
    controls={
        "one": Chips("a chip", ALL_CHIPS, "Rubin"),
        "other": Chips("beside", ALL_CHIPS, "GB300"),
        "bits": Choice("products in", ("4 bits", "8 bits", "16 bits"), "8 bits"),
    },
    view=_six,
)
