"""Checks of the last exercises: which plan fits a real machine, and what it costs."""

from dataclasses import replace
from functools import cache
from typing import Any

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives, models, planner, rules, training
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training import Plan, effective_width
from scalingbook_lib.units import FP32

_13B, _70B = models.find("Llama 2 13B"), models.find("Llama 3 70B")
_V5P = chips.V5P
_POD, _CUBE = Slice.of(_V5P, "16x20x28"), Slice.of(_V5P, "16x16x16")
_PLANS: dict[str, dict[str, Any]] = {
    "FSDP 2,240, TP 4": {"fsdp": 2240, "tp": 4},
    "FSDP 560, TP 16": {"fsdp": 560, "tp": 16},
    "FSDP 128, TP 10, 7 replicas": {"fsdp": 128, "tp": 10, "dp": 7},
    "FSDP 256, 35 replicas": {"fsdp": 256, "dp": 35},
    "FSDP 64, TP 4, 35 replicas": {"fsdp": 64, "tp": 4, "dp": 35},
}


def _group(share: float = 0.5) -> int:
    """The smallest power of two of chips that holds the state in this share of their HBM."""
    held = {2**k: training.states(_70B.params, Plan(fsdp=2**k)).total for k in range(11)}
    return min(n for n, nbytes in held.items() if nbytes <= share * _V5P.hbm_bytes)


