"""How many elements does a forward pass read and write between products? Chapters: Training, Inference."""

from scalingbook_lib.models import Transformer


def pointwise(m: Transformer) -> tuple[float, float]:
    """Of one token in all layers: as wide as the residual stream, and what tensor parallelism splits.

    A norm reads and writes, a sum reads two and writes one; queries and keys turn, MLPs have their function.
    """
    sums = 2 if m.norms > 1 else 1
    rotated = 2 * m.softmax_layers * (m.N + m.K) * m.H
    return m.L * m.D * (2 * m.norms + 3 * sums), rotated + hidden(m)


def hidden(m: Transformer) -> float:
    """Elements within the MLPs of all layers: what the activation function reads, and what it writes."""
    each, dense = (3 if m.gated else 2), (m.L - m.moe_layers) * m.F
    if not m.experts:
        return each * dense
    routed = each * m.experts.F + m.D  # the token, copied for each of its experts
    shared = each * m.experts.shared_width
    return each * dense + m.moe_layers * (m.experts.k * routed + shared)
