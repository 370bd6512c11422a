"""What will a reader own after each chapter? The map of the book: a question, a formula and a number each.

Every number is computed here from the catalogue, so the map promises nothing that the chapters do not hold.
"""

# ruff: noqa: E501   a chapter's promise stands on one line

from dataclasses import dataclass

from scalingbook_lib import collectives, models, rules
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS
from scalingbook_lib.machines import chips, systolic
from scalingbook_lib.machines.formats import NVFP4
from scalingbook_lib.models import arithmetic
from scalingbook_lib.reader.explorers.parts import Cell, Choice, Explorer, Grid, Readout, Steps, View
from scalingbook_lib.steps import limits
from scalingbook_lib.training import reliability
from scalingbook_lib.training.optimizers import OPTIMIZERS
from scalingbook_lib.units import BF16, FP8, GiB, MiB, binary, count, percent, si


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter: its file's stem, its title, and what a reader takes away."""

    stem: str
    title: str
    question: str
    formula: str
    number: str


def _run_days() -> float:
    """70e9 parameters on 15e12 tokens with a whole v5p pod at 40% of its peak."""
    pod = chips.V5P.torus.pod_chips if chips.V5P.torus else 0
    return 6 * 70e9 * 15e12 / (pod * chips.V5P.bf16_flops_per_s * 0.4) / 86_400


def _left(n: int) -> float:
    """The share that restarts of ten minutes leave of n chips that stop as LLaMA 3's did."""
    return reliability.restarts_leave(LLAMA3_INTERRUPTIONS.mtbf_s * LLAMA3_INTERRUPTIONS.chips / n, 600)


def _pod_flops_per_s() -> float:
    return (chips.V5P.torus.pod_chips if chips.V5P.torus else 0) * chips.V5P.bf16_flops_per_s


CHAPTERS = (
    Chapter(
        "intro",
        "Introduction",
        "What do more chips buy?",
        "knee: n = B · W / C",
        f"{count(round(rules.data_parallel_tokens(chips.V5P, axes=3)))} tokens per chip hide a gradient AllReduce on the three axes of TPU v5p",
    ),
    Chapter(
        "rooflines",
        "Rooflines",
        "How long does an operation take, and what limits it?",
        "T ≥ max(FLOPs / C, bytes / W)",
        f"{rules.ridge(chips.V5E):.1f} FLOPs per byte keep TPU v5e busy from HBM",
    ),
    Chapter(
        "tpus",
        "TPUs: the chip",
        "How does a chip use each number that arrives 480 times?",
        "B rows take B + 2t - 2 cycles",
        f"{systolic.rows_for(0.9, 128):,.0f} rows past one tile keep a systolic array of 128 × 128 at 90%",
    ),
    Chapter(
        "tpus_network",
        "TPUs: the network",
        "How do thousands of chips reach each other?",
        "bytes / W + hops · α",
        f"{si(_pod_flops_per_s(), 'FLOPs/s')} is the bf16 peak of a TPU v5p pod",
    ),
    Chapter(
        "sharding",
        "Sharding",
        "What does a product of split matrices cost?",
        "AllGather: (1 - 1/n) · M / W + hops · α",
        f"{si(collectives.all_gather(32 * MiB, chips.V5E.axis(16)).total_s, 's')} gather 32 MiB over a ring of 16 TPU v5e",
    ),
    Chapter(
        "transformers",
        "Transformer arithmetic",
        "How many FLOPs and bytes is a Transformer?",
        "training: 6 · parameters · tokens",
        f"{si(6 * 70e9, 'FLOPs')} to train 70 billion parameters on one token",
    ),
    Chapter(
        "training",
        "Training",
        "Which way of splitting for which model?",
        "data parallel: B / n > C / W_ici",
        f"{count(round(rules.data_parallel_tokens(chips.V5P, axes=3)))} tokens per chip on all three axes of TPU v5p",
    ),
    Chapter(
        "training_llama3",
        "Training LLaMA 3",
        "What does a real run cost?",
        "6 · P · tokens / (n · C · MFU)",
        f"{_run_days():.1f} days for 70 billion parameters and 15 trillion tokens on a TPU v5p pod at 40% MFU",
    ),
    Chapter(
        "inference",
        "Inference",
        "What limits a served token?",
        "KV cache: 2 · L · K · H elements per token",
        f"{binary(2 * 80 * 8 * 128 * BF16.bytes)} of cache for each token of LLaMA 3 70B in bf16",
    ),
    Chapter(
        "inference_llama3",
        "Serving LLaMA 3",
        "Which chips, and at what price per token?",
        "step ≥ bytes of weights / (n · W_hbm)",
        f"{si(140e9 / (16 * chips.V5E.hbm_bytes_per_s), 's')} to read 70 billion bf16 weights on 16 TPU v5e",
    ),
    Chapter(
        "gpus",
        "GPUs: the chip",
        "What changes when the arithmetic is done by 132 small cores?",
        "peak = SMs · 4 · FLOPs a cycle · clock",
        f"{rules.ridge(chips.H100):.0f} FLOPs per byte keep an H100 busy from its {chips.H100.hbm_bytes / GiB:.0f} GiB of HBM",
    ),
    Chapter(
        "gpus_network",
        "GPUs: the network",
        "What changes when the network is made of switches?",
        "W is one GPU's share of a switch",
        f"{limits.rules(chips.H100).network_tokens:,.0f} tokens per H100 keep its network card behind the arithmetic",
    ),
    Chapter(
        "profiling",
        "Profiling",
        "Where did the time go?",
        "arrays are stored in tiles of 8 × 128",
        f"{systolic.storage(20, 200).bytes:,.0f} bytes for a bf16[20, 200] of {count(20 * 200 * 2)}",
    ),
    Chapter(
        "jax",
        "Programming in JAX",
        "Who decides about the collectives?",
        "compiler, types, or you: three modes",
        f"{count(chips.V5E.bf16_flops_per_s / chips.V5E.link_bytes_per_s)} columns of a weight on a TPU v5e hide "
        "a hop behind its product",
    ),
    Chapter(
        "lowprecision",
        "Smaller numbers",
        "Which type for which tensor?",
        "bytes: (bits + s/q) / 8",
        f"{NVFP4.bytes:g} bytes for an element in NVFP4, {OPTIMIZERS['Muon'].state(1).total:g} for a parameter that Muon trains",
    ),
    Chapter(
        "architectures",
        "Other architectures",
        "What does each design save?",
        "a hybrid keeps L/L_f times less, at most",
        f"{count(arithmetic.stack(models.find('Qwen3-Next 80B-A3B')).cached_bytes(1) / 1e6)} MB of state in Qwen3-Next before the second token",
    ),
    Chapter(
        "machines",
        "Other machines",
        "What does a data sheet say, once its factors of two are undone?",
        "an exchange of experts hides where C / W ≤ 2 F",
        f"{count(rules.ChipRatios(chips.RUBIN, FP8).expert_width)} columns must an expert have on Rubin, as announced",
    ),
    Chapter(
        "posttraining",
        "After pretraining",
        "Who writes, who trains, and what keeps it running?",
        "restarts leave e^(-restart / between stops)",
        f"{percent(_left(100_000))} of the time is left by restarts of ten minutes on 100,000 chips",
    ),
    Chapter(
        "conclusion",
        "Conclusions",
        "Does the method work on your model?",
        "T = max(math, memory, network), then α",
        "7 questions to ask of any workload",
    ),
)

