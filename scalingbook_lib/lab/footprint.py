"""How much of each device does a compiled training step fill, and was that predicted?

`footprint.of(trainer)` sets the compiler's analysis beside `training.memory`. The plan's parts are added up
as the laboratory's program meets them: at the logits, or in a layer of the backward pass, whichever is more.
Chapter: Training.
"""

from dataclasses import dataclass
from math import prod

from scalingbook_lib import training
from scalingbook_lib.lab import agreement, transformer
from scalingbook_lib.lab.training import Trainer
from scalingbook_lib.told import Told
from scalingbook_lib.units import binary


@dataclass(frozen=True, slots=True)
class Footprint(Told):
    """Bytes on one device: what stays between steps, and the most there is at once."""

    state: float
    compiled_state: int
    peak: float
    compiled_peak: int

    @property
    def state_ratio(self) -> float:
        """Compiled over predicted."""
        return self.compiled_state / self.state

    @property
    def peak_ratio(self) -> float:
        """Compiled over predicted."""
        return self.compiled_peak / self.peak

    def __str__(self) -> str:
        return (
            f"each device holds {binary(self.compiled_state)} of weights and moments, {binary(self.state)} "
            f"predicted, and at most {binary(self.compiled_peak)} at once, {binary(self.peak)} predicted"
        )


def of(trainer: Trainer) -> Footprint:
    """Prediction and compiled program of one training step."""
    told, memory = parts(trainer), trainer.program.memory
    state = told["weights"] + told["optimizer"]
    peak = told.state + told["activations"] + max(at_logits(trainer, told), in_layer(trainer, told))
    return Footprint(state, memory.arguments, peak, memory.needed)


def parts(trainer: Trainer) -> training.Memory:
    """The plan's memory, part by part."""
    return training.memory(trainer.model, agreement.plan(trainer), batch=trainer.batch, T=trainer.T)


def at_logits(trainer: Trainer, told: training.Memory) -> float:
    """The logits with what is made of them, and the gathered unembedding with its gradient."""
    gathered = 2 * max(_whole(trainer, "unembed"), default=0)
    return told["logits"] + gathered


def in_layer(trainer: Trainer, told: training.Memory) -> float:
    """A layer done again, its gathered weights, the largest gradient, whole, and the gathered tokens.

    A loop over the layers gathers no weights ahead.
    """
    layer = _whole(trainer, *(name for name in transformer.SPLIT if name not in ("embed", "unembed")))
    tokens = 3 * _tokens(trainer) if trainer.sizes["Y"] > 1 else 0
    return told["recomputed layer"] + sum(layer) + max(layer, default=0) + tokens


def _tokens(trainer: Trainer) -> float:
    """One array of all the tokens that a group along Y works on."""
    n = trainer.sizes
    ranks = n["R"] * n["X"] * n["Z"] * n["C"] * trainer.microbatches
    return 4 * trainer.batch * trainer.T * trainer.model.D / ranks


def _whole(trainer: Trainer, *names: str) -> list[float]:
    """The bytes of these weights of one layer once they are gathered; none where nothing is."""
    n = trainer.sizes
    if n["X"] * n["Z"] * n["C"] == 1:
        return []
    sizes = []
    for name, shape in transformer.shapes(trainer.model).items():
        if name in names:
            split = transformer.SPLIT[name]
            one = shape[1:] if split.startswith("W[L") else shape
            ways = (n["Y"] if "_Y" in split else 1) * (n["Z"] if "_Z," in split else 1)
            sizes.append(4 * prod(one) / ways)
    return sizes
