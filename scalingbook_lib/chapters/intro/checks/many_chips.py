"""What do more chips buy, and what do they cost? Checks of the introduction."""

from scalingbook_lib import collectives, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.reader.checks.check import Check, Mistake
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import BF16

_LLAMA_70B = 70e9 * BF16.bytes  # bytes of its weights in bf16


def _hops_count() -> float:
    """2 · n/2 hops of α take as long as 2 M / W."""
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
        title="Summing the gradients",
        answer=lambda: collectives.all_reduce(_LLAMA_70B, chips.V5P.axis(16)).textbook_s,
        unit="s",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "A long AllReduce moves every byte twice: once to reduce, once to gather.",
            "One chip takes in 2 · 100 GB/s along a ring, from both neighbors.",
        ),
        mistakes=(
            Mistake(0.5, "An AllReduce is a ReduceScatter and an AllGather: the bytes count twice."),
            Mistake(2.0, "A ring brings data in from both sides: 2 · 100 GB/s. Gradients are bf16, 2 bytes."),
            Mistake(1 / 3, "That is over all three axes. The question has one."),
            Mistake(
                1 / 6, "1,200 GB/s are six links in both directions. One axis has two links into the chip."
            ),
            Mistake(1 / 0.9, "That is with 90 GB/s a link; this book takes the documented 100."),
        ),
        right="Right: more than a second, for every step, unless something hides it.",
    ),
    Check(
        key="intro.quality-break-even",
        title="The price of a slower step",
        answer=lambda: 1 / 0.7 - 1,
        difficulty=2,
        rel_tol=0.01,
        hints=("g · h = 1 at break-even.", "h is 0.7. What must g be, and by how much is that above 1?"),
        mistakes=(
            Mistake(lambda: 0.3, "1.3 · 0.7 = 0.91: a gain as large as the loss does not make up for it."),
            Mistake(lambda: 0.7, "That is h. The question asks for the gain that makes up for it."),
            Mistake(lambda: 1 / 0.7, "That is g itself. The gain is what it is above 1."),
        ),
        right="Right: 43% more quality, as compute, for 30% less efficiency.",
    ),
    Check(
        key="intro.three-axis-knee",
        title="The knee of a newer chip",
        answer=lambda: scaling.knee(2**24, chips.TPU7X, axes=3),
        unit="chips",
        difficulty=2,
        hints=(
            "The knee is where each chip's tokens are C/W.",
            "W for three rings is 3 · 2 · 100 GB/s; C is 2.307e15 FLOPs/s.",
        ),
        mistakes=(
            Mistake(
                lambda: scaling.knee(2**24, chips.TPU7X),
                "That is one axis. All three carry gradients here.",
                slip="axis-left-out",
            ),
            Mistake(
                lambda: 1 + 2**24 * 3e11 / chips.TPU7X.bf16_flops_per_s,
                "One direction only: a ring brings data in from both sides.",
                slip="one-direction",
            ),
            Mistake(
                lambda: scaling.knee(2**24, chips.V5P, axes=3),
                "That is v5p. TPU7x has five times its arithmetic on the same links.",
                slip="wrong-chip",
            ),
            Mistake(
                lambda: rules.data_parallel_tokens(chips.TPU7X, axes=3),
                "That many tokens each chip needs. How many such shares are in the batch?",
                slip="wrong-quantity",
            ),
        ),
        right="Right. On v5p it would be five times as many: arithmetic grew, and the links did not.",
    ),
    Check(
        key="intro.largest-speed-up",
        title="The most that chips can buy",
        answer=lambda: 1.5 * 2**20 / rules.data_parallel_tokens(chips.V5E),
        difficulty=3,
        hints=(
            "With more and more chips the arithmetic goes to nothing. What is left of the step?",
            "Divide the step on one chip, 6PB/C, by the AllReduce, 4P/W.",
        ),
        mistakes=(
            Mistake(1 / 1.5, "That is the knee. Beyond it the forward pass still shrinks."),
            Mistake(2.0, "Both axes? The question has one."),
            Mistake(0.5, "One direction only? A ring brings data in from both sides."),
            Mistake(0.9, "With 45 GB/s a link? This book takes the documented 50."),
        ),
        right="Right: 1.5 times the knee, for every model.",
    ),
    Check(
        key="intro.hops-equal-bytes",
        title="When hops count",
        answer=_hops_count,
        unit="chips",
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "Write down both terms: 2M/W for the bytes, and for the hops?",
            "Each of the two halves of an AllReduce takes n/2 hops of 1 µs on a ring.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "Half. Are the hops n and not 2n, and do the bytes count for both passes?",
                slip="one-pass",
            ),
            Mistake(
                2.0,
                "Twice. Are the hops n and not n/2, and does the ring bring bytes from both sides?",
                slip="one-direction",
            ),
            Mistake(1 / 0.9, "With 90 GB/s a link? This book takes the documented 100."),
        ),
        right="Right. With 8 billion parameters it would be 160,000 chips: large models feel no hops.",
    ),
    Check(
        key="intro.gain-of-change",
        title="A part of the step",
        answer=lambda: 1.25 * _part(0.3, 0.5),
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "How long does the step take after the change, if it took 1 before?",
            "0.7 is untouched, and 0.3 takes twice as long.",
        ),
        mistakes=(
            Mistake(lambda: 1.25 * 0.5, "Only 30% of the step became slower.", slip="wrong-formula-whole"),
            Mistake(
                lambda: 1.25 * 0.85,
                "Times add, efficiencies do not: 0.7 + 0.3/0.5 is the new time.",
                slip="wrong-formula-average",
            ),
            Mistake(lambda: 1.25 * 0.7, "The part is not lost: it takes twice as long as before."),
            Mistake(lambda: 1.3, "The step takes that long now, if it took 1 before. h is the inverse."),
            Mistake(lambda: _part(0.3, 0.5), "That is h. Multiply by g.", slip="factor-left-out"),
        ),
        right="Right: a small loss, in spite of a gain of a quarter.",
    ),
    Check(
        key="intro.weak-efficiency",
        title="Too few tokens",
        answer=lambda: _too_few(1000),
        difficulty=3,
        hints=(
            "Which is longer with 1,000 tokens per chip: the backward pass or the AllReduce?",
            "One chip: 6Pb/C. Many chips: 2Pb/C + 4P/W. P cancels, and C/W is 1,970.",
        ),
        mistakes=(
            Mistake(lambda: 1000 / 1970, "The forward pass is there too, and nothing hides behind it."),
            Mistake(
                lambda: 6 / (6 + 4 * 1.97),
                "Full overlap: the AllReduce replaces the backward pass, it does not follow.",
            ),
        ),
        right="Right. Weak scaling below C/W loses at once, and then no more.",
    ),
)
