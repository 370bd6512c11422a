"""Checks of exercises on mixtures of experts: the busiest GPU, and copies of a token between nodes."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.steps import expert_load, limits

LOADS = (400, 90, 110, 60, 120, 80, 100, 40)


def _busiest(redundant: int = 0, *, rebalanced: bool = True) -> float:
    return expert_load.balance(LOADS, 4, redundant=redundant, rebalanced=rebalanced).busiest_chip


EXPERTS = (
    Check(
        key="transformers.busiest-gpu",
        title="The busiest of four GPUs",
        answer=lambda: _busiest(4),
        difficulty=3,
        hints=(
            "After each redundant slot, divide the load of an expert by its number of replicas.",
            "There are twelve slots in the end. Sort them, and give each to the least loaded GPU with room.",
        ),
        mistakes=(
            Mistake(_busiest, "That is without redundant experts."),
            Mistake(
                lambda: _busiest(rebalanced=False), "That is with the experts in order, two on each GPU."
            ),
            Mistake(
                lambda: max(LOADS) * len(LOADS) / sum(LOADS),
                "That is the most popular expert over the mean of all experts.",
            ),
            Mistake(lambda: 1 / _busiest(4), "That is the balancedness, mean over maximum."),
        ),
        right="Right. Replicas cut the most popular expert into pieces that are small enough to pack.",
    ),
    Check(
        key="transformers.token-nodes",
        title="Copies of a token between nodes",
        answer=lambda: 15 * limits.reached(16, 8, 16),
        difficulty=3,
        hints=(
            "What is the probability that none of the eight experts is on a given node?",
            "Eight different experts of 256 are drawn, and a node holds 16 of them.",
        ),
        mistakes=(
            Mistake(
                lambda: 16 * limits.reached(16, 8, 16),
                "The experts on the token's own node need no transfer between nodes.",
            ),
            Mistake(lambda: 8 * 15 / 16, "A token crosses into a node once, not once for each expert."),
            Mistake(lambda: 8.0, "That is the number of experts; some of them share a node."),
        ),
        right="Right. With twice as many nodes as experts per token, deduplication saves little.",
    ),
)
