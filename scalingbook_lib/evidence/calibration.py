"""The residuals and the fit of published runs: one procedure for training steps and for inference.

Chapters: Training; Inference.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import log

from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.evidence.fitting import Prior, fitted, pseudo_huber


@dataclass(frozen=True, kw_only=True)
class Calibration[Run, Efficiency]:
    """How the values of one kind of published run are fitted.

    Runs with equal `kind` share one efficiency. `predicted` and `published` are in one unit, and `noise` is
    the expected error of a prediction, as a logarithm.
    """

    priors: Callable[[Sequence[Run]], dict[str, Prior]]
    kind: Callable[[Run], Hashable]
    efficiency: Callable[[Values, Run], Efficiency]
    predicted: Callable[[Run, Efficiency], float]
    published: Callable[[Run], float]
    noise: Callable[[Run], float]
    rounds: int = 25

    def ratio(self, values: Values, run: Run) -> float:
        """Predicted over published, with these values."""
        return self.predicted(run, self.efficiency(values, run)) / self.published(run)

    def errors(self, runs: Sequence[Run]) -> Callable[[Values], list[float]]:
        """The function from values to the residuals of these runs, with the pseudo-Huber loss."""
        kinds = [self.kind(run) for run in runs]
        first = dict(zip(kinds, runs, strict=True))  # one efficiency for all runs of a kind

        def found(values: Values) -> list[float]:
            reached = {kind: self.efficiency(values, run) for kind, run in first.items()}
            return [
                pseudo_huber(log(self.predicted(run, reached[kind]) / self.published(run)), self.noise(run))
                for kind, run in zip(kinds, runs, strict=True)
            ]

        return found

    def fit(self, runs: Sequence[Run], start: Values | None = None, rounds: int | None = None) -> Values:
        """The fitted values of these runs; the search begins at `start`."""
        return fitted(self.priors(runs), self.errors(runs), rounds or self.rounds, start)
