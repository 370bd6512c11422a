"""Temporary buffers of a training step: gathered weights, gradients before their reduction, whole sequences.

`memory` adds them to the training state and the saved activations. Chapter: Training.
"""

from scalingbook_lib.training.remat import products
from scalingbook_lib.training.shape import TrainingShape


def vocabulary(s: TrainingShape) -> float:
    """Return the bytes of the gathered embedding or unembedding matrix on one chip, or of its gradient."""
    # embedding and unembedding are never gathered at the same time; a tied head has no parameters of its own
    return s.moved * max(s.work.embedding, s.work.head) / s.plan.tp


def across(s: TrainingShape) -> float:
    """Return the bytes per token of gathered keys and values with their gradients, if they are gathered."""
    plan, w = s.plan, s.work
    # A ring holds one shard at a time, and Ulysses all tokens of a few heads, as many bytes as without CP.
    if plan.context != "gather" or plan.cp == 1 or not w.model.softmax_layers:
        return 0.0
    # for one layer; a TP degree above the number of KV heads replicates heads
    each = plan.activations.bytes * w.kv / w.model.softmax_layers / min(plan.tp, w.model.K)
    return 2 * plan.cp * each  # keys and values, and as much for their gradients; all cp shards


def in_layers(s: TrainingShape) -> float:
    """Return the dense parameters of a stage's layers per chip, before ZeRO shards them."""
    w, tp = s.work, s.plan.tp
    # like `TrainingShape.dense`, without the embeddings, which are not gathered in the loop over layers
    return s.share * (w.split / tp + w.copied + w.replicated_kv_params(tp) / tp)


def gathered(s: TrainingShape, loop: bool | None) -> float:
    """Return the bytes of the layers that FSDP holds gathered: one, or two if the next one is prefetched."""
    dense = in_layers(s) if s.shared > 1 else 0.0
    expert = s.expert if s.expert_shared > 1 else 0.0
    return (
        s.moved * (2 if loop is None else 1) * (dense + expert) / s.stages.layers if s.plan.zero >= 3 else 0.0
    )


def summed(s: TrainingShape, loop: bool | None) -> float:
    """Return the bytes of a layer's gradients before their reduction, and of its gathered activations."""
    plan = s.plan
    # Sequence parallelism gathers the residual stream, [t, D] per chip, for every matmul: its input, its
    # output, and one gradient.
    whole = 3 * plan.activations.bytes * s.t * s.work.model.D if s.wide > 1 else 0.0
    if plan.frozen or plan.zero < 2 or s.shared * plan.dp * plan.dcn == 1:
        return whole
    return whole + s.moved * (
        (in_layers(s) + s.expert) / s.stages.layers if loop is None else 2 * _largest(s)
    )


def _largest(s: TrainingShape) -> float:
    """Return the elements of a layer's largest matrix; the experts of a chip count as one matrix."""
    dense = [w for w in products(s.work.model) if w.part != "experts"]
    # the matrices of an MLP have equal sizes: up, down and, if it is gated, the gate
    experts = s.expert / s.stages.layers / (3 if s.work.model.gated else 2)
    return max(experts, *(w.size / s.plan.tp for w in dense))


def live(schedule: str, p: int, m: float, v: int) -> float:
    """Return the largest number of microbatches whose activations a stage holds at the same time.

    All m with GPipe, at most p with 1F1B, p + (p - 1)/v if interleaved, and p + 1 with DualPipe (over its two
    stages).
    """
    if p == 1:
        return 1
    # Sources: 1F1B and interleaved, korthikanti2022reducing, section 4.2; DualPipe, deepseek2024v3, table 2.
    return min(m, {"gpipe": m, "interleaved": p + (p - 1) / v, "dualpipe": p + 1}.get(schedule, p))
