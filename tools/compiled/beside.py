"""How far is each prediction from what the compiler wrote, and by which rule, where it is far?"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from scalingbook_lib.evidence.compiled.cycles import Estimates
from scalingbook_lib.units import BF16
from tools.compiled.cases import cases
from tools.compiled.facts import Facts, recorded
from tools.compiled.kinds import Case, Engine, Lab, Reading, Step

FAR = 0.05  # an error above this has a reason
FLOPS, MOVED, HELD = MEASURES = "FLOPs", "bytes received", "bytes held"
CLASSES: Mapping[str, type[Case]] = {
    "training, in other people's style": Step,
    "training, by hand": Lab,
    "serving, any structure": Reading,
    "serving, the laboratory's engine": Engine,
}


@dataclass(frozen=True)
class Beside:
    """One program: what is predicted of a device, and what was compiled."""

    case: Case
    facts: Facts

    @cached_property
    def predicted(self) -> dict[str, float]:
        """By measure."""
        return {FLOPS: self.case.flops(), MOVED: sum(self.case.moved().values()), HELD: self.case.held()}

    @property
    def compiled(self) -> dict[str, float]:
        """By measure."""
        return {FLOPS: self.facts.flops, MOVED: sum(self.facts.moved.values()), HELD: self.facts.held}

    @property
    def errors(self) -> dict[str, float]:
        """Predicted over compiled, less one; nothing of what nobody sends."""
        return {
            measure: self.predicted[measure] / found - 1
            for measure, found in self.compiled.items()
            if self.predicted[measure]
        }

    @property
    def far(self) -> dict[str, float]:
        """Those errors that need a reason."""
        return {measure: error for measure, error in self.errors.items() if abs(error) > FAR}

    @property
    def over_roofline(self) -> float | None:
        """The compiler's estimate at the chip's clock over the roofline of products and bytes held."""
        chip = self.case.chip
        if not self.facts.cycles:
            return None
        least_s = max(self.predicted[FLOPS] / chip.bf16_flops_per_s, self.facts.held / chip.hbm_bytes_per_s)
        return self.facts.cycles / Estimates(chip, BF16, {}).clock_hz / least_s

    @property
    def kind(self) -> str:
        """Its class."""
        return next(name for name, kind in CLASSES.items() if isinstance(self.case, kind))


@cache
def every() -> tuple[Beside, ...]:
    """All programs that the compiler was asked for."""
    return tuple(Beside(case, recorded()[name]) for name, case in cases().items())


@dataclass(frozen=True)
class Reason:
    """A rule by which programs differ from their predictions, and of which measure."""

    name: str
    measure: str
    says: str
    where: Callable[[Case], bool]


REASONS: tuple[Reason, ...] = ()


def reasons(one: Beside) -> Iterator[Reason]:
    """The rule for each of its errors that is far."""
    for measure in one.far:
        yield from [r for r in REASONS if r.measure == measure and r.where(one.case)][:1]
