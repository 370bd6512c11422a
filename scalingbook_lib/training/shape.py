"""What does a plan make of a model on each chip? Its microbatches, its stage, its share of the weights.

The numbers that memory, traffic and time all start from, worked out once a plan. Chapter: Training.
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
    """One plan for one model and batch, as the chips of its longest stage see it."""

    plan: Plan
    work: Work
    m: int  # microbatches of a step
    t: float  # tokens of a microbatch on each of the chips that split its sequences
    stages: StageShares
    share: float  # of all layers, in the stage with most of them
    experts: float  # of all layers with experts, in the stage with most of these
    dense: float  # dense parameters that a chip would hold without ZeRO, copies of key-value heads included
    kv: float  # those of heads that other chips of its tensor ways hold too
    kv_copies: int  # chips that hold the same key-value head
    expert: float  # those of experts
    shared: int  # chips that hold the same dense parameters, and share them with ZeRO
    expert_shared: int  # chips that hold the same experts
    moved: float  # bytes of a weight on its way: as stored, or as the activations where that is less
    reduced: float  # bytes of a gradient on its way: as the plan says, or as it is stored
    wide: int  # chips over which the residual stream is split
    chips: int  # of one pod

    @property
    def routed(self) -> float:
        """Copies of tokens that a chip's experts get in a microbatch and layer, on average."""
        experts = self.work.model.experts
        # the chips that split one expert's width all have its tokens
        return self.t * experts.k * self.plan.expert_ways / self.plan.tp if experts else 0.0

    @property
    def local_experts(self) -> float:
        """Experts of a layer on each chip."""
        experts = self.work.model.experts
        return experts.E / self.plan.ep if experts else 0.0

    def skewed(self, skew: float | None) -> float:
        """The tokens of the busiest chip's experts over the mean of all chips, by preference alone."""
        experts, ep = self.work.model.experts, self.plan.ep
        return busiest_over_mean(experts.E, ep, skew=skew) if experts and skew else 1.0

    def busiest(self, skew: float | None) -> float:
        """The same, by preference and by chance (`steps.expert_load`); 1 with a skew of None."""
        if skew is None or not self.work.model.experts:
            return 1.0
        return self.skewed(skew) * variation(self.plan.ep, self.routed)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The mesh: tp, cp, the part of fsdp whose chips hold other experts, the rest, pp, dp."""
        p = self.plan
        z = p.ep * p.expert_ways // (p.tp * p.cp)
        z = z if z > 1 and p.fsdp % z == 0 else 1
        return (p.tp, p.cp, z, p.fsdp // z, p.pp, p.dp)

    @property
    def stored(self) -> Widths:
        """Bytes of activations of each token that wait on the chip, in all layers."""
        return self.on_chip(self.work.stored)

    @property
    def hosted(self) -> Widths:
        """Those that wait in the host's memory: named tensors, and all of some layers."""
        share, w = self.plan.offload_layers / self.work.model.L, self.work
        return Widths(w.hosted.wide + share * w.stored.wide, w.hosted.split + share * w.stored.split)

    def on_chip(self, stored: Widths) -> Widths:
        """Without the layers whose activations are offloaded."""
        share = 1 - self.plan.offload_layers / self.work.model.L
        return Widths(share * stored.wide, share * stored.split)

    def of_token(self, amount: Widths) -> float:
        """What a chip has of an amount, for each of its t tokens."""
        return amount.wide / self.wide + amount.split / self.plan.tp


def shape(work: Work, plan: Plan, batch: int) -> TrainingShape:
    """The shape of a plan; a PlanError where the batch or the experts do not divide."""
    model, p = work.model, plan.pp
    dealt = stages(model, work.T, work.causal, p, plan.chunks, plan.stage_layers)
    share, experts = dealt.layers / model.L, dealt.experts / (model.moe_layers or 1)
    # with stages, the larger of embedding and unembedding counts for the first and for the last
    outer = (work.embedding + work.head) if p == 1 else max(work.embedding, work.head)
    stage = plan.tp // plan.expert_ways * plan.cp * plan.fsdp  # chips among which experts can be spread
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
        dense=(share * work.split + outer) / plan.tp + share * (work.copied + work.beyond(plan.tp) / plan.tp),
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
