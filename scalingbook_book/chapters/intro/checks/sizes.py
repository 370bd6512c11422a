"""Checks of the introduction: times, sizes and counts on one chip, or on chips that work independently."""

from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, GB, INT8, GiB

_LLAMA_70B = 70e9 * BF16.bytes  # bytes of its weights in bf16
_CACHE = 2 * 80 * 8 * 128 * BF16.bytes  # bytes per token: key and value, 80 layers, 8 heads of 128


def _run_s() -> float:
    """Seconds to train 70e9 parameters on 15e12 tokens with a whole v5p pod at 40% of its peak."""
    pod_flops_per_s = 8960 * chips.V5P.bf16_flops_per_s
    return 6 * 70e9 * 15e12 / (0.4 * pod_flops_per_s)


SIZES = (
    Check(
        key="intro.compute-time",
        title="A trillion FLOPs",
        answer=lambda: 1e12 / chips.V6E.bf16_flops_per_s,
        unit="s",
        hints=("Divide the work by the rate.", "A TPU v6e performs 918 TFLOPs/s in bf16, which is 9.18e14."),
        mistakes=(
            Mistake(
                lambda: 1e12 / chips.H100.bf16_flops_per_s,
                "That is the time of an H100. The question is about TPU v6e.",
            ),
            Mistake(
                lambda: 1e12 / chips.V6E.flops_per_s(INT8),
                "That uses the int8 rate. In bf16, a v6e runs at half of it.",
            ),
        ),
        right="Right: about a millisecond. An H100 takes about as long.",
    ),
    Check(
        key="intro.read-weights",
        title="Reading a large model once",
        answer=lambda: 200e9 * BF16.bytes / (32 * chips.V4.hbm_bytes_per_s),
        unit="s",
        hints=(
            "How many bytes do 200 billion bf16 parameters take, and how many of those bytes does "
            "one chip hold?",
            "Each chip reads its share at 1.2 TB/s, and all chips read at the same time.",
        ),
        mistakes=(
            Mistake(
                32.0,
                "That is how long one chip would need for all of it. There are 32 chips, and all read at "
                "once.",
                slip="total-for-one",
            ),
            Mistake(0.5, "A bf16 element takes two bytes.", slip="wrong-dtype-size"),
        ),
        rel_tol=0.05,
        right="Right. On these chips, no decode step of this model can be faster, whatever the batch.",
    ),
    Check(
        key="intro.cache-size",
        title="The KV cache of one sequence",
        answer=lambda: 8192 * _CACHE,
        unit="B",
        hints=(
            "For every token, each layer stores a key and a value for each of its 8 key-value heads.",
            "That is 2 · L · K · H elements per token, at 2 bytes each, times the number of tokens.",
        ),
        mistakes=(
            Mistake(
                8.0, "The 64 query heads share 8 key-value heads, and only the key-value heads are cached."
            ),
            Mistake(
                0.5,
                "A factor of two is missing: there is a key and a value, and each bf16 element takes two "
                "bytes.",
            ),
            Mistake(1 / 8, "That is for one key-value head. There are 8."),
            Mistake(1 / 80, "That is for one layer. There are 80."),
            Mistake(1 / 8192, "That is for one token. The sequence has 8,192."),
        ),
        right="Right. A v5e could hold six such sequences, and no weights.",
    ),
    Check(
        key="intro.network-card",
        title="Bits and bytes of a NIC",
        answer=lambda: 140 * GB / (400e9 / 8),
        unit="s",
        hints=("Gb and GB are different units.", "400 Gb/s is 50 GB/s."),
        right="Right. Network rates count bits, and a lowercase b is a bit.",
    ),
    Check(
        key="intro.parameters-that-fit",
        title="Parameters that fit in 16 GiB",
        answer=lambda: 16 * GiB / BF16.bytes,
        unit="",
        hints=("16 GiB is 16 · 2^30 bytes.", "A bf16 element takes two bytes."),
        mistakes=(
            Mistake(
                lambda: 16 * GB / BF16.bytes,
                "That is for 16 GB. Memory sizes are counted in powers of two: GiB.",
            ),
            Mistake(2.0, "That is the number of bytes. A bf16 element takes two of them."),
            Mistake(
                lambda: 16 * GB,
                "That is the number of bytes in 16 GB. The question asks for parameters in 16 GiB.",
            ),
        ),
        right="Right: that is 7% more than the round number suggests.",
    ),
    Check(
        key="intro.strong-or-weak",
        title="Strong or weak scaling?",
        answer=lambda: "weak scaling at 90%",
        choices=(
            "strong scaling at 90%",
            "weak scaling at 90%",
            "strong scaling at 180%",
            "neither: the batch changed, so nothing can be compared",
        ),
        hints=(
            "Does the total work stay the same, or the work per chip?",
            "Then compare the two step times. Without any loss, they would be equal.",
        ),
        mistakes=(
            Mistake("strong scaling at 90%", "For strong scaling, the batch would have to stay the same."),
            Mistake(
                "strong scaling at 180%",
                "1.8 is the factor by which throughput grew. The number of chips doubled, so efficiency "
                "is half of that.",
            ),
            Mistake(
                "neither: the batch changed, so nothing can be compared",
                "They can be compared: the batch grew with the number of chips, which is weak scaling.",
            ),
        ),
        right="Right: the work per chip stayed the same, and the step takes 1/0.9 times as long.",
    ),
    Check(
        key="intro.training-days",
        title="Duration of a training run",
        answer=_run_s,
        unit="s",
        difficulty=2,
        hints=(
            "Training takes 6 FLOPs per parameter per token.",
            "The peak of the pod is 8,960 · 4.59e14 FLOPs/s, and the run reaches 40% of it.",
        ),
        mistakes=(
            Mistake(0.4, "That is at the full peak. The run reaches only 40% of it, so it takes longer."),
            Mistake(
                0.16, "The 40% belongs in the denominator: at a lower utilization, the run takes longer."
            ),
            Mistake(
                1 / 86400,
                "This looks like days. A number without a unit is read as seconds, so write the unit, as "
                "in '10 days'.",
            ),
            Mistake(8960.0, "That is how long a single chip would need."),
            Mistake(
                1 / 3,
                "Two FLOPs per parameter per token cover only the forward pass. The backward pass needs "
                "four more.",
            ),
        ),
        right="Right: 44 days.",
    ),
    Check(
        key="intro.fewest-chips",
        title="The fewest chips that hold a model",
        answer=lambda: ceil(_LLAMA_70B / chips.V5E.hbm_bytes),
        unit="chips",
        difficulty=2,
        hints=(
            "70 billion bf16 parameters take 140 GB.",
            "A TPU v5e has 16 GiB, and you can only use whole chips.",
        ),
        mistakes=(
            Mistake(lambda: 8, "8 chips hold 137 GB, which is not enough."),
            Mistake(lambda: _LLAMA_70B / chips.V5E.hbm_bytes, "You can only use whole chips: round up."),
            Mistake(
                lambda: _LLAMA_70B / (16 * GB),
                "You can only use whole chips, and each holds 16 GiB, not 16 GB.",
            ),
            Mistake(
                lambda: 16,
                "16 chips are the smallest slice you could rent. The question asks only about capacity.",
            ),
            Mistake(lambda: 5, "A bf16 element takes two bytes."),
            Mistake(lambda: 17, "A bf16 element takes two bytes, not four."),
        ),
        right="Right. There is no slice of 9 chips. The next is 4x4, whose remaining memory can "
        "hold KV caches.",
        rel_tol=1e-3,
    ),
)
