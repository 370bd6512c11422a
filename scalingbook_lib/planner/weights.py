"""What do weights and gradients take on their way, and the optimizer? Seconds for each parameter and layer.

Chapter: Training LLaMA 3.
"""

from functools import cache

from scalingbook_lib.planner.links import Axis, Links, Mesh
from scalingbook_lib.planner.probe import Probe
from scalingbook_lib.training.traffic import MOVED_AS


class Weights:
    """The sums over the rows of `training`, for one machine and so many pods."""

    def __init__(self, probe: Probe, links: Links, pods: int) -> None:
        self.probe, self.links, self.pods = probe, links, pods
        self._slopes = cache(self._rows)

    def parts(
        self, zero: int, mesh: Mesh, X: Axis, ways: int, dp: int, params: float, layers: int
    ) -> list[float]:
        """Of X with each microbatch and once; of R and S, which hold one part of what is shared, once."""
        found = [0.0] * 8
        if ways > 1:
            found[:4] = self._copies(zero, "X", X, params, layers)
        if dp > 1:
            found[4:6] = self._copies(zero, "R", mesh.R, params / ways, layers)[2:]
        if self.pods > 1:
            found[6:] = self._copies(zero, "S", self.links.pods, params / (dp * ways), layers)[2:]
        return found

    def _copies(self, zero: int, letter: str, axis: Axis, n: float, layers: int) -> list[float]:
        """Seconds for n parameters: forward and backward with each microbatch, and both once a step."""
        return [n * slope + layers * base for slope, base in self._slopes(zero, letter, axis)]

    def _rows(self, zero: int, letter: str, axis: Axis) -> list[tuple[float, float]]:
        slopes, bases = [0.0] * 4, [0.0] * 4
        for row in self.probe.weights(zero):
            if row.axes == letter:
                rate, k = axis[MOVED_AS[row.what]], 2 * row.once + (row.when == "bwd")
                slopes[k] += row.times * row.nbytes * rate.s_per_byte
                bases[k] += row.times * rate.hops_s
        return list(zip(slopes, bases, strict=True))