def _summed(group: int = 0, **how: Any) -> float:
    """Bytes that a chip takes in from other groups in one step."""
    n = group or _group()
    plan = Plan(fsdp=n, dp=1024 // n, **how)
    rows = training.traffic(_70B, plan, Slice.of(_V5P, "8x8x16"), batch=1024, T=4096)
    return sum(row.received for row in rows if row.axes == "R")


def _on_a_line(size: int = 4, wrapped: bool = False, width: float = _13B.F) -> float:
    """Gather and scatter of tensor parallelism over `size` neighbors, over the arithmetic, for one token."""
    moved_s = 2 * collectives.all_gather(2 * _13B.D, _V5P.axis(size, wrapped=wrapped)).bandwidth_s
    return moved_s / (4 * _13B.D * width / (size * _V5P.bf16_flops_per_s))


def _stands() -> str:
    """The one plan of which nothing says that it cannot be."""
    whole = {name: Plan(remat="full", **ways) for name, ways in _PLANS.items()}
    (name,) = (n for n, p in whole.items() if not training.feasible(_70B, _POD, p, 2240, 4096))
    return name


@cache
def _winner(**fixed: Any) -> planner.Ranked:
    """The best plan that the planner finds."""
    return planner.plans(_13B, _CUBE, batch=96, T=32_768, fixed=fixed, keep=1).winner


def _step_s(**fixed: Any) -> float:
    return _winner(**fixed).step.total_s


def _same_plan() -> float:
    """What is gained if the best plan without is kept, and its collectives may then overlap."""
    plan = replace(_winner().plan, collective_matmul=True)
    return _step_s() / training.step(_13B, _CUBE, plan, batch=96, T=32_768).total_s


def _least_batch(Y: int, dial: float = 0.25, width: float = 0.0) -> float:
    """The batch at which 4,096 chips with a TP degree of Y are just compute-bound, by bisection."""
    F, low, high = width or effective_width(_70B), 1e3, 1e9

    def ratio(B: float) -> float:
        return rules.fsdp_with_tensor(B, 4096, F, 4096 / Y, _V5P).ratio(dial)

    if ratio(high) > 1:
        return float("inf")
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if ratio(middle) <= 1 else (middle, high)
    return high


def _smallest(dial: float = 0.25, width: float = 0.0) -> float:
    return min(_least_batch(2**k, dial, width) for k in range(7))


MACHINES = (
    Check(
        key="training.hybrid-sharding",
        title="HSDP on 1,024 chips",
        answer=_summed,
        unit="B",
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "Training state takes 16 bytes per parameter. Over how many chips does it take at most half "
            "of each chip's HBM?",
            "After the ReduceScatter in its group, each chip has one block of the gradients, in bf16.",
            "In an AllReduce of that block over R groups, each chip receives 2 (R - 1)/R times the block.",
        ),
        mistakes=(
            Mistake(
                lambda: _summed(_group(1.0)),
                "Such a group can hold the state, but it takes more than half of the HBM.",
            ),
            Mistake(lambda: _summed(2 * _group()), "A smaller group is large enough."),
            Mistake(lambda: _summed(gradients=FP32), "The gradients are in bf16, so each takes two bytes."),
            Mistake(0.5, "A ReduceScatter is only half of it, because every group needs the sum."),
            Mistake(32, "Each chip sums only its own block, not all gradients."),
            Mistake(
                lambda: _summed() * 32 / 31,
                "A chip already has one of the R parts of the sum, so it receives (R - 1)/R.",
            ),
        ),
        right="Right: a sixteenth of what each gather moves inside a group.",
    ),
    Check(
        key="training.line-not-ring",
        title="Tensor parallelism over a part of a torus axis",
        answer=_on_a_line,
        rel_tol=0.005,
        difficulty=3,
        hints=(
            "Four neighbors on an axis of 16 form a line. Over which links does the chip at its end receive?",
            "In a gather, the chip at the end receives 3/4 of the array over one link, at 100 GB/s.",
            "2 B D bytes are gathered and 2 B D are reduce-scattered, for 4 B D F FLOPs over four chips.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.fsdp_with_tensor(3e6, 4096, _13B.F, 1024, _V5P).tensor,
                "That is r Y/F, the formula for a long ring. Four of sixteen chips form a line.",
            ),
            Mistake(
                lambda: _on_a_line(wrapped=True),
                "That is for a ring of four, in a slice with a side of 4. Only one link leads to "
                "the end of a line.",
            ),
            Mistake(4 / 3, "The chip already has a quarter of the array."),
            Mistake(
                lambda: _on_a_line() / 0.9,
                "That is with links at 90% of their documented rate.",
            ),
            Mistake(
                lambda: _on_a_line(width=effective_width(_13B)),
                "That is with the effective width of a real layer. Use F itself.",
            ),
        ),
        right="Right: 1.5 times what the formula says, which leaves no margin.",
    ),
    Check(
        key="training.plan-for-pod",
        title="A plan for 8,960 chips",
        answer=_stands,
        choices=tuple(_PLANS),
        difficulty=3,
        hints=(
            "Which sizes have to be divisible? D by the FSDP degree, heads and F by the TP degree, "
            "sequences by all ranks.",
            "8,960 is 256 · 5 · 7. Where can a factor of 5 or 7 go?",
        ),
        mistakes=(
            Mistake(
                "FSDP 2,240, TP 4",
                "The degrees do multiply to 8,960. But 2,240 has factors that D does not have.",
            ),
            Mistake("FSDP 560, TP 16", "The axes of the torus suggest this plan. But is D divisible by 560?"),
            Mistake("FSDP 128, TP 10, 7 replicas", "64 heads are not divisible by 10, and neither is F."),
            Mistake(
                "FSDP 256, 35 replicas",
                "Each chip would need sequences of its own, but there are only 2,240.",
            ),
        ),
        right="Right: the factors 5 and 7 can only go where nothing is sharded, into replicas.",
    ),
    Check(
        key="training.collective-matmul",
        title="What collective matmuls gain",
        answer=lambda: _step_s() / _step_s(collective_matmul=True),
        rel_tol=0.005,
        difficulty=3,
        hints=(
            "`planner.plans(model, slice, batch=96, T=32_768).winner.step.total_s` is the "
            "time of the best step.",
            "For the second search, add `fixed=dict(collective_matmul=True)`.",
        ),
        mistakes=(
            Mistake(
                _same_plan,
                "That keeps the plan that was best without collective matmuls. With them, another plan "
                "is best: search again.",
            ),
            Mistake(
                lambda: _step_s(tp=1) / _step_s(),
                "That is what tensor parallelism gains. Both searches may use tensor parallelism.",
            ),
            Mistake(
                lambda: _step_s(tp=1) / _step_s(collective_matmul=True),
                "That is without tensor parallelism in the first search. Leave its degree free.",
            ),
            Mistake(
                lambda: _step_s(collective_matmul=True) / _step_s(),
                "That is the fraction of the time that is left. The gain is its inverse, above 1.",
            ),
        ),
        right="Right: a single compiler option changes which plan is best.",
    ),
    Check(
        key="training.own-search",
        title="Your own search for a plan",
        answer=_smallest,
        unit="tokens",
        rel_tol=0.003,
        difficulty=3,
        hints=(
            "First write `ratio(B, Y)`, with X = 4096 / Y: the larger ratio plus a quarter "
            "of the smaller one.",
            "For each Y, the ratio falls as B grows. Find where it reaches 1 by bisection.",
            "For some Y, it never does, because their ratio for tensor parallelism is above 1 for any batch.",
        ),
        mistakes=(
            Mistake(
                lambda: 4096 * rules.fsdp_with_tensor_tokens(effective_width(_70B), _V5P, dial=0.25),
                "That is the formula, whose best degrees are not powers of two.",
            ),
            Mistake(
                lambda: _smallest(dial=0.0),
                "That is with full overlap. Here a quarter of the shorter communication does not overlap.",
            ),
            Mistake(lambda: _smallest(dial=1.0), "That is with no overlap between the two communications."),
            Mistake(
                lambda: _smallest(width=_70B.F),
                "That is with F. A real layer has attention as well, so use the effective width.",
            ),
            Mistake(
                lambda: _least_batch(4), "That is for Y = 4. Another power of two needs a smaller batch."
            ),
            Mistake(
                lambda: _smallest() / 4096, "That is for one chip. The question is about the whole batch."
            ),
        ),
        right="Right: a tenth more than the formula says.",
    ),
)
