"""What does a plan make of a model on each chip? Its microbatches, its stage, its share of the weights.

The numbers that memory, traffic and time all start from, worked out once a plan. Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib.training.plan import Plan, PlanError
from scalingbook_lib.training.work import Work


@dataclass(frozen=True, slots=True)
class Shape:
    """One plan for one model and batch, as the chips of its longest stage see it.

    A stage holds ceil(L / (pp · chunks)) · chunks layers, the last one what is left, and the unembedding.
    `dense` and `expert` are the parameters that a chip would hold without ZeRO; `shared` chips hold the same
    dense ones, `expert_shared` the same experts. Where there are stages, the larger of embedding and
    unembedding counts for all of them.
    """

    plan: Plan
    work: Work
    M: int  # microbatches
    t: float  # tokens of a microbatch on each of the chips that split its sequences
    layers: int  # of the longest stage
    share: float  # its share of all layers
    last: float  # that of the last stage
    dense: float
    expert: float
    shared: int
    expert_shared: int
    moved: float  # bytes of a weight on its way: as stored, or as the activations where that is less
    wide: int  # chips over which the residual stream is split
    chips: int  # of one pod

    @property
    def sizes(self) -> tuple[int, ...]:
        """The mesh: tp, cp, the part of fsdp whose chips hold other experts, the rest, pp, dp."""
        p = self.plan
        z = p.ep * p.expert_ways // (p.tp * p.cp)
        z = z if z > 1 and p.fsdp % z == 0 else 1
        return (p.tp, p.cp, z, p.fsdp // z, p.pp, p.dp)


def shape(work: Work, plan: Plan, batch: int) -> Shape:
    """The shape of a plan; a PlanError where the batch or the experts do not divide."""
    model, P = work.model, plan.pp
    layers = -(-model.L // (P * plan.chunks)) * plan.chunks
    share = layers / model.L
    outer = (work.embedding + work.head) if P == 1 else max(work.embedding, work.head)
    stage = plan.tp // plan.expert_ways * plan.cp * plan.fsdp
    if stage % plan.ep:
        raise PlanError(f"ep={plan.ep} does not divide the {stage:,} = tp/expert_tp · cp · fsdp chips of a "
                        "stage; write a divisor, or make fsdp larger and dp smaller")  # fmt: skip
    return Shape(
        plan, work, plan.microbatches(batch), plan.microbatch * work.T / plan.cp, layers, share,
        max(model.L - layers * (P - 1), 0) / model.L,
        (share * work.split + outer) / plan.tp + share * work.copied,
        share * work.expert / (plan.expert_ways * plan.ep),
        plan.fsdp * plan.cp, stage // plan.ep, min(plan.weights.bytes, plan.activations.bytes),
        plan.tp if plan.sequence_parallel else 1, plan.tp * plan.cp * plan.fsdp * plan.pp * plan.dp,
    )  # fmt: skip
