"""How is a batch spread over 4,096 chips, and what does a plan move? The exercises on FSDP and its splits."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules, training
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training import Plan, effective_width
from scalingbook_lib.units import BF16, FP32

_13B = models.find("LLaMA-2 13B")
_8B = models.find("LLaMA-3 8B")
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
            "FSDP needs r/n_X of them, with r = C/W for one axis and both of its links, and three axes here.",
        ),
        mistakes=(
            Mistake(
                lambda: _fully_sharded(links=0.9),
                "That is with 90% of the documented rate, as some texts count.",
            ),
            Mistake(lambda: _fully_sharded(1), "That is over one axis. All three of the torus carry it."),
            Mistake(lambda: _fully_sharded(2), "That is over two axes. The torus has a third."),
            Mistake(
                lambda: 1 / _fully_sharded(),
                "That is the arithmetic over the network. It is asked for the other way round.",
            ),
            Mistake(2, "A chip receives over both links of an axis at once: 200 GB/s."),
        ),
        right="Right: it misses by a little.",
    ),
    Check(
        key="training.best-split",
        title="The best split",
        answer=_best,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "More data ways make the gathers of FSDP longer, and those of tensor parallelism shorter.",
            "Over the arithmetic, FSDP is r X / (2 B) and tensor parallelism r Y / F. Where are they equal?",
        ),
        mistakes=(
            Mistake(
                lambda: _CHIPS / _best(),
                "Those are the tensor ways Y. Asked for are the data ways X.",
            ),
            Mistake(
                lambda: _best(1),
                "FSDP has two of the three axes, and so twice the bandwidth of tensor parallelism.",
            ),
            Mistake(
                lambda: (_F / _SEVERAL * 2 * _CHIPS) ** 0.5,
                "B/F is upside down there: more tokens ask for more data ways.",
            ),
            Mistake(
                lambda: (_SEVERAL / _F / 2 * _CHIPS) ** 0.5,
                "The axes are the wrong way round: more axes for FSDP make more ways of it worth while.",
            ),
        ),
        right="Right. Chips come in whole numbers, so it has to be rounded to a divisor of 4,096.",
    ),
    Check(
        key="training.overlap-needed",
        title="How much may be waited for?",
        answer=_dial,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Work out both shares for X = 1024 and Y = 4. The longer one alone is below 1.",
            "What the longer one leaves of the arithmetic's time, over the shorter one.",
        ),
        mistakes=(
            Mistake(lambda: _dial(2), "That is for Y = 2, where FSDP is the longer of the two."),
            Mistake(
                lambda: (1 - _split(_SEVERAL, 4).data) / _split(_SEVERAL, 4).tensor,
                "Tensor parallelism is the longer one here, and the dial multiplies the shorter.",
            ),
            Mistake(
                lambda: _split(_SEVERAL, 4).ratio(),
                "That is the share where both overlap. How much of the other one fits beside it?",
            ),
            Mistake(
                lambda: _split(_SEVERAL, 4).ratio(1.0),
                "That is the share where one waits for the other, the dial at 1.",
            ),
            Mistake(
                lambda: 1 - _split(_SEVERAL, 4).ratio(),
                "That is the room which is left. How much of the shorter one fits into it?",
            ),
        ),
        right="Right: almost all of the shorter one may be exposed.",
    ),
    Check(
        key="training.million-tokens",
        title="A million tokens",
        answer=_rounded,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "The two shares are r X / (2 B) and r Y / F; where they overlap, the longer one counts.",
            "X Y = 4096, and both are powers of two: try Y = 2, 4, 8.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.fsdp_with_tensor(
                    1e6, _CHIPS, _F, rules.best_fsdp_degree(1e6, _CHIPS, _F), chips.V5P
                ).ratio(),
                "That is the optimum of the formula, and its X is no power of two.",
                slip="rounding",
            ),
            Mistake(
                lambda: _split(1e6, 8).ratio(),
                "That is for Y = 8. One of the others is a little better.",
                slip="wrong-option",
            ),
            Mistake(lambda: _split(1e6, 2).ratio(), "That is for Y = 2. One of the others is much better."),
            Mistake(lambda: _split(1e6, 1).ratio(), "That is for FSDP alone."),
            Mistake(lambda: _rounded(dial=1.0), "That is the sum. With full overlap the longer one counts."),
        ),
        right="Right: above 1, though the formula has room to spare.",
    ),
    Check(
        key="training.equivalent-width",
        title="The width of a real layer",
        answer=lambda: effective_width(_8B),
        rel_tol=0.005,
        difficulty=2,
        hints=(
            "Count the parameters of a layer: three matrices of the MLP, and four of attention.",
            "A layer of two matrices has 2 D F for one pair of collectives. This one has p for two pairs.",
        ),
        mistakes=(
            Mistake(lambda: float(_8B.F), "That is F itself. Attention has weights and collectives, too."),
            Mistake(2, "Attention and MLP each gather their input and scatter their output: two pairs."),
            Mistake(lambda: 3 * _8B.F / 4, "That is without the weights of attention."),
            Mistake(
                lambda: 3 * _8B.F / 4 + _8B.D,
                "There are 8 key-value heads, not 32: K and V have a quarter of the columns.",
            ),
            Mistake(
                lambda: effective_width(_8B) - _8B.F / 4,
                "The MLP is gated: it has three matrices.",
            ),
        ),
        right="Right: 7% below F.",
    ),
    Check(
        key="training.accumulation-bytes",
        title="In four parts",
        answer=lambda: _moved(3) / _moved(1),
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "A ReduceScatter and an AllGather each bring 63/64 of an array. Count bytes for a parameter.",
            "ZeRO-1, once a step: gradients scattered in fp32, new weights gathered in bf16.",
            "FSDP, with each microbatch: weights gathered twice in bf16, gradients scattered in fp32.",
        ),
        mistakes=(
            Mistake(
                lambda: _moved(3, 1) / _moved(1, 1),
                "That is for one microbatch. FSDP gathers and scatters again with each of the four.",
            ),
            Mistake(
                lambda: _moved(3, short=True) / _moved(1, short=True),
                "That is with gradients in bf16. Here they are summed in fp32.",
            ),
            Mistake(
                lambda: _moved(3) / _moved(0),
                "That has an AllReduce in fp32 for ZeRO-1. But what it gathers is weights, in bf16.",
            ),
            Mistake(lambda: _moved(2) / _moved(1), "That is ZeRO-2, which gathers its weights once a step."),
        ),
        right="Right. Many microbatches and FSDP do not go together.",
    ),
)
