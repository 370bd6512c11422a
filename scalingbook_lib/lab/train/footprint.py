"""How much of each device does a compiled training step fill, and was that predicted?

`footprint.of(trainer)` sets the compiler's analysis beside `training.memory` for a compiled loop over layers.
Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib import training
from scalingbook_lib.lab.train import agreement
from scalingbook_lib.lab.train.trainer import Trainer
from scalingbook_lib.units import Told, binary


@dataclass(frozen=True, slots=True)
class Footprint(Told):
    """Bytes on one device: what stays between steps, and the most there is at once."""

    state: float
    compiled_state: int
    peak: float
    compiled_peak: int

    def __str__(self) -> str:
        return (
            f"each device holds {binary(self.compiled_state)} of weights and moments, {binary(self.state)} "
            f"predicted, and at most {binary(self.compiled_peak)} at once, {binary(self.peak)} predicted"
        )


def of(trainer: Trainer) -> Footprint:
    """Prediction and compiled program of one training step."""
    told, memory = parts(trainer), trainer.program.memory
    return Footprint(told["weights"] + told["optimizer"], memory.arguments, told.total, memory.needed)


def parts(trainer: Trainer) -> training.Memory:
    """The plan's memory, part by part, as a loop over the layers has it."""
    plan = agreement.plan(trainer)
    return training.memory(trainer.model, plan, batch=trainer.batch, T=trainer.T, loop=True)
