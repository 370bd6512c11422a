"""How long does the library say that a published run's step takes? Chapter: Training."""

from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.training.case import Case
from scalingbook_lib.training.efficiency import Efficiency
from scalingbook_lib.training.times import Seconds


def seconds(run: TrainingRun, efficiency: Efficiency) -> Seconds:
    """The step by term, of a run's plan at that efficiency."""
    p = planned(run)
    case = Case(p.model, p.machine, batch=run.batch, T=run.T, efficiency=efficiency, causal=p.causal)
    return case.seconds(case.shape(p.plan))
