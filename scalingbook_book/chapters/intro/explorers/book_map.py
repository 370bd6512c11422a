"""The map of the book: for each chapter a question, a formula and a number, computed from the catalog."""

# ruff: noqa: E501   the number of a chapter is one line

from dataclasses import dataclass

from scalingbook_book.reader.explorers.parts import Cell, Choice, Explorer, Grid, Readout, Steps, View
from scalingbook_lib import collectives, models, rules
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS
from scalingbook_lib.machines import chips, systolic
from scalingbook_lib.machines.energy import SITE, energy
from scalingbook_lib.machines.formats import NVFP4
from scalingbook_lib.models import arithmetic
from scalingbook_lib.steps import limits
from scalingbook_lib.training import reliability
from scalingbook_lib.training.optimizers import OPTIMIZERS
from scalingbook_lib.units import BF16, FP8, GiB, MiB, binary, count, percent, si


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter: the stem of its file, its title, and the question, formula and number of the map."""

    stem: str
    title: str
    question: str
    formula: str
    number: str


def _run_days() -> float:
    """Days to train 70e9 parameters on 15e12 tokens with a whole v5p pod at 40% MFU."""
    pod = chips.V5P.torus.pod_chips if chips.V5P.torus else 0
    return 6 * 70e9 * 15e12 / (pod * chips.V5P.bf16_flops_per_s * 0.4) / 86_400


def _left(n: int) -> float:
    """The goodput of n chips that fail as often as in the training of Llama 3, with restarts of ten minutes."""
    return reliability.restart_bound(LLAMA3_INTERRUPTIONS.mtbf_s * LLAMA3_INTERRUPTIONS.chips / n, 600)


def _pod_flops_per_s() -> float:
    return (chips.V5P.torus.pod_chips if chips.V5P.torus else 0) * chips.V5P.bf16_flops_per_s


CHAPTERS = (
    Chapter(
        "intro",
        "Introduction: scaling and its limits",
        "How many chips can one batch keep busy?",
        "knee: n = B · W / C",
        f"{count(round(rules.data_parallel_tokens(chips.V5P, axes=3)))} tokens per chip hide the "
        "AllReduce of the gradients over all three axes of TPU v5p",
    ),
    Chapter(
        "rooflines",
        "Rooflines",
        "How long does an operation take, and what limits it?",
        "T ≥ max(FLOPs / C, bytes / W)",
        f"{rules.ridge(chips.V5E):.1f} FLOPs per byte are needed to keep TPU v5e busy from HBM",
    ),
    Chapter(
        "tpus",
        "TPUs: the chip",
        "How does a chip get 480 operations out of every number it loads?",
        "B rows take B + 2t - 2 cycles",
        f"{systolic.rows_for(0.9, 128):,.0f} rows per tile keep a systolic array of 128 × 128 busy for 90% of the cycles",
    ),
    Chapter(
        "tpus_network",
        "TPUs: the network",
        "How are thousands of chips connected?",
        "bytes / W + hops · α",
        f"{si(_pod_flops_per_s(), 'FLOPs/s')} is the bf16 peak of a TPU v5p pod",
    ),
    Chapter(
        "sharding",
        "Sharding",
        "What does it cost to multiply sharded matrices?",
        "AllGather: (1 - 1/n) · M / W + hops · α",
        f"{si(collectives.all_gather(32 * MiB, chips.V5E.axis(16)).total_s, 's')} to AllGather 32 MiB over a ring of 16 TPU v5e",
    ),
    Chapter(
        "transformers",
        "Transformer arithmetic",
        "How many FLOPs and bytes does a Transformer need?",
        "training: 6 · parameters · tokens",
        f"{si(6 * 70e9, 'FLOPs')} to train 70 billion parameters on one token",
    ),
    Chapter(
        "training",
        "Training",
        "Which parallelism strategy for which model?",
        "data parallel: B / n > C / ICI bandwidth",
        f"{count(round(rules.data_parallel_tokens(chips.V5P, axes=3)))} tokens per chip make data "
        "parallelism compute-bound over all three axes of TPU v5p",
    ),
    Chapter(
        "training_llama3",
        "Training Llama 3",
        "What does a real training run cost?",
        "6 · P · tokens / (n · C · MFU)",
        f"{_run_days():.1f} days for 70 billion parameters and 15 trillion tokens on a TPU v5p pod at 40% MFU",
    ),
    Chapter(
        "inference",
        "Inference",
        "What limits the speed of generating tokens?",
        "KV cache: 2 · L · K · H elements per token",
        f"{binary(2 * 80 * 8 * 128 * BF16.bytes)} of KV cache per token of Llama 3 70B in bf16",
    ),
    Chapter(
        "inference_llama3",
        "Serving Llama 3",
        "Which chips should serve a model, and at what price per token?",
        "step ≥ bytes of weights / (n · HBM bandwidth)",
        f"{si(140e9 / (16 * chips.V5E.hbm_bytes_per_s), 's')} to read 70 billion bf16 weights on 16 TPU v5e",
    ),
    Chapter(
        "gpus",
        "GPUs: the chip",
        "What changes when 132 small cores do the arithmetic?",
        "peak = SMs · 4 · FLOPs per cycle · clock",
        f"{rules.ridge(chips.H100):.0f} FLOPs per byte are needed to keep an H100 busy from its {chips.H100.hbm_bytes / GiB:.0f} GiB of HBM",
    ),
    Chapter(
        "gpus_network",
        "GPUs: the network",
        "What changes when chips are connected by switches?",
        "W: one GPU's share of the switch",
        f"{limits.rules(chips.H100).network_tokens:,.0f} tokens per H100 hide the traffic of its NIC "
        "behind compute",
    ),
    Chapter(
        "profiling",
        "Profiling",
        "Where did the time go?",
        "arrays are stored in tiles of 8 × 128",
        f"{systolic.storage(20, 200).bytes:,.0f} bytes are stored for a bf16[20, 200] array of {count(20 * 200 * 2)} bytes",
    ),
    Chapter(
        "jax",
        "Programming in JAX",
        "Who decides which collectives a program runs?",
        "three modes: the compiler, types, or you",
        f"{count(chips.V5E.bf16_flops_per_s / chips.V5E.link_bytes_per_s)} columns of a weight matrix hide "
        "one ring step behind its matmul on TPU v5e",
    ),
    Chapter(
        "lowprecision",
        "Low precision",
        "Which number format for which tensor?",
        "bytes: (bits + s/q) / 8",
        f"{NVFP4.bytes:g} bytes per element in NVFP4; {OPTIMIZERS['Muon'].state(1).total:g} bytes of training state per parameter with Muon",
    ),
    Chapter(
        "architectures",
        "Linear attention, sparse attention and diffusion",
        "What does each architecture save: compute, traffic or memory?",
        "only full-attention layers keep a KV cache",
        f"{count(arithmetic.stack(models.find('Qwen3-Next 80B-A3B')).cached_bytes(1) / 1e6)} MB of state in Qwen3-Next before the second token",
    ),
    Chapter(
        "machines",
        "Comparing accelerators",
        "What does a datasheet say once its factors of two are undone?",
        "expert dispatch and combine are hidden if C / W ≤ 2 F",
        f"{count(rules.ChipRatios(chips.RUBIN, FP8).expert_width)} columns per expert hide dispatch and combine on Rubin, as announced",
    ),
    Chapter(
        "posttraining",
        "RL post-training systems",
        "Which chips generate the rollouts, and which train?",
        "mean context of a slot: P + E[G²] / (2 E[G])",
        f"at least {si(2 * 70e9 / (8 * chips.H100.hbm_bytes_per_s), 's')} per token when eight H100s "
        "generate with 70 billion bf16 weights",
    ),
    Chapter(
        "posttraining_faults",
        "Fault tolerance and goodput",
        "How much of a long run survives its failures?",
        "goodput ≤ exp(−restart time / MTBF)",
        f"{percent(_left(100_000))} of the time is useful on 100,000 chips if a restart takes ten minutes",
    ),
    Chapter(
        "posttraining_energy",
        "Energy and power",
        "How much electricity does a training run use, and how much does a token?",
        "chip-hours · watts · node · PUE",
        f"{energy(chips.H100, 30.84e6 * 3600, SITE).mwh / 1e3:.1f} GWh at the site for the 30.84 million H100 hours of Llama 3.1 405B",
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
    "GPUs first": "intro rooflines gpus sharding transformers training gpus_network inference conclusion",
    "hardware first": "intro rooflines tpus tpus_network gpus gpus_network sharding transformers training training_llama3 inference inference_llama3 jax profiling lowprecision architectures machines posttraining posttraining_faults posttraining_energy conclusion",
    "Transformer first": "intro transformers rooflines sharding training training_llama3 inference inference_llama3 tpus tpus_network gpus gpus_network jax profiling lowprecision architectures machines posttraining posttraining_faults posttraining_energy conclusion",
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
        f"Chapter {1 + CHAPTERS.index(here)}: {here.title}. {here.question}",
        (Grid(f"Path: {path}", [str(1 + CHAPTERS.index(c)) for c in order], (), cells),),
        (
            Readout("formula", 0, "", here.formula),
            Readout("number", 0, "", here.number),
        ),
        frames=len(order),
    )


def _box(chapter: Chapter, place: int, at: int) -> Cell:
    color = 2 if place == at else 0 if place < at else None
    return Cell(
        chapter.title,
        color,
        f"{place + 1}. {chapter.question}",
        level=1 if place == at else 0.4,
    )


BOOK_MAP = Explorer(
    key="intro.map",
    title="Map of the book",
    question="What formula and what number does each chapter give you?",
    controls={"path": Choice("reading path", tuple(PATHS)), "step": Steps("chapters finished")},
    view=_map,
)
