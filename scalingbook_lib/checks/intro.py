"""Can a reader answer the day-one questions with a pocket calculator? Checks of the introduction."""

from math import ceil

from scalingbook_lib import chips, collectives, scaling
from scalingbook_lib.checks.check import Check, Mistake
from scalingbook_lib.units import BF16, GB, INT8, GiB

_LLAMA_70B = 70e9 * BF16.bytes  # bytes of its weights in bf16
_CACHE = 2 * 80 * 8 * 128 * BF16.bytes  # bytes a token: key and value, 80 layers, 8 heads of 128


def _run_s() -> float:
    """70e9 parameters, 15e12 tokens, a whole v5p pod at 40 % of its peak."""
    pod_flops_per_s = 8960 * chips.V5P.bf16_flops_per_s
    return 6 * 70e9 * 15e12 / (0.4 * pod_flops_per_s)


def _fewest() -> int:
    return ceil(_LLAMA_70B / chips.V5E.hbm_bytes)


def _gradients_s() -> float:
    return collectives.all_reduce(_LLAMA_70B, chips.V5P.axis(16)).textbook_s


def _hops_count() -> float:
    """2 · n/2 hops of α take as long as 2 M / W."""
    ring = chips.V5P.axis(16)
    return collectives.all_reduce(10e6 * BF16.bytes, ring).textbook_s / ring.hop_s


def _part(share: float, loss: float) -> float:
    return 1 / (1 - share + share / (1 - loss))


def _too_few(tokens: float) -> float:
    need = scaling.tokens_per_chip(chips.V5E)
    return 6 * tokens / (2 * tokens + 4 * max(need, tokens))


