"""The share of the model and the batch that each chip gets under a plan.

Memory, traffic and time all start from these numbers, which are computed once per plan. Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib.steps.expert_load import busiest_over_mean, variation
from scalingbook_lib.steps.heads import whole_heads
from scalingbook_lib.training.plan import Plan, PlanError
from scalingbook_lib.training.stages import StageShares, stages
from scalingbook_lib.training.terms import Widths
from scalingbook_lib.training.work import Work


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingShape:
    """One plan for one model and batch, for the chips of the longest pipeline stage."""

    plan: Plan
    work: Work
    m: int  # microbatches per step
    t: float  # tokens per microbatch and context-parallel chip
    stages: StageShares
    share: float  # the share of all layers, for the stage with the most
    experts: float  # the share of all layers with experts, for the stage with the most
    dense: float  # dense parameters per chip without ZeRO, including replicated KV heads
    kv: float  # of these, parameters of KV heads that are replicated within the TP group
    kv_copies: int  # chips that hold the same KV head
    expert: float  # expert parameters per chip without ZeRO
    shared: int  # chips with the same dense parameters, over which ZeRO shards them
    expert_shared: int  # chips that hold the same experts
    moved: float  # bytes per gathered weight: as stored, or as the activations if that is less
    reduced: float  # bytes per reduced gradient: as the plan says, or as stored
    wide: int  # chips that shard the residual stream
    chips: int  # chips per pod

    @property
    def routed(self) -> float:
        """The mean number of routed tokens that a chip's experts receive per microbatch per layer."""
        experts = self.work.model.experts
        # all chips that shard one expert have its tokens
        return self.t * experts.k * self.plan.expert_ways / self.plan.tp if experts else 0.0

    @property
    def local_experts(self) -> float:
        """The number of experts per layer per chip."""
        experts = self.work.model.experts
        return experts.E / self.plan.ep if experts else 0.0

    def skewed(self, skew: float | None) -> float:
        """Return the expected tokens of the busiest chip's experts over the mean of all chips."""
        experts, ep = self.work.model.experts, self.plan.ep
        return busiest_over_mean(experts.E, ep, skew=skew) if experts and skew else 1.0

    def busiest(self, skew: float | None) -> float:
        """Return the same ratio including random variation (`steps.expert_load`); 1 if the skew is None."""
        if skew is None or not self.work.model.experts:
            return 1.0
        return self.skewed(skew) * variation(self.plan.ep, self.routed)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The mesh sizes: tp, cp, the part of fsdp that shards experts, the rest of fsdp, pp, dp."""
        p = self.plan
        z = p.ep * p.expert_ways // (p.tp * p.cp)
        z = z if z > 1 and p.fsdp % z == 0 else 1
        return (p.tp, p.cp, z, p.fsdp // z, p.pp, p.dp)

    @property
    def stored(self) -> Widths:
        """The bytes per token of activations that all layers save on the chip."""
        return self.on_chip(self.work.stored)

    @property
    def hosted(self) -> Widths:
        """The bytes per token in host memory: named tensors, and all activations of offloaded layers."""
        share, w = self.plan.offload_layers / self.work.model.L, self.work
        return Widths(w.hosted.wide + share * w.stored.wide, w.hosted.split + share * w.stored.split)

    def on_chip(self, stored: Widths) -> Widths:
        """Return `stored` without the layers whose activations are offloaded."""
        share = 1 - self.plan.offload_layers / self.work.model.L
        return Widths(share * stored.wide, share * stored.split)

    def of_token(self, amount: Widths) -> float:
        """Return a chip's share of an amount, for each of its t tokens."""
        return amount.wide / self.wide + amount.split / self.plan.tp


def shape(work: Work, plan: Plan, batch: int) -> TrainingShape:
    """Return the shape of a plan; raises a PlanError if the batch or the experts do not divide."""
    model, p = work.model, plan.pp
    dealt = stages(model, work.T, work.causal, p, plan.chunks, plan.stage_layers)
    share, experts = dealt.layers / model.L, dealt.experts / (model.moe_layers or 1)
    # with pipeline stages, both the first and the last count the larger of embedding and unembedding
    outer = (work.embedding + work.head) if p == 1 else max(work.embedding, work.head)
    stage = plan.tp // plan.expert_ways * plan.cp * plan.fsdp  # chips over which experts can be distributed
    if stage % plan.ep:
        raise PlanError(
            f"ep={plan.ep} does not divide the {stage:,} = tp/expert_tp · cp · fsdp chips of a stage; "
            "write a divisor, or make fsdp larger and dp smaller"
        )
    return TrainingShape(
        plan=plan,
        work=work,
        m=plan.microbatches(batch),
        t=plan.microbatch * work.T / plan.cp,
        stages=dealt,
        share=share,
        experts=experts,
        dense=(share * work.split + outer) / plan.tp
        + share * (work.copied + work.replicated_kv_params(plan.tp) / plan.tp),
        kv=share * work.by_kv_head * whole_heads(model.K, plan.tp) if plan.tp > model.K else 0.0,
        kv_copies=max(plan.tp // model.K, 1),
        expert=experts * work.expert / (plan.expert_ways * plan.ep),
        shared=plan.fsdp * plan.cp,
        expert_shared=stage // plan.ep,
        moved=min(plan.weights.bytes, plan.activations.bytes),
        reduced=(plan.reduced or plan.gradients).bytes,
        wide=plan.tp if plan.sequence_parallel else 1,
        chips=plan.tp * plan.cp * plan.fsdp * plan.pp * plan.dp,
    )
