"""A[B, D] · W[D_X, F] -> Z[B, F] in closed form: gather the weight, or reduce the result.

These are the four strategies that `solve` finds for this matmul, computed fast enough to draw a whole map in
milliseconds, either with the textbook's formulas or exactly. Chapter: Sharding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from scalingbook_lib import collectives
from scalingbook_lib.machines import Axis, Chip
from scalingbook_lib.units import BF16, DType, Result

type Terms = tuple[float, float, float]  # math, HBM, network, in seconds
type Moved = tuple[float, float, float, float]  # bytes, and the seconds to gather, reduce and exchange them
type Cost = Callable[[float], float]  # from bytes to seconds

BOUNDS = ("compute", "memory", "network")
NAMES = (
    "gather W over X",
    "slice A over X, all-reduce Z over X",
    "all-to-all W over X, gather Z over X",
    "slice A over X, gather W over X, gather Z over X",
)


@dataclass(frozen=True, slots=True)
class SplitWeightStrategy(Result):
    """One of the four strategies, with its time by term in seconds."""

    name: str
    math_s: float
    hbm_s: float
    comms_s: float
    line = "lower_s", "math_s", "hbm_s", "comms_s"

    @property
    def lower_s(self) -> float:
        """The time in seconds if everything overlaps."""
        return max(self.math_s, self.hbm_s, self.comms_s)

    @property
    def bound(self) -> str:
        """The longest term: 'network', 'memory' or 'compute'."""
        terms = self.math_s, self.hbm_s, self.comms_s
        return BOUNDS[terms.index(max(terms))]

    @property
    def heading(self) -> str:
        """The moves and the longest term."""
        return f"{self.name}, {self.bound}-bound"


@dataclass(frozen=True)
class SplitWeight(Result):
    """The matmul for one F on the n chips of one axis.

    `exact` counts (1 - 1/n), the hops and the HBM traffic; without it, only math and M / W.
    """

    chip: Chip
    axis: Axis
    F: int
    dtype: DType = BF16
    exact: bool = True

    @cached_property
    def _costs(self) -> tuple[Cost, Cost, Cost]:
        """The seconds of an all-gather, all-reduce and all-to-all on the axis, as functions of bytes."""
        axis = self.axis if self.exact else replace(self.axis, hop_s=0.0)
        formulas = (collectives.all_gather, collectives.all_reduce, collectives.all_to_all)
        gather, reduce, exchange = (_cost(formula(1, axis), self.exact) for formula in formulas)
        return gather, reduce, exchange

    @property
    def r(self) -> float:
        """C / W: the FLOPs that take as long as one byte over this axis."""
        return self.chip.flops_per_s(self.dtype) / self.axis.bytes_per_s  # FLOPs/byte

    def ways(self, B: float, D: float) -> tuple[SplitWeightStrategy, ...]:
        """The four strategies, in the order of `NAMES`, for these B and D."""
        found = self._terms(B * D, self._moved(D), self._moved(B))
        return tuple(SplitWeightStrategy(name, *terms) for name, terms in zip(NAMES, found, strict=True))

    def fastest_of_all(
        self, Bs: Sequence[float], Ds: Sequence[float], among: int = 4
    ) -> list[list[tuple[int, str]]]:
        """The index and bound of the fastest of the first `among` strategies, by D (rows) and B (columns).

        Terms that depend on B only or D only are computed once.
        """
        results = [(B, self._moved(B)) for B in Bs]
        return [
            [_fastest(self._terms(B * D, weight, result)[:among]) for B, result in results]
            for D, weight in ((D, self._moved(D)) for D in Ds)
        ]

    def _moved(self, length: float) -> Moved:
        """The bytes of W (for D) or of Z (for B), and the seconds to gather, reduce and exchange them."""
        nbytes = self.dtype.bytes * length * self.F
        gather, reduce, exchange = self._costs
        return nbytes, gather(nbytes), reduce(nbytes), exchange(nbytes)

    def _terms(self, BD: float, weight: Moved, result: Moved) -> tuple[Terms, Terms, Terms, Terms]:
        (w, gather_w, _, exchange_w), (z, gather_z, sum_z, _) = weight, result
        n, x = self.axis.size, self.dtype.bytes * BD  # x: the bytes of A
        hbm = 1 / self.chip.hbm_bytes_per_s if self.exact else 0.0  # seconds per byte
        math_s = 2 * BD * self.F / self.chip.flops_per_s(self.dtype)
        shared = math_s / n  # all strategies but the first divide the FLOPs by n
        return (
            (math_s, (x + w + z) * hbm, gather_w),  # whole W: every chip does the whole matmul
            (shared, (x / n + w / n + z) * hbm, sum_z),  # D sharded: every chip has a partial sum of all of Z
            # F sharded: W[D_X, F] becomes W[D, F_X]
            (shared, (x + w / n + z / n) * hbm, exchange_w + gather_z),
            # B sharded: A is sliced for free, because every chip holds all of it
            (shared, (x / n + w + z / n) * hbm, gather_w + gather_z),
        )

    def __str__(self) -> str:
        return f"A[B, D] · W[D_X, F] -> Z[B, F] on {self.axis.size} chips: r = {self.r:,.0f}"


def _fastest(ways: Sequence[Terms]) -> tuple[int, str]:
    times = [max(terms) for terms in ways]
    least = min(times)
    best = times.index(least)
    return best, BOUNDS[ways[best].index(least)]


def _cost(one_byte: collectives.Transfer, exact: bool) -> Cost:
    """A collective's time as a linear function of bytes."""
    per_byte_s, hops_s = (one_byte.bandwidth_s, one_byte.latency_s) if exact else (one_byte.textbook_s, 0.0)
    return lambda nbytes: nbytes * per_byte_s + hops_s
