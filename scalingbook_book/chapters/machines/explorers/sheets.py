"""Explorers of a datasheet with its factors of two undone, and of two chips of the catalog."""

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
from scalingbook_lib.units import DTYPES, FP8, binary, count, count_in_words, si

_RACK = 72


def _unmask(*, rate: float, link: float, sparse: bool, both: bool, rack: bool, gib: bool) -> View:
    pieces = _RACK if rack else 1
    dense = per_chip_figure(1e15 * rate, sparse=sparse, pieces=pieces)
    reach = per_chip_figure(1e12 * link, bidirectional=both, pieces=pieces)
    memory, bandwidth = per_chip_figure(288e9, binary=3 * gib), 8e12
    naive = 1e15 * rate / 1e12 / link
    values = {
        "as quoted": (rate, link),
        "one chip, dense FLOPs, one direction": (dense / 1e15, reach / 1e12),
    }
    bars = Bars(
        Scale("PFLOPs/s; TB/s", "", "log", 0.01),
        ("compute", "links"),
        [Series(name, list(row), color) for color, (name, row) in enumerate(values.items())],
    )
    return View(
        f"One chip performs {si(dense, 'FLOPs/s')} and sends {si(reach, 'B/s')}. With "
        f"{si(bandwidth, 'B/s')} of memory bandwidth, its ridge point is "
        f"{count_in_words(dense / bandwidth)}, and it performs {count_in_words(dense / reach)} FLOPs "
        f"per byte that it sends ({count_in_words(naive)} as quoted).",
        (bars,),
        (
            Readout("dense compute", dense, "FLOPs/s"),
            Readout("links, one direction", reach, "B/s"),
            Readout("memory", memory, "B", binary(memory)),
            Readout("FLOPs per byte sent", dense / reach, "", count_in_words(dense / reach)),
        ),
    )


UNMASK = Explorer(
    key="machines.unmask",
    title="Undo the factors of a datasheet",
    question="What factors lead from the quoted numbers to one chip, dense FLOPs and one direction?",
    controls={
        "rate": Slider("PFLOPs/s as quoted", 1.0, 4000.0, 40.0, "log"),
        "link": Slider("TB/s of links as quoted", 0.1, 400.0, 3.6, "log"),
        "sparse": Switch("the rate assumes sparsity"),
        "both": Switch("the links count both directions"),
        "rack": Switch(f"both numbers are for a rack of {_RACK}"),
        "gib": Switch("the 288 GB of memory are GiB"),
    },
    view=_unmask,
)


def _limits(chip: Chip, bits: str) -> dict[str, float]:
    """Numbers and ratios of one chip, without those that are not published."""
    best = {
        "4 bits": ("fp4", "fp8", "bf16", "fp16"),
        "8 bits": ("fp8", "bf16", "fp16"),
        "16 bits": ("bf16", "fp16"),
    }
    kinds = [name for name in best[bits] if name in chip.rates()]
    alone = {
        "memory": chip.hbm_bytes,
        "memory bandwidth": chip.hbm_bytes_per_s,
        "HBM read time": rules.ChipRatios(chip, FP8).hbm_read_time_s,
    }
    if not kinds:
        return alone
    sheet = rules.ChipRatios(chip, DTYPES[kinds[0]])
    return alone | {
        "compute": sheet.flops_per_s,
        "links": sheet.scale_up_bytes_per_s,
        "ridge point": sheet.ridge,
        "FLOPs per byte sent": sheet.balance,
        "expert width": sheet.expert_width,
    }


_UNITS = {
    "memory": "B",
    "memory bandwidth": "B/s",
    "HBM read time": "s",
    "compute": "FLOPs/s",
    "links": "B/s",
}


def _six(*, one: str, other: str, bits: str) -> View:
    pair = [chips.find(name) for name in (one, other)]
    both = [_limits(chip, bits) for chip in pair]
    rows = [
        name
        for name in ("compute", *_UNITS, "ridge point", "FLOPs per byte sent", "expert width")
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
        f"{chip.name}{' (announced)' * (chip.status == 'announced')} has a ridge point of "
        f"{count(limits['ridge point'])}"
        if "ridge point" in limits
        else f"{chip.name} has no published rate in {bits} or wider"
        for chip, limits in zip(pair, both, strict=True)
    )
    names = [one, other] if one != other else [f"{one} (1)", f"{other} (2)"]
    return View(
        f"{said}. {_reread(pair)}",
        (Grid(f"In {bits}, or in the next wider type that the chip supports", rows, names, cells),),
        tuple(
            Readout(f"{name}: HBM read time", limits["HBM read time"], "s")
            for name, limits in zip(names, both, strict=True)
        ),
    )


def _reread(pair: list[Chip]) -> str:
    first, second = (rules.ChipRatios(chip, FP8).hbm_read_time_s for chip in pair)
    return f"They can read their full memory {count(1 / first)} and {count(1 / second)} times per second."


SIX = Explorer(
    key="machines.six",
    title="Six numbers and their ratios",
    question="What follows from the datasheets of two chips?",
    controls={
        "one": Chips("first chip", ALL_CHIPS, "Rubin"),
        "other": Chips("second chip", ALL_CHIPS, "GB300"),
        "bits": Choice("matmuls in", ("4 bits", "8 bits", "16 bits"), "8 bits"),
    },
    view=_six,
)