_WAYS = {
    "an evening": "intro rooflines sharding conclusion",
    "a week": "intro rooflines tpus tpus_network sharding transformers training inference conclusion",
    "JAX first": "intro jax sharding rooflines profiling training conclusion",
    "serving first": "intro rooflines sharding transformers inference inference_llama3 architectures posttraining conclusion",
    "GPUs first": "intro rooflines gpus gpus_network sharding transformers training inference conclusion",
    "hardware first": "intro rooflines tpus tpus_network gpus gpus_network sharding transformers training training_llama3 inference inference_llama3 jax profiling lowprecision architectures machines posttraining conclusion",
    "Transformer first": "intro transformers rooflines sharding training training_llama3 inference inference_llama3 tpus tpus_network gpus gpus_network jax profiling lowprecision architectures machines posttraining conclusion",
}
_BY_STEM = {chapter.stem: chapter for chapter in CHAPTERS}

PATHS = {"in order": CHAPTERS} | {
    name: tuple(_BY_STEM[stem] for stem in stems.split()) for name, stems in _WAYS.items()
}


def _map(*, path: str, step: int) -> View:
    order = PATHS[path]
    at = min(step, len(order) - 1)
    here = order[at]
    cells = [[_box(chapter, place, at)] for place, chapter in enumerate(order)]
    return View(
        f"{at + 1} of {len(order)}: {here.title}. {here.question}",
        (Grid(f"Path: {path}", [str(CHAPTERS.index(c)) for c in order], (), cells),),
        (
            Readout("formula", 0, "", here.formula),
            Readout("number", 0, "", here.number),
        ),
        frames=len(order),
    )


def _box(chapter: Chapter, place: int, at: int) -> Cell:
    color = 2 if place == at else 0 if place < at else None
    return Cell(
        f"{chapter.title}\n{chapter.formula}",
        color,
        f"{place + 1}. {chapter.question}",
        level=1 if place == at else 0.4,
    )


BOOK_MAP = Explorer(
    key="intro.map",
    title="Map of the book",
    question="What will you own after each chapter?",
    controls={"path": Choice("reading path", tuple(PATHS)), "step": Steps("chapter")},
    view=_map,
)
