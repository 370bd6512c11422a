"""What do collectives and passes add up to? Lines in tokens, and the few numbers that a plan is made of.

Chapter: Training LLaMA 3.
"""

from collections.abc import Mapping
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.planner.links import Axis
from scalingbook_lib.steps.placement import Rate
from scalingbook_lib.training.traffic import MOVED_AS, Traffic


class Moved(NamedTuple):
    """Weights and gradients, forward and backward, and the optimizer's update, in seconds.

    With each microbatch; and with the one beside what comes once a step, the longest axis, and the sum.
    """

    forward: float
    forward_longest: float
    forward_sum: float
    backward: float
    backward_longest: float
    backward_sum: float
    update: float


class Pass(NamedTuple):
    """A microbatch without weights and hops: the longest of what overlaps, and the sum, both ways."""

    forward: float
    forward_sum: float
    backward: float
    backward_sum: float
    weight: float  # the gradients of weights alone


class Affine(NamedTuple):
    """Seconds for each token, and for the hops."""

    slope: float
    base: float

    def at(self, t: float) -> float:
        """Of a microbatch of t tokens."""
        return self.slope * t + self.base


type Ways = tuple[Affine, Affine, Affine, Affine]  # waited for and beside, forward; the same backward


def sums(rows: tuple[Traffic, ...], axis: Axis | Mapping[Collective, Rate]) -> Ways:
    """Seconds for t tokens: waited for and beside, forward; waited for and beside, backward."""
    slopes, bases = [0.0] * 4, [0.0] * 4
    for row in rows:
        rate, k = axis[MOVED_AS[row.what]], 2 * (row.when == "bwd") + row.overlappable
        slopes[k] += row.times * row.nbytes * rate.s_per_byte
        bases[k] += row.times * rate.hops_s
    one, two, three, four = map(Affine, slopes, bases)
    return one, two, three, four


type Way = tuple[float, float, float, float, float, float, float]  # as `paced` takes them


def paced(way: Way, share: float, last: float, staged: bool) -> tuple[float, float]:
    """The longest of what overlaps, and the sum: of the longest stage, or the last with the unembedding."""
    layers_s, head_s, waited, tensor_s, context_s, end_s, end_beside = way
    last_s = last * layers_s + head_s  # of the only stage, if pp is 1
    first_s = share * layers_s
    busy = (first_s if staged and first_s > last_s else last_s) + share * waited + end_s
    tensor_s, context_s = share * tensor_s + end_beside, share * context_s
    return max(busy, tensor_s, context_s), busy + tensor_s + context_s


def moved(parts: list[float], update_s: float) -> Moved:
    """Of forward and backward with each microbatch; once a step of X, R and S, forward and backward."""
    f, b, X_f, X_b, R_f, R_b, S_f, S_b = parts
    x, y = f + X_f, b + X_b
    return Moved(f, max(x, R_f, S_f), x + R_f + S_f, b, max(y, R_b, S_b), y + R_b + S_b, update_s)
