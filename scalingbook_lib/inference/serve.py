"""The throughput, latency and price of a replica under a load of requests that never ends.

Every slot is always taken: when one sequence ends, the next prompt is processed, either between two decode
steps ("interleaved": all other sequences wait) or in chunks, one with each step ("chunked"). Contexts have
their mean length, P + G/2. A prompt's last token gives the first output token, so G - 1 tokens follow.

With speculative decoding, a step verifies several drafted tokens and accepts a part of them (`Drafting`).
Chapter: Inference.
"""

from dataclasses import dataclass
from math import ceil

from scalingbook_lib.inference.case import ServingCase, case
from scalingbook_lib.inference.drafting import PLAIN, Drafting
from scalingbook_lib.inference.efficiency import PEAK, ServingEfficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.memory import largest_batch
from scalingbook_lib.inference.price import Priced
from scalingbook_lib.inference.step import InferenceStep, prefilled, stepped
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import count, si
from scalingbook_lib.words import pluralize

POLICIES = ("interleaved", "chunked")


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving(Priced):
    """A replica at its steady state: `cycle_s` is the time in which each slot serves one request."""

    policy: str
    P: int
    G: int
    slots: float  # sequences that are served at once
    batch: float  # those of them that decode, on average
    step: InferenceStep  # of decoding alone
    reading: InferenceStep  # a prompt alone, or a step with a chunk
    decode_s: float  # decode steps of one request, with drafts, without prompts
    cycle_s: float
    ttft_s: float  # from the moment that a slot is free
    itl_s: float  # mean time between two tokens of a sequence
    drafting: Drafting = PLAIN

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
        return max(1 - self.decode_s / self.cycle_s, 0.0)

    def __str__(self) -> str:
        return (
            f"{self.model.name}, {self.policy}, {count(self.P)} prompt and {count(self.G)} output tokens, "
            f"batch size {count(self.batch, 4)} on {pluralize(self.chips, 'chip')}: "
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
    drafting: Drafting = PLAIN,
    efficiency: ServingEfficiency = PEAK,
    reserve: float = 0.0,
) -> Serving:
    """Serve requests of P prompt tokens and G output tokens, `batch` sequences at once.

    The first `cached` tokens of a prompt are in the prefix cache. Without `batch`, as many sequences are
    served as the KV cache holds at the mean context. `chunk` is the largest number of prompt tokens in a
    step; if prompts need more, sequences wait for them, and fewer decode.

    Raises a ValueError if a length is impossible, a draft model has another vocabulary, or no sequence fits.
    """
    if min(P, G) < 1 or not 0 <= cached < P or policy not in POLICIES:
        raise ValueError(
            f"P={P}, G={G}, cached={cached}, policy={policy!r}: write at least 1 token each, fewer cached "
            f"ones than P, and the policy {' or '.join(map(repr, POLICIES))}"
        )
    drafting.check(model)
    mean = P + G / 2
    if batch is None:
        batch = largest_batch(model, layout, machine, S=ceil(mean), reserve=reserve, drafting=drafting)
    if batch < 1:
        raise ValueError(
            f"batch={batch}: {model.name} has no room for a sequence of {mean:,.0f} tokens on {layout}; "
            "write a larger layout"
        )
    on = case(model, machine, layout, efficiency)
    if policy == "interleaved":
        return _interleaved(on, P=P, G=G, batch=float(batch), cached=cached, drafting=drafting)
    return _chunked(on, P=P, G=G, batch=float(batch), cached=cached, chunk=chunk, drafting=drafting)


def _verified(on: ServingCase, drafting: Drafting, *, batch: float, S: float) -> tuple[InferenceStep, float]:
    """A decode step that verifies the drafted tokens, and the time of the drafts before it."""
    step = stepped(on, batch=batch, S=S, T=drafting.tokens + 1)
    if not drafting.drafts:
        return step, 0.0
    return step, drafting.drafts * stepped(drafting.case(on), batch=batch, S=S).total_s


def _interleaved(
    on: ServingCase, *, P: int, G: int, batch: float, cached: int, drafting: Drafting
) -> Serving:
    """The cycle is the decode steps of one request and the prompts of all slots, for which all wait."""
    step, draft_s = _verified(on, drafting, batch=batch, S=P + G / 2)
    groups = min(on.layout.attention_dp, int(batch)) or 1  # groups process their prompts at once
    reading = prefilled(on, P=P, prompts=groups, cached=cached)
    decode_s = (G - 1) / drafting.acceptance_length * (step.total_s + draft_s)
    cycle_s = decode_s + batch / groups * reading.total_s
    return Serving(
        case=on,
        policy="interleaved",
        P=P,
        G=G,
        slots=batch,
        batch=batch,
        step=step,
        reading=reading,
        decode_s=decode_s,
        cycle_s=cycle_s,
        ttft_s=reading.total_s,
        itl_s=cycle_s / (G - 1) if G > 1 else 0.0,
        drafting=drafting,
    )


def _chunked(
    on: ServingCase, *, P: int, G: int, batch: float, cached: int, chunk: int, drafting: Drafting
) -> Serving:
    """Each of B slots waits for its prompt, then decodes; `requests` new requests come to a step.

    A prompt alone is processed in one step, or in as many as it fills chunks. If all prompts together need
    more than one chunk per step, they queue: by Little's law, slots wait for each other.
    """
    new, S, steps = P - cached, P + G / 2, (G - 1) / drafting.acceptance_length
    waits = max(new / chunk, 1.0, batch * new / chunk - steps)  # in steps
    requests = batch / (waits + steps)  # per step
    c = min(max(requests, 1.0) * new, float(chunk))
    busy = requests * new / c  # the share of the steps that have a chunk
    prompts = max(c / new, min(on.layout.attention_dp, c))
    context = cached + max(new - c / prompts, 0) / 2  # on average, half of a prompt has been prefilled
    decoding = requests * steps
    step, draft_s = _verified(on, drafting, batch=decoding or 1, S=S)
    verified = drafting.tokens + 1
    reading = stepped(on, batch=decoding, S=S, T=verified, chunk=c, context=context, prompts=prompts)
    mean_s = busy * reading.total_s + (1 - busy) * step.total_s + draft_s
    return Serving(
        case=on,
        policy="chunked",
        P=P,
        G=G,
        slots=batch,
        batch=decoding or requests,  # prompts alone leave with every chunk
        step=step,
        reading=reading,
        decode_s=steps * (step.total_s + draft_s),
        cycle_s=(steps if G > 1 else 1.0) * mean_s,
        ttft_s=waits * reading.total_s,
        itl_s=mean_s / drafting.acceptance_length if steps else 0.0,
        drafting=drafting,
    )
