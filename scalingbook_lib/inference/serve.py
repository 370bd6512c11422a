"""What does a copy of the model serve when requests never run out? Throughput, latency and price.

Every slot is always taken: as one sequence ends, the next prompt is read, either between two decode steps
("interleaved": all others wait) or a chunk with each step ("chunked"). Contexts are taken at their mean,
P + G/2. A prompt's last token gives the first output token, so G - 1 steps follow. Chapter: Inference.
"""

from dataclasses import dataclass
from math import ceil

from scalingbook_lib.inference.case import ServingCase, case
from scalingbook_lib.inference.efficiency import PEAK, ServingEfficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.memory import largest_batch
from scalingbook_lib.inference.price import Priced
from scalingbook_lib.inference.step import InferenceStep, prefilled, stepped
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import count, si

POLICIES = ("interleaved", "chunked")


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving(Priced):
    """One copy at its steady state: `cycle_s` is the time in which each slot serves one request."""

    policy: str
    P: int
    G: int
    slots: float  # sequences that are served at once
    batch: float  # those of them that decode, on average
    step: InferenceStep  # of decoding alone
    reading: InferenceStep  # a prompt alone, or a step with a chunk
    cycle_s: float
    ttft_s: float  # from the moment that a slot is free
    itl_s: float  # mean time between two tokens of a sequence

    @property
    def requests_per_s(self) -> float:
        """The requests per second of one replica."""
        return self.batch / self.cycle_s

    @property
    def tokens_per_s(self) -> float:
        """The output tokens per second of one replica."""
        return self.requests_per_s * self.G

    @property
    def latency_s(self) -> float:
        """The time in seconds from a free slot to the last token of a request."""
        return self.ttft_s + (self.G - 1) * self.itl_s

    @property
    def prefill_share(self) -> float:
        """The share of the time spent on prompts."""
        return max(1 - (self.G - 1) * self.step.total_s / self.cycle_s, 0.0)

    def __str__(self) -> str:
        return (
            f"{self.model.name}, {self.policy}, {count(self.P)} prompt and {count(self.G)} output tokens, "
            f"batch size {count(self.batch, 4)} on {self.chips:,} chip{'s' * (self.chips != 1)}: "
            f"{si(self.tokens_per_s, 'tokens/s')}, {self.requests_per_s:.3g} requests/s, TTFT "
            f"{si(self.ttft_s, 's')}, ITL {si(self.itl_s, 's')}"
        )


def serve(
    model: Transformer,
    machine: Machine,
    layout: Layout,
    *,
    P: int,
    G: int,
    batch: int | None = None,
    policy: str = "interleaved",
    chunk: int = 512,
    cached: int = 0,
    efficiency: ServingEfficiency = PEAK,
    reserve: float = 0.0,
) -> Serving:
    """Requests of P prompt tokens (`cached` of them known) and G output tokens, `batch` sequences at once.

    Without a batch as many as the cache has room for at the mean context. `chunk` is the most prompt tokens
    of a step; where prompts need more, sequences wait for them and fewer decode.
    """
    if min(P, G) < 1 or not 0 <= cached < P or policy not in POLICIES:
        raise ValueError(
            f"P={P}, G={G}, cached={cached}, policy={policy!r}: write at least 1 token each, fewer cached "
            f"ones than P, and the policy {' or '.join(map(repr, POLICIES))}"
        )
    mean = P + G / 2
    if batch is None:
        batch = largest_batch(model, layout, machine, S=ceil(mean), reserve=reserve)
    if batch < 1:
        raise ValueError(
            f"batch={batch}: {model.name} has no room for a sequence of {mean:,.0f} tokens on {layout}; "
            "write a larger layout"
        )
    on = case(model, machine, layout, efficiency)
    if policy == "interleaved":
        return _interleaved(on, P=P, G=G, batch=float(batch), cached=cached)
    return _chunked(on, P=P, G=G, batch=float(batch), cached=cached, chunk=chunk)


def _interleaved(on: ServingCase, *, P: int, G: int, batch: float, cached: int) -> Serving:
    """cycle = (G - 1) steps and B prompts, each of which all wait for; groups read theirs at once."""
    step = stepped(on, batch=batch, S=P + G / 2)
    groups = min(on.layout.attention_dp, int(batch)) or 1
    reading = prefilled(on, P=P, prompts=groups, cached=cached)
    cycle_s = (G - 1) * step.total_s + batch / groups * reading.total_s
    return Serving(
        case=on,
        policy="interleaved",
        P=P,
        G=G,
        slots=batch,
        batch=batch,
        step=step,
        reading=reading,
        cycle_s=cycle_s,
        ttft_s=reading.total_s,
        itl_s=cycle_s / (G - 1) if G > 1 else 0.0,
    )


def _chunked(on: ServingCase, *, P: int, G: int, batch: float, cached: int, chunk: int) -> Serving:
    """Each of B slots waits for its prompt, then decodes G - 1 steps; so many requests come to a step.

    A prompt alone is read in one step, or in as many as it fills chunks. Where all prompts together need more
    than a chunk a step, they queue: by Little's law as long as slots have to wait for each other.
    """
    new, S, steps = P - cached, P + G / 2, G - 1
    waits = max(new / chunk, 1.0, batch * new / chunk - steps)  # in steps
    requests = batch / (waits + steps)  # of a step
    c = min(max(requests, 1.0) * new, float(chunk))
    busy = requests * new / c  # the share of the steps that have a chunk
    prompts = max(c / new, min(on.layout.attention_dp, c))
    context = cached + max(new - c / prompts, 0) / 2  # on average, half of a prompt has been prefilled
    decoding = requests * steps
    step = stepped(on, batch=decoding or 1, S=S)
    reading = stepped(on, batch=decoding, S=S, chunk=c, context=context, prompts=prompts)
    mean_s = busy * reading.total_s + (1 - busy) * step.total_s
    return Serving(
        case=on,
        policy="chunked",
        P=P,
        G=G,
        slots=batch,
        batch=decoding or requests,  # prompts alone leave with every chunk
        step=step,
        reading=reading,
        cycle_s=max(steps, 1) * mean_s,
        ttft_s=waits * reading.total_s,
        itl_s=mean_s if steps else 0.0,
    )
