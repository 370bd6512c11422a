"""The minimum memory of a training run over all chips, and the goodput of a run with checkpoints.

Chapters: Training Llama 3; Fault tolerance and goodput.
"""

from dataclasses import dataclass
from math import sqrt

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.units import BF16, FP32, Result, percent, si


@dataclass(frozen=True, slots=True)
class Pooled(Result):
    """The minimum bytes of a run over all chips: weights, Adam's moments, and saved activations."""

    state: float
    checkpoints: float

    @property
    def total(self) -> float:
        """The bytes over all chips together."""
        return self.state + self.checkpoints

    def chips(self, chip: Chip | float) -> float:
        """The number of chips, or of HBMs of that many bytes, that would hold it."""
        return self.total / (chip.hbm_bytes if isinstance(chip, Chip) else chip)

    def __str__(self) -> str:
        return (
            f"{si(self.total, 'B')}: weights and optimizer state {si(self.state, 'B')}, "
            f"saved activations {si(self.checkpoints, 'B')}"
        )


def pooled(model: Transformer, tokens: float, *, arrays: float = 4, params: float | None = None) -> Pooled:
    """10 P + 2 · arrays · tokens · D · L bytes over all chips: training state and saved activations.

    Weights are in bf16 and moments in fp32; `arrays` of [tokens, D] in bf16 are saved per layer. Derived in
    Training Llama 3.
    """
    state = training_state(params or model, weights=BF16, gradients=None, moments=FP32, master=None).total
    # 2 bytes per element in bf16
    return Pooled(state, 2 * model.D * tokens * model.L * arrays)


@dataclass(frozen=True, slots=True)
class Goodput(Result):
    """The goodput with a checkpoint every `every_s` seconds, and the best interval."""

    every_s: float
    best_s: float
    share: float

    def __str__(self) -> str:
        every, best = si(self.every_s, "s"), si(self.best_s, "s")
        beside = "" if every == best else f" (best interval {best})"
        return f"a checkpoint every {every}{beside}: goodput {percent(self.share, 3)}"


def goodput(
    save_s: float, between_failures_s: float, restart_s: float, every_s: float | None = None
) -> Goodput:
    """The goodput 1 - save/every - every/(2 MTBF) - restart/MTBF; the best `every` is sqrt(2 · save · MTBF).

    This is the first order in the other times over an MTBF that is much longer (Young, 1974);
    `training.reliability.exact` is exact. Derived in Training Llama 3.
    """
    # d/d(every) of save/every + every/(2 MTBF) is 0 there (young1974first)
    best = sqrt(2 * save_s * between_failures_s)
    every = best if every_s is None else every_s
    # saving, half an interval recomputed after a failure, and the restart
    lost = save_s / every + every / (2 * between_failures_s) + restart_s / between_failures_s
    return Goodput(every, best, max(1 - lost, 0.0))
