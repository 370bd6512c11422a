"""Checks of the exercises on pipeline stages, ring attention, pods and experts, and when each pays."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives, models, rules
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.steps import limits, pipelines
from scalingbook_lib.steps.placement import between_pods
from scalingbook_lib.training import effective_width
from scalingbook_lib.units import BF16, FP32

_8B, _70B = models.find("Llama 3 8B"), models.find("Llama 3 70B")
_PER_LAYER = 4 * _70B.D * effective_width(_70B)  # parameters


def _idle(schedule: str = "interleaved", chunks: int = 4, stages: int = 8) -> float:
    return float(pipelines.bubble(schedule, stages, 32, chunks).share)


def _as_idle(schedule: str = "zero-bubble") -> int:
    """The fewest microbatches with which 1F1B is idle for no larger share of its step."""
    allowed = pipelines.bubble(schedule, 8, 32).share
    return next(M for M in range(1, 1000) if pipelines.bubble("1f1b", 8, M).share <= allowed)


def _sequence(causal: bool = True, axes: int = 1) -> float:
    return 16 * rules.context_parallel_tokens(_8B.G, chips.V5E, axes=axes, causal=causal)


def _batch(pods: int = 4, wide: bool = True) -> float:
    return pods * rules.cross_pod_tokens(chips.V5P, pods, gradients=FP32 if wide else BF16)


def _hop(layers: int = 40, params: float = _PER_LAYER) -> float:
    """A token's activations on their way between the pods, over its arithmetic in one stage."""
    (network,) = between_pods(chips.V5P, 2)
    sent_s = collectives.permute(BF16.bytes * _70B.D, network).bandwidth_s
    return sent_s / (2 * params * layers / chips.V5P.bf16_flops_per_s)


def _experts(gated: bool = True) -> float:
    return limits.expert_parallel(Slice.of(chips.V5P, "4x4x4"), 64, k=8, gated=gated).least


