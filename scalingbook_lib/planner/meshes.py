"""The parts of a training plan that a search combines: a mesh with its schedule, and how data ranks share.

Chapter: Training Llama 3.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple


class MeshShape(NamedTuple):
    """Degrees of tensor, context and pipeline parallelism, and a schedule; other chips are data ranks."""

    pp: int
    cp: int
    tp: int
    data_ranks: int  # of one pod: fsdp · dp
    schedule: str
    chunks: int


class Group(NamedTuple):
    """Plans that differ in how data ranks share weights, in ZeRO and in rematerialization."""

    mesh: MeshShape
    dcn: int  # pods
    microbatch: int  # sequences
    m: int  # microbatches of a data rank in one step


class Sharing(NamedTuple):
    """How the data ranks of a group share weights, and where the experts are."""

    fsdp: int
    dp: int
    ep: int = 1
    expert_tp: int | None = None


def plan_fields(g: Group, sharing: Sharing) -> dict[str, Any]:
    """The fields of `training.Plan` that a group and a sharing fix: all but `zero` and `remat`."""
    shape = g.mesh
    return {
        "pp": shape.pp,
        "cp": shape.cp,
        "tp": shape.tp,
        **sharing._asdict(),
        "dcn": g.dcn,
        "schedule": shape.schedule,
        "chunks": shape.chunks,
        "microbatch": g.microbatch,
    }


@cache
def divisors(n: int) -> tuple[int, ...]:
    """All divisors of n, ascending: divisors(12) = 1, 2, 3, 4, 6, 12."""
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]  # each has a partner n/d at or above √n
    return tuple(sorted({*low, *(n // d for d in low)}))


def indivisible(name: str, asked: Iterable[int], whole: int, what: str) -> str:
    """Why none of the degrees that are asked for is possible: 'tp=3 does not divide the 64 chips; ...'."""
    degrees, possible = " or ".join(map(str, asked)), ", ".join(map(str, divisors(whole)))
    return f"{name}={degrees} does not divide {what}; write one of {possible}"


def degrees(candidates: dict[str, tuple[Any, ...]], name: str, whole: int) -> list[int]:
    """The divisors of `whole` that `candidates` lists for this field; all of them where it lists none."""
    return [n for n in divisors(whole) if name not in candidates or n in candidates[name]]
