"""Stages, rings, pods and experts: when does each pay? The exercises on the other ways to split a step."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives, models, rules
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.steps import limits, pipelines
from scalingbook_lib.steps.placement import between_pods
from scalingbook_lib.training import effective_width
from scalingbook_lib.units import BF16, FP32

_8B, _70B = models.find("LLaMA-3 8B"), models.find("LLaMA-3 70B")
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
        title="Stages in pieces",
        answer=_idle,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Each stage has four pieces: filling the pipeline takes a quarter as long as before.",
            "Idle is (p - 1)/v, working is m, in times of a stage. The step is both together.",
        ),
        mistakes=(
            Mistake(lambda: _idle("1f1b", 1), "That is without interleaving: one piece for each stage."),
            Mistake(
                lambda: float(pipelines.bubble("interleaved", 8, 32, 4).overhead),
                "That is idle time over work. Asked for is its share of the whole step.",
            ),
            Mistake(lambda: 8 / (4 * 32 + 8), "The last stage waits for the seven before it, not for eight."),
            Mistake(lambda: 1 - _idle(), "That is the share in which a stage works. How long is it idle?"),
        ),
        right="Right.",
    ),
    Check(
        key="training.zero-bubble",
        title="A backward pass in two",
        answer=_as_idle,
        rel_tol=1e-6,
        difficulty=2,
        hints=(
            "1F1B waits (p - 1)(t_F + t_B), and here that is 3 for each stage before the last.",
            "The other schedule waits (p - 1)(t_F + t_B - 2 t_W), which is p - 1 here.",
            "Both step times are the work of m microbatches, 3 m, and the wait.",
        ),
        mistakes=(
            Mistake(lambda: 32, "With the same number, 1F1B waits longer.", slip="wrong-quantity"),
            Mistake(
                lambda: 64,
                "The wait is three times as long, not twice: F + B = 3 against F + I - W.",
                slip="factor-two",
            ),
            Mistake(lambda: 33, "The wait is not the same: weights' gradients fill most of it."),
        ),
        right="Right: three times as many.",
    ),
    Check(
        key="training.ring-attention",
        title="How long for a ring?",
        answer=_sequence,
        unit="tokens",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "For each token of the sequence, K and V pass a chip: 2 · 2 K H bytes in one layer.",
            "Its own t tokens meet each of them: 4 N H FLOPs for a pair, half of the pairs under the mask.",
            "t > 2 r K/N tokens on each chip, and there are 16 chips.",
        ),
        mistakes=(
            Mistake(
                lambda: _sequence(causal=False),
                "That is without the mask. A causal one leaves half of the arithmetic to hide behind.",
            ),
            Mistake(4, "Only the key-value heads travel: 8 for 32 query heads."),
            Mistake(1 / 16, "That is one chip's piece. Asked for is the whole sequence."),
            Mistake(
                lambda: _sequence() / 0.9,
                "That is with links at 90% of their documented rate.",
            ),
            Mistake(2, "A ring takes in over both links: 100 GB/s on a v5e."),
        ),
        right="Right: shorter sequences would wait for their ring.",
    ),
    Check(
        key="training.four-pods",
        title="Four pods",
        answer=_batch,
        unit="tokens",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Each chip sums its block of the gradients with the same block in the other pods.",
            "An AllReduce over four moves 2 · 3/4 of the block through each card, of 4 bytes an element.",
            "8 B D F FLOPs over all chips against 2 · 2 D F elements in each pod. D, F and the chips cancel.",
        ),
        mistakes=(
            Mistake(
                lambda: _batch() * 4 / 3,
                "A quarter of the sum is in a pod already: (q - 1)/q of it moves.",
                slip="fraction-left-out",
            ),
            Mistake(
                lambda: _batch(wide=False),
                "That is in bf16. Here gradients have four bytes.",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: _batch() / 4,
                "That is what one pod needs. Asked for is the whole batch.",
                slip="one-for-total",
            ),
            Mistake(
                lambda: _batch() / 16,
                "25 GB/s are for a host, and four chips share them. And all four pods count.",
            ),
            Mistake(
                lambda: 4 * 2 * 71_360,
                "That is from 71,360, for 4.46 in place of 4.59 · 10¹⁴ FLOPs/s.",
            ),
        ),
        right="Right: any batch of a large run is above that.",
    ),
    Check(
        key="training.two-pod-pipeline",
        title="A pipeline of two pods",
        answer=_hop,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "A token leaves the first stage as one row of D elements.",
            "In its stage the token needs 2 FLOPs for each parameter of 40 layers.",
            "Chips share both alike, so their number cancels; C / W of the data-center network is left.",
        ),
        mistakes=(
            Mistake(lambda: _hop(1), "That is for one layer. A stage has 40."),
            Mistake(lambda: _hop(80), "That is for all layers. A pod has half of them."),
            Mistake(
                lambda: _hop() / 4,
                "25 GB/s are for a host with four chips.",
            ),
            Mistake(
                lambda: _hop(params=3 * _70B.D * _70B.F), "That is for the MLPs alone. Attention has weights."
            ),
            Mistake(2, "One hop: two bytes an element, sent once."),
        ),
        right="Right: what a pipeline sends is next to nothing.",
    ),
    Check(
        key="training.expert-width",
        title="Experts in a cube",
        answer=_experts,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "An AllToAll of V bytes on each chip takes V A/(4 W) on a ring of A chips, on all axes at once.",
            "In a cube each axis has four chips. There and back are 4 k D bytes for a token.",
            "6 k D F FLOPs for a token: three matrices for each of its experts. k and D cancel.",
        ),
        mistakes=(
            Mistake(16, "That is with all 64 chips for A. What counts is the longest axis."),
            Mistake(lambda: _experts(gated=False), "An expert is gated here, with three matrices."),
            Mistake(2, "A cube of v5p has wraparound: both links of an axis work, and a way is A/4 long."),
            Mistake(0.5, "Tokens go there and come back: two exchanges."),
            Mistake(
                lambda: limits.expert_parallel(Cluster.of(chips.GB200, 64), 64, k=8, gated=True).least,
                "That is behind a switch, as in a rack of GB200. A torus has other links.",
            ),
            Mistake(4, "That is a ring of 16. In the cube each axis has four chips."),
        ),
        right="Right: the experts of DeepSeek-V3, 2,048 wide, would do.",
    ),
)
