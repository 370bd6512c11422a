"""The times of many steps of one model on one machine with one layout; shared quantities are computed once.

`case(model, machine, layout).step_s(decodes, kv_tokens, chunk)` is what simulators and searches ask;
`InferenceStep` has the same numbers, term by term. Chapter: Inference.
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
    """Microbatches that follow one another through all stages, and what is lost beside them."""

    one: Pass
    microbatches: int
    lasts_s: float  # until all have passed all stages
    launch_s: float  # once a step or microbatch, and for each sequence; with stages, also to the host
    host_s: float  # what the host of a group needs to prepare such a step

    @property
    def total_s(self) -> float:
        """The step: without stages the host prepares it while the one before runs."""
        device_s = self.lasts_s + self.launch_s
        return device_s if device_s > self.host_s else self.host_s


class ServingCase:
    """One model on one machine with one layout, at the efficiency that its chips reach."""

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
        """The seconds of a step: a token for each of `decodes` sequences with `kv_tokens` cached in all.

        The step may also process a `chunk` of prompt tokens, which attend to `chunk_context` earlier tokens.
        """
        return self.staged(Load(decodes, kv_tokens, chunk, chunk_context, prompts)).total_s

    def staged(self, load: Load) -> Staged:
        """A step in as many microbatches as there are pipeline stages, so that all stages work."""
        pp = self.layout.pp
        if pp == 1:
            one = passed(self.constants, load)
            return self._staged(load, one, 1, one.total_s)
        # a chunk can be cut at any token, sequences cannot
        m = pp if load.chunk else max(min(pp, ceil(load.batch)), 1)
        one = passed(self.constants, load.microbatch(m))
        return self._staged(load, one, m, max(one.total_s, m * self._longest_s(one)))

    def prefilled(self, load: Load) -> Staged:
        """A prefill of whole prompts, which pass through the pipeline stages one by one."""
        m = ceil(load.prompts / self.layout.attention_dp) if self.layout.pp > 1 else 1
        one = passed(self.constants, replace(load, chunk=load.chunk / m, prompts=-(-load.prompts // m)))
        return self._staged(load, one, m, one.total_s + (m - 1) * self._longest_s(one))

    def _longest_s(self, one: Pass) -> float:
        """What the longest stage does of a pass: most layers, or the last ones and the unembedding."""
        layers_s = one.total_s - one.head_s
        # all stages keep its pace
        return max(self.shape.longest * layers_s, self.shape.last * layers_s + one.head_s)

    def _staged(self, load: Load, one: Pass, m: int, lasts_s: float) -> Staged:
        e, sequences = self.efficiency, load.sequences
        host_s = e.host_s * fullest(sequences, self.layout.attention_dp)
        launch_s = e.fixed_s * m + e.sequence_s * sequences
        if self.layout.pp > 1:  # no step is left to prepare the next one under
            launch_s += host_s
        return Staged(one, m, lasts_s, launch_s, host_s)


# A case takes thirty times as long to make as to find: a sweep over batches is 15 times as fast with it.
@lru_cache(maxsize=512)
def case(
    model: Transformer, machine: Machine, layout: Layout, efficiency: ServingEfficiency = PEAK
) -> ServingCase:
    """The `ServingCase` of these arguments, from a cache if it was asked for before."""
    return ServingCase(model, machine, layout, efficiency)
