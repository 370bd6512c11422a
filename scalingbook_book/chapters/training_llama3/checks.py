"""Can a reader plan a training run, from a configuration to the bill? Checks of the chapter on LLaMA 3."""

from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules, training
from scalingbook_lib.evidence.measured.whole_runs import WHOLE_RUNS
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.models import arithmetic

_M8, _M70, _M405 = (models.find(f"LLaMA-3 {size}") for size in ("8B", "70B", "405B"))
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
        title="How many chips has the plan?",
        answer=lambda: 1024 * 2 * 4,
        unit="chips",
        hints=("Every chip has one place in each of the three ways.", "The ways multiply."),
        mistakes=(
            Mistake(lambda: 8960, "That is the pod. The plan does not use all of it."),
            Mistake(lambda: 1024 + 2 + 4, "Ways multiply."),
        ),
        right="Right, and the rest of the pod would be idle.",
    ),
    Check(
        key="training_llama3.count-parameters",
        title="The largest of the three",
        answer=lambda: _M405.params,
        rel_tol=0.002,
        hints=(
            "Three matrices of the MLP, four of attention, two for the vocabulary.",
            "Keys and values have 8 heads only.",
        ),
        mistakes=(
            Mistake(
                lambda: _M405.params - _M405.L * _M405.D * _M405.F,
                "The MLP is gated: three matrices in each layer.",
            ),
            Mistake(
                lambda: _M405.params + 2 * _M405.L * _M405.D * (_M405.N - _M405.K) * _M405.H,
                "Keys and values have 8 heads, not as many as the queries.",
            ),
            Mistake(
                lambda: _M405.params - _M405.V * _M405.D,
                "Embedding and unembedding are two matrices in this model.",
            ),
        ),
    ),
    Check(
        key="training_llama3.training-days",
        title="Eight pods",
        answer=lambda: training.run_at(_M405, _POD, _TOKENS, mfu=0.4, pods=8).seconds,
        unit="s",
        rel_tol=0.01,
        hints=(
            "6 · P · tokens, over what all the chips do in a second at 40%.",
            "A pod has 8,960 chips. Give a unit, as in '10 days'.",
        ),
        mistakes=(
            Mistake(8.0, "There are eight pods.", slip="one-for-total"),
            Mistake(0.4, "That is at the peak; only 40% of it is reached.", slip="factor-left-out"),
            Mistake(1 / 3, "Forward is 2 · P, forward and backward together 6 · P.", slip="forward-only"),
        ),
    ),
    Check(
        key="training_llama3.mfu-from-hours",
        title="The bill of the smallest",
        answer=lambda: 6 * _M8.params * _TOKENS / (_HOURS_8B.chip_hours * 3600 * chips.H100.bf16_flops_per_s),
        rel_tol=0.02,
        hints=(
            "How many FLOPs could the GPUs have done in these hours?",
            "Useful FLOPs are 6 · P · tokens. An hour has 3,600 seconds.",
        ),
        mistakes=(
            Mistake(0.5, "Without sparsity an H100 does 989 TFLOPs/s in bf16; twice that is with it."),
            Mistake(1 / 3, "Training takes 6 · P for each token, not 2 · P."),
        ),
        right="Right: hours on a bill are more than the steps of one run.",
    ),
    Check(
        key="training_llama3.state-and-activations",
        title="How few v6e for the 8B model",
        answer=lambda: _least(4, chips.V6E.hbm_bytes),
        unit="chips",
        difficulty=2,
        hints=(
            "Ten bytes a parameter, and eight bytes for each of L · B · D.",
            "A million tokens here are 2²⁰. A v6e has 32 GiB.",
        ),
        mistakes=(
            Mistake(
                lambda: ceil(10 * _M8.params / chips.V6E.hbm_bytes),
                "That is for the state alone; the activations are the larger part.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: _least(2, chips.V6E.hbm_bytes),
                "An element in bf16 is two bytes.",
                slip="wrong-dtype-size",
            ),
        ),
    ),
    Check(
        key="training_llama3.fsdp-batch",
        title="The batch that FSDP asks for",
        answer=lambda: rules.data_parallel_tokens(chips.V5P, axes=3) * _POD.chips,
        unit="tokens",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "From how many tokens on each chip is FSDP hidden on a torus of three axes?",
            "C over both links of three axes, with the documented 100 GB/s a link in one direction.",
        ),
        mistakes=(
            Mistake(1 / 0.9, "That is at 90% of the link rate; take the documented one.", slip="wrong-rate"),
            Mistake(3.0, "Three axes carry three times the traffic of one.", slip="axis-left-out"),
            Mistake(2.0, "A ring has two links on each chip, and both are used.", slip="one-direction"),
            Mistake(
                lambda: rules.data_parallel_tokens(chips.V5P, axes=3),
                "That is for one chip; the pod has 8,960.",
                slip="one-for-total",
            ),
        ),
    ),
    Check(
        key="training_llama3.best-split",
        title="The best split of the 405B model",
        answer=lambda: rules.best_fsdp_degree(2**21, _POD.chips, _M405.F),
        unit="data ways",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "The ratios of FSDP and of TP to the arithmetic are equal at the best split.",
            "X = √(B/F · n_X/n_Y · n), with the tokens of one pod for B.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.best_fsdp_degree(2**24, _POD.chips, _M405.F), "Each pod has an eighth of them."
            ),
            Mistake(2**-0.5, "Two torus axes carry the data ways, one the tensor ways."),
            Mistake(
                lambda: _POD.chips / rules.best_fsdp_degree(2**21, _POD.chips, _M405.F),
                "Those are the tensor ways.",
            ),
        ),
    ),
    Check(
        key="training_llama3.factor-of-five",
        title="A place for the five",
        answer=lambda: "stages",
        choices=("tensor ways", "data ways", "context ways", "stages"),
        difficulty=2,
        hints=(
            "Each kind of ways must divide something: heads, sequences, tokens of a sequence, or layers.",
            "Which of 64, 1,024, 4,096 and 80 does 5 divide?",
        ),
        mistakes=(
            Mistake("tensor ways", "Five does not divide 64 heads."),
            Mistake("data ways", "Five does not divide 1,024 sequences."),
            Mistake("context ways", "Five does not divide 4,096 tokens."),
        ),
        right="Right: 80 layers are 5 times 16. What that costs is a bubble.",
    ),
    Check(
        key="training_llama3.faster-arithmetic",
        title="Arithmetic twice as fast",
        answer=lambda: 4.0,
        difficulty=2,
        hints=(
            "The limit of FSDP with TP is r² / (n_X n_Y F).",
            "What does a doubled C do to r, when the links and the bytes stay?",
        ),
        mistakes=(
            Mistake(
                0.5,
                "That is FSDP alone, where r enters once. Here it enters squared.",
                slip="squared-left-out",
            ),
        ),
        right="Right: faster arithmetic hurts the mixed limit twice, once for each kind of traffic.",
    ),
    Check(
        key="training_llama3.checkpoint-interval",
        title="When to write",
        answer=lambda: _interval(8192),
        unit="s",
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "How often does one of 8,192 chips fail, if each lasts 5.8 years on average?",
            "The best interval is the root of twice the time of a checkpoint times that between failures.",
        ),
        mistakes=(
            Mistake(2**-0.5, "The factor 2 under the root is missing."),
            Mistake(lambda: _interval(1), "That is for a run on a single chip."),
        ),
    ),
    Check(
        key="training_llama3.pods-for-deadline",
        title="Sixty days",
        answer=lambda: _pods(0.44),
        unit="pods",
        difficulty=3,
        hints=(
            "How many chips at 44% of 918 TFLOPs/s do 6 · P · tokens in sixty days?",
            "A pod of v6e has 256 chips, and pods come whole.",
        ),
        mistakes=(
            Mistake(lambda: _pods(1.0), "That is at the peak; 44% of it is reached."),
            Mistake(lambda: _pods(0.44) * 256, "Those are chips; a pod has 256."),
        ),
    ),
    Check(
        key="training_llama3.long-sequences",
        title="Where 6P ends",
        answer=lambda: _more(True),
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "Scores and weighted values: 12 · L · T · N · H FLOPs a token, half where the mask is skipped.",
            "The embedding is looked up and takes none of the FLOPs that 6P counts for it.",
        ),
        mistakes=(
            Mistake(lambda: _more(False), "A causal kernel skips half of the pairs."),
            Mistake(lambda: _more(True) - 1, "That is what comes on top of it; asked is the whole over 6P."),
        ),
    ),
)
