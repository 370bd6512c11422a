"""Checks of the introduction: collectives, scaling limits and the price of a slower step."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import BF16

_LLAMA_70B = 70e9 * BF16.bytes  # bytes of its weights in bf16


def _hops_count() -> float:
    """The n at which 2 · n/2 hops of α take as long as 2 M / W."""
    ring = chips.V5P.axis(16)
    return collectives.all_reduce(10e6 * BF16.bytes, ring).textbook_s / ring.hop_s


def _part(share: float, loss: float) -> float:
    return 1 / (1 - share + share / (1 - loss))


def _too_few(tokens: float) -> float:
    need = rules.data_parallel_tokens(chips.V5E)
    return 6 * tokens / (2 * tokens + 4 * max(need, tokens))


MANY_CHIPS = (
    Check(
        key="intro.allreduce-time",
        title="AllReduce time of the gradients",
        answer=lambda: collectives.all_reduce(_LLAMA_70B, chips.V5P.axis(16)).textbook_s,
        unit="s",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "On a long ring, an AllReduce moves every byte twice: once to reduce and once to gather.",
            "On a ring, a chip receives 100 GB/s from each of its two neighbors.",
        ),
        mistakes=(
            Mistake(
                0.5, "An AllReduce is a ReduceScatter followed by an AllGather, so the bytes count twice."
            ),
            Mistake(
                2.0,
                "A chip on a ring receives from both sides, 2 · 100 GB/s, and bf16 gradients take 2 "
                "bytes each.",
            ),
            Mistake(1 / 3, "That uses all three axes. The question has only one."),
            Mistake(
                1 / 6,
                "1,200 GB/s counts six links in both directions. On one axis, two links lead into the chip.",
            ),
            Mistake(1 / 0.9, "That uses 90 GB/s per link. This book uses the documented 100."),
        ),
        right="Right: more than a second per step, unless it is hidden behind compute.",
    ),
    Check(
        key="intro.quality-break-even",
        title="The price of a slower step",
        answer=lambda: 1 / 0.7 - 1,
        difficulty=2,
        rel_tol=0.01,
        hints=("At break-even, g · h = 1.", "h is 0.7. What is g then, and by how much does it exceed 1?"),
        mistakes=(
            Mistake(lambda: 0.3, "1.3 · 0.7 = 0.91, so a gain as large as the loss does not make up for it."),
            Mistake(lambda: 0.7, "That is h. The question asks for the gain that makes up for the loss."),
            Mistake(lambda: 1 / 0.7, "That is g itself. The gain is the amount by which it exceeds 1."),
        ),
        right="Right: losing 30% of the efficiency takes a quality gain worth 43% more compute.",
    ),
    Check(
        key="intro.three-axis-knee",
        title="The strong-scaling limit of TPU7x",
        answer=lambda: scaling.knee(2**24, chips.TPU7X, axes=3),
        unit="chips",
        difficulty=2,
        hints=(
            "At the knee, each chip has C/W tokens.",
            "W over three rings is 3 · 2 · 100 GB/s, and C is 2.307e15 FLOPs/s.",
        ),
        mistakes=(
            Mistake(
                lambda: scaling.knee(2**24, chips.TPU7X),
                "That uses one axis. Here, all three carry gradients.",
                slip="axis-left-out",
            ),
            Mistake(
                lambda: 1 + 2**24 * 3e11 / chips.TPU7X.bf16_flops_per_s,
                "That counts one direction only. A chip on a ring receives from both sides.",
                slip="one-direction",
            ),
            Mistake(
                lambda: scaling.knee(2**24, chips.V5P, axes=3),
                "That is for v5p. TPU7x has five times its FLOPs/s, with links of the same bandwidth.",
                slip="wrong-chip",
            ),
            Mistake(
                lambda: rules.data_parallel_tokens(chips.TPU7X, axes=3),
                "That is how many tokens each chip needs. How many chips can the batch supply with that "
                "many?",
                slip="wrong-quantity",
            ),
        ),
        right="Right. On v5p, it would be five times as many chips: compute has become faster "
        "since, but the links have not.",
    ),
    Check(
        key="intro.largest-speed-up",
        title="The largest possible speedup",
        answer=lambda: 1.5 * 2**20 / rules.data_parallel_tokens(chips.V5E),
        difficulty=3,
        hints=(
            "As more and more chips are added, compute time goes to zero. What is left of the step?",
            "Divide the time of the step on one chip, 6PB/C, by that of the AllReduce, 4P/W.",
        ),
        mistakes=(
            Mistake(1 / 1.5, "That is the knee. Beyond it, the forward pass still shrinks."),
            Mistake(2.0, "Did you use both axes? The question has only one."),
            Mistake(0.5, "Did you count one direction only? A chip on a ring receives from both sides."),
            Mistake(0.9, "Did you use 45 GB/s per link? This book uses the documented 50."),
        ),
        right="Right: 1.5 times the knee, whatever the model.",
    ),
    Check(
        key="intro.hops-equal-bytes",
        title="Latency: hops against bytes",
        answer=_hops_count,
        unit="chips",
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "Write down both terms. The bytes take 2M/W; how long do the hops take?",
            "On a ring, each of the two halves of an AllReduce takes n/2 hops of 1 µs.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "This is half of the answer. Are there n hops rather than 2n, and did you count the "
                "bytes of both passes?",
                slip="one-pass",
            ),
            Mistake(
                2.0,
                "This is twice the answer. Are there n hops rather than n/2, and did you count bytes "
                "from both sides of the ring?",
                slip="one-direction",
            ),
            Mistake(1 / 0.9, "Did you use 90 GB/s per link? This book uses the documented 100."),
        ),
        right="Right. With 8 billion parameters, it would be 160,000 chips, so hops hardly "
        "matter for large models.",
    ),
    Check(
        key="intro.gain-of-change",
        title="Slowing down a part of the step",
        answer=lambda: 1.25 * _part(0.3, 0.5),
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "If the step took 1 before the change, how long does it take after it?",
            "0.7 stays as it is, and 0.3 takes twice as long.",
        ),
        mistakes=(
            Mistake(
                lambda: 1.25 * 0.5, "Only 30% of the step has become slower.", slip="wrong-formula-whole"
            ),
            Mistake(
                lambda: 1.25 * 0.85,
                "Times add up, efficiencies do not: the new time is 0.7 + 0.3/0.5.",
                slip="wrong-formula-average",
            ),
            Mistake(
                lambda: 1.25 * 0.7,
                "That part of the step does not disappear: it takes twice as long as before.",
            ),
            Mistake(
                lambda: 1.3,
                "That is how long the step takes now, if it took 1 before. h is the inverse of that.",
            ),
            Mistake(lambda: _part(0.3, 0.5), "That is h. Multiply by g.", slip="factor-left-out"),
        ),
        right="Right: a small loss, in spite of a quality gain of a quarter.",
    ),
    Check(
        key="intro.weak-efficiency",
        title="Weak scaling with too few tokens",
        answer=lambda: _too_few(1000),
        difficulty=3,
        hints=(
            "With 1,000 tokens per chip, which takes longer: the backward pass or the AllReduce?",
            "One chip takes 6Pb/C, and many chips take 2Pb/C + 4P/W. P cancels, and C/W is 1,970.",
        ),
        mistakes=(
            Mistake(
                lambda: 1000 / 1970, "There is a forward pass too, which does not hide any of the AllReduce."
            ),
            Mistake(
                lambda: 6 / (6 + 4 * 1.97),
                "With full overlap, the AllReduce runs during the backward pass, not after it.",
            ),
        ),
        right="Right. Below C/W tokens per chip, weak scaling loses efficiency immediately, but adding "
        "more chips costs no further efficiency.",
    ),
)
