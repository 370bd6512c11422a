"""How many bytes must a collective move, whatever the network, and at what rate did a measured one move them?

Chapters: Sharding, GPUs.
"""

from scalingbook_lib.collectives.transfer import Collective


def bytes_received(collective: str, nbytes: float, n: int) -> float:
    """How many bytes each of `n` chips must receive, whatever the network: a lower bound no link can beat."""
    return _received(collective, (n - 1) * nbytes / n, nbytes, n)


def bus_bandwidth(collective: str, nbytes: float, n: int, seconds: float) -> float:
    """NCCL's busbw: the size over the time (algbw), times the share of the size that a link must carry.

    A perfect ring that gathers or reduces reports busbw = W whatever `n`, which makes it comparable with a
    datasheet. NCCL counts sizes as this book does, except an all-to-all's: there it is one chip's nbytes / n.
    Source: nccl-tests, doc/PERFORMANCE.md.
    """
    return _received(collective, (n - 1) / n, 1, n) * nbytes / seconds


def _received(collective: str, missing: float, whole: float, n: int) -> float:
    """What a chip must receive of an array: of the `whole` it is `missing` all but its own part of n."""
    shares = {
        Collective.ALL_REDUCE: 2 * missing,  # a reduce-scatter, then an all-gather
        Collective.ALL_TO_ALL: missing / n,  # of each shard the part that is for this chip
        Collective.PERMUTE: whole,  # one chip's shard
    }
    return shares.get(Collective.named(collective), missing)


def reached(targets: int, draws: int) -> float:
    """The chance that one of `targets` chips is among `draws` drawn at random: 1 - (1 - 1/N)^k.

    What a dispatch of tokens to k experts sends of a full all-to-all, each token at most once to a chip.
    """
    if targets < 1 or draws < 0:
        raise ValueError(f"{draws} draws from {targets} chips: write at least 1 chip and no negative draws")
    return 1 - (1 - 1 / targets) ** draws