SCHEMES = (
    Check(
        key="training.interleaved-bubble",
        title="Bubble of an interleaved pipeline",
        answer=_idle,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Each stage has four chunks, so filling the pipeline takes a quarter as long as before.",
            "In units of one microbatch in one stage, a stage is idle for (p - 1)/v and works for m. "
            "The step time is the sum of the two.",
        ),
        mistakes=(
            Mistake(lambda: _idle("1f1b", 1), "That is without interleaving, with one chunk per stage."),
            Mistake(
                lambda: float(pipelines.bubble("interleaved", 8, 32, 4).overhead),
                "That is idle time over work. The question is about the fraction of the whole step.",
            ),
            Mistake(lambda: 8 / (4 * 32 + 8), "The last stage waits for the seven before it, not for eight."),
            Mistake(lambda: 1 - _idle(), "That is the fraction in which a stage works. How long is it idle?"),
        ),
        right="Right: 5.2%, where a pipeline without interleaving is idle for 18%.",
    ),
    Check(
        key="training.zero-bubble",
        title="Zero-bubble and 1F1B compared",
        answer=_as_idle,
        rel_tol=1e-6,
        difficulty=2,
        hints=(
            "With 1F1B, a stage is idle for (p - 1)(t_F + t_B), which is 3 (p - 1) here.",
            "With the zero-bubble schedule, it is idle for (p - 1)(t_F + t_B - 2 t_W), which is p - 1 here.",
            "Each step time is the work of m microbatches, 3 m, plus the idle time.",
        ),
        mistakes=(
            Mistake(
                lambda: 32,
                "With the same number of microbatches, 1F1B is idle for longer.",
                slip="wrong-quantity",
            ),
            Mistake(
                lambda: 64,
                "The idle time is three times as long, not twice: t_F + t_B is 3, and t_F + t_B "
                "- 2 t_W is 1.",
                slip="factor-two",
            ),
            Mistake(
                lambda: 33, "The idle times differ: the gradients of the weights fill most of the bubble."
            ),
        ),
        right="Right: three times as many, because the bubble is three times as long.",
    ),
    Check(
        key="training.ring-attention",
        title="Sequence length for ring attention",
        answer=_sequence,
        unit="tokens",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "The K and V of each token in the sequence pass through every chip: 2 · 2 K H bytes per layer.",
            "The chip's own t tokens attend to each of them: 4 N H FLOPs per pair, and half "
            "of the pairs under the mask.",
            "Each chip needs t > 2 r K/N tokens, and there are 16 chips.",
        ),
        mistakes=(
            Mistake(
                lambda: _sequence(causal=False),
                "That is without the mask. A causal mask leaves only half of the compute to hide behind.",
            ),
            Mistake(4, "Only the KV heads travel around the ring: 8 for 32 query heads."),
            Mistake(1 / 16, "That is for one chip. The question is about the whole sequence."),
            Mistake(
                lambda: _sequence() / 0.9,
                "That is with links at 90% of their documented rate.",
            ),
            Mistake(2, "In a ring, a chip receives over both links: 100 GB/s on a v5e."),
        ),
        right="Right. With shorter sequences, the communication of the ring is exposed.",
    ),
    Check(
        key="training.four-pods",
        title="Batch size for four pods",
        answer=_batch,
        unit="tokens",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Each chip sums its block of the gradients with the same block in the other pods.",
            "An AllReduce over four pods moves 2 · 3/4 of the block through each NIC, at 4 "
            "bytes per element.",
            "Compare 8 B D F FLOPs over all chips with 2 D F gradients per pod. D, F and the "
            "number of chips cancel.",
        ),
        mistakes=(
            Mistake(
                lambda: _batch() * 4 / 3,
                "Each pod already has a quarter of the sum, so (q - 1)/q of it moves.",
                slip="fraction-left-out",
            ),
            Mistake(
                lambda: _batch(wide=False),
                "That is in bf16. Here gradients are in fp32 and take four bytes.",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: _batch() / 4,
                "That is what one pod needs. The question is about the whole batch.",
                slip="one-for-total",
            ),
            Mistake(
                lambda: _batch() / 16,
                "25 GB/s is the rate of a host, which four chips share. Also, the question asks for the "
                "batch of all four pods.",
            ),
            Mistake(
                lambda: 4 * 2 * 71_360,
                "That comes from 71,360, which is for 4.46 · 10¹⁴ FLOPs/s instead of 4.59 · 10¹⁴.",
            ),
        ),
        right="Right: the batches of large training runs are far above that.",
    ),
    Check(
        key="training.two-pod-pipeline",
        title="A pipeline over two pods",
        answer=_hop,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "For each token, the first stage sends one row of D elements.",
            "In a stage, each token takes 2 FLOPs per parameter of 40 layers.",
            "The chips share both equally, so their number cancels, which leaves C/W of the data-center "
            "network.",
        ),
        mistakes=(
            Mistake(lambda: _hop(1), "That is for one layer. A stage has 40."),
            Mistake(lambda: _hop(80), "That is for all layers. A pod has half of them."),
            Mistake(
                lambda: _hop() / 4,
                "25 GB/s is the rate of a host with four chips.",
            ),
            Mistake(
                lambda: _hop(params=3 * _70B.D * _70B.F),
                "That is for the MLPs alone. Attention has weights, too.",
            ),
            Mistake(2, "Each element takes two bytes and is sent once, over one hop."),
        ),
        right="Right: a pipeline sends very few bytes.",
    ),
    Check(
        key="training.expert-width",
        title="Expert width on a cube of 64 chips",
        answer=_experts,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "An AllToAll of V bytes per chip takes V A/(4 W) on a ring of A chips, and all "
            "axes work at the same time.",
            "In the cube, each axis has four chips. Dispatch and combine together move 4 k D bytes per "
            "token.",
            "A token takes 6 k D F FLOPs: three matrices in each of its experts. k and D cancel.",
        ),
        mistakes=(
            Mistake(16, "That uses all 64 chips for A. A is the size of the longest axis."),
            Mistake(lambda: _experts(gated=False), "An expert is gated here, so it has three matrices."),
            Mistake(
                2,
                "A cube of v5p has wraparound: both links of an axis are used, and the average "
                "path is A/4 hops.",
            ),
            Mistake(0.5, "Tokens are sent to their experts and come back, which takes two AllToAlls."),
            Mistake(
                lambda: limits.expert_parallel(Cluster.of(chips.GB200, 64), 64, k=8, gated=True).least,
                "That is for chips behind a switch, as in a GB200 rack. On a torus, bytes pass through "
                "other chips.",
            ),
            Mistake(4, "That is for a ring of 16. In the cube, each axis has four chips."),
        ),
        right="Right: DeepSeek-V3's experts, which are 2,048 wide, are enough.",
    ),
)
