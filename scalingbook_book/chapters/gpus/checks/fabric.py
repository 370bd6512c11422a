"""What can a node send, what can a cluster, and how long do a gather and an exchange take?"""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives
from scalingbook_lib.machines import Cluster, chips

_NODE, _TWO = Cluster.of(chips.H100, 8), Cluster.of(chips.H100, 16)
_GATHERED = 2 * 4096 * 65_536
_TOKENS = 2 * 4096 * 7168  # bytes of one GPU's tokens
_W = chips.H100.domain_bytes_per_s()


def _switches(gpus: int = 4096) -> int:
    tree = Cluster.of(chips.H100, gpus)
    return tree.leaves + tree.spines + tree.cores


def _dispatch_s() -> float:
    """Every GPU has room for all its tokens at each of the eight; a part of them goes."""
    everything = collectives.all_to_all(8 * 8 * _TOKENS, *_NODE.levels).bandwidth_s
    return everything * collectives.reach_probability(8, 4)


def _exchanges() -> float:
    one, two = (collectives.all_to_all(1, *cluster.levels).bandwidth_s for cluster in (_NODE, _TWO))
    return two / one


FABRIC = (
    Check(
        key="gpus.node-egress",
        title="Everybody sends at once",
        answer=lambda: 8 * _W,
        unit="B/s",
        hints=(
            "What can the GPUs give, and what can the switches take? The smaller of the two counts.",
            "A GPU has 18 links of 25 GB/s one way; a switch has 64 of them.",
        ),
        mistakes=(
            Mistake(lambda: 4 * 64 * 25e9, "So much the switches could take. Who sends it?"),
            Mistake(lambda: _W, "That is one GPU."),
            Mistake(
                lambda: _NODE.bisection_bytes_per_s,
                "That crosses a cut into halves, one way. Here all eight send.",
            ),
            Mistake(2, "That is both directions together. Each GPU sends and, at the same time, receives."),
        ),
        right="Right. The switches have more ports than the GPUs have links.",
    ),
    Check(
        key="gpus.node-allgather",
        title="A gather in a node",
        answer=lambda: collectives.all_gather(_GATHERED, *_NODE.levels).bandwidth_s,
        unit="s",
        chips=8,
        hints=(
            "How many bytes has the array, and how many of them does each GPU lack?",
            "Each GPU receives what it lacks over all its links, 450 GB/s.",
        ),
        mistakes=(
            Mistake(8 / 7, "Each GPU has an eighth of the array already.", slip="fraction-left-out"),
            Mistake(
                lambda: _GATHERED / (8 * _W),
                "That divides by the links of all GPUs. But each of the eight must receive the whole array.",
                slip="wrong-formula-part",
            ),
            Mistake(2, "That is an AllReduce, or two passes. A gather is one.", slip="two-passes"),
            Mistake(
                lambda: 7 / 8 * _GATHERED / _NODE.chip.dcn_bytes_per_s,  # type: ignore[operator]
                "That is over the network card. In the node there is NVLink.",
            ),
        ),
        right="Right, at documented rates.",
    ),
    Check(
        key="gpus.fat-tree-switches",
        title="Counting switches",
        answer=_switches,
        rel_tol=1e-6,
        difficulty=2,
        hints=(
            "Half of a leaf's ports go down. How many leaves does it take to connect every card?",
            "How many ports does a spine have, and how many leaves would it have to reach?",
            "With a third tier, spines have half of their ports down and half up; the cores all down.",
        ),
        mistakes=(
            Mistake(
                lambda: 128 + 64,
                "Two tiers are not enough: a spine would need a port for every one of the leaves.",
            ),
            Mistake(lambda: 128 + 128, "Something must join the spines above: half of their ports go up."),
            Mistake(lambda: 3 * 128, "The topmost switches have all of their ports down: half as many do."),
            Mistake(lambda: _switches(2048), "That is for 2,048 GPUs, the most that two tiers can join."),
            Mistake(lambda: 128, "Those are the leaves alone."),
        ),
        right="Right: at twice the size it takes more than three times the switches.",
    ),
    Check(
        key="gpus.tokens-to-experts",
        title="Tokens to four experts",
        answer=_dispatch_s,
        unit="s",
        difficulty=2,
        hints=(
            "What is the chance that none of four draws is one certain GPU of the eight?",
            "The part of its tokens that one GPU sends to one other is 1 minus that.",
            "Seven others; what does not leave the GPU takes no time.",
        ),
        mistakes=(
            Mistake(
                lambda: _dispatch_s() / collectives.reach_probability(8, 4) / 2,
                "That is 4/8 for each of the others, as if no two experts of a token were on one GPU.",
            ),
            Mistake(
                lambda: _dispatch_s() / collectives.reach_probability(8, 4),
                "That sends every token to every GPU. Which part is needed there?",
            ),
            Mistake(8 / 7, "What stays on its own GPU crosses no link."),
            Mistake(1 / 7, "That is what one of the seven others gets."),
        ),
        right="Right. The shortcut k/N would have overstated it by a fifth.",
    ),
    Check(
        key="gpus.two-node-alltoall",
        title="An exchange over two nodes",
        answer=_exchanges,
        difficulty=2,
        hints=(
            "In one node a GPU has an eighth of the array, and 7/8 of that leaves it, at 450 GB/s.",
            "Over two nodes it has a sixteenth, and half of that goes through its card, at 50 GB/s.",
        ),
        mistakes=(
            Mistake(
                lambda: 3600 / 800,
                "That takes 1/N for (N - 1)/N² on both sides. With two nodes, half of the bytes stay.",
            ),
            Mistake(lambda: 3600 / 1600, "In one node, too, an eighth of a GPU's part stays where it is."),
            Mistake(
                lambda: 450 / 50,
                "That is the ratio of the rates. Twice as many GPUs share the array, and half of it stays.",
                slip="wrong-formula-rates",
            ),
            Mistake(2, "That is for the same bytes on each GPU. Here the array is the same."),
        ),
        right="Right. Over two nodes NVLink limits a gather, and the network an exchange.",
    ),
)
