"""Which plan stands on a real machine, and what does it cost? The last exercises."""

from dataclasses import replace
from functools import cache
from typing import Any

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives, models, planner, rules, training
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training import Plan, effective_width
from scalingbook_lib.units import FP32

_13B, _70B = models.find("LLaMA-2 13B"), models.find("LLaMA-3 70B")
_V5P = chips.V5P
_POD, _CUBE = Slice.of(_V5P, "16x20x28"), Slice.of(_V5P, "16x16x16")
_PLANS: dict[str, dict[str, Any]] = {
    "FSDP 2,240, TP 4": {"fsdp": 2240, "tp": 4},
    "FSDP 560, TP 16": {"fsdp": 560, "tp": 16},
    "FSDP 128, TP 10, copies 7": {"fsdp": 128, "tp": 10, "dp": 7},
    "FSDP 256, copies 35": {"fsdp": 256, "dp": 35},
    "FSDP 64, TP 4, copies 35": {"fsdp": 64, "tp": 4, "dp": 35},
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
    """The batch at which 4,096 chips with Y tensor ways are just compute-bound, halving an interval."""
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
        title="Groups of copies",
        answer=_summed,
        unit="B",
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "16 bytes for each parameter. From how many chips on is a share below half of the HBM?",
            "After the scatter in its group, each chip has one block of the gradients, in bf16.",
            "An AllReduce of that block over R groups brings each chip 2 (R - 1)/R of it.",
        ),
        mistakes=(
            Mistake(
                lambda: _summed(_group(1.0)),
                "Such a group holds the state, but then more than half of its HBM is full.",
            ),
            Mistake(lambda: _summed(2 * _group()), "A smaller group is enough."),
            Mistake(lambda: _summed(gradients=FP32), "The gradients are in bf16, two bytes each."),
            Mistake(0.5, "A ReduceScatter is half of it: every group has to have the sum."),
            Mistake(32, "Each chip sums its own block alone, not all gradients."),
            Mistake(
                lambda: _summed() * 32 / 31,
                "One part of its block's sum a chip has itself: (R - 1)/R of it moves.",
            ),
        ),
        right="Right: a sixteenth of what moves inside the group, for each gather.",
    ),
    Check(
        key="training.line-not-ring",
        title="Four of sixteen",
        answer=_on_a_line,
        rel_tol=0.005,
        difficulty=3,
        hints=(
            "Four neighbors on an axis of 16 form a line. Over which links does its end receive?",
            "A gather brings the end 3/4 of the array over one link, 100 GB/s.",
            "2 B D bytes gathered and 2 B D scattered, for 4 B D F FLOPs over four chips.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.fsdp_with_tensor(3e6, 4096, _13B.F, 1024, _V5P).tensor,
                "That is r Y/F, for a long ring. Four of sixteen chips are a line.",
            ),
            Mistake(
                lambda: _on_a_line(wrapped=True),
                "That is a ring of four, in a slice 4 wide. One link leads to a line's end.",
            ),
            Mistake(4 / 3, "A quarter of the array is there already."),
            Mistake(
                lambda: _on_a_line() / 0.9,
                "That is with links at 90% of their documented rate.",
            ),
            Mistake(
                lambda: _on_a_line(width=effective_width(_13B)),
                "That is with the width of a real layer. Take F as it is.",
            ),
        ),
        right="Right: half as much again as the formula says, and nothing is left.",
    ),
    Check(
        key="training.plan-for-pod",
        title="A plan for 8,960 chips",
        answer=_stands,
        choices=tuple(_PLANS),
        difficulty=3,
        hints=(
            "What has to divide? D by the ways of FSDP, heads and F by those of TP, sequences by all ranks.",
            "8,960 is 256 · 5 · 7. Where can a factor of 5 or 7 go?",
        ),
        mistakes=(
            Mistake("FSDP 2,240, TP 4", "The product is right. But 2,240 has factors that D does not have."),
            Mistake("FSDP 560, TP 16", "The axes of the torus suggest that. But does D divide by 560?"),
            Mistake("FSDP 128, TP 10, copies 7", "64 heads do not divide by 10, nor does F."),
            Mistake("FSDP 256, copies 35", "Each chip would need sequences of its own. There are 2,240."),
        ),
        right="Right: 5 and 7 can only go where nothing is cut, into copies.",
    ),
    Check(
        key="training.collective-matmul",
        title="Ask the planner",
        answer=lambda: _step_s() / _step_s(collective_matmul=True),
        rel_tol=0.005,
        difficulty=3,
        hints=(
            "`planner.plans(model, slice, batch=96, T=32_768).winner.step.total_s` is the best step.",
            "`fixed=dict(collective_matmul=True)` is the second search.",
        ),
        mistakes=(
            Mistake(
                _same_plan,
                "That keeps the plan that was best without. With it another plan is best: search again.",
            ),
            Mistake(
                lambda: _step_s(tp=1) / _step_s(),
                "That is what tensor parallelism gains. Both searches may use it.",
            ),
            Mistake(
                lambda: _step_s(tp=1) / _step_s(collective_matmul=True),
                "That is with no tensor parallelism in the first search. Leave it free.",
            ),
            Mistake(
                lambda: _step_s(collective_matmul=True) / _step_s(),
                "That is the share of time which is left. Asked for is the gain, above 1.",
            ),
        ),
        right="Right: one switch of the compiler, and another plan.",
    ),
    Check(
        key="training.own-search",
        title="Your own search",
        answer=_smallest,
        unit="tokens",
        rel_tol=0.003,
        difficulty=3,
        hints=(
            "Write `ratio(B, Y)` first, with X = 4096 / Y: the longer share plus a quarter of the shorter.",
            "For each Y, the ratio falls as B grows. Where does it reach 1? Halve an interval, often.",
            "Some Y never get there: their own share is above 1, whatever the batch.",
        ),
        mistakes=(
            Mistake(
                lambda: 4096 * rules.fsdp_with_tensor_tokens(effective_width(_70B), _V5P, dial=0.25),
                "That is the formula, whose best split is not made of powers of two.",
            ),
            Mistake(lambda: _smallest(dial=0.0), "That is with full overlap. A quarter is waited for."),
            Mistake(lambda: _smallest(dial=1.0), "That is with no overlap between the two networks."),
            Mistake(
                lambda: _smallest(width=_70B.F),
                "That is with F. A real layer has attention as well: take the effective width.",
            ),
            Mistake(lambda: _least_batch(4), "That is for Y = 4. Another power of two does with less."),
            Mistake(lambda: _smallest() / 4096, "That is for one chip. Asked for is the whole batch."),
        ),
        right="Right, and a tenth above what the formula promises.",
    ),
)
