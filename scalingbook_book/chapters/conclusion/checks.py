"""Checks of exercises that apply the whole book to models and chips that it has not treated.

The last two are capstones. Their answers are the step times of the best plans that the planner's search
found, which a test repeats, because a reader's browser would have to wait for the search.
"""

from dataclasses import replace
from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import calibrated, inference, models, training
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.steps import limits
from scalingbook_lib.units import INT8

M405, M70, M8, FALCON, QWEN, V3 = (
    models.find(name)
    for name in ("Llama 3.1 405B", "Llama 3 70B", "Llama 3 8B", "Falcon 40B", "Qwen3 30B-A3B", "DeepSeek-V3")
)
NEW = replace(
    chips.H100, name="a new chip", bf16_flops_per_s=2e15, hbm_bytes_per_s=8e12,
    link_bytes_per_s=5e11 / chips.H100.links, domain_chips=64, dcn_bytes_per_s=5e10,
)  # fmt: skip
FOUR, CUBE, SERVER = Slice.of(chips.V6E, "2x2"), Slice.of(chips.V5P, "4x4x4"), Slice.of(chips.V5E, "4x8")
BEST = training.Plan(fsdp=64, microbatch=2)
SERVING = inference.Layout(tp=16, pp=2, kv_batch=2)


def _chips(bytes_per_parameter: int) -> float:
    return ceil(bytes_per_parameter * M405.params / chips.V5P.hbm_bytes)


def _fits() -> float:
    return inference.largest_batch(FALCON, inference.Layout(tp=4), FOUR, S=4096)


def _run_s(efficiency: training.TrainingEfficiency) -> float:
    pod, plan = Slice.of(chips.V6E, "16x16"), training.Plan(fsdp=256, remat="selective")
    step = training.step(FALCON, pod, plan, batch=512, T=2048, efficiency=efficiency)
    return training.run(step, 1e12).seconds


def train_s(plan: training.Plan = BEST) -> float:
    """Seconds per step of the training capstone under a plan."""
    return training.step(QWEN, CUBE, plan, batch=256, T=4096).total_s


def usd(batch: int = 16, layout: inference.Layout = SERVING) -> float:
    """Dollars per million output tokens in the serving capstone."""
    found = inference.serve(M70, SERVER, layout, P=30_000, G=2_000, batch=batch, policy="chunked")
    return found.usd_per_million()


