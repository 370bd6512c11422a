"""The time of many steps of one model on one machine under one layout; constants are computed once.

Simulators and searches call `case(model, machine, layout).step_s(decodes, kv_tokens, chunk)`; `InferenceStep`
presents the same numbers by term. Chapter: Inference.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from scalingbook_lib.inference.constants import constants
from scalingbook_lib.inference.efficiency import PEAK, ServingEfficiency
from scalingbook_lib.inference.layout import Layout, LayoutError
from scalingbook_lib.inference.passes import Load, Pass, fullest, passed
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.inference.traffic import rows
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer


@dataclass(slots=True)
class Staged:
    """The microbatches of one step, which pass through all stages one after another, and overheads."""

    one: Pass
    microbatches: int
    lasts_s: float  # until all microbatches have passed all stages
    launch_s: float  # per step or microbatch, and per sequence; with stages, host time as well
    host_s: float  # host time of a group to prepare such a step

    @property
    def total_s(self) -> float:
        """The seconds of the step; without stages, the host prepares it during the previous step."""
        device_s = self.lasts_s + self.launch_s
        return device_s if device_s > self.host_s else self.host_s


class ServingCase:
    """One model on one machine under one layout, at a given efficiency."""

    def __init__(
        self, model: Transformer, machine: Machine, layout: Layout, efficiency: ServingEfficiency = PEAK
    ) -> None:
        self.shape = shape(model, layout)
        if machine.chips % layout.chips:
            raise LayoutError(
                f"the {layout.chips} chips of a replica do not divide the {machine.chips:,} chips of "
                f"{machine.name}: choose tp · cp · pp as a divisor"
            )
        self.model, self.machine, self.layout, self.efficiency = model, machine, layout, efficiency
        self.traffic = rows(self.shape, machine, efficiency)
        self.constants = constants(self.shape, machine, efficiency, self.traffic)

    def step_s(
        self, decodes: float, kv_tokens: float, chunk: float = 0, chunk_context: float = 0, prompts: int = 1
    ) -> float:
        """Return the seconds of a step in which `decodes` sequences get one token each.

        They have `kv_tokens` cached tokens in total. The step also prefills `chunk` tokens of `prompts`
        prompts, each of which has `chunk_context` tokens in the cache already.
        """
        return self.staged(Load(decodes, kv_tokens, chunk, chunk_context, prompts)).total_s

    def staged(self, load: Load) -> Staged:
        """Return a step in as many microbatches as there are stages, so that all stages are busy."""
        pp = self.layout.pp
        if pp == 1:
            one = passed(self.constants, load)
            return self._staged(load, one, 1, one.total_s)
        # a chunk can be divided at any token, a batch only between sequences
        m = pp if load.chunk else max(min(pp, ceil(load.batch)), 1)
        one = passed(self.constants, load.microbatch(m))
        return self._staged(load, one, m, max(one.total_s, m * self._longest_s(one)))

    def prefilled(self, load: Load) -> Staged:
        """Return a prefill of whole prompts, which pass through the stages one after another."""
        m = ceil(load.prompts / self.layout.attention_dp) if self.layout.pp > 1 else 1
        one = passed(self.constants, replace(load, chunk=load.chunk / m, prompts=-(-load.prompts // m)))
        return self._staged(load, one, m, one.total_s + (m - 1) * self._longest_s(one))

    def _longest_s(self, one: Pass) -> float:
        """Return the seconds of the longest stage: the one with most layers, or the last with the head."""
        layers_s = one.total_s - one.head_s
        # the longest stage sets the pace
        return max(self.shape.longest * layers_s, self.shape.last * layers_s + one.head_s)

    def _staged(self, load: Load, one: Pass, m: int, lasts_s: float) -> Staged:
        e, sequences = self.efficiency, load.sequences
        host_s = e.host_s * fullest(sequences, self.layout.attention_dp)
        launch_s = e.fixed_s * m + e.sequence_s * sequences
        if self.layout.pp > 1:  # with stages, host time is exposed
            launch_s += host_s
        return Staged(one, m, lasts_s, launch_s, host_s)


# looking up a case is thirty times as fast as computing it, and makes a sweep over batches 15 times as fast
@lru_cache(maxsize=512)
def case(
    model: Transformer, machine: Machine, layout: Layout, efficiency: ServingEfficiency = PEAK
) -> ServingCase:
    """Return the case of these arguments; it is cached."""
    return ServingCase(model, machine, layout, efficiency)
