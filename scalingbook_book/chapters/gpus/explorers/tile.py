"""Explorer of a matmul tile: which unit limits it, for each tile size and number of stages."""

from math import nan

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.machines.occupancy import KernelError, registers_per_sm, smem_per_block
from scalingbook_lib.roofline.gpu_kernels import MatmulTile, matmul_tile, tmem_columns
from scalingbook_lib.units import binary, percent

_CHIPS = ("H100", "H200", "B200", "GB200", "GB300")
_TILES = {
    "64 × 64": (64, 64, 1),
    "128 × 128": (128, 128, 1),
    "128 × 256": (128, 256, 1),
    "256 × 256, two SMs": (256, 256, 2),
}
_MOST = 12  # stages
_UNITS = {"math": "Tensor Cores", "SMEM": "SMEM reads", "L2": "L2", "latency": "latency"}


def _tile(*, chip: str, tile: str, stages: int, latency: float) -> View:
    on = chips.find(chip)
    found = _counted(on, tile, stages, latency)
    return View(
        _verdict(found),
        (_cycles(found), _ceilings(on, tile, found, latency)),
        (
            Readout.percent("ceiling", found.ceiling),
            Readout("FLOPs per byte from L2", found.l2_intensity),
            _memory(found),
            _accumulators(found),
            Readout("stages that hide the latency", found.stages_needed),
        ),
        columns=2,
    )


def _counted(chip: Chip, tile: str, stages: int, latency: float) -> MatmulTile:
    rows, columns, sms = _TILES[tile]
    return matmul_tile(chip, rows, columns, sms=sms, stages=stages, latency_s=latency)


def _cycles(found: MatmulTile) -> Bars:
    cycles = found.cycles_by
    return Bars(
        Scale("cycles per stage"),
        [_UNITS[name] for name in cycles],
        (Series("cycles", list(cycles.values()), 1),),
        title="The longest bar determines the time per stage",
    )


def _ceilings(chip: Chip, tile: str, found: MatmulTile, latency: float) -> Chart:
    """The ceiling of every tile by stages, as far as they fit into shared memory."""
    stages = list(range(1, _MOST + 1))
    curves = [
        Curve(
            name.partition(",")[0],
            stages,
            [_ceiling(chip, name, n, latency) for n in stages],
            0 if name == tile else 5,
            dashed=name != tile,
        )
        for name in sorted(_TILES, key=lambda name: name == tile)  # the chosen one last, above the others
    ]
    here = Points("", [found.stages], [100 * found.ceiling], [percent(found.ceiling)], 3)
    return Chart(
        Scale("stages", "", "linear", 1, _MOST),
        Scale("ceiling, % of the peak", "", "linear", 0, 112),
        (*curves, here),
        title="Ceiling by number of stages",
    )


def _ceiling(chip: Chip, tile: str, stages: int, latency: float) -> float:
    try:
        return 100 * _counted(chip, tile, stages, latency).ceiling
    except KernelError:
        return nan  # does not fit


def _memory(found: MatmulTile) -> Readout:
    most = smem_per_block(found.rates.chip)
    return Readout(
        "SMEM of the stages", found.smem_bytes, "B", f"{binary(found.smem_bytes)} of {binary(most)}"
    )


def _accumulators(found: MatmulTile) -> Readout:
    chip = found.rates.chip
    if chip.tmem_bytes_per_core is None:
        share = found.accumulators / registers_per_sm(chip)
        return Readout("registers for accumulators", found.accumulators, "", percent(share))
    return Readout("TMEM columns", found.columns, "", f"{found.columns} of {tmem_columns(chip)}")


def _verdict(found: MatmulTile) -> str:
    chip, share = found.rates.chip.name, percent(found.ceiling)
    if found.bound == "math":
        return (
            "Compute-bound: neither L2, shared memory nor latency keeps this tile below the peak of the "
            f"{chip}. Waves, power and the epilogue still do."
        )
    if found.bound == "latency":
        needed = found.stages_needed
        rest = (
            f"It would take {needed} stages to hide the latency."
            if needed * found.stage_bytes <= smem_per_block(found.rates.chip)
            else f"It would take {needed} stages to hide the latency, more than fit into shared memory."
        )
        return (
            f"Latency-bound: with {pluralize(found.stages, 'stage')} in flight, the Tensor Cores of the "
            f"{chip} are busy at most {share} of the time. {rest}"
        )
    if found.bound == "L2":
        return (
            f"L2-bound: each byte from L2 feeds {found.l2_intensity:.0f} FLOPs, which allows {share} of the "
            f"peak of the {chip}. More stages do not help, but a larger tile does."
        )
    return (
        f"Bound by shared memory: the Tensor Cores of the {chip} read their operands too slowly for more "
        f"than {share} of the peak. A larger tile reads fewer bytes per FLOP."
    )


TILE = Explorer(
    key="gpus.tile",
    title="Ceiling of a matmul tile",
    question="How large must a tile be, and how many stages must be in flight, to reach the peak?",
    controls={
        "chip": Choice("chip", _CHIPS, "B200"),
        "tile": Choice("tile", tuple(_TILES), "128 × 128"),
        "stages": Slider("stages", 1, _MOST, 1),
        "latency": Slider("latency of a load", 3e-7, 1.2e-6, 6e-7, unit="s", step=5e-8),
    },
    view=_tile,
)
