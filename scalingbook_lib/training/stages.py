"""How are layers dealt to the stages of a pipeline, and which stage has most to do?

Where they divide into p stages of v chunks, each stage has the same, and the last the unembedding besides.
Where they do not, people deal them by hand, so that the last stage with its unembedding is not the longest:
Llama 3's 126 over 16 are 7, 14 times 8, and 7 (arXiv 2407.21783, section 3.3.2), Megatron-Bridge's 62 of
DeepSeek-V3 over 4 are 16, 16, 16 and 14. Nobody pads a stage to whole chunks. Layers differ where some have
experts, or see a window. Chapter: Training.
"""

from functools import lru_cache
from itertools import count, islice
from math import ceil
from typing import NamedTuple

from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.layers import pair_flops, pairs
from scalingbook_lib.models.arithmetic.remat import products

_SPARSE = ("router", "experts", "shared experts")  # what a layer with experts has in place of a dense MLP


def too_few(L: int, p: int, v: int) -> bool:
    """Whether p stages of v chunks are more than L layers; the two ends may have chunks of their own."""
    return p > 1 and (p > L or p * v > L + 2)


class StageShares(NamedTuple):
    """What the fullest stage and the last one have."""

    layers: int  # of the stage with most of them
    experts: int  # layers with experts, of the stage with most of these
    longest: float  # share of all layers' arithmetic, of the stage with most of it
    last: float  # share of the layers, of the last stage
    last_work: float  # share of their arithmetic, of the last stage


@lru_cache(maxsize=1 << 12)  # a search asks for each thousands of times
def stages(
    model: Transformer, T: int, causal: bool, p: int, v: int, given: tuple[int, ...] | None = None
) -> StageShares:
    """The stages of a model at sequences of T tokens, with the layers that are `given` for each."""
    flops, layers = _flops(model, T, causal), iter(range(model.L))
    head = 2 * T * model.D * model.V * model.L / sum(flops)  # as so many layers
    even = p == 1 or model.L % (p * v) == 0
    sizes = [*given] if given else [model.L // p] * p if even else _by_hand(model.L, p, head)
    dealt: list[list[int]] = [[] for _ in sizes]
    for chunk in range(v):
        for stage, n in zip(dealt, sizes, strict=True):
            stage += islice(layers, n // v + (chunk < n % v))
    work = [sum(flops[layer] for layer in stage) / sum(flops) for stage in dealt]
    return StageShares(
        layers=max(sizes),
        experts=max(sum(_routed(model, layer) for layer in stage) for stage in dealt),
        longest=max(work),
        last=sizes[-1] / model.L,
        last_work=work[-1],
    )


def _by_hand(L: int, p: int, head: float) -> list[int]:
    """The least n that no stage exceeds, the last with its unembedding; the others differ by one at most."""
    n = next(n for n in count(ceil(L / p)) if (p - 1) * n + max(n - ceil(head), 0) >= L)
    last = max(min(n - ceil(head), L // p), 0)
    each, more = divmod(L - last, p - 1)
    return [each + (stage >= p - 1 - more) for stage in range(p - 1)] + [last]


def _routed(m: Transformer, layer: int) -> bool:
    return bool(m.experts and m.experts.has(layer))


def _flops(m: Transformer, T: int, causal: bool) -> list[int]:
    """Forward FLOPs of a sequence, layer by layer; whole numbers, so that equal layers have equal shares."""
    routed, dense, both = 0, 0, 0
    for w in products(m):
        if w.part in _SPARSE:
            routed += w.flops_per_token // m.moe_layers
        elif w.part == "mlp":
            dense += w.flops_per_token // (m.L - m.moe_layers)
        else:
            both += w.flops_per_token // m.L
    attention = [pair_flops(m) * pairs(T, T, causal=causal, window=window) for window in m.windows]
    return [
        T * (both + (routed if _routed(m, layer) else dense)) + attention[layer % len(attention)]
        for layer in range(m.L)
    ]