CHECKS = (
    Check(
        key="intro.1",
        title="A trillion FLOPs",
        answer=lambda: 1e12 / chips.V6E.bf16_flops_per_s,
        unit="s",
        hints=("Time is work over rate.", "TPU v6e does 918 TFLOPs/s in bf16, that is 9.18e14."),
        mistakes=(
            Mistake(
                lambda: 1e12 / chips.H100.bf16_flops_per_s,
                "An H100 takes that long. The question is about TPU v6e.",
            ),
            Mistake(
                lambda: 1e12 / chips.V6E.flops_per_s(INT8), "That is the int8 rate; bf16 runs at half of it."
            ),
        ),
        right="Right: about a millisecond, and an H100 takes about as long.",
    ),
    Check(
        key="intro.2",
        title="Reading a large model once",
        answer=lambda: 200e9 * BF16.bytes / (32 * chips.V4.hbm_bytes_per_s),
        unit="s",
        hints=(
            "How many bytes are 200 billion bf16 parameters, and how many of them does one chip hold?",
            "Every chip reads its share at 1.2 TB/s, all at the same time.",
        ),
        mistakes=(
            Mistake(32.0, "One chip would need that long for all of it. There are 32, and all read at once."),
            Mistake(0.5, "An element of bf16 takes two bytes."),
        ),
        rel_tol=0.05,
        right="Right. No decoding step of this model is faster on these chips, at whatever batch.",
    ),
    Check(
        key="intro.3",
        title="The cache of one conversation",
        answer=lambda: 8192 * _CACHE,
        unit="B",
        hints=(
            "For every token, every layer keeps a key and a value for each of its 8 key/value heads.",
            "2 · L · K · H elements a token, 2 bytes each, times the tokens.",
        ),
        mistakes=(
            Mistake(8.0, "64 query heads share 8 key/value heads; only the latter are cached."),
            Mistake(
                0.5, "A two is missing: there are a key and a value, and a bf16 element takes two bytes."
            ),
            Mistake(1 / 8, "One key/value head, and there are 8."),
            Mistake(1 / 80, "One layer, and there are 80."),
            Mistake(1 / 8192, "That is one token. The sequence has 8,192."),
        ),
        right="Right: a v5e could keep six such sequences and no weights.",
    ),
    Check(
        key="intro.4",
        title="A network card",
        answer=lambda: 140 * GB / (400e9 / 8),
        unit="s",
        hints=("Gb is not GB.", "400 Gb/s are 50 GB/s."),
        right="Right. On the wire, b is a bit.",
    ),
    Check(
        key="intro.5",
        title="Sixteen gibibytes of weights",
        answer=lambda: 16 * GiB / BF16.bytes,
        unit="",
        hints=("16 GiB are 16 · 2^30 bytes.", "An element of bf16 takes two of them."),
        mistakes=(
            Mistake(
                lambda: 16 * GB / BF16.bytes, "That is 16 GB. Memories are counted in powers of two: GiB."
            ),
            Mistake(2.0, "That is the number of bytes; an element of bf16 takes two."),
            Mistake(lambda: 16 * GB, "Those are bytes, and of 16 GB. Ask for parameters, in 16 GiB."),
        ),
        right="Right: 7 % more than the round number suggests.",
    ),
    Check(
        key="intro.6",
        title="Which scaling?",
        answer=lambda: "weak scaling at 90 %",
        choices=(
            "strong scaling at 90 %",
            "weak scaling at 90 %",
            "strong scaling at 180 %",
            "neither: the batch changed, so nothing can be compared",
        ),
        hints=(
            "Is the work the same, or the work per chip?",
            "Then compare the two times of a step: without loss they would be equal.",
        ),
        mistakes=(
            Mistake("strong scaling at 90 %", "For strong scaling the batch would have to stay as it was."),
            Mistake(
                "strong scaling at 180 %",
                "1.8 is how much the throughput grew. The chips doubled: efficiency divides by that.",
            ),
            Mistake(
                "neither: the batch changed, so nothing can be compared",
                "It can: the batch grew with the chips, which is one of the two regimes.",
            ),
        ),
        right="Right: the work per chip stayed, and the step takes 1/0.9 of the time.",
    ),
    Check(
        key="intro.7",
        title="A training run",
        answer=_run_s,
        unit="s",
        difficulty=2,
        hints=(
            "Training takes 6 FLOPs for each parameter and token.",
            "The pod's rate is 8,960 · 4.59e14 FLOPs/s, and 40 % of it is used.",
        ),
        mistakes=(
            Mistake(0.4, "That is at the full peak; 40 % of it is used, so it takes longer."),
            Mistake(0.16, "The 40 % belongs in the denominator: lower utilization, longer run."),
            Mistake(
                1 / 86400,
                "Days, it seems. A bare number is read as seconds: write the unit, as in '10 days'.",
            ),
            Mistake(8960.0, "One chip alone would need that long."),
            Mistake(1 / 3, "Two FLOPs are the forward pass alone. The backward pass needs four more."),
        ),
        right="Right: 44 days.",
    ),
    Check(
        key="intro.8",
        title="The fewest chips",
        answer=_fewest,
        unit="chips",
        difficulty=2,
        hints=("70 billion bf16 parameters are 140 GB.", "A TPU v5e has 16 GiB; a chip cannot be cut."),
        mistakes=(
            Mistake(lambda: 8, "8 chips hold 137 GB, which is not enough."),
            Mistake(lambda: _LLAMA_70B / chips.V5E.hbm_bytes, "Chips come whole: round up."),
            Mistake(lambda: _LLAMA_70B / (16 * GB), "Chips come whole, and each holds 16 GiB, not 16 GB."),
            Mistake(
                lambda: 16, "16 is the next slice that can be had. The question asks what capacity demands."
            ),
            Mistake(lambda: 5, "An element of bf16 takes two bytes."),
            Mistake(lambda: 17, "An element of bf16 takes two bytes, not four."),
        ),
        right="Right. A slice of 9 does not exist; the next is 4x4, and the rest of its memory holds caches.",
        rel_tol=1e-3,
    ),
    Check(
        key="intro.9",
        title="Summing the gradients",
        answer=_gradients_s,
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
            Mistake(
                1 / 0.9, "That is with the reference's 90 GB/s a link; this book takes the documented 100."
            ),
        ),
        right="Right: more than a second, for every step, unless something hides it.",
    ),
    Check(
        key="intro.10",
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
        right="Right: 43 % more quality, as compute, for 30 % less efficiency.",
    ),
    Check(
        key="intro.11",
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
                lambda: scaling.knee(2**24, chips.TPU7X), "That is one axis. All three carry gradients here."
            ),
            Mistake(
                lambda: 1 + 2**24 * 3e11 / chips.TPU7X.bf16_flops_per_s,
                "One direction only: a ring brings data in from both sides.",
            ),
            Mistake(
                lambda: scaling.knee(2**24, chips.V5P, axes=3),
                "That is v5p. TPU7x has five times its arithmetic on the same links.",
            ),
            Mistake(
                lambda: scaling.tokens_per_chip(chips.TPU7X, axes=3),
                "That many tokens each chip needs. How many such shares are in the batch?",
            ),
        ),
        right="Right. On v5p it would be five times as many: arithmetic grew, and the links did not.",
    ),
    Check(
        key="intro.12",
        title="The most that chips can buy",
        answer=lambda: 1.5 * 2**20 / scaling.tokens_per_chip(chips.V5E),
        difficulty=3,
        hints=(
            "With more and more chips the arithmetic goes to nothing. What is left of the step?",
            "Divide the step on one chip, 6PB/C, by the AllReduce, 4P/W.",
        ),
        mistakes=(
            Mistake(1 / 1.5, "That is the knee. Beyond it the forward pass still shrinks."),
            Mistake(2.0, "Both axes? The question has one."),
            Mistake(0.5, "One direction only? A ring brings data in from both sides."),
            Mistake(0.9, "With the reference's 45 GB/s a link? This book takes the documented 50."),
        ),
        right="Right: 1.5 times the knee, for every model.",
    ),
    Check(
        key="intro.13",
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
            Mistake(0.5, "Half. Are the hops n and not 2n, and do the bytes count for both passes?"),
            Mistake(2.0, "Twice. Are the hops n and not n/2, and does the ring bring bytes from both sides?"),
            Mistake(1 / 0.9, "With the reference's 90 GB/s a link? This book takes the documented 100."),
        ),
        right="Right. With 8 billion parameters it would be 160,000 chips: large models feel no hops.",
    ),
    Check(
        key="intro.14",
        title="A part of the step",
        answer=lambda: 1.25 * _part(0.3, 0.5),
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "How long does the step take after the change, if it took 1 before?",
            "0.7 is untouched, and 0.3 takes twice as long.",
        ),
        mistakes=(
            Mistake(lambda: 1.25 * 0.5, "Only 30 % of the step became slower."),
            Mistake(lambda: 1.25 * 0.85, "Times add, efficiencies do not: 0.7 + 0.3/0.5 is the new time."),
            Mistake(lambda: 1.25 * 0.7, "The part is not lost: it takes twice as long as before."),
            Mistake(lambda: 1.3, "The step takes that long now, if it took 1 before. h is the inverse."),
            Mistake(lambda: _part(0.3, 0.5), "That is h. Multiply by g."),
        ),
        right="Right: a small loss, in spite of a gain of a quarter.",
    ),
    Check(
        key="intro.15",
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
