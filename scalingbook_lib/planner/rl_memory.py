"""The memory of all models of an RL step on one chip: policy, critic, frozen models, and rollout weights.

Chapter: RL post-training systems.

>>> from scalingbook_lib import models
>>> from scalingbook_lib.machines import Cluster, chips
>>> print(rl_memory(models.find("llama-3-8b"), Cluster.of(chips.H100, 8), Layout(tp=2)))
per chip: training state 16.1 GB, frozen models 2.01 GB, rollout weights 8.03 GB; 53.9 GB left for KV caches
"""

from dataclasses import dataclass

from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.planner.loops import GRPO, Algorithm
from scalingbook_lib.units import BF16, Result, si


@dataclass(frozen=True, slots=True, kw_only=True)
class RLMemory(Result):
    """Bytes per chip of the models of an RL step; if disaggregated, no chip holds both halves."""

    colocated: bool
    hbm_bytes: float
    trained_bytes: float  # weights, gradients and optimizer state of the policy, and of a critic
    frozen_bytes: float  # weights of the reference policy, and of a reward model
    rollout_bytes: float  # the engine's own copy of the policy

    @property
    def cache_bytes(self) -> float:
        """What is left on a chip that generates, mainly for KV caches; negative if the models do not fit."""
        trainer = self.trained_bytes + self.frozen_bytes if self.colocated else 0.0
        return self.hbm_bytes - self.rollout_bytes - trainer

    @property
    def activation_bytes(self) -> float:
        """What is left on a chip that trains, mainly for activations; the engine's copy is not discarded."""
        engine = self.rollout_bytes if self.colocated else 0.0
        return self.hbm_bytes - self.trained_bytes - self.frozen_bytes - engine

    def __str__(self) -> str:
        training = f"training state {si(self.trained_bytes, 'B')}, frozen models {si(self.frozen_bytes, 'B')}"
        rollout = f"rollout weights {si(self.rollout_bytes, 'B')}"
        left = (
            f"{si(self.cache_bytes, 'B')} left for KV caches"
            if self.cache_bytes > 0
            else f"{si(-self.cache_bytes, 'B')} too much"
        )
        if self.colocated:
            return f"per chip: {training}, {rollout}; {left}"
        return (
            f"per chip that trains: {training}; {si(self.activation_bytes, 'B')} left for activations\n"
            f"per chip that generates: {rollout}; {left}"
        )


def rl_memory(
    model: Transformer,
    machine: Machine,
    engine: Layout,
    algorithm: Algorithm = GRPO,
    *,
    training_chips: int | None = None,
) -> RLMemory:
    """16 P trained / n + 2 P frozen / n + w P / n_e bytes per chip, on n chips that train.

    Training state and frozen models are sharded over all training chips, as with FSDP or ZeRO-3; an engine
    shards its own copy over its n_e chips. Without `training_chips` all chips do both (colocated).
    """
    n = machine.chips if training_chips is None else training_chips
    if not 0 < n <= machine.chips:
        raise ValueError(f"training_chips={n}: {machine.name} has {machine.chips:,} chips; write 1 to that")
    return RLMemory(
        colocated=training_chips is None,
        hbm_bytes=machine.chip.hbm_bytes,
        trained_bytes=algorithm.trained * training_state(model).total / n,
        frozen_bytes=algorithm.frozen * BF16.bytes * model.params / n,
        rollout_bytes=engine.weights.bytes * model.params / engine.chips,
    )
