"""Checks of the exercises on published training plans for thousands of GPUs."""

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
        title="Llama 3 70B on 4,096 GPUs",
        answer=_stages,
        rel_tol=1e-6,
        difficulty=3,
        hints=(
            "How many tokens does each GPU have per step?",
            "With p stages, 8p GPUs hold one replica, so the NICs of p nodes share its weights.",
            "The limit of the NICs, about 2,470 tokens per GPU, is divided by p.",
        ),
        mistakes=(
            Mistake(2, "This is enough, but it is not the smallest number. Would half as many be enough?"),
            Mistake(
                0.5,
                "Work out the limit for this number of stages: it is still above the tokens that a GPU has.",
            ),
            Mistake(
                1 / 8, "Without a pipeline, the NICs need about 2,470 tokens per GPU. Are there that many?"
            ),
        ),
        right="Right: four stages are too few, and sixteen would lengthen the bubble without any benefit.",
    ),
    Check(
        key="gpus.most-gpus",
        title="The same batch on more GPUs",
        answer=_most_gpus,
        rel_tol=1e-6,
        difficulty=3,
        hints=(
            "With two stages of eight GPUs, the NICs of two nodes share the weights of one replica.",
            "For k pairs of nodes, the limit is (1 - 1/k) · C / 800 GB/s tokens per GPU.",
            "There are 384 · 4096 tokens in total. On how many GPUs "
            "does each of them still have more than that?",
        ),
        mistakes=(
            Mistake(
                lambda: 512,
                "This is the result with tensor parallelism alone. The second stage halves the limit.",
            ),
            Mistake(lambda: 768, "This is the number in the published plan. Could there be more?"),
            Mistake(
                lambda: 1024,
                "This works, but it is not the largest number. A pair of nodes "
                "already holds 1/k of the array: (1 - 1/k).",
            ),
            Mistake(lambda: 1536, "Almost, but on so many GPUs each has fewer tokens than the limit."),
        ),
        right="Right: two thirds more GPUs than in the published plan.",
    ),
    Check(
        key="gpus.experts-eight-nodes",
        title="Expert parallelism over eight nodes",
        answer=_over_nodes,
        rel_tol=0.006,
        difficulty=3,
        hints=(
            "How many of four nodes do eight draws reach on average? "
            "How many of those are not the token's own?",
            "One byte per element is dispatched and two bytes come back, through a NIC of 50 GB/s.",
            "Nine experts with three matrices each perform 9 · 6DF FLOPs per token. D cancels.",
        ),
        mistakes=(
            Mistake(
                lambda: _over_nodes(most_domains=None),
                "This ignores the limit of four nodes per token.",
            ),
            Mistake(
                lambda: _over_nodes() * 4 / _NODES,
                "Sometimes one of the four nodes has none of the eight experts.",
            ),
            Mistake(8 / 7, "With a probability of 1/8, a node is the token's own."),
            Mistake(
                lambda: _over_nodes(once=False),
                "A token crosses to each node only once, and NVLink distributes it there.",
            ),
            Mistake(
                lambda: _over_nodes(shared=0),
                "Nine experts process a token: the eight that are chosen and the shared one.",
            ),
            Mistake(
                lambda: _exchanged(chips.H100, most_domains=4),
                "This is the result for H100, whose compute is slower.",
            ),
            Mistake(
                lambda: _over_nodes(gated=False),
                "The experts are gated, so each has three matrices, not two.",
            ),
            Mistake(lambda: _over_nodes(out=BF16), "The dispatch is in fp8, with one byte per element."),
            Mistake(
                lambda: _over_nodes(back=FP8), "The results come back in bf16, with two bytes per element."
            ),
        ),
        right=(
            "Right: the network takes longer than the compute of the experts, so "
            "it has to be hidden behind something else too."
        ),
    ),
    Check(
        key="gpus.experts-one-rack",
        title="The same experts in one rack",
        answer=_in_the_rack,
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "Every copy now moves over NVLink at 900 GB/s, once to each GPU that needs it.",
            "How many of the 63 other GPUs are among eight draws from 64, on average?",
            "There are three bytes per element, as before, and 2,500 TFLOPs/s.",
        ),
        mistakes=(
            Mistake(
                lambda: _in_the_rack(once=False),
                "If two experts of a token are on the same GPU, one copy is enough.",
            ),
            Mistake(
                lambda: _in_the_rack() * 18,
                "This is the time through the NIC. Within the rack, there is NVLink.",
            ),
            Mistake(
                lambda: _in_the_rack() * chips.H100.bf16_flops_per_s / chips.GB200.bf16_flops_per_s,
                "This uses the compute of an H100. A GB200 is faster, so its compute takes less time.",
            ),
            Mistake(2, "A GPU of the rack has 18 links of 50 GB/s in one direction."),
        ),
        right="Right: the AllToAll now takes less time than the compute and can be hidden behind it.",
    ),
    Check(
        key="gpus.eight-racks",
        title="FSDP over eight racks",
        answer=lambda: _tokens(chips.GB200, 576, 8),
        unit="tokens",
        difficulty=3,
        hints=(
            "Eight GPUs share the weights, so there are nine groups "
            "per rack, and each GPU gathers an eighth.",
            "The NVLink stage moves (1 - 1/9) of an eighth at 900 GB/s.",
            "The NICs bring (1 - 1/8) of the array into each rack, 72 of them together.",
        ),
        mistakes=(
            Mistake(
                lambda: _tokens(chips.GB200, 576, 1),
                "This is the limit without tensor parallelism, where NVLink is the "
                "bottleneck. How much is left to gather with it?",
                slip="factor-left-out",
            ),
            Mistake(8 / 7, "Each rack already has an eighth of the array.", slip="fraction-left-out"),
            Mistake(
                lambda: 8 / 9 / 8 * chips.GB200.bf16_flops_per_s / 900e9,
                "This is the NVLink stage. With tensor parallelism, the stage of the NICs takes longer.",
                slip="wrong-stage",
            ),
            Mistake(9, "A rack has 72 NICs, not the eight of a node."),
            Mistake(1 / 8, "Each of the eight GPUs fetches its own part, but through its own NIC."),
        ),
        right="Right: a quarter of what H100s in nodes of eight need.",
    ),
)
