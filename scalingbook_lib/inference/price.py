"""What does a million tokens cost, on chips that have a price by the hour? Chapter: Inference."""

from dataclasses import dataclass

from scalingbook_lib.inference.case import ServingCase
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.age import price_of
from scalingbook_lib.models import Transformer
from scalingbook_lib.rules import usd_per_million
from scalingbook_lib.units import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Priced(Result):
    """Whatever makes tokens on chips: a step, or a copy of the model at its steady state."""

    case: ServingCase

    @property
    def model(self) -> Transformer:
        """The model."""
        return self.case.model

    @property
    def machine(self) -> Machine:
        """The machine, of which a copy of the model takes `chips`."""
        return self.case.machine

    @property
    def layout(self) -> Layout:
        """How the copy is spread."""
        return self.case.layout

    @property
    def chips(self) -> int:
        """Those of one copy."""
        return self.layout.chips

    @property
    def tokens_per_s(self) -> float:
        """Of one copy."""
        raise NotImplementedError

    @property
    def tokens_per_s_per_chip(self) -> float:
        """The same, of each chip."""
        return self.tokens_per_s / self.chips  # of a copy's chips, so that layouts compare

    def usd_per_million(self, usd_per_hour: float | None = None) -> float:
        """USD for a million of these tokens, at a price of one chip-hour (the chip's own without one)."""
        chip = self.machine.chip
        price = price_of(chip, usd_per_hour).usd_per_hour
        if price is None:
            raise ValueError(f"{chip.name} has no price; give usd_per_hour=...")
        return usd_per_million(price, chips=self.chips, tokens_per_s=self.tokens_per_s)

    @property
    def joules_per_token(self) -> float | None:
        """Energy of the chips alone, at their maximum power; with few users, GPUs draw a third less.

        None if the vendor does not publish that power.
        """
        watts = self.machine.chip.power_w
        return None if watts is None else self.chips * watts / self.tokens_per_s  # W over tokens/s
