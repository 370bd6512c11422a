"""Can a reader put the whole book to work on models and chips that it has not treated?

The last two are capstones. Their answers are steps of plans that the planner's search found best (a test
searches again); a reader's browser would wait for the search.
"""

from dataclasses import replace
from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models, training
from scalingbook_lib.evidence import training as published
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.steps import limits
from scalingbook_lib.units import INT8

M405, M70, M8, FALCON, QWEN, V3 = (
    models.find(name)
    for name in ("LLaMA-3 405B", "LLaMA-3 70B", "LLaMA-3 8B", "Falcon 40B", "Qwen3 30B-A3B", "DeepSeek-V3")
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
    """The step of the training capstone under a plan."""
    return training.step(QWEN, CUBE, plan, batch=256, T=4096).total_s


def usd(batch: int = 16, layout: inference.Layout = SERVING) -> float:
    """The price of a million tokens in the serving capstone."""
    found = inference.serve(M70, SERVER, layout, P=30_000, G=2_000, batch=batch, policy="chunked")
    return found.usd_per_million()


CHECKS = (
    Check(
        key="conclusion.chips-for-state",
        title="State from memory",
        answer=lambda: _chips(10),
        unit="chips",
        hints=("Two bytes for a weight in bf16, four for each moment.", "A v5p has 95 GiB."),
        mistakes=(
            Mistake(
                lambda: _chips(16), "That has gradients and a copy in fp32 as well; ten bytes are asked."
            ),
            Mistake(lambda: _chips(2), "Those are the weights alone; Adam has two moments."),
        ),
    ),
    Check(
        key="conclusion.tokens-or-experts",
        title="Tokens or experts",
        answer=lambda: 3 * (V3.experts.F if V3.experts else 0.0),
        unit="tokens",
        hints=("One token's activation has D elements.", "One gated expert has three matrices of D by F."),
        mistakes=(Mistake(2 / 3, "A gated expert has three matrices."),),
        right="Right: a chip would have to hold that many tokens for one expert, so tokens travel.",
    ),
    Check(
        key="conclusion.cache-fills-chip",
        title="A context from memory",
        answer=lambda: chips.V5E.hbm_bytes / kv_cache(M70, 1, INT8).nbytes,
        unit="tokens",
        hints=("80 layers, 8 heads of 128 elements, keys and values.", "A byte each; a v5e has 16 GiB."),
        mistakes=(
            Mistake(2.0, "Keys and values are two."),
            Mistake(1 / 8, "Eight query heads share one head of the cache: 8 heads, not 64."),
        ),
    ),
    Check(
        key="conclusion.training-days",
        title="Days from memory",
        answer=lambda: 6 * M8.params * 15e12 / (256 * 0.4 * chips.V6E.bf16_flops_per_s),
        unit="s",
        hints=(
            "6 FLOPs for each parameter and token.",
            "256 chips of 918 TFLOPs/s, of which 40% are reached.",
        ),
        mistakes=(
            Mistake(1 / 3, "2 FLOPs are the forward pass; the backward pass takes four more."),
            Mistake(0.4, "That is at the peak of the chips; they reach 40% of it."),
        ),
    ),
    Check(
        key="conclusion.tensor-ways",
        title="Tensor ways of a new chip",
        answer=lambda: limits.widest_tensor_parallel(Cluster.of(NEW, 64), 16_384).Y,
        unit="ways",
        difficulty=2,
        hints=("What is C/W of the fast domain?", "F over that, and only whole ways that divide F."),
        mistakes=(
            Mistake(2.0, "With so many the sums take longer than the arithmetic."),
            Mistake(lambda: NEW.domain_chips or 0, "That is the domain; they fit in it, but are not hidden."),
        ),
    ),
    Check(
        key="conclusion.data-ways",
        title="Data ways of a new chip",
        answer=lambda: limits.data_parallel(Cluster.of(NEW, 512)).least,
        unit="tokens",
        difficulty=2,
        hints=(
            "Which is the slower: NVLink within a domain, or the cards of all its 64 chips together?",
            "A chip of a domain receives 63 parts of 64.",
        ),
        mistakes=(
            Mistake(
                lambda: NEW.bf16_flops_per_s / (NEW.dcn_bytes_per_s or 1),
                "64 chips of a domain share the traffic of the network.",
            ),
        ),
    ),
    Check(
        key="conclusion.sequences-that-fit",
        title="Falcon on four chips",
        answer=_fits,
        unit="sequences",
        difficulty=2,
        hints=(
            "What do four v6e hold beside the weights in bf16?",
            "A token's cache has 2 · L · K · H elements: 60 layers, 8 heads of 64.",
        ),
        mistakes=(
            Mistake(FALCON.K / FALCON.N, "The cache has 8 heads, not 128."),
            Mistake(2.0, "An element of the cache takes two bytes, and keys and values are two."),
        ),
    ),
    Check(
        key="conclusion.trillion-tokens",
        title="A trillion tokens",
        answer=lambda: _run_s(published.calibrated(chips.V6E)),
        unit="s",
        difficulty=2,
        hints=(
            "A step of 2²⁰ tokens takes 2.46 s at calibrated efficiencies.",
            "How many such steps are in 10¹² tokens? Give a unit, as in '10 days'.",
        ),
        mistakes=(Mistake(lambda: _run_s(training.PEAK), "That is at the peaks of the chips."),),
    ),
    Check(
        key="conclusion.plan-with-experts",
        title="Capstone: train a model with experts",
        answer=train_s,
        unit="s",
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "All weights of this model fit on 64 chips under FSDP. Do the experts need ways of their own?",
            "Four sequences for each chip: how often shall the weights be gathered?",
        ),
        mistakes=(
            Mistake(
                lambda: train_s(training.Plan(fsdp=64, ep=16)),
                "The experts' exchange is waited for. Try fewer expert ways.",
            ),
            Mistake(
                lambda: train_s(training.Plan(fsdp=64)),
                "Weights are gathered for every microbatch. Is there room for larger ones?",
            ),
            Mistake(
                lambda: 6 * QWEN.active_params * 2**20 / (CUBE.chips * chips.V5P.bf16_flops_per_s),
                "That is the arithmetic alone, at 6 · P a token.",
            ),
        ),
        right="Right: no plan that the search knows is faster.",
    ),
    Check(
        key="conclusion.cheapest-server",
        title="Capstone: a server with a deadline",
        answer=usd,
        unit="USD",
        difficulty=3,
        rel_tol=0.03,
        hints=(
            "Weights of 141 GB on 32 chips of 17 GB: how many caches of 32,000 tokens have room?",
            "`planner.serve(...).best` is the cheapest; `itl_s=0.03` leaves out what is slower.",
        ),
        mistakes=(
            Mistake(lambda: usd(8), "Twice as many sequences still meet the limit."),
            Mistake(
                lambda: usd(1, inference.Layout(tp=32, rows=4, kv_sequence=4)),
                "That is one sequence at a time, the fastest and dearest.",
            ),
        ),
    ),
)
