"""What comes and goes on a chip while a step runs, beside its state and the activations that wait?

Weights on their way, gradients before they are summed, whole sequences; `memory` says when. Chapter:
Training.
"""

from scalingbook_lib.training.remat import products
from scalingbook_lib.training.shape import TrainingShape


def vocabulary(s: TrainingShape) -> float:
    """The whole of the vocabulary's matrix, or of its gradient."""
    # The input and output tables are never gathered at once; a tied head has no parameters of its own.
    return s.moved * max(s.work.embedding, s.work.head) / s.plan.tp


def across(s: TrainingShape) -> float:
    """Bytes for each token: a sequence's keys and values with their gradients, where they are gathered."""
    plan, w = s.plan, s.work
    # A ring holds one piece at a time, Ulysses all tokens of a few heads: as many bytes as without ways.
    if plan.context != "gather" or plan.cp == 1:
        return 0.0
    # One layer's; more tensor ways than key-value heads do not split them further, but copy them.
    each = plan.activations.bytes * w.kv / w.model.softmax_layers / min(plan.tp, w.model.K)
    return 2 * plan.cp * each  # keys and values, and as much for their gradients; every piece


def in_layers(s: TrainingShape) -> float:
    """Dense parameters of a stage's layers on a chip, before they are shared."""
    w, tp = s.work, s.plan.tp
    # As `TrainingShape.dense`, without the vocabulary, which no loop over layers gathers.
    return s.share * (w.split / tp + w.copied + w.beyond(tp) / tp)


def gathered(s: TrainingShape, loop: bool | None) -> float:
    """FSDP: the layer at work, and where nothing is compiled, the one that is gathered ahead."""
    dense = in_layers(s) if s.shared > 1 else 0.0
    expert = s.expert if s.expert_shared > 1 else 0.0
    return (
        s.moved * (2 if loop is None else 1) * (dense + expert) / s.stages.layers if s.plan.zero >= 3 else 0.0
    )


def summed(s: TrainingShape, loop: bool | None) -> float:
    """A layer's gradients before they are summed; the whole input, output and a gradient of a product."""
    plan = s.plan
    # Sequence parallelism gathers the residual stream, [t, D] on each chip, for every product.
    whole = 3 * plan.activations.bytes * s.t * s.work.model.D if s.wide > 1 else 0.0
    if plan.frozen or plan.zero < 2 or s.shared * plan.dp * plan.dcn == 1:
        return whole
    return whole + s.moved * (
        (in_layers(s) + s.expert) / s.stages.layers if loop is None else 2 * _largest(s)
    )


def _largest(s: TrainingShape) -> float:
    """The elements of the largest matrix of a layer, those of all experts of a chip together."""
    dense = [w for w in products(s.work.model) if w.part != "experts"]
    # The matrices of an MLP are alike: up, down and, if it has one, the gate.
    experts = s.expert / s.stages.layers / (3 if s.work.model.gated else 2)
    return max(experts, *(w.size / s.plan.tp for w in dense))


def live(schedule: str, p: int, m: float, v: int) -> float:
    """The most microbatches whose activations a stage holds: all with GPipe, at most p with 1F1B.

    Interleaved, p + (p - 1)/v of them; DualPipe p + 1, of its two stages.
    """
    if p == 1:
        return 1
    # Sources: 1F1B and interleaved, korthikanti2022reducing, section 4.2; DualPipe, deepseek2024v3, table 2.
    return min(m, {"gpipe": m, "interleaved": p + (p - 1) / v, "dualpipe": p + 1}.get(schedule, p))
