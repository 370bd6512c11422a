"""How wide must an MLP be to be split over Y chips, or over how many can one of width F be split?

X[B, D] · W_in[D, F_Y], then · W_out[F_Y, D]: the input is gathered and the output scattered, w · B · D bytes
each, while every chip does 2 · matrices · B · D · F / Y FLOPs. B and D cancel. Chapter: GPUs.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.machines import Machine, Slice
from scalingbook_lib.steps.limits.limit import Limit, at_least, inner, limit
from scalingbook_lib.units import BF16, DType, Told, count


def tensor_parallel(
    machine: Machine, Y: int, *, gated: bool = False, dtype: DType = BF16, moved: DType = BF16
) -> Limit:
    """The width: F > Y · w · C · t / matrices, with t the seconds that one byte takes to gather over Y.

    In a domain F > (Y - 1) C/W; over Y/g domains of g both F > (Y - Y/g) C/W and F > (Y - g) C/W_n. With a
    third matrix (`gated`) the arithmetic grows by half, and two thirds of that F will do.
    Source: derived from `collectives`; the scaling book has F > Y C/W and, over domains, the second alone.
    """
    at_least(1, Y=Y)
    matrices = 3 if gated else 2
    per_byte = Y * moved.bytes / matrices * machine.chip.flops_per_s(dtype)
    what = f"tensor parallelism over {Y:,} {machine.chip.name}"
    return limit(what, "F", per_byte, collectives.all_gather, inner(machine, Y))


@dataclass(frozen=True, slots=True)
class Widest(Told):
    """The most chips that an MLP of width F can be split over, and the next that would be too many."""

    F: int
    Y: int
    limit: Limit
    beyond: Limit | None

    def __str__(self) -> str:
        needed = count(round(self.limit.least))
        said = f"F = {count(self.F)} can be split over {self.Y:,} chips, which needs {needed}"
        if self.beyond is None:
            return f"{said}; there are no more"
        more = self.beyond.what.removeprefix("tensor parallelism over ")
        return f"{said}; {more} would need {count(round(self.beyond.least))} ({self.beyond.bound})"


def widest_tensor_parallel(
    machine: Machine, F: int, *, gated: bool = False, dtype: DType = BF16, moved: DType = BF16
) -> Widest:
    """The largest group Y that divides the machine, fits its levels, and needs no more than F."""
    at_least(1, F=F)
    best = tensor_parallel(machine, 1, gated=gated, dtype=dtype, moved=moved)
    ways = 1
    # sizes that the innermost mesh axis can have
    for Y in (n for n in range(2, machine.chips + 1) if machine.chips % n == 0 and _fits(machine, n)):
        found = tensor_parallel(machine, Y, gated=gated, dtype=dtype, moved=moved)
        if not found.holds(F):
            return Widest(F, ways, best, found)
        best, ways = found, Y
    return Widest(F, ways, best, None)


def _fits(machine: Machine, n: int) -> bool:
    try:
        machine.mesh(Y=n, X=machine.chips // n)
    except ValueError:  # a ClusterError or SliceError
        return False
    return not isinstance(machine, Slice) or bool(inner(machine, n))
