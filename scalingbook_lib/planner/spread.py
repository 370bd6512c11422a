"""What makes one plan of a search? A spread, a microbatch, how data ranks share, and its policies.

Chapter: Training LLaMA 3.
"""

from functools import cache
from typing import Any, NamedTuple


class Spread(NamedTuple):
    """Chips for tensor ways, context ways and stages; `rest` are left to fsdp and dp."""

    pp: int
    cp: int
    tp: int
    rest: int  # chips of the data ranks: fsdp · dp
    schedule: str
    chunks: int


class Group(NamedTuple):
    """Plans that differ in how data ranks share, in ZeRO and in rematerialization; m microbatches each."""

    spread: Spread
    dcn: int  # pods
    microbatch: int
    m: int  # of a data rank, one step


class Policy(NamedTuple):
    """What ZeRO splits, and what is recomputed."""

    zero: int
    remat: str


class Sharing(NamedTuple):
    """How the data ranks of a group share weights, and spread experts."""

    fsdp: int
    dp: int
    ep: int = 1
    expert_tp: int | None = None


def ways(g: Group, sharing: Sharing) -> dict[str, Any]:
    """The fields of `training.Plan` that a group and a sharing fix."""
    s = g.spread
    return {
        "pp": s.pp,
        "cp": s.cp,
        "tp": s.tp,
        **sharing._asdict(),
        "dcn": g.dcn,
        "schedule": s.schedule,
        "chunks": s.chunks,
        "microbatch": g.microbatch,
    }


@cache
def divisors(n: int) -> tuple[int, ...]:
    """All of them, ascending: divisors(12) = 1, 2, 3, 4, 6, 12."""
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]  # each has a partner n/d at or above √n
    return tuple(sorted({*low, *(n // d for d in low)}))


def tried_ways(tried: dict[str, tuple[Any, ...]], name: str, whole: int) -> list[int]:
    """The divisors of a whole that `tried` names for this field; all of them, if it names none."""
    return [n for n in divisors(whole) if name not in tried or n in tried[name]]
