"""The least memory that a training run needs over all chips, and the share of its time that counts.

Chapters: Training Llama 3, Fault tolerance and goodput.
"""

from dataclasses import dataclass
from math import sqrt

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.units import BF16, FP32, Result, percent, si


@dataclass(frozen=True, slots=True)
class Pooled(Result):
    """The least that a run must hold somewhere: weights, Adam's moments, and checkpoints of D-wide arrays."""

    state: float
    checkpoints: float

    @property
    def total(self) -> float:
        """Over all chips together."""
        return self.state + self.checkpoints

    def chips(self, chip: Chip | float) -> float:
        """How many chips, or HBMs of that many bytes, would hold it."""
        return self.total / (chip.hbm_bytes if isinstance(chip, Chip) else chip)

    def __str__(self) -> str:
        return (
            f"{si(self.total, 'B')}: {si(self.state, 'B')} of weights and optimizer, "
            f"{si(self.checkpoints, 'B')} of activations"
        )


def pooled(model: Transformer, tokens: float, *, arrays: float = 4, params: float | None = None) -> Pooled:
    """10 P + 2 · arrays · tokens · D · L, bytes over all chips: the state, and what is kept for backward.

    bf16 weights, fp32 moments; `arrays` of [tokens, D] in bf16 for each layer. Derived in Training Llama 3.
    """
    state = training_state(params or model, weights=BF16, gradients=None, moments=FP32, master=None).total
    # 2 bytes per element in bf16
    return Pooled(state, 2 * model.D * tokens * model.L * arrays)


@dataclass(frozen=True, slots=True)
class Goodput(Result):
    """The goodput with a checkpoint every `every_s` seconds, and the best such interval."""

    every_s: float
    best_s: float
    share: float

    def __str__(self) -> str:
        return (
            f"a checkpoint every {si(self.every_s, 's')} (best {si(self.best_s, 's')}): "
            f"goodput {percent(self.share, 3)}"
        )


def goodput(
    save_s: float, between_failures_s: float, restart_s: float, every_s: float | None = None
) -> Goodput:
    """1 - save/every - every/(2 MTBF) - restart/MTBF counts; the best `every` is sqrt(2 · save · MTBF).

    To first order in a time between failures much longer than the others (Young, 1974);
    `training.reliability.exact` has all orders. Derived in Training Llama 3.
    """
    # d/d(every) of save/every + every/(2 MTBF) is 0 there (young1974first)
    best = sqrt(2 * save_s * between_failures_s)
    every = best if every_s is None else every_s
    # saving, half an interval done again after a failure, and the restart
    lost = save_s / every + every / (2 * between_failures_s) + restart_s / between_failures_s
    return Goodput(every, best, max(1 - lost, 0.0))
