"""Explorer of ZeRO: bytes of weights, gradients and optimizer state per chip, by stage."""

from scalingbook_book.reader.explorers.parts import (
    ALL_CHIPS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Switch,
    View,
)
from scalingbook_lib import training
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP32, binary, count, dtype, si

STAGES = {"plain DP": 0, "ZeRO-1": 1, "ZeRO-2": 2, "ZeRO-3 (FSDP)": 3}
_PARTS = {"weights": 0, "gradients": 1, "optimizer": 3}
_MOST = 4096


def _zero(*, billions: float, ways: int, stage: str, gradients: str, master: bool, chip: str) -> View:
    hbm = chips.find(chip).hbm_bytes
    held = {name: _held(billions, ways, z, gradients, master) for name, z in STAGES.items()}
    mine = held[stage]
    return View(
        _verdict(stage, ways, held, chip, hbm),
        (
            _bars(held, chip, hbm),
            _curves(billions, ways, stage, gradients=gradients, master=master, chip=chip, hbm=hbm),
        ),
        (
            Readout("training state per chip", mine.total, "B"),
            Readout("per parameter per chip", mine.total / billions / 1e9, "bytes"),
            Readout("HBM left", hbm - mine.total, "B", _left(hbm - mine.total)),
            Readout("total over all chips", ways * mine.total, "B"),
        ),
        columns=2,
    )


def _held(billions: float, ways: int, zero: int, gradients: str, master: bool) -> training.TrainingMemory:
    plan = training.Plan(fsdp=ways, zero=zero, gradients=dtype(gradients), master=FP32 if master else None)
    return training.states(billions * 1e9, plan)


def _bars(held: dict[str, training.TrainingMemory], chip: str, hbm: float) -> Bars:
    return Bars(
        Scale("bytes per chip", "B"),
        list(held),
        [Series(part, [one[part] for one in held.values()], color) for part, color in _PARTS.items()],
        stacked=True,
        refs=(RefLine(f"HBM of {chip}", hbm),),
        title="Training state per chip, by stage",
    )


def _curves(
    billions: float, ways: int, stage: str, *, gradients: str, master: bool, chip: str, hbm: float
) -> Chart:
    sizes = [2**e for e in range(_MOST.bit_length())]
    made = {
        name: [_held(billions, n, z, gradients, master).total for n in sizes] for name, z in STAGES.items()
    }
    here = _held(billions, ways, STAGES[stage], gradients, master).total
    return Chart(
        Scale("data-parallel chips", "", "pow2"),
        Scale("bytes per chip", "B", "log"),
        (
            *(Curve(name, sizes, made[name], color) for color, name in enumerate(made)),
            RefLine(f"HBM of {chip}", hbm, axis="y"),
            Points("", [ways], [here], [si(here, "B")], STAGES[stage]),
        ),
    )


def _left(rest: float) -> str:
    return binary(rest) if rest >= 0 else f"{binary(-rest)} short"


def _verdict(stage: str, ways: int, held: dict[str, training.TrainingMemory], chip: str, hbm: float) -> str:
    mine = held[stage].total
    over = f"over {count(ways)} chips" if ways > 1 else "on one chip"
    said = f"{stage} {over} takes {si(mine, 'B')} per chip"
    if mine > hbm:
        fitting = [name for name, one in held.items() if one.total <= hbm]
        also = f"{fitting[0]} is the lowest stage that fits" if fitting else "no stage fits on so few chips"
        return f"{said}, but each {chip} has only {binary(hbm)}; {also}."
    less = [name for name, one in held.items() if one.total <= hbm and STAGES[name] < STAGES[stage]]
    also = f"; {less[0]} would fit too" if less else ", and no lower stage fits" if STAGES[stage] else ""
    return f"{said}, and each {chip} has {binary(hbm)}{also}."


ZERO = Explorer(
    key="training.zero",
    title="Stages of ZeRO: training state per chip",
    question="Which ZeRO stage, and how many chips, does it take for the training state to fit?",
    controls={
        "billions": Slider("parameters", 0.1, 1000.0, 7.5, "log", "billion"),
        "ways": Slider("data-parallel chips", 1, _MOST, 64, "pow2"),
        "stage": Choice("stage", tuple(STAGES), "ZeRO-3 (FSDP)"),
        "gradients": Choice("gradient dtype", (BF16.name, FP32.name), BF16.name),
        "master": Switch("fp32 master weights", True),
        "chip": Chips("chip", ALL_CHIPS, "H100"),
    },
    view=_zero,
)
