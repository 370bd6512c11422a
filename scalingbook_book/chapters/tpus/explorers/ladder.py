"""Explorer of the ridge of each memory and network of a TPU, for a matmul with operands from there."""

import math
from dataclasses import dataclass

from scalingbook_book.reader.explorers.parts import (
    WITH_TORUS,
    Cell,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Grid,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    join_and,
    pluralize,
)
from scalingbook_lib import roofline
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import DType, binary, dtype, percent, si

_EACH = "X, W and Y"  # what crosses the level; else the weights alone, and X and Y stay on the chip
_MOST = 2**20
_BATCHES = sorted({round(2 ** (k / 4)) for k in range(81)})  # 1 to `_MOST` rows


@dataclass(frozen=True, slots=True)
class LeveledMatmul:
    """X[B, D] · W[D, F] on one chip, with a level's traffic: all three arrays, or the weights alone."""

    D: int
    F: int
    kind: DType
    crosses: str
    chip: Chip

    def at(self, B: int, rate: float) -> roofline.Roofline:
        """Its times where the operands come over a level of that bandwidth."""
        if self.crosses == _EACH:
            return roofline.matmul(B, self.D, self.F, self.chip, self.kind, bytes_per_s=rate)
        weights = self.kind.bytes * self.D * self.F
        return roofline.operation(2 * B * self.D * self.F, weights, self.chip, self.kind, bytes_per_s=rate)

    def batch(self, rate: float) -> float:
        """The rows from which on the arithmetic takes longest; inf where no number is enough."""
        rule = roofline.rule_of_thumb_batch(self.D, self.F, self.chip, self.kind, bytes_per_s=rate)
        return rule.exact if self.crosses == _EACH else rule.batch


def _ladder(*, B: int, D: int, F: int, numbers: str, crosses: str, chip: str) -> View:
    work = LeveledMatmul(D, F, dtype(numbers), crosses, chips.find(chip))
    rates = roofline.levels(work.chip)
    chart = Chart(
        Scale("rows B of X", "", "pow2", 1, _MOST),
        Scale("fraction of the peak", "", "linear", 0, 1.08),
        (
            *(_curve(work, level, rate, i) for i, (level, rate) in enumerate(rates.items())),
            RefLine("your B", B),
        ),
        "Fraction of the peak, by the level that operands come from",
    )
    now = {level: work.at(B, rate) for level, rate in rates.items()}
    weights = work.kind.bytes * D * F
    fits = (
        f"{binary(weights)} of {binary(work.chip.vmem_bytes)}" if work.chip.vmem_bytes else "not documented"
    )
    return View(
        _verdict(work, B, rates, now),
        (chart, _table(work, rates, now)),
        (
            Readout("compute time", next(iter(now.values())).math_s, "s"),
            Readout("peak", work.chip.flops_per_s(work.kind), "FLOPs/s"),
            Readout("VMEM taken up by W", weights, "B", fits),
            Readout("HBM over slowest level", rates["HBM"] / min(rates.values()), "×"),
        ),
    )


def _curve(work: LeveledMatmul, level: str, rate: float, color: int) -> Curve:
    return Curve(level, _BATCHES, [work.at(B, rate).attained_fraction for B in _BATCHES], color)


def _table(work: LeveledMatmul, rates: dict[str, float], now: dict[str, roofline.Roofline]) -> Grid:
    """A rung for each level, the fastest on top; colored where this product reaches the peak from it."""
    cells = [
        [
            Cell(text, 0 if now[level].bound == "compute-bound" else None, level=0.5)
            for text in _rung(work, rate, now[level])
        ]
        for level, rate in rates.items()
    ]
    return Grid(
        "Levels and their ridge points in FLOPs per byte",
        tuple(rates),
        ("bandwidth", "ridge\npoint", "rows\nneeded", "transfer"),
        cells,
    )


def _rung(work: LeveledMatmul, rate: float, now: roofline.Roofline) -> tuple[str, ...]:
    return si(rate, "B/s"), f"{math.floor(now.ridge + 0.5):,}", _rows(work.batch(rate)), si(now.memory_s, "s")


def _rows(batch: float) -> str:
    return "none" if math.isinf(batch) else f"{math.ceil(batch):,}"


def _verdict(work: LeveledMatmul, B: int, rates: dict[str, float], now: dict[str, roofline.Roofline]) -> str:
    fast = [level for level, time in now.items() if time.bound == "compute-bound"]
    rows = pluralize(B, "row")
    where = f"if its operands come from {join_and(fast)}" if fast else "from none of the levels"
    said = f"With {rows}, the matmul reaches the peak {where}"
    slow = [level for level in now if level not in fast]
    if not slow:
        return f"{said}, which means from every level."
    said += f". If they come from {slow[0]}, it reaches {percent(now[slow[0]].attained_fraction)} of the peak"
    batch = work.batch(rates[slow[0]])
    if math.isinf(batch):
        return f"{said}, and no number of rows is enough, because X and Y alone take longer than the compute."
    return f"{said}; reaching the full peak would take {math.ceil(batch):,} rows."


LADDER = Explorer(
    key="tpus.ladder",
    title="How many rows VMEM, HBM, ICI, PCIe and DCN need",
    question="How many rows must X have if the operands of a matmul come from each level?",
    controls={
        "B": Slider("rows B of X", 1, _MOST, 256, "pow2"),
        "D": Slider("contracting dimension D", 256, 131072, 4096, "pow2"),
        "F": Slider("columns F", 256, 131072, 16384, "pow2"),
        "numbers": Choice("data type", ("bf16", "int8"), "bf16"),
        "crosses": Choice("what crosses the level", (_EACH, "W alone"), _EACH),
        "chip": Chips("chip", WITH_TORUS, "TPU v5e"),
    },
    view=_ladder,
)
