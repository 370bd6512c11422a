"""Lower bounds of latency and cost for all batch sizes of a serving layout, with which a search prunes.

A bound is for one TP group of tp · cp chips, and r is the number of requests that each stage completes per
step. Each term is one of `inference.passes` with something left out, so a `Bound` is never above
`inference.serve`. Latencies grow with r and cost falls, so the two ends of a range of batch sizes bound the
whole range.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from scalingbook_lib.inference.case import ServingCase
from scalingbook_lib.inference.constants import ProductCost
from scalingbook_lib.inference.drafting import PLAIN, Drafting
from scalingbook_lib.inference.step import prefilled
from scalingbook_lib.rules import usd_per_million
from scalingbook_lib.steps.heads import whole_heads

SLACK = 1 - 1e-9  # what rounding can take


class LeastTimes(NamedTuple):
    """Lower bounds: ITL, cost per million tokens at a chip-hour price of 1, and TTFT."""

    itl_s: float
    cost: float
    ttft_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """Lower bounds under one layout, for requests of G output tokens.

    `P` counts the prompt tokens that are not `cached`. A request takes `steps` decode steps. Each verifies
    `rows` tokens of a sequence, after `drafts` steps of the `draft` model, or of the model itself if there is
    none.
    """

    P: int
    cached: int
    G: int
    steps: float
    rows: int
    drafts: float
    draft: "Bound | None"
    chunk: int
    chips: int  # of the group
    ways: int  # cp: tensor groups that share the sequences of a step
    classes: tuple[ProductCost, ...]  # of products with weights that every token meets
    routed: ProductCost  # with experts
    untouched: float  # the share of the experts that one token does not visit
    head: ProductCost
    fixed_s: float  # launches and hops
    step_s: float  # once a microbatch, beside the pass
    sequence_s: float
    host_s: float
    token_s: float  # activations and collectives of any token
    row_s: float  # what a decoded token takes besides: logits, collectives
    attended_s: float  # the cache of a sequence that decodes
    read_s: float  # a prompt's token: its attention to one token before it
    first_s: float  # one prompt, alone
    prompt_s: float  # a prompt that others are read with

    def requests(self, B: float, pp: int, policy: str) -> float:
        """Return the requests that each stage completes per step; they grow with the batch."""
        if policy == "interleaved":
            return B / (self.steps or 1) / pp
        waits = max(self.P / self.chunk, 1.0, B * self.P / self.chunk - self.steps)
        return B / (waits + self.steps) / pp

    def least(self, B: float, pp: int, policy: str) -> LeastTimes:
        """Return the lower bounds for a batch of B sequences."""
        # No term grows faster than r, so time over r, which is the cost, never grows with the batch.
        r = self.requests(B, pp, policy)
        step_s = self.from_step_to_step_s(r, pp, policy) * SLACK
        mean_s = step_s + self._drafted_s(r, pp) * SLACK
        itl_s = mean_s * self.steps / (self.G - 1) if self.steps else 0.0
        ttft_s = self.ttft_s(step_s if self.steps else 0.0, policy)
        cost = usd_per_million(1.0, chips=self.chips, tokens_per_s=r * self.G / mean_s)
        return LeastTimes(itl_s, cost, ttft_s)

    def _drafted_s(self, r: float, pp: int) -> float:
        """Return the seconds of drafting before a step, by a draft model or by a part of the model."""
        if not self.drafts or not self.steps:
            return 0.0
        if self.draft:
            return self.drafts * self.draft._pass_s(r * pp, 0.0, 1)
        return self.drafts * replace(self, rows=1)._pass_s(r, 0.0, pp)

    def from_step_to_step_s(self, r: float, pp: int, policy: str) -> float:
        """Return a lower bound of the seconds from step to step, without drafting."""
        if policy == "interleaved":  # all wait for prompts, which pass one stage after the other
            # Of one prompt, most is paid where it is alone, least where all groups read theirs at once.
            alone = self.first_s / (self.steps or 1)
            return self._pass_s(r, 0.0, pp) + max(alone, pp * r * self.prompt_s)
        # The longer of arithmetic and reading is convex in the chunk: steps with and without take its mean's.
        return self._pass_s(r, r * self.P / self.ways, pp)

    def ttft_s(self, step_s: float, policy: str) -> float:
        """Return a lower bound of the TTFT: the prefill of one prompt, or the steps that its chunks take."""
        return self.first_s if policy == "interleaved" else max(self.P / self.chunk, 1.0) * step_s

    def _pass_s(self, r: float, read: float, pp: int) -> float:
        """Return a lower bound of pp microbatches: one pass, since the longest stage is at least the mean."""
        sequences = r * pp * self.steps
        decoded = max(sequences / pp / self.ways, min(sequences, 1.0))  # no microbatch has a part of one
        rows = decoded * self.rows
        tokens = rows + read
        found = tokens * self.token_s + rows * self.row_s + sequences * self.sequence_s
        found += decoded * self.attended_s
        # of a chunk, each stage has a part at a time
        found += read * self.read_s * (self.cached + (self.P / pp + 1) / 2)
        if not self.steps:
            return found + sum(cost.token_s * tokens for cost in self.classes)
        for cost in self.classes:
            found += cost.waits(tokens)[1]
        found += self.head.waits(rows)[1]
        if self.routed.token_s:  # with prompts, no fewer experts are visited
            found += self.routed.waits(tokens, 1 - self.untouched**rows)[1]
        found += self.fixed_s + self.step_s * max(min(pp, sequences), 1.0)
        return max(found, sequences * self.host_s)


def bound(
    on: ServingCase,
    *,
    P: int,
    G: int,
    chunk: int,
    cached: int = 0,
    drafting: Drafting = PLAIN,
    any_cache: bool = False,
) -> Bound:
    """Return the bound of a layout; with `any_cache`, for any cache sharding and more stages too.

    The first `cached` of P prompt tokens are in the prefix cache.
    """
    k, o, e = on.constants, on.layout, on.efficiency
    steps = (G - 1) / drafting.acceptance_length
    draft = bound(drafting.case(on), P=P, G=G, chunk=chunk) if drafting.model else None
    groups, waited = 1 / o.attention_dp, 1 - k.overlap  # at most this share can be hidden
    sent = waited * k.decoded_sent.token_s, waited * k.decoded_sent.hops_s
    rows = drafting.tokens + 1
    attended_s = _cached_s(on, P + G / 2, rows=rows, any_cache=any_cache) * groups
    whole = (min(kind.prompt_pair_s, kind.prompt_expanded_s) for kind in k.kinds if kind.window >= P)
    first, many = (prefilled(on, P=P, prompts=n, cached=cached).total_s for n in (1, o.attention_dp))
    return Bound(
        P=P - cached,
        cached=cached,
        G=G,
        steps=steps,
        rows=rows,
        drafts=drafting.drafts,
        draft=replace(draft, steps=steps) if draft else None,
        chunk=chunk,
        chips=o.tp * o.cp,
        ways=o.cp,
        classes=(_own(k.projections, groups), k.mlp if k.wide else _own(k.mlp, groups)),
        routed=k.routed,
        untouched=k.untouched,
        head=k.head,
        fixed_s=k.launch_s + waited * k.sent.hops_s + sent[1],
        step_s=e.fixed_s,
        sequence_s=e.sequence_s,
        host_s=e.host_s * groups,
        token_s=k.token_s + waited * k.sent.token_s,
        row_s=k.row_s + waited * k.row_sent_s + sent[0],
        attended_s=attended_s,
        read_s=sum(whole) * groups * o.cp,
        first_s=first,
        prompt_s=many * groups,
    )


def _own(cost: ProductCost, groups: float) -> ProductCost:
    """Return the matmul bound; each group has its own tokens in attention and in its own MLPs."""
    return replace(cost, token_s=cost.token_s * groups)


def _cached_s(on: ServingCase, S: float, *, rows: int, any_cache: bool) -> float:
    """Return attention of `rows` tokens of one sequence of a group, with an evenly sharded cache."""
    k, o, m = on.constants, on.layout, on.model
    heads = (m.N, 1 if m.latent else m.K) if any_cache else (0, 0)
    math, read = (1 / (o.group * whole_heads(n, o.group)) if n else 1 / o.kv_batch for n in heads)
    seen = [(min(S, kind.window), kind) for kind in k.kinds]
    even = 1 / o.group if any_cache else math  # an indexer's heads are not split
    pairs_s = sum(n * kind.pair_s * (math if kind.by_head else even) for n, kind in seen)
    math_s = rows * (k.state_token_s + pairs_s)
    return max(math_s, k.state_read_s + read * sum(n * kind.token_s for n, kind in seen))
