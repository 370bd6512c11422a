"""What does a chip keep between two steps? Weights, gradients and the optimizer's state, stage by stage."""

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
            Readout("on each chip", mine.total, "B"),
            Readout("for each parameter", mine.total / billions / 1e9, "bytes"),
            Readout("left of the HBM", hbm - mine.total, "B", _left(hbm - mine.total)),
            Readout("on all chips together", ways * mine.total, "B"),
        ),
        columns=2,
    )


def _held(billions: float, ways: int, zero: int, gradients: str, master: bool) -> training.TrainingMemory:
    plan = training.Plan(fsdp=ways, zero=zero, gradients=dtype(gradients), master=FP32 if master else None)
    return training.states(billions * 1e9, plan)


def _bars(held: dict[str, training.TrainingMemory], chip: str, hbm: float) -> Bars:
    return Bars(
        Scale("bytes on each chip", "B"),
        list(held),
        [Series(part, [one[part] for one in held.values()], color) for part, color in _PARTS.items()],
        stacked=True,
        refs=(RefLine(f"HBM of {chip}", hbm),),
        title="What each stage leaves on a chip",
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
        Scale("chips that share", "", "pow2"),
        Scale("bytes on each chip", "B", "log"),
        (
            *(Curve(name, sizes, made[name], color) for color, name in enumerate(made)),
            RefLine(f"HBM of {chip}", hbm, axis="y"),
            Points("", [ways], [here], [si(here, "B")], STAGES[stage]),
        ),
    )


def _left(rest: float) -> str:
    return binary(rest) if rest >= 0 else f"{binary(-rest)} too little"


def _verdict(stage: str, ways: int, held: dict[str, training.TrainingMemory], chip: str, hbm: float) -> str:
    mine = held[stage].total
    over = f"over {count(ways)} chips" if ways > 1 else "on one chip"
    said = f"{stage} {over} leaves {si(mine, 'B')} on each"
    if mine > hbm:
        fitting = [name for name, one in held.items() if one.total <= hbm]
        also = f"{fitting[0]} is the first that fits" if fitting else "no stage fits over so few"
        return f"{said}, more than the {binary(hbm)} of {chip}: {also}."
    less = [name for name, one in held.items() if one.total <= hbm and STAGES[name] < STAGES[stage]]
    also = f"; {less[0]} would fit too" if less else ", and no lower stage fits" if STAGES[stage] else ""
    return f"{said}, of {binary(hbm)} of {chip}{also}."


ZERO = Explorer(
    key="training.zero",
    title="Who keeps what: the stages of ZeRO",
    question="Which copies can be given up, and how many chips does it take before the rest fits?",
    controls={
        "billions": Slider("parameters", 0.1, 1000.0, 7.5, "log", "billion"),
        "ways": Slider("chips that share", 1, _MOST, 64, "pow2"),
        "stage": Choice("stage", tuple(STAGES), "ZeRO-3 (FSDP)"),
        "gradients": Choice("gradients in", (BF16.name, FP32.name), BF16.name),
        "master": Switch("an fp32 copy of the weights", True),
        "chip": Chips("chip", ALL_CHIPS, "H100"),
    },
    view=_zero,
)
