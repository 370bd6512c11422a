"""What can no batch of a layout beat? Times that a way to serve takes at least, for searches that leave out.

A bound is of one tensor group, tp · cp chips, and counts in requests: r of them come to a step of each stage.
Each term is one of `inference.passes` with less in it, so that `Bound` is never above `inference.serve`;
times grow with r and cost falls, so that the ends of an interval of batches bound all between.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from scalingbook_lib.inference.case import ServingCase
from scalingbook_lib.inference.constants import ProductCost
from scalingbook_lib.inference.serve import PLAIN, Drafting
from scalingbook_lib.inference.step import prefilled
from scalingbook_lib.steps.heads import whole_heads

SLACK = 1 - 1e-9  # what rounding can take


class LeastTimes(NamedTuple):
    """The least time between tokens, cost of a million at a chip-hour's price of 1, and time to the first."""

    itl_s: float
    cost: float
    ttft_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """The least time between two tokens under one layout, for requests of G tokens.

    `P` of their prompt's tokens are not `cached`. A request takes `steps` decode steps. Each verifies `rows`
    tokens of a sequence, after `drafts` steps of the `draft` model, or of the model itself if there is none.
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
        """Those that come to a step, for each of its stages; more with every sequence more."""
        if policy == "interleaved":
            return B / (self.steps or 1) / pp
        waits = max(self.P / self.chunk, 1.0, B * self.P / self.chunk - self.steps)
        return B / (waits + self.steps) / pp

    def least(self, B: float, pp: int, policy: str) -> LeastTimes:
        """For a batch of that size."""
        # No term grows faster than r, so time over r, which is the cost, never grows with the batch.
        r = self.requests(B, pp, policy)
        step_s = self.from_step_to_step_s(r, pp, policy) * SLACK
        mean_s = step_s + self._drafted_s(r, pp) * SLACK
        itl_s = mean_s * self.steps / (self.G - 1) if self.steps else 0.0
        ttft_s = self.ttft_s(step_s if self.steps else 0.0, policy)
        return LeastTimes(itl_s, self.chips * mean_s / (r * self.G) / 3600 * 1e6, ttft_s)

    def _drafted_s(self, r: float, pp: int) -> float:
        """The drafts before a step: by a model on the chips of one stage, or by a part of the model."""
        if not self.drafts or not self.steps:
            return 0.0
        if self.draft:
            return self.drafts * self.draft._pass_s(r * pp, 0.0, 1)
        return self.drafts * replace(self, rows=1)._pass_s(r, 0.0, pp)

    def from_step_to_step_s(self, r: float, pp: int, policy: str) -> float:
        """At least so long from step to step without drafts (of single tokens, a cycle)."""
        if policy == "interleaved":  # all wait for prompts, which pass one stage after the other
            # Of one prompt, most is paid where it is alone, least where all groups read theirs at once.
            alone = self.first_s / (self.steps or 1)
            return self._pass_s(r, 0.0, pp) + max(alone, pp * r * self.prompt_s)
        # The longer of arithmetic and reading is convex in the chunk: steps with and without take its mean's.
        return self._pass_s(r, r * self.P / self.ways, pp)

    def ttft_s(self, step_s: float, policy: str) -> float:
        """A prompt alone; in chunks, as many steps as it fills, which are longer than the mean one."""
        return self.first_s if policy == "interleaved" else max(self.P / self.chunk, 1.0) * step_s

    def _pass_s(self, r: float, read: float, pp: int) -> float:
        """The longest stage takes no less than the mean one, so pp microbatches no less than a pass."""
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
    """Of a layout; with `any_cache`, of all that split the cache in other ways, or have more stages.

    The first `cached` of P prompt tokens are in the prefix cache.
    """
    k, o, e = on.constants, on.layout, on.efficiency
    steps = (G - 1) / drafting.acceptance_length
    draft = bound(drafting.case(on), P=P, G=G, chunk=chunk) if drafting.model else None
    groups, waited = 1 / o.attention_dp, 1 - k.overlap  # no more is hidden than that share
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
    """Each group has its own tokens in the attention, and in MLPs that are not split over all."""
    return replace(cost, token_s=cost.token_s * groups)


def _cached_s(on: ServingCase, S: float, *, rows: int, any_cache: bool) -> float:
    """Attention of `rows` tokens of one sequence of a group: none splits its cache better than evenly."""
    k, o, m = on.constants, on.layout, on.model
    heads = (m.N, 1 if m.latent else m.K) if any_cache else (0, 0)
    math, read = (1 / (o.group * whole_heads(n, o.group)) if n else 1 / o.kv_batch for n in heads)
    seen = [(min(S, kind.window), kind) for kind in k.kinds]
    even = 1 / o.group if any_cache else math  # an indexer's heads are not split
    pairs_s = sum(n * kind.pair_s * (math if kind.by_head else even) for n, kind in seen)
    math_s = rows * (k.state_token_s + pairs_s)
    return max(math_s, k.state_read_s + read * sum(n * kind.token_s for n, kind in seen))
