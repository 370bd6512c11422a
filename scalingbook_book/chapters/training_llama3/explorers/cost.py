"""Explorer of the days and dollars of a training run: the rule of thumb, beside published runs."""

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    sig3,
)
from scalingbook_lib import models, training
from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS
from scalingbook_lib.machines import Cluster, Machine, Slice, chips
from scalingbook_lib.machines.age import price_of
from scalingbook_lib.units import count, count_in_words, percent

MODELS = (
    "Llama 3 8B",
    "Llama 3 70B",
    "Llama 3.1 405B",
    "Llama 2 7B",
    "Qwen3 32B",
    "Mixtral 8x22B",
    "Qwen3 235B-A22B",
    "gpt-oss 120B",
    "DeepSeek-V3",
)
NAMED = ("Llama-3.1-405B", "Llama-3.1-8B", "PaLM-540B", "BLOOM-176B", "LLaMA-65B", "MPT-7B", "Pythia-70M")
ASSUMED_USD_PER_HOUR = 4.2  # TPU v5p's price, for chips whose price nobody publishes
_SIZES = [2.0**e for e in range(6, 18)]


def host(chip: str) -> Machine:
    """The chips of one machine, of which a run takes as many as it needs."""
    on = chips.find(chip)
    if not on.torus:
        return Cluster.of(on, 8)
    return Slice.of(on, "2x2x1" if on.torus.dims == 3 else "4x4" if on.chips_per_host == 16 else "2x2")


def usd_per_hour(chip: str) -> float:
    """What an hour of the chip costs by the catalog, else what is assumed."""
    return chips.find(chip).usd_per_hour or ASSUMED_USD_PER_HOUR


def took(
    model: str, chip: str, n: float, *, trillions: float, mfu: float, price: float
) -> training.PlannedRun:
    """The run on n chips, rounded to whole hosts; `price` in percent of the chip's own."""
    on = host(chip)
    return training.run_at(
        models.find(model),
        on,
        trillions * 1e12,
        mfu=mfu / 100,
        pods=max(round(n / on.chips), 1),
        usd_per_hour=usd_per_hour(chip) * price / 100,
    )


def _cost(*, model: str, trillions: float, chip: str, n: int, mfu: float, price: float) -> View:
    run = took(model, chip, n, trillions=trillions, mfu=mfu, price=price)
    m = models.find(model)
    usd = run.usd or 0.0
    return View(
        _verdict(run, model, trillions, chip, usd),
        (
            _days(run, n, model, chip, trillions=trillions, mfu=mfu),
            _real(mfu, 6 * m.active_params * run.tokens),
        ),
        (
            Readout("days", run.days, "", sig3(run.days)),
            Readout("chip-hours", run.chip_hours, "", count_in_words(run.chip_hours)),
            Readout("cost", usd, "", _usd(usd)),
            _paid(chip, price),
            Readout("active parameters", m.active_params, "", count_in_words(m.active_params)),
            Readout("tokens/s per chip", run.tokens_per_s_per_chip, "", f"{run.tokens_per_s_per_chip:,.0f}"),
        ),
        columns=2,
    )


def _paid(chip: str, price: float) -> Readout:
    """The price of an hour, and the day of its source or that it is assumed."""
    day, usd = price_of(chips.find(chip)).as_of, usd_per_hour(chip)
    since = f"on {day}" if day else "assumed"
    share = "" if price == 100 else f"{price:.0f}% of "
    return Readout("price of a chip-hour", usd * price / 100, "", f"{share}${usd:.2f}, {since}")


def _days(run: training.PlannedRun, n: int, model: str, chip: str, *, trillions: float, mfu: float) -> Chart:
    sizes = [s for s in _SIZES if s >= host(chip).chips]

    def days(share: float) -> list[float]:
        return [took(model, chip, s, trillions=trillions, mfu=share, price=100).days for s in sizes]

    return Chart(
        Scale(f"{chip} chips", "", "pow2"),
        Scale("days", "", "log"),
        (
            Curve("20% MFU", sizes, days(20), 1, dashed=True),
            Curve("60% MFU", sizes, days(60), 2, dashed=True),
            Curve(f"{mfu:.0f}%", sizes, days(mfu), 0),
            RefLine("a year", 365, axis="y"),
            Points("", [n], [run.days], [f"{sig3(run.days)} days"], 0),
        ),
        title="Time of the run by number of chips",
    )


def _real(mfu: float, flops: float) -> Chart:
    """Whole runs with their failures and restarts: what utilization came out."""
    found = [r.utilization for r in WHOLE_RUNS]
    labels = [r.name if r.name in NAMED else "" for r in WHOLE_RUNS]
    return Chart(
        Scale("FLOPs of the run, in 10²¹", "", "log", 0.1, 1e6),
        Scale("MFU of the whole run", "%", "linear", 0, 80),
        (
            Points("", [u.flops / 1e21 for u in found], [100 * u.share for u in found], labels, 3),
            Points("", [flops / 1e21], [mfu], ["yours"], 0),
        ),
        title="MFU of published runs, over all chip-hours",
    )


def _usd(usd: float) -> str:
    return f"${count_in_words(usd)}"


def _verdict(run: training.PlannedRun, model: str, trillions: float, chip: str, usd: float) -> str:
    said = f"Training {model} on {count(trillions)} trillion tokens takes {sig3(run.days)} days"
    paid_for = _usd(usd) if chips.find(chip).usd_per_hour else f"{_usd(usd)} at an assumed price"
    hours = f"{count_in_words(run.chip_hours)} chip-hours, which cost {paid_for}"
    return f"{said} on {count(run.chips)} {chip} chips, or {hours}.{_nearest(run)}"


def _nearest(run: training.PlannedRun) -> str:
    """The published run of nearly as many hours, whatever its model and chip."""
    near = min(WHOLE_RUNS, key=lambda r: abs(r.chip_hours / run.chip_hours - 1))
    ratio = run.chip_hours / near.chip_hours
    if not 0.5 < ratio < 2:
        return ""
    hours = f"{count_in_words(near.chip_hours)} hours of {near.chip.name}"
    return f" For comparison, {near.name} took {hours}, at {percent(near.utilization.share)} MFU."


COST = Explorer(
    key="training_llama3.cost",
    title="Days and dollars of a training run",
    question="How long does a run take, what does it cost, and how does it compare with published runs?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "trillions": Slider("trillions of tokens", 0.1, 30.0, 15.0, "log"),
        "chip": Chips("chip", CHIPS, "TPU v5p"),
        "n": Slider("chips", 64, 131072, 8960, "log", step=8),
        "mfu": Slider("MFU", 10.0, 70.0, 40.0, unit="%", step=1.0),
        "price": Slider("price, relative to list", 20.0, 300.0, 100.0, unit="%", step=5.0),
    },
    view=_cost,
)
