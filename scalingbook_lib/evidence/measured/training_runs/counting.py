"""The FLOPs per step under each source's counting convention.

All conventions count a multiply and an add, the unembedding, and no embedding look-ups. They differ in the
pairs of positions (all, or half), in recomputation, and in parts that they leave out. Chapter: Training.
"""

from dataclasses import replace

from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.models.arithmetic import Flops

CONVENTIONS = {
    "full": "every pair of positions; nothing that is computed again",
    "half": "half of the pairs; nothing that is computed again",
    "hardware": "every pair of positions, and the layers' forward pass once more: HFU",
    "6P": "6 for every parameter, embeddings, norms and biases too, and every pair",
    "6N": "6 for every parameter that serves a token, and no pair",
    "frozen": "as half, without the gradients of weights that are frozen (LoRA)",
    "bridge": "as half, without the routers",
    "bridge+MTP": "as bridge, with one more layer and unembedding that predict the token after the next",
    "bridge ungated": "as bridge, with two matrices an expert where there are three, and no windows",
}
"""How a source counts the FLOPs of a step, by name."""


def counted(convention: str, model: Transformer, tokens: int, T: int) -> float:
    """The FLOPs of a step over `tokens` tokens in sequences of T, by the convention of a source.

    Raises a ValueError for an unknown convention.
    """
    if convention not in CONVENTIONS:
        raise ValueError(f"{convention!r} is no convention here; write one of {', '.join(CONVENTIONS)}")
    if convention == "6P":
        return 6 * model.params * tokens + 12 * model.L * model.D * T * tokens
    model = replace(model, windows=(None,)) if convention == "bridge ungated" else model
    exact = arithmetic.training_flops(model, tokens, T).exact
    half = exact.total - exact.attention / 2
    bridge = half - exact.get("router")
    if convention == "bridge+MTP":
        return bridge + _next_token(model, exact, tokens, T)
    return {
        "full": exact.total,
        "half": half,
        "6N": 6 * model.active_params * tokens,
        "frozen": half
        - (exact.total - exact.attention) / 3,  # one of a matmul's three passes is for the weights
        "hardware": exact.total + (exact.total - exact.get("unembedding")) / 3,  # the forward pass is a third
        "bridge": bridge,
        "bridge ungated": bridge - exact.get("experts") / 3,
    }[convention]


def _next_token(model: Transformer, exact: Flops, tokens: int, T: int) -> float:
    """One layer, a matmul [2 D, D] that joins the embedding with it, and the unembedding, in FLOPs."""
    one_more = counted("bridge", replace(model, L=model.L + 1), tokens, T) - counted(
        "bridge", model, tokens, T
    )
    return one_more + 3 * 2 * tokens * 2 * model.D**2 + exact.get("unembedding")
