"""Efficiencies that measured kernels, collectives and published runs reach, to predict with.

`training(chip, precision)` and `serving(chip, compute)` are the efficiencies of whole runs; `kernels` and
`fabrics` those of single operations. `recommend` searches for the training plan to launch: with headroom in
memory, and ranked by a pessimistic step time. `evidence` has the measurements, the fits and their accuracy.
"""

from scalingbook_lib.calibrated.recommendation import recommend
from scalingbook_lib.calibrated.serving_efficiency import serving
from scalingbook_lib.calibrated.training_efficiency import training

__all__ = ["recommend", "serving", "training"]
