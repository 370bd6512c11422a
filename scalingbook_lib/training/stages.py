"""The distribution of layers over pipeline stages, and the stage with the most work.

If the layers divide by p stages of v chunks, all stages get the same number, and the last one also has the
unembedding. If they do not, published runs choose the numbers by hand, so that the last stage with its
unembedding is not the longest: Llama 3 has 126 layers on 16 stages as 7, 14 times 8, and 7 (arXiv 2407.21783,
section 3.3.2), and Megatron-Bridge has the 62 of DeepSeek-V3 on 4 stages as 16, 16, 16 and 14. Stages are not
padded to whole chunks. Layers with experts or with a window differ in their work. Chapter: Training.
"""

from functools import lru_cache
from itertools import count, islice
from math import ceil
from typing import NamedTuple

from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.models.arithmetic.layers import pairs


def too_few(L: int, p: int, v: int) -> bool:
    """Return whether L layers are too few for p stages of v chunks; the ends may have their own chunks."""
    return p > 1 and (p > L or p * v > L + 2)


class StageShares(NamedTuple):
    """The layers and the work of the fullest stage and of the last one."""

    layers: int  # layers of the stage with the most
    experts: int  # layers with experts, of the stage with the most
    longest: float  # the share of all layers' FLOPs, of the stage with the most
    last: float  # the share of the layers on the last stage
    last_work: float  # the share of their FLOPs on the last stage


@lru_cache(maxsize=1 << 12)  # a search needs each of them thousands of times
def stages(
    model: Transformer, T: int, causal: bool, p: int, v: int, given: tuple[int, ...] | None = None
) -> StageShares:
    """Return the shares of the stages for sequences of T tokens; `given` fixes the layers of each stage."""
    flops, layers = _flops(model, T, causal), iter(range(model.L))
    head = 2 * T * model.D * model.V * model.L / sum(flops)  # the unembedding, in units of a mean layer
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
    """Return stage sizes with the smallest maximum, counting the head; the others differ by at most one."""
    n = next(n for n in count(ceil(L / p)) if (p - 1) * n + max(n - ceil(head), 0) >= L)
    last = max(min(n - ceil(head), L // p), 0)
    each, more = divmod(L - last, p - 1)
    return [each + (stage >= p - 1 - more) for stage in range(p - 1)] + [last]


def _routed(m: Transformer, layer: int) -> bool:
    return any(layer in block.at for block in m.sublayers if block.name == "experts")


def _flops(m: Transformer, T: int, causal: bool) -> list[int]:
    """Return the forward FLOPs of a sequence by layer, as integers, so equal layers have equal shares."""
    flops = [0] * m.L
    for block in m.sublayers:
        # products, recurrence and pairs of tokens
        met = sum(
            kind.layers * kind.pair_flops() * pairs(T, T, causal=causal, window=kind.reach) // kind.every
            for kind in block.kinds
        )
        each = T * sublayers.layer_flops(m, block) + met
        for layer in block.at:
            flops[layer] += each
    return flops
