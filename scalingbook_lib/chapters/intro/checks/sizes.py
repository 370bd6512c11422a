"""How long, how much, how many? Checks of the introduction, on one chip and its data."""

from math import ceil

from scalingbook_lib.machines import chips
from scalingbook_lib.reader.checks.check import Check, Mistake
from scalingbook_lib.units import BF16, GB, INT8, GiB

_LLAMA_70B = 70e9 * BF16.bytes  # bytes of its weights in bf16
_CACHE = 2 * 80 * 8 * 128 * BF16.bytes  # bytes a token: key and value, 80 layers, 8 heads of 128


def _run_s() -> float:
    """70e9 parameters, 15e12 tokens, a whole v5p pod at 40% of its peak."""
    pod_flops_per_s = 8960 * chips.V5P.bf16_flops_per_s
    return 6 * 70e9 * 15e12 / (0.4 * pod_flops_per_s)


SIZES = (
    Check(
        key="intro.compute-time",
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
        key="intro.read-weights",
        title="Reading a large model once",
        answer=lambda: 200e9 * BF16.bytes / (32 * chips.V4.hbm_bytes_per_s),
        unit="s",
        hints=(
            "How many bytes are 200 billion bf16 parameters, and how many of them does one chip hold?",
            "Every chip reads its share at 1.2 TB/s, all at the same time.",
        ),
        mistakes=(
            Mistake(
                32.0,
                "One chip would need that long for all of it. There are 32, and all read at once.",
                slip="total-for-one",
            ),
            Mistake(0.5, "An element of bf16 takes two bytes.", slip="wrong-dtype-size"),
        ),
        rel_tol=0.05,
        right="Right. No decoding step of this model is faster on these chips, at whatever batch.",
    ),
    Check(
        key="intro.cache-size",
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
        key="intro.network-card",
        title="A network card",
        answer=lambda: 140 * GB / (400e9 / 8),
        unit="s",
        hints=("Gb is not GB.", "400 Gb/s are 50 GB/s."),
        right="Right. On the wire, b is a bit.",
    ),
    Check(
        key="intro.parameters-that-fit",
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
        right="Right: 7% more than the round number suggests.",
    ),
    Check(
        key="intro.strong-or-weak",
        title="Which scaling?",
        answer=lambda: "weak scaling at 90%",
        choices=(
            "strong scaling at 90%",
            "weak scaling at 90%",
            "strong scaling at 180%",
            "neither: the batch changed, so nothing can be compared",
        ),
        hints=(
            "Is the work the same, or the work per chip?",
            "Then compare the two times of a step: without loss they would be equal.",
        ),
        mistakes=(
            Mistake("strong scaling at 90%", "For strong scaling the batch would have to stay as it was."),
            Mistake(
                "strong scaling at 180%",
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
        key="intro.training-days",
        title="A training run",
        answer=_run_s,
        unit="s",
        difficulty=2,
        hints=(
            "Training takes 6 FLOPs for each parameter and token.",
            "The pod's rate is 8,960 · 4.59e14 FLOPs/s, and 40% of it is used.",
        ),
        mistakes=(
            Mistake(0.4, "That is at the full peak; 40% of it is used, so it takes longer."),
            Mistake(0.16, "The 40% belongs in the denominator: lower utilization, longer run."),
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
        key="intro.fewest-chips",
        title="The fewest chips",
        answer=lambda: ceil(_LLAMA_70B / chips.V5E.hbm_bytes),
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
)
