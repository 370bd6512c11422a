"""What does a copy of the model serve when requests never run out? Throughput, latency and price.

Every slot is always taken: as one sequence ends, the next prompt is read, either between two decode steps
("interleaved": all others wait) or a chunk with each step ("chunked"). Contexts are taken at their mean,
P + G/2. A prompt's last token gives the first output token, so G - 1 steps follow. Chapter: Inference.
"""

from dataclasses import dataclass
from math import ceil

from scalingbook_lib.inference.efficiency import PEAK, Efficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.memory import largest_batch
from scalingbook_lib.inference.step import Step, mixed, prefill
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import Told, count, si

POLICIES = ("interleaved", "chunked")


@dataclass(frozen=True, slots=True)
class Serving(Told):
    """One copy at its steady state: `cycle_s` is the time in which each slot serves one request."""

    policy: str
    P: int
    G: int
    B: float  # sequences that decode
    step: Step  # of decoding alone
    reading: Step  # a prompt alone, or a step with a chunk
    cycle_s: float
    ttft_s: float  # from the moment that a slot is free
    itl_s: float  # mean time between two tokens of a sequence

    @property
    def chips(self) -> int:
        """Those of one copy."""
        return self.step.chips

    @property
    def requests_per_s(self) -> float:
        """Of one copy."""
        return self.B / self.cycle_s

    @property
    def tokens_per_s(self) -> float:
        """Output tokens of one copy."""
        return self.requests_per_s * self.G

    @property
    def tokens_per_s_per_chip(self) -> float:
        """The same, of each chip."""
        return self.tokens_per_s / self.chips

    @property
    def latency_s(self) -> float:
        """From a free slot to the last token."""
        return self.ttft_s + (self.G - 1) * self.itl_s

    @property
    def prefill_share(self) -> float:
        """The share of the time that goes to prompts."""
        return max(1 - (self.G - 1) * self.step.total_s / self.cycle_s, 0.0)

    def usd_per_million(self, usd_per_hour: float | None = None) -> float:
        """USD for a million output tokens, prompts included, at a price of one chip-hour."""
        price = self.step.machine.chip.usd_per_hour if usd_per_hour is None else usd_per_hour
        if price is None:
            raise ValueError(f"{self.step.machine.chip.name} has no price; give usd_per_hour=...")
        return price * self.chips / 3600 / self.tokens_per_s * 1e6

    def __str__(self) -> str:
        held = f"{count(self.B, 4)} sequence{'s' * (self.B != 1)} on {self.chips:,} chips"
        return (
            f"{self.step.model.name}, {self.policy}, {count(self.P)} prompt and {count(self.G)} output "
            f"tokens, {held}: {si(self.tokens_per_s, 'tokens/s')}, "
            f"{self.requests_per_s:.3g} requests/s, first token in {si(self.ttft_s, 's')}, then one every "
            f"{si(self.itl_s, 's')}"
        )


def serve(
    model: Transformer, machine: Machine, layout: Layout, *, P: int, G: int, batch: int | None = None,
    policy: str = "interleaved", chunk: int = 512, cached: int = 0, efficiency: Efficiency = PEAK,
    reserve: float = 0.0,
) -> Serving:  # fmt: skip
    """Requests of P prompt tokens (`cached` of them known) and G output tokens, `batch` sequences at once.

    Without a batch as many as the cache has room for at the mean context. `chunk` is the most prompt tokens
    of a step; where prompts need more, sequences wait for them and fewer decode.
    """
    if min(P, G) < 1 or not 0 <= cached < P or policy not in POLICIES:
        known = " or ".join(map(repr, POLICIES))
        raise ValueError(f"P={P}, G={G}, cached={cached}, policy={policy!r}: write at least 1 token each, "
                         f"fewer cached ones than P, and the policy {known}")  # fmt: skip
    mean = P + G / 2
    if batch is None:
        batch = largest_batch(model, layout, machine, S=ceil(mean), reserve=reserve)
    if batch < 1:
        raise ValueError(f"batch={batch}: {model.name} has no room for a sequence of {mean:,.0f} tokens on "
                         f"{layout}; write a larger layout")  # fmt: skip
    one = _interleaved if policy == "interleaved" else _chunked
    return one(model, machine, layout, efficiency, P, G, float(batch), cached, chunk)


def _interleaved(
    model: Transformer, machine: Machine, layout: Layout, efficiency: Efficiency, P: int, G: int, B: float,
    cached: int, chunk: int,
) -> Serving:  # fmt: skip
    """cycle = (G - 1) steps and B prompts, each of which all wait for; groups read theirs at once."""
    step = mixed(model, machine, layout, B=B, S=P + G / 2, chunk=0, efficiency=efficiency)
    groups = min(layout.attention_dp, int(B)) or 1
    read = prefill(model, machine, layout, P=P, prompts=groups, cached=cached, efficiency=efficiency)
    cycle_s = (G - 1) * step.total_s + B / groups * read.total_s
    itl_s = cycle_s / (G - 1) if G > 1 else 0.0
    return Serving("interleaved", P, G, B, step, read, cycle_s, read.total_s, itl_s)


def _chunked(
    model: Transformer, machine: Machine, layout: Layout, efficiency: Efficiency, P: int, G: int, B: float,
    cached: int, chunk: int,
) -> Serving:  # fmt: skip
    """B sequences need B (P - cached) / (G - 1) prompt tokens a step; so many steps have a chunk of c.

    Where all have one and it is not enough, as many sequences decode as the chunks can feed.
    """
    new, c = P - cached, min(chunk, (P - cached) * int(max(B, 1)))
    fed = c * (G - 1) / new  # sequences that full chunks keep decoding
    busy = min(B / fed, 1.0) if fed else 1.0
    B = min(B, fed)
    prompts = max(ceil(c / new), min(layout.attention_dp, c))
    context = cached + max(new - c / prompts, 0) / 2
    step = mixed(model, machine, layout, B=B or 1, S=P + G / 2, chunk=0, efficiency=efficiency)
    reading = mixed(
        model, machine, layout, B=B, S=P + G / 2, chunk=c, chunk_context=context, prompts=prompts,
        efficiency=efficiency,
    )  # fmt: skip
    each = busy * reading.total_s + (1 - busy) * step.total_s
    ttft_s = ceil(new * prompts / c) * reading.total_s
    if G == 1:  # prompts alone: `served` of them leave with every chunk
        return Serving("chunked", P, G, c / new, step, reading, reading.total_s, ttft_s, 0.0)
    return Serving("chunked", P, G, B, step, reading, (G - 1) * each, ttft_s, each)
