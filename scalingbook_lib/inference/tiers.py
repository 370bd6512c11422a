"""Is a cached prefix faster to load from a tier of memory than to compute again?

A `Tier` is a place where keys and values wait: host memory, SSDs, another host. Loading from it takes a
latency, a time for each descriptor (a contiguous piece that is requested by itself), and the bytes over a
bandwidth. `load` compares this with the prefill that it saves. Chapter: Inference.
"""

from dataclasses import dataclass
from math import ceil, inf

from scalingbook_lib.inference.efficiency import PEAK, ServingEfficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.prefix import Prefix, prefix
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import Result, require_min, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier(Result):
    """A place for keys and values outside HBM, as all chips of a server together reach it."""

    name: str
    bytes_per_s: float
    latency_s: float = 0.0  # of a whole request
    descriptor_s: float = 0.0  # of each contiguous piece
    nbytes: float = inf  # its capacity

    def __post_init__(self) -> None:
        require_min(0, latency_s=self.latency_s, descriptor_s=self.descriptor_s)
        if not (self.bytes_per_s > 0 and self.nbytes > 0):
            raise ValueError(f"{self.name}: write a positive bandwidth and a positive capacity")

    def seconds(self, nbytes: float, descriptors: int = 1) -> float:
        """The time to load so many bytes in so many pieces."""
        return self.latency_s + descriptors * self.descriptor_s + nbytes / self.bytes_per_s

    def __str__(self) -> str:
        return f"{self.name}: {si(self.bytes_per_s, 'B/s')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TierLoad(Result):
    """A cached prefix, loaded from a tier or computed again."""

    tier: Tier
    prefix: Prefix
    descriptors: int
    layers: int

    @property
    def load_s(self) -> float:
        """The time to load the prefix from the tier."""
        return self.tier.seconds(self.prefix.nbytes, self.descriptors)

    @property
    def recompute_s(self) -> float:
        """The time that the prefix adds to the prefill."""
        return self.prefix.recompute_s

    @property
    def pays(self) -> bool:
        """Whether loading is faster than computing again."""
        return self.load_s < self.recompute_s

    @property
    def break_even_bytes_per_s(self) -> float:
        """The bandwidth at which both take equally long; inf where the overheads alone take longer."""
        left = self.recompute_s - self.tier.seconds(0, self.descriptors)
        return self.prefix.nbytes / left if left > 0 else inf

    @property
    def tokens(self) -> float:
        """The tokens whose keys and values fit in the tier."""
        return self.tier.nbytes * self.prefix.cached / self.prefix.nbytes

    @property
    def ttft_s(self) -> float:
        """The time to first token without a queue, if the prefix is loaded before the rest is computed."""
        return self.load_s + self.prefix.rest_s

    @property
    def overlapped_ttft_s(self) -> float:
        """The same if a layer is computed as soon as its keys and values have arrived.

        The first layer still has to arrive before anything is computed, and the last one has to be computed
        after everything has arrived.
        """
        first, last = self.load_s / self.layers, self.prefix.rest_s / self.layers
        return max(self.load_s + last, first + self.prefix.rest_s)

    def __str__(self) -> str:
        return (
            f"{self.prefix.cached:,} tokens from {self.tier.name}: {si(self.load_s, 's')} to load, "
            f"{si(self.recompute_s, 's')} to compute again; "
            f"{'load' if self.pays else 'compute'} them "
            f"(break-even {si(self.break_even_bytes_per_s, 'B/s')})"
        )


def load(
    model: Transformer,
    machine: Machine,
    layout: Layout,
    tier: Tier,
    *,
    P: int,
    cached: int,
    block: int = 64,
    pieces: int | None = None,
    efficiency: ServingEfficiency = PEAK,
) -> TierLoad:
    """The first `cached` of P prompt tokens, loaded from a tier or computed again.

    Keys and values are stored in blocks of `block` tokens. Each block is requested in `pieces`, by default
    one for each layer. Raises a ValueError for a prefix that is not shorter than the prompt.
    """
    require_min(1, block=block, pieces=pieces or 1)
    found = prefix(
        model, machine, layout, P=P, cached=cached, bytes_per_s=tier.bytes_per_s, efficiency=efficiency
    )
    descriptors = ceil(cached / block) * (model.L if pieces is None else pieces)
    return TierLoad(tier=tier, prefix=found, descriptors=descriptors, layers=model.L)
