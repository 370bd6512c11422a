"""Checks of the chapter on training Llama 3: from a model configuration to the bill."""

from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules, training
from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.models import arithmetic

_M8, _M70, _M405 = (models.find(f"Llama 3 {size}") for size in ("8B", "70B", "405B"))
_POD = Slice.of(chips.V5P, "16x20x28")
_TOKENS = 15e12
_HOURS_8B = next(run for run in WHOLE_RUNS if run.name == "Llama-3.1-8B")
_YEARS = 5.8 * 365.25 * 86400


def _least(arrays: float, nbytes: float) -> float:
    return ceil(rules.pooled(_M8, 2**20, arrays=arrays).chips(nbytes))


def _pods(mfu: float, days: float = 60) -> float:
    flops = 6 * _M70.params * _TOKENS
    return ceil(flops / (days * 86400 * chips.V6E.bf16_flops_per_s * mfu) / 256)


def _more(causal: bool) -> float:
    return arithmetic.training_flops(_M70, 1, 131_072, causal=causal).total / (6 * _M70.params)


def _interval(n: float, save_s: float = 30.0) -> float:
    return rules.goodput(save_s, _YEARS / n, 0).best_s


CHECKS = (
    Check(
        key="training_llama3.chips-in-plan",
        title="Chips used by a plan",
        answer=lambda: 1024 * 2 * 4,
        unit="chips",
        hints=(
            "Each chip has one position along each of three mesh axes.",
            "The degrees multiply.",
        ),
        mistakes=(
            Mistake(lambda: 8960, "That is the whole pod, but the plan does not use all of its chips."),
            Mistake(lambda: 1024 + 2 + 4, "You added the degrees. They have to be multiplied."),
        ),
        right="Right. The rest of the pod would be idle.",
    ),
    Check(
        key="training_llama3.count-parameters",
        title="Parameters of Llama 3.1 405B",
        answer=lambda: _M405.params,
        rel_tol=0.002,
        hints=(
            "Count three matrices for the MLP, four for attention, and two for the vocabulary.",
            "Keys and values have only 8 heads.",
        ),
        mistakes=(
            Mistake(
                lambda: _M405.params - _M405.L * _M405.D * _M405.F,
                "The MLP is gated, so it has three matrices in each layer.",
            ),
            Mistake(
                lambda: _M405.params + 2 * _M405.L * _M405.D * (_M405.N - _M405.K) * _M405.H,
                "Keys and values have 8 heads, which is fewer than the queries have.",
            ),
            Mistake(
                lambda: _M405.params - _M405.V * _M405.D,
                "In this model, the embedding and the unembedding are two separate matrices.",
            ),
        ),
    ),
    Check(
        key="training_llama3.training-days",
        title="Training time of the 405B model on eight pods",
        answer=lambda: training.run_at(_M405, _POD, _TOKENS, mfu=0.4, pods=8).seconds,
        unit="s",
        rel_tol=0.01,
        hints=(
            "Divide 6 · P · tokens by the FLOPs that all chips together perform per second at an MFU of 40%.",
            "A pod has 8,960 chips. You can answer with a unit, as in '10 days'.",
        ),
        mistakes=(
            Mistake(8.0, "That is the time on a single pod. There are eight pods.", slip="one-for-total"),
            Mistake(
                0.4,
                "That is the time at the peak rate, of which the chips reach 40%.",
                slip="factor-left-out",
            ),
            Mistake(
                1 / 3,
                "2 · P per token is the forward pass alone. Add the backward pass.",
                slip="forward-only",
            ),
        ),
    ),
    Check(
        key="training_llama3.mfu-from-hours",
        title="MFU of Llama 3.1 8B from its GPU hours",
        answer=lambda: 6 * _M8.params * _TOKENS / (_HOURS_8B.chip_hours * 3600 * chips.H100.bf16_flops_per_s),
        rel_tol=0.02,
        hints=(
            "How many FLOPs could the GPUs have performed in these hours?",
            "The useful FLOPs are 6 · P · tokens. An hour has 3,600 seconds.",
        ),
        mistakes=(
            Mistake(0.5, "An H100 performs 989 TFLOPs/s in bf16. Twice that is the rate with sparsity."),
            Mistake(1 / 3, "Training takes 6 · P FLOPs per token, not 2 · P."),
        ),
        right="Right. The hours on a bill include more than the steps of one run.",
    ),
    Check(
        key="training_llama3.state-and-activations",
        title="The minimum number of v6e chips for the 8B model",
        answer=lambda: _least(4, chips.V6E.hbm_bytes),
        unit="chips",
        difficulty=2,
        hints=(
            "Count ten bytes per parameter, and eight bytes for each of the L · B · D elements.",
            "The batch has 2²⁰ tokens. A v6e has 32 GiB.",
        ),
        mistakes=(
            Mistake(
                lambda: ceil(10 * _M8.params / chips.V6E.hbm_bytes),
                "That is enough for the state alone. The activations are the larger part.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: _least(2, chips.V6E.hbm_bytes),
                "An element in bf16 takes two bytes.",
                slip="wrong-dtype-size",
            ),
        ),
    ),
    Check(
        key="training_llama3.fsdp-batch",
        title="The smallest batch for FSDP alone",
        answer=lambda: rules.data_parallel_tokens(chips.V5P, axes=3) * _POD.chips,
        unit="tokens",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many tokens per chip does FSDP need on a torus with three axes?",
            "Divide C by the bandwidth of six links, two per axis. Each carries 100 GB/s in one direction.",
        ),
        mistakes=(
            Mistake(
                1 / 0.9,
                "That is for 90% of the link rate. Use the documented rate.",
                slip="wrong-rate",
            ),
            Mistake(3.0, "Three axes together have three times the bandwidth of one.", slip="axis-left-out"),
            Mistake(2.0, "On a ring, each chip has two links, and both are used.", slip="one-direction"),
            Mistake(
                lambda: rules.data_parallel_tokens(chips.V5P, axes=3),
                "That is the number for one chip. The pod has 8,960.",
                slip="one-for-total",
            ),
        ),
    ),
    Check(
        key="training_llama3.best-split",
        title="The best FSDP degree for the 405B model",
        answer=lambda: rules.best_fsdp_degree(2**21, _POD.chips, _M405.F),
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "At the best degrees, the communication of FSDP takes as long as that of TP.",
            "X = √(B/F · n_X/n_Y · n), where B is the number of tokens of one pod.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.best_fsdp_degree(2**24, _POD.chips, _M405.F),
                "Each pod has an eighth of the tokens.",
            ),
            Mistake(2**-0.5, "FSDP uses two torus axes, and TP uses one."),
            Mistake(
                lambda: _POD.chips / rules.best_fsdp_degree(2**21, _POD.chips, _M405.F),
                "That is the TP degree.",
            ),
        ),
    ),
    Check(
        key="training_llama3.factor-of-five",
        title="Absorbing a factor of five",
        answer=lambda: "pipeline",
        choices=("tensor", "data", "context", "pipeline"),
        difficulty=2,
        hints=(
            "Each degree has to divide something: heads, sequences, tokens of a sequence, or layers.",
            "Which of the numbers 64, 1,024, 4,096 and 80 is divisible by 5?",
        ),
        mistakes=(
            Mistake("tensor", "Five does not divide 64 heads."),
            Mistake("data", "Five does not divide 1,024 sequences."),
            Mistake("context", "Five does not divide 4,096 tokens."),
        ),
        right="Right. 80 layers are divisible by 5. The cost is a pipeline bubble.",
    ),
    Check(
        key="training_llama3.faster-arithmetic",
        title="Twice the compute rate",
        answer=lambda: 4.0,
        difficulty=2,
        hints=(
            "The limit of FSDP combined with TP is r² / (n_X n_Y F).",
            "What happens to r if C doubles, while the links and the bytes stay the same?",
        ),
        mistakes=(
            Mistake(
                0.5,
                "That is the factor for FSDP alone, whose limit is proportional to r. Here, r is squared.",
                slip="squared-left-out",
            ),
        ),
        right="Right. A higher compute rate raises this limit twice, once for each kind of communication.",
    ),
    Check(
        key="training_llama3.checkpoint-interval",
        title="The best checkpoint interval",
        answer=lambda: _interval(8192),
        unit="s",
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "How often does one of the 8,192 chips fail, if each of them lasts 5.8 years on average?",
            "The best interval is the square root of 2 · (time to save) · (time between failures).",
        ),
        mistakes=(
            Mistake(2**-0.5, "The factor 2 under the square root is missing."),
            Mistake(lambda: _interval(1), "That is the interval for a single chip."),
        ),
    ),
    Check(
        key="training_llama3.pods-for-deadline",
        title="Pods for a deadline of sixty days",
        answer=lambda: _pods(0.44),
        unit="pods",
        difficulty=3,
        hints=(
            "How many chips, each at 44% of 918 TFLOPs/s, perform 6 · P · tokens FLOPs in sixty days?",
            "A pod of v6e has 256 chips, and you need a whole number of pods.",
        ),
        mistakes=(
            Mistake(lambda: _pods(1.0), "That is for the peak rate. The chips reach only 44% of it."),
            Mistake(lambda: _pods(0.44) * 256, "That is the number of chips. Each pod has 256 of them."),
        ),
    ),
    Check(
        key="training_llama3.long-sequences",
        title="Beyond 6P: sequences of 131,072 tokens",
        answer=lambda: _more(True),
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "The matmuls with scores take 12 · L · T · N · H FLOPs per token, half with a causal kernel.",
            "The embedding is only looked up, so it takes none of the FLOPs that 6P counts for it.",
        ),
        mistakes=(
            Mistake(lambda: _more(False), "A causal kernel skips half of the pairs."),
            Mistake(
                lambda: _more(True) - 1,
                "That counts only the FLOPs beyond 6P. Divide all FLOPs by 6P.",
            ),
        ),
    ),
)
