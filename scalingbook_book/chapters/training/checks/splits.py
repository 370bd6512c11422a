"""Checks of the exercises on FSDP and TP on 4,096 chips, and on what a plan moves."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules, training
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training import Plan, effective_width
from scalingbook_lib.units import BF16, FP32

_13B = models.find("Llama 2 13B")
_8B = models.find("Llama 3 8B")
_SEVERAL, _CHIPS, _F = 3_000_000, 4096, _13B.F
_POWERS = tuple(2**k for k in range(13))


def _fully_sharded(axes: int = 3, links: float = 1.0) -> float:
    """The network's time over the arithmetic's, FSDP alone over all chips."""
    return rules.data_parallel_tokens(chips.V5P, axes=axes, links=links) / (_SEVERAL / _CHIPS)


def _best(data_axes: int = 2) -> float:
    return rules.best_fsdp_degree(_SEVERAL, _CHIPS, _F, data_axes=data_axes)


def _split(B: float, Y: int) -> rules.FsdpWithTensor:
    return rules.fsdp_with_tensor(B, _CHIPS, _F, _CHIPS // Y, chips.V5P)


def _dial(Y: int = 4) -> float:
    """How much of the shorter network time may be waited for, until the arithmetic no longer hides all."""
    low, high = sorted((_split(_SEVERAL, Y).data, _split(_SEVERAL, Y).tensor))
    return (1 - high) / low


def _rounded(B: float = 1e6, dial: float = 0.0) -> float:
    return min(_split(B, Y).ratio(dial) for Y in _POWERS)


def _moved(zero: int, parts: int = 4, short: bool = False) -> float:
    """Bytes that a chip takes in during one step of so many microbatches."""
    gradients = BF16 if short else FP32
    plan = Plan(fsdp=64, zero=zero, microbatch=4 // parts, gradients=gradients)
    rows = training.traffic(_13B, plan, Slice.of(chips.V5P, "4x4x4"), batch=256, T=4096)
    return sum(row.received for row in rows)


SPLITS = (
    Check(
        key="training.fsdp-ratio",
        title="FSDP on 4,096 chips",
        answer=_fully_sharded,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "How many tokens does each chip have?",
            "FSDP needs r/n_X of them. Here r = C/W for one axis with both of its links, and "
            "there are three axes.",
        ),
        mistakes=(
            Mistake(
                lambda: _fully_sharded(links=0.9),
                "That is with links at 90% of their documented rate, which some texts use.",
            ),
            Mistake(
                lambda: _fully_sharded(1), "That is over one axis. FSDP uses all three axes of the torus."
            ),
            Mistake(lambda: _fully_sharded(2), "That is over two axes. The torus has three."),
            Mistake(
                lambda: 1 / _fully_sharded(),
                "That is compute over communication. The question asks for the inverse.",
            ),
            Mistake(2, "A chip receives over both links of an axis at once: 200 GB/s."),
        ),
        right="Right: just a little too much communication to hide.",
    ),
    Check(
        key="training.best-split",
        title="Best FSDP and TP degrees",
        answer=_best,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "A larger X makes the gathers of FSDP take longer, and those of tensor "
            "parallelism take less time.",
            "Divided by the compute time, FSDP takes r X / (2 B) and tensor parallelism r Y "
            "/ F. Where are they equal?",
        ),
        mistakes=(
            Mistake(
                lambda: _CHIPS / _best(),
                "That is the TP degree Y. The question is about the FSDP degree X.",
            ),
            Mistake(
                lambda: _best(1),
                "FSDP has two of the three axes, so it has twice the bandwidth of tensor parallelism.",
            ),
            Mistake(
                lambda: (_F / _SEVERAL * 2 * _CHIPS) ** 0.5,
                "B/F is upside down: with more tokens, a larger FSDP degree is better.",
            ),
            Mistake(
                lambda: (_SEVERAL / _F / 2 * _CHIPS) ** 0.5,
                "The axes are swapped: with more axes for FSDP, a larger FSDP degree is better.",
            ),
        ),
        right="Right. In practice, it has to be rounded to a divisor of 4,096.",
    ),
    Check(
        key="training.overlap-needed",
        title="How much overlap does the plan need?",
        answer=_dial,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Compute both ratios for X = 1024 and Y = 4. The larger one alone is below 1.",
            "Subtract the larger ratio from 1 and divide the rest by the smaller ratio.",
        ),
        mistakes=(
            Mistake(lambda: _dial(2), "That is for Y = 2, where FSDP takes longer."),
            Mistake(
                lambda: (1 - _split(_SEVERAL, 4).data) / _split(_SEVERAL, 4).tensor,
                "Tensor parallelism takes longer here, and λ multiplies the shorter one.",
            ),
            Mistake(
                lambda: _split(_SEVERAL, 4).ratio(),
                "That is the ratio with full overlap. How much of the shorter one can be added "
                "before the ratio reaches 1?",
            ),
            Mistake(
                lambda: _split(_SEVERAL, 4).ratio(1.0),
                "That is the ratio with no overlap, at λ = 1.",
            ),
            Mistake(
                lambda: 1 - _split(_SEVERAL, 4).ratio(),
                "That is the time that remains. What fraction of the shorter communication fits into it?",
            ),
        ),
        right="Right: nearly all of the shorter communication can run after the longer one.",
    ),
    Check(
        key="training.million-tokens",
        title="FSDP and TP with a small batch",
        answer=_rounded,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "The two ratios are r X / (2 B) and r Y / F. With full overlap, only the larger one counts.",
            "X Y = 4096, and both are powers of two: try Y = 2, 4, 8.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.fsdp_with_tensor(
                    1e6, _CHIPS, _F, rules.best_fsdp_degree(1e6, _CHIPS, _F), chips.V5P
                ).ratio(),
                "That is the optimum of the formula, where X is not a power of two.",
                slip="rounding",
            ),
            Mistake(
                lambda: _split(1e6, 8).ratio(),
                "That is for Y = 8. Another power of two is a little better.",
                slip="wrong-option",
            ),
            Mistake(
                lambda: _split(1e6, 2).ratio(), "That is for Y = 2. Another power of two is much better."
            ),
            Mistake(lambda: _split(1e6, 1).ratio(), "That is for FSDP alone."),
            Mistake(
                lambda: _rounded(dial=1.0),
                "That is the sum of the two ratios. With full overlap, only the larger one counts.",
            ),
        ),
        right="Right: the ratio is above 1, although the formula leaves a margin.",
    ),
    Check(
        key="training.equivalent-width",
        title="Effective width of a real layer",
        answer=lambda: effective_width(_8B),
        rel_tol=0.005,
        difficulty=2,
        hints=(
            "Count the parameters of a layer: three matrices of the MLP, and four of attention.",
            "A layer of two matrices has 2 D F parameters for one pair of collectives. This "
            "one has two pairs.",
        ),
        mistakes=(
            Mistake(lambda: float(_8B.F), "That is F itself. Attention has weights and collectives, too."),
            Mistake(
                2,
                "Attention and MLP each gather their input and reduce-scatter their output, so "
                "there are two pairs.",
            ),
            Mistake(lambda: 3 * _8B.F / 4, "That leaves out the weights of attention."),
            Mistake(
                lambda: 3 * _8B.F / 4 + _8B.D,
                "There are 8 KV heads, not 32, so K and V have a quarter of the columns.",
            ),
            Mistake(
                lambda: effective_width(_8B) - _8B.F / 4,
                "The MLP is gated, so it has three matrices.",
            ),
        ),
        right="Right: 7% below F.",
    ),
    Check(
        key="training.accumulation-bytes",
        title="FSDP with four microbatches",
        answer=lambda: _moved(3) / _moved(1),
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "In a ReduceScatter or an AllGather, a chip receives 63/64 of the array. Count "
            "bytes per parameter.",
            "ZeRO-1, once per step: gradients are reduce-scattered in fp32, and updated "
            "weights are gathered in bf16.",
            "FSDP, for each microbatch: weights are gathered twice in bf16, and gradients "
            "are reduce-scattered in fp32.",
        ),
        mistakes=(
            Mistake(
                lambda: _moved(3, 1) / _moved(1, 1),
                "That is for one microbatch. FSDP repeats its collectives for each of the four.",
            ),
            Mistake(
                lambda: _moved(3, short=True) / _moved(1, short=True),
                "That is with gradients in bf16. Here they are summed in fp32.",
            ),
            Mistake(
                lambda: _moved(3) / _moved(0),
                "That counts an AllReduce in fp32 for ZeRO-1. But ZeRO-1 gathers weights, in bf16.",
            ),
            Mistake(
                lambda: _moved(2) / _moved(1), "That is ZeRO-2, which gathers its weights once per step."
            ),
        ),
        right="Right. FSDP and many microbatches do not go together.",
    ),
)
