"""Three servers, three meanings of 0.9: what a memory fraction leaves for the KV cache.

vLLM's share is of the whole card and covers weights, activations and the pool. SGLang's covers weights and
the pool, and activations come out of the rest. TensorRT-LLM's is the share of what weights and activations
leave, all of it for the pool.

>>> rules = CARD, STATIC, LEFT
>>> [round(rule.pool(0.9, card=80, weights=35, working=5), 1) for rule in rules]
[32.0, 37.0, 36.0]
"""

from collections.abc import Callable
from dataclasses import dataclass

from scalingbook_lib.inference import PLAIN, Drafting, Layout, memory
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer


@dataclass(frozen=True, slots=True)
class FractionRule:
    """What a share of the memory is a share of; `pool(fraction, card=..., weights=..., working=...)`."""

    name: str
    of: str
    _pool: Callable[[float, float, float, float], float]

    def pool(self, fraction: float, *, card: float, weights: float, working: float) -> float:
        """The bytes of the KV cache pool; below 0 where nothing is left."""
        return self._pool(fraction, card, weights, working)


CARD = FractionRule("card", "the card", lambda f, card, w, a: f * card - w - a)
STATIC = FractionRule(
    "static", "the card, for weights and KV cache", lambda f, card, w, a: min(f * card, card - a) - w
)
LEFT = FractionRule("left", "what weights and activations leave", lambda f, card, w, a: f * (card - w - a))


def reserve(
    rule: FractionRule,
    fraction: float,
    model: Transformer,
    layout: Layout,
    machine: Machine,
    *,
    step_tokens: int,
    drafting: Drafting = PLAIN,
) -> float:
    """The share of the HBM that is neither weights, nor KV cache, nor the working memory of one sequence.

    Activations are those of a step of `step_tokens` tokens, as an engine measures them when it starts. The
    weights of the draft model of `drafting` count with the others.
    """
    card = machine.chip.hbm_bytes
    full = memory(model, layout, machine, batch=1, S=1, step_tokens=step_tokens, drafting=drafting)
    least = memory(model, layout, machine, batch=1, S=1)
    weights, working = full.weights + full.draft_weights, full.activations + full.logits
    pool = rule.pool(fraction, card=card, weights=weights, working=working)
    return min(max(1 - (weights + pool + least.activations + least.logits) / card, 0.0), 1.0)
