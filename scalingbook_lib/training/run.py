"""The days, chip-hours, cost and energy of a training run.

Chapter: Training Llama 3.
"""

from dataclasses import dataclass

from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.age import ChipPrice, price_of
from scalingbook_lib.machines.energy import Energy
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.step import TrainingStep
from scalingbook_lib.units import BF16, DType, Result, count, rounded, si

DAY_S, HOUR_S = 86400.0, 3600.0


@dataclass(frozen=True, slots=True)
class PlannedRun(Result):
    """A run over `tokens` tokens, without failures and restarts."""

    tokens: float
    chips: int
    seconds: float
    usd_per_hour: float | None = None  # of one chip
    power_w: float | None = None  # of one chip, the maximum
    usd_as_of: str | None = None  # the day of the price; None where it was given

    @property
    def days(self) -> float:
        """The duration in days."""
        return self.seconds / DAY_S

    @property
    def chip_hours(self) -> float:
        """The number of chips times the hours."""
        return self.chips * self.seconds / HOUR_S

    @property
    def usd(self) -> float | None:
        """The cost of the chip-hours in USD; None without a price."""
        return None if self.usd_per_hour is None else self.chip_hours * self.usd_per_hour

    @property
    def energy(self) -> Energy | None:
        """The energy of the chips alone at maximum power; None if their power is not published."""
        return None if self.power_w is None else Energy(self.chips * self.seconds * self.power_w)

    @property
    def tokens_per_s_per_chip(self) -> float:
        """Tokens per second per chip."""
        return self.tokens / (self.seconds * self.chips)

    def __str__(self) -> str:
        price = ChipPrice(self.usd_per_hour, self.usd_as_of)
        cost = f", {count(round(self.usd))} USD at {price}" if self.usd is not None else ""
        return (
            f"{si(self.tokens)} tokens on {self.chips:,} chips: {count(rounded(self.days))} days, "
            f"{si(self.chip_hours)} chip-hours{cost}"
        )


def run(step: TrainingStep, tokens: float, usd_per_hour: float | None = None) -> PlannedRun:
    """Return a run of as many steps as the tokens fill; without a price, the chip's own is used."""
    seconds = tokens / step.tokens * step.total_s  # as many steps as the tokens fill
    return _planned(step.machine, tokens, step.chips, seconds, usd_per_hour)


def run_at(
    model: Transformer | float,
    machine: Machine,
    tokens: float,
    *,
    mfu: float,
    pods: int = 1,
    usd_per_hour: float | None = None,
    dtype: DType = BF16,
) -> PlannedRun:
    """Return a run by the rule of thumb: 6 · P · tokens / (chips · C · MFU) seconds, P active parameters."""
    P = model.active_params if isinstance(model, Transformer) else model
    # useful FLOPs/s of all chips
    rate = pods * machine.chips * machine.chip.flops_per_s(dtype) * _positive("mfu", mfu)
    # 2 FLOPs per parameter per token forward, 4 backward (kaplan2020scaling)
    chips, seconds = pods * machine.chips, 6 * P * tokens / rate
    return _planned(machine, tokens, chips, seconds, usd_per_hour)


def _planned(on: Machine, tokens: float, chips: int, seconds: float, given: float | None) -> PlannedRun:
    price = price_of(on.chip, given)
    return PlannedRun(
        tokens=_positive("tokens", tokens),
        chips=chips,
        seconds=seconds,
        usd_per_hour=price.usd_per_hour,
        usd_as_of=price.as_of,
        power_w=on.chip.power_w,
    )


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{name}={value}: write a positive number")
    return value
