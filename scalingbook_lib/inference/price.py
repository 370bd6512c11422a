"""The cost and the energy of tokens on chips with a price per hour. Chapter: Inference."""

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
    """Anything that produces tokens on chips: a step, or a replica at its steady state."""

    case: ServingCase

    @property
    def model(self) -> Transformer:
        """The model."""
        return self.case.model

    @property
    def machine(self) -> Machine:
        """The machine; a model replica uses `chips` of its chips."""
        return self.case.machine

    @property
    def layout(self) -> Layout:
        """The layout of the replica."""
        return self.case.layout

    @property
    def chips(self) -> int:
        """The number of chips per replica."""
        return self.layout.chips

    @property
    def tokens_per_s(self) -> float:
        """The tokens per second of one replica."""
        raise NotImplementedError

    @property
    def tokens_per_s_per_chip(self) -> float:
        """The tokens per second per chip."""
        return self.tokens_per_s / self.chips  # per chip of the replica, so that layouts can be compared

    def usd_per_million(self, usd_per_hour: float | None = None) -> float:
        """Return USD per million tokens at a price per chip-hour; by default at the chip's own price."""
        chip = self.machine.chip
        price = price_of(chip, usd_per_hour).usd_per_hour
        if price is None:
            raise ValueError(f"{chip.name} has no price; give usd_per_hour=...")
        return usd_per_million(price, chips=self.chips, tokens_per_s=self.tokens_per_s)

    @property
    def joules_per_token(self) -> float | None:
        """The joules per token of the chips alone at maximum power; with few users, GPUs draw a third less.

        None if the vendor does not publish that power.
        """
        watts = self.machine.chip.power_w
        return None if watts is None else self.chips * watts / self.tokens_per_s  # W over tokens/s
