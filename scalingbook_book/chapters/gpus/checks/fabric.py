"""Checks of the exercises on networks: bandwidth of a node and of a cluster, AllGather and AllToAll times."""

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
        title="Total bandwidth of a node",
        answer=lambda: 8 * _W,
        unit="B/s",
        hints=(
            "How much can the GPUs send, and how much can the "
            "switches accept? The smaller of the two counts.",
            "A GPU has 18 links of 25 GB/s in one direction, and a switch has 64 ports.",
        ),
        mistakes=(
            Mistake(
                lambda: 4 * 64 * 25e9, "The switches could accept this much, but the GPUs cannot send it."
            ),
            Mistake(lambda: _W, "This is the bandwidth of one GPU."),
            Mistake(
                lambda: _NODE.bisection_bytes_per_s,
                "This is the bisection bandwidth in one direction. Here all eight GPUs send.",
            ),
            Mistake(2, "This adds up both directions. Count only what the GPUs send."),
        ),
        right="Right. The switches have more ports than the GPUs have links.",
    ),
    Check(
        key="gpus.node-allgather",
        title="AllGather in a node",
        answer=lambda: collectives.all_gather(_GATHERED, *_NODE.levels).bandwidth_s,
        unit="s",
        chips=8,
        hints=(
            "How many bytes does the array have, and how many of them does each GPU lack?",
            "Each GPU receives what it lacks over all of its links, at 450 GB/s.",
        ),
        mistakes=(
            Mistake(8 / 7, "Each GPU already has an eighth of the array.", slip="fraction-left-out"),
            Mistake(
                lambda: _GATHERED / (8 * _W),
                "This divides by the links of all GPUs, but each of the "
                "eight has to receive the whole array.",
                slip="wrong-formula-part",
            ),
            Mistake(
                2,
                "This is the time of an AllReduce, which moves the data twice. An AllGather moves it once.",
                slip="two-passes",
            ),
            Mistake(
                lambda: 7 / 8 * _GATHERED / _NODE.chip.dcn_bytes_per_s,  # type: ignore[operator]
                "This is the time over the NIC. Within a node, there is NVLink.",
            ),
        ),
        right="Right, at the documented bandwidth.",
    ),
    Check(
        key="gpus.fat-tree-switches",
        title="Switches of a fat tree",
        answer=_switches,
        rel_tol=1e-6,
        difficulty=2,
        hints=(
            "Half of a leaf's ports lead down. How many leaves do you need to connect every NIC?",
            "How many ports does a spine have, and how many leaves would it have to reach?",
            "With a third tier, half of a spine's ports lead down and half "
            "lead up. All ports of the cores lead down.",
        ),
        mistakes=(
            Mistake(
                lambda: 128 + 64,
                "Two tiers are not enough: a spine would need a port for each of the leaves.",
            ),
            Mistake(
                lambda: 128 + 128, "Half of the spines' ports lead up, so another tier has to connect them."
            ),
            Mistake(
                lambda: 3 * 128,
                "All ports of the top tier lead down, so half as many switches are enough there.",
            ),
            Mistake(lambda: _switches(2048), "This is for 2,048 GPUs, the most that two tiers can connect."),
            Mistake(lambda: 128, "These are only the leaves."),
        ),
        right="Right: twice as many GPUs as 2,048 need more than three times as many switches.",
    ),
    Check(
        key="gpus.tokens-to-experts",
        title="Dispatching tokens to four experts",
        answer=_dispatch_s,
        unit="s",
        difficulty=2,
        hints=(
            "What is the probability that none of the four draws is one particular GPU of the eight?",
            "One minus that is the fraction of its tokens that a GPU sends to each other GPU.",
            "There are seven others. Tokens that stay on their GPU take no time.",
        ),
        mistakes=(
            Mistake(
                lambda: _dispatch_s() / collectives.reach_probability(8, 4) / 2,
                "This sends 4/8 of the tokens to each GPU, as if no two "
                "experts of a token were on the same GPU.",
            ),
            Mistake(
                lambda: _dispatch_s() / collectives.reach_probability(8, 4),
                "This sends every token to every GPU. What fraction of them is needed there?",
            ),
            Mistake(8 / 7, "Copies for experts on the token's own GPU cross no link."),
            Mistake(1 / 7, "This is the time for only one of the seven other GPUs."),
        ),
        right="Right. The common estimate k/N would be too high by a fifth.",
    ),
    Check(
        key="gpus.two-node-alltoall",
        title="AllToAll over two nodes",
        answer=_exchanges,
        difficulty=2,
        hints=(
            "In one node, a GPU holds an eighth of the array, and 7/8 of that leave it at 450 GB/s.",
            "Over two nodes, it holds a sixteenth, and half of that goes through its NIC at 50 GB/s.",
        ),
        mistakes=(
            Mistake(
                lambda: 3600 / 800,
                "This uses 1/N instead of (N - 1)/N² for both. With two nodes, half of the bytes stay.",
            ),
            Mistake(
                lambda: 3600 / 1600, "In one node as well, an eighth of each GPU's data stays where it is."
            ),
            Mistake(
                lambda: 450 / 50,
                "This is the ratio of the bandwidths. But twice as many GPUs share "
                "the array, and half of it stays in its node.",
                slip="wrong-formula-rates",
            ),
            Mistake(
                2,
                "This assumes the same number of bytes on each GPU. Here "
                "the total size of the array is the same.",
            ),
        ),
        right="Right. Over two nodes, NVLink limits an AllGather, and the NICs limit an AllToAll.",
    ),
)
