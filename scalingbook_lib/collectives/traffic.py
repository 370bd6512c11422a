"""How many bytes must a collective move, whatever the network, and at what rate did a measured one move them?

Chapters: Sharding, GPUs.
"""


def bytes_received(collective: str, nbytes: float, n: int) -> float:
    """How many bytes each of `n` chips must receive, whatever the network: a lower bound no link can beat."""
    missing = (n - 1) * nbytes / n
    amounts = {
        "all-gather": missing, "reduce-scatter": missing, "all-reduce": 2 * missing,
        "all-to-all": missing / n, "permute": nbytes,
    }  # fmt: skip
    return _named(amounts, collective)


def bus_bandwidth(collective: str, nbytes: float, n: int, seconds: float) -> float:
    """NCCL's busbw: the size over the time (algbw), times the share of the size that a link must carry.

    A perfect ring that gathers or reduces reports busbw = W whatever `n`, which makes it comparable with a
    datasheet. NCCL counts sizes as this book does, except an all-to-all's: there it is one chip's nbytes / n.
    """
    share = (n - 1) / n
    factors = {
        "all-gather": share, "reduce-scatter": share, "all-reduce": 2 * share,
        "all-to-all": share / n, "permute": 1,
    }  # fmt: skip
    return _named(factors, collective) * nbytes / seconds


def reached(targets: int, draws: int) -> float:
    """The chance that one of `targets` chips is among `draws` drawn at random: 1 - (1 - 1/N)^k.

    What a dispatch of tokens to k experts sends of a full all-to-all, each token at most once to a chip.
    """
    if targets < 1 or draws < 0:
        raise ValueError(f"{draws} draws from {targets} chips: write at least 1 chip and no negative draws")
    return 1 - (1 - 1 / targets) ** draws


def _named(table: dict[str, float], collective: str) -> float:
    if collective not in table:
        raise ValueError(f"{collective!r} is no collective of this book; write one of {', '.join(table)}")
    return table[collective]
