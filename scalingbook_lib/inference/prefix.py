"""Recomputing the KV cache of a known prefix, or loading it from storage.

Chapters: Inference; Serving Llama 3.
"""

from dataclasses import dataclass

from scalingbook_lib.inference.efficiency import PEAK, ServingEfficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.step import prefill
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.units import Result, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Prefix(Result):
    """The first `cached` of P prompt tokens, recomputed or loaded; rates are bytes/s of all chips."""

    P: int
    cached: int
    nbytes: float
    whole_s: float  # the prefill of the whole prompt
    rest_s: float  # the prefill without the prefix
    bytes_per_s: float

    @property
    def recompute_s(self) -> float:
        """The seconds that the prefix adds to the prefill."""
        return self.whole_s - self.rest_s  # its matmuls, and its own attention

    @property
    def reload_s(self) -> float:
        """The seconds to load the prefix."""
        return self.nbytes / self.bytes_per_s

    @property
    def pays(self) -> bool:
        """Whether loading is faster."""
        return self.reload_s < self.recompute_s

    @property
    def break_even_bytes_per_s(self) -> float:
        """The bandwidth in bytes/s at which both take equally long."""
        return self.nbytes / self.recompute_s  # a faster store pays off

    def capacity_tokens(self, nbytes: float) -> float:
        """Return how many tokens a store of so many bytes holds."""
        return nbytes / (self.nbytes / self.cached)

    def __str__(self) -> str:
        return (
            f"a prefix of {self.cached:,} tokens, {si(self.nbytes, 'B')}: "
            f"{si(self.recompute_s / self.cached, 's')} a token to compute, "
            f"{si(self.reload_s / self.cached, 's')} to load; {'load' if self.pays else 'compute'} it "
            f"(even at {si(self.break_even_bytes_per_s, 'B/s')})"
        )


def prefix(
    model: Transformer,
    machine: Machine,
    layout: Layout,
    *,
    P: int,
    cached: int,
    bytes_per_s: float | None = None,
    efficiency: ServingEfficiency = PEAK,
) -> Prefix:
    """Return both times for the first `cached` of P tokens; by default loaded from host memory over PCIe."""
    if not 0 < cached < P:
        raise ValueError(f"cached={cached} of P={P}: write at least 1 and fewer than P")
    # the rest of the prompt attends to the prefix in both cases, so the prefix costs the difference
    return Prefix(
        P=P,
        cached=cached,
        nbytes=kv_cache(model, cached, layout.kv).nbytes,
        whole_s=prefill(model, machine, layout, P=P, efficiency=efficiency).total_s,
        rest_s=prefill(model, machine, layout, P=P, cached=cached, efficiency=efficiency).total_s,
        # each chip loads its own shard
        bytes_per_s=layout.chips * _host_rate(machine) if bytes_per_s is None else bytes_per_s,
    )


def _host_rate(machine: Machine) -> float:
    rate = machine.chip.host_bytes_per_s or machine.chip.pcie_bytes_per_s
    if not rate:
        raise ValueError(f"the catalog has no host bandwidth for {machine.chip.name}; give bytes_per_s=...")
    return rate
