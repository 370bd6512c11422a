"""Which plan keeps thousands of GPUs busy? The exercises on published runs."""

from typing import Any

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives, models
from scalingbook_lib.machines import Chip, Cluster, chips
from scalingbook_lib.steps import limits
from scalingbook_lib.units import BF16, FP8, DType

_STEP = 2_000_000  # tokens
_MEGATRON = 384 * 4096  # tokens
_DEEPSEEK = models.find("DeepSeek-V3")
_NODES = 4 * collectives.reach_probability(4, 8)  # that a token needs, of the four it may


def _tokens(chip: Chip, gpus: int, model_parallel: int) -> float:
    """Tokens per GPU above which data parallelism over the others hides behind the arithmetic."""
    return limits.data_parallel(Cluster.of(chip, gpus), model_parallel=model_parallel).least


def _stages(tokens: float = _STEP, gpus: int = 4096) -> int:
    """The fewest pipeline stages, each a node with tensor parallelism over eight."""
    enough = (p for p in (1, 2, 4, 8, 16) if tokens / gpus > _tokens(chips.H100, gpus, 8 * p))
    return next(enough)


def _most_gpus(model_parallel: int = 16) -> int:
    """The most whole units of 256 on which a step of the 70B row still hides its network."""
    units = range(256, 2049, 256)
    return max(n for n in units if _MEGATRON / n > _tokens(chips.H100, n, model_parallel))


def _exchanged(chip: Chip, out: DType = FP8, back: DType = BF16, **how: Any) -> float:
    """Exchange over arithmetic: the width that experts of DeepSeek-V3 should have, over the one they have."""
    experts = _DEEPSEEK.experts
    assert experts
    usual = {"k": experts.k, "shared": experts.shared, "gated": True, "once": True}
    limit = limits.expert_parallel(Cluster.of(chip, 64), 64, dispatch=out, combine=back, **(usual | how))
    return limit.least / experts.F


def _over_nodes(out: DType = FP8, back: DType = BF16, **how: Any) -> float:
    return _exchanged(chips.B200, out, back, **({"most_domains": 4} | how))


def _in_the_rack(**how: Any) -> float:
    return _exchanged(chips.GB200, **how)