CHECKS = (
    Check(
        key="conclusion.chips-for-state",
        title="Training state of Llama 3.1 405B",
        answer=lambda: _chips(10),
        unit="chips",
        hints=("A weight in bf16 takes two bytes, and each moment in fp32 takes four.", "A v5p has 95 GiB."),
        mistakes=(
            Mistake(
                lambda: _chips(16),
                "You counted gradients and an fp32 copy, too. Here it is ten bytes per parameter.",
            ),
            Mistake(lambda: _chips(2), "Those are the weights alone. Adam adds two moments."),
        ),
    ),
    Check(
        key="conclusion.tokens-or-experts",
        title="Move the tokens or the experts?",
        answer=lambda: 3 * (V3.experts.F if V3.experts else 0.0),
        unit="tokens",
        hints=("One token's activation has D elements.", "One gated expert has three matrices of D by F."),
        mistakes=(Mistake(2 / 3, "You counted two matrices, but a gated expert has three."),),
        right="Right. No chip has that many tokens for one expert in a decode step, so the tokens move.",
    ),
    Check(
        key="conclusion.cache-fills-chip",
        title="A KV cache that fills a chip",
        answer=lambda: chips.V5E.hbm_bytes / kv_cache(M70, 1, INT8).nbytes,
        unit="tokens",
        hints=(
            "80 layers, 8 heads of 128 elements, keys and values.",
            "Each element takes one byte, and a v5e has 16 GiB.",
        ),
        mistakes=(
            Mistake(2.0, "Both keys and values are stored."),
            Mistake(1 / 8, "Eight query heads share one key-value head, so the cache has 8 heads, not 64."),
        ),
    ),
    Check(
        key="conclusion.training-days",
        title="Days of training",
        answer=lambda: 6 * M8.params * 15e12 / (256 * 0.4 * chips.V6E.bf16_flops_per_s),
        unit="s",
        hints=(
            "Training takes 6 FLOPs per parameter per token.",
            "256 chips of 918 TFLOPs/s reach 40% of their peak.",
        ),
        mistakes=(
            Mistake(1 / 3, "You counted 2 FLOPs, which is the forward pass. The backward pass takes 4 more."),
            Mistake(0.4, "That is the time at peak rates. The chips reach 40% of them."),
        ),
    ),
    Check(
        key="conclusion.tensor-ways",
        title="Tensor parallelism on a new chip",
        answer=lambda: limits.widest_tensor_parallel(Cluster.of(NEW, 64), 16_384).Y,
        unit="chips",
        difficulty=2,
        hints=("What is C/W inside the domain?", "Divide F by that, and round down to a power of two."),
        mistakes=(
            Mistake(2.0, "At this degree, the collectives take longer than the compute."),
            Mistake(
                lambda: NEW.domain_chips or 0,
                "That is the size of the domain. At such a degree, the collectives are not hidden.",
            ),
        ),
    ),
    Check(
        key="conclusion.data-ways",
        title="Data parallelism on a new chip",
        answer=lambda: limits.data_parallel(Cluster.of(NEW, 512)).least,
        unit="tokens",
        difficulty=2,
        hints=(
            "Which takes longer: the transfers through the switch within a domain, or those through all "
            "of its 64 NICs together?",
            "Within its domain, a chip receives 63 of 64 parts.",
        ),
        mistakes=(
            Mistake(
                lambda: NEW.bf16_flops_per_s / (NEW.dcn_bytes_per_s or 1),
                "The 64 NICs of a domain share the traffic between domains.",
            ),
        ),
    ),
    Check(
        key="conclusion.sequences-that-fit",
        title="Serving Falcon 40B on four chips",
        answer=_fits,
        unit="sequences",
        difficulty=2,
        hints=(
            "How much memory do four v6e have left after the weights in bf16?",
            "The KV cache of a token has 2 · L · K · H elements: 60 layers, 8 heads of 64.",
        ),
        mistakes=(
            Mistake(FALCON.K / FALCON.N, "The cache has 8 heads, not 128."),
            Mistake(2.0, "An element of the cache takes two bytes, and there are both keys and values."),
        ),
    ),
    Check(
        key="conclusion.trillion-tokens",
        title="Training Falcon 40B on a trillion tokens",
        answer=lambda: _run_s(calibrated.training(chips.V6E)),
        unit="s",
        difficulty=2,
        hints=(
            "A step of 2²⁰ tokens takes 2.51 s at calibrated efficiencies.",
            "How many such steps do 10¹² tokens take? Give a unit, as in '10 days'.",
        ),
        mistakes=(Mistake(lambda: _run_s(training.PEAK), "That is the time at peak rates."),),
    ),
    Check(
        key="conclusion.plan-with-experts",
        title="Capstone: train a mixture-of-experts model",
        answer=train_s,
        unit="s",
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "With FSDP, all weights of this model fit on 64 chips. Do you need expert parallelism at all?",
            "Each chip has four sequences. How many of them fit in one microbatch?",
        ),
        mistakes=(
            Mistake(
                lambda: train_s(training.Plan(fsdp=64, ep=16)),
                "The all-to-all of the experts is exposed. Try a lower degree of expert parallelism.",
            ),
            Mistake(
                lambda: train_s(training.Plan(fsdp=64)),
                "The weights are gathered for every microbatch. Is there enough memory for larger ones?",
            ),
            Mistake(
                lambda: 6 * QWEN.active_params * 2**20 / (CUBE.chips * chips.V5P.bf16_flops_per_s),
                "That is the time of the compute alone, at 6 · P FLOPs per token.",
            ),
        ),
        right="Right: the planner finds no faster plan.",
    ),
    Check(
        key="conclusion.cheapest-server",
        title="Capstone: the cheapest server that meets a deadline",
        answer=usd,
        unit="USD",
        difficulty=3,
        rel_tol=0.03,
        hints=(
            "The weights take 141 GB of 32 chips with 17 GB each. How many caches of 32,000 tokens fit?",
            "`planner.serve(...).best` is the cheapest plan, and `itl_s=0.03` excludes slower ones.",
        ),
        mistakes=(
            Mistake(lambda: usd(8), "Twice as many sequences still meet the deadline."),
            Mistake(
                lambda: usd(1, inference.Layout(tp=32, rows=4, kv_sequence=4)),
                "That is the price of one sequence at a time, the fastest and most expensive plan.",
            ),
        ),
    ),
)