PLANS = (
    Check(
        key="gpus.fewest-stages",
        title="LLaMA-3 70B on 4,096 GPUs",
        answer=_stages,
        rel_tol=1e-6,
        difficulty=3,
        hints=(
            "How many tokens does each GPU have in a step?",
            "With p stages, p nodes share the work that one did: 8p GPUs hold one copy, each a part of it.",
            "The network's limit, about 2,470 tokens per GPU, is divided by p.",
        ),
        mistakes=(
            Mistake(2, "That is enough, and it is not the least. Is there slack?"),
            Mistake(0.5, "Work out the limit for that: it is still above the tokens that a GPU has."),
            Mistake(1 / 8, "Without a pipeline the network limits a GPU to 2,470 tokens. Are there so many?"),
        ),
        right="Right: four stages are too few, and sixteen make the bubble longer for nothing.",
    ),
    Check(
        key="gpus.most-gpus",
        title="The same batch on more GPUs",
        answer=_most_gpus,
        rel_tol=1e-6,
        difficulty=3,
        hints=(
            "Two stages of eight GPUs: the cards of two nodes share what one copy has to fetch.",
            "The limit is (1 - 1/k) · C / 800 GB/s tokens per GPU, for k pairs of nodes.",
            "384 · 4096 tokens in all. How many GPUs leave each of them more than that?",
        ),
        mistakes=(
            Mistake(lambda: 512, "That is with tensor parallelism alone. The second stage halves the limit."),
            Mistake(lambda: 768, "So many there are. Could it be more?"),
            Mistake(
                lambda: 1024,
                "That is fine, but not the most. Of k copies, each pair of nodes already has one: (1 - 1/k).",
            ),
            Mistake(lambda: 1536, "Almost: with so many, each GPU has fewer tokens than the limit."),
        ),
        right="Right: two thirds more GPUs than the table has.",
    ),
    Check(
        key="gpus.experts-eight-nodes",
        title="Experts over eight nodes",
        answer=_over_nodes,
        rel_tol=0.006,
        difficulty=3,
        hints=(
            "How many of four nodes do eight draws reach? And how many of those are not the token's own?",
            "A byte per element on the way out and two on the way back, through a card of 50 GB/s.",
            "Nine experts of three matrices each: 9 · 6DF FLOPs for a token. D cancels.",
        ),
        mistakes=(
            Mistake(
                lambda: _over_nodes(most_domains=None),
                "That is without the limit of four nodes to a token.",
            ),
            Mistake(
                lambda: _over_nodes() * 4 / _NODES,
                "Now and then one of the four gets none of the eight experts.",
            ),
            Mistake(8 / 7, "One time in eight, the node of an expert is the token's own."),
            Mistake(
                lambda: _over_nodes(once=False), "Copies go once to a node, and there NVLink passes them on."
            ),
            Mistake(
                lambda: _over_nodes(shared=0),
                "Nine experts work on a token: eight that are chosen and one that all tokens share.",
            ),
            Mistake(
                lambda: _exchanged(chips.H100, most_domains=4),
                "That is on H100, which calculates more slowly.",
            ),
            Mistake(lambda: _over_nodes(gated=False), "An expert is gated: it has three matrices, not two."),
            Mistake(lambda: _over_nodes(out=BF16), "fp8 takes one byte an element on the way out."),
            Mistake(lambda: _over_nodes(back=FP8), "bf16 takes two bytes an element on the way back."),
        ),
        right="Right: the network takes longer than the arithmetic, and must hide behind something else.",
    ),
    Check(
        key="gpus.experts-one-rack",
        title="The same experts in one rack",
        answer=_in_the_rack,
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "Every copy goes over NVLink now, once to each GPU that needs it: 900 GB/s.",
            "How many of the 63 others are among eight draws from 64?",
            "Three bytes an element as before, and 2,500 TFLOPs/s.",
        ),
        mistakes=(
            Mistake(
                lambda: _in_the_rack(once=False),
                "Where two experts of a token are on one GPU, one copy is enough.",
            ),
            Mistake(
                lambda: _in_the_rack() * 18,
                "That is through the network's card. In the rack there is NVLink.",
            ),
            Mistake(
                lambda: _in_the_rack() * chips.H100.bf16_flops_per_s / chips.GB200.bf16_flops_per_s,
                "That is with the arithmetic of an H100. A GB200 is faster, and has less time to hide in.",
            ),
            Mistake(2, "In the rack a GPU has 18 links of 50 GB/s, one way."),
        ),
        right="Right: what was the longer of the two now hides behind the other.",
    ),
    Check(
        key="gpus.eight-racks",
        title="Eight racks",
        answer=lambda: _tokens(chips.GB200, 576, 8),
        unit="tokens",
        difficulty=3,
        hints=(
            "Eight GPUs share each copy, so nine places are left in a rack, and each GPU gathers an eighth.",
            "NVLink: (1 - 1/9) of an eighth at 900 GB/s.",
            "The network: (1 - 1/8) of the array into each rack, through 72 cards.",
        ),
        mistakes=(
            Mistake(
                lambda: _tokens(chips.GB200, 576, 1),
                "That is without tensor parallelism, where NVLink binds. What does it leave to gather?",
                slip="factor-left-out",
            ),
            Mistake(8 / 7, "An eighth of the array is in each rack already.", slip="fraction-left-out"),
            Mistake(
                lambda: 8 / 9 / 8 * chips.GB200.bf16_flops_per_s / 900e9,
                "That is NVLink's stage. With tensor parallelism the network's is the longer one.",
                slip="wrong-stage",
            ),
            Mistake(9, "A rack has 72 cards, and not those of a node of eight."),
            Mistake(1 / 8, "Each of the eight fetches its own part, but each through its own card."),
        ),
        right="Right: a quarter of what an H100 in nodes of eight needs.",
    ),
)
