"""Lower bounds of a training step, for a search that prunes.

Each is `training`'s own step of a plan with less in it than the plans that it bounds, so that it holds for
any objective that is not below the step time. Chapter: Training Llama 3.
"""

from dataclasses import replace
from functools import lru_cache

from scalingbook_lib.machines import ClusterError, Slice
from scalingbook_lib.planner.meshes import Group, Sharing, plan_fields
from scalingbook_lib.planner.space import Space
from scalingbook_lib.training import TrainingCase, TrainingEfficiency, TrainingMemory

# Of tensor and context parallelism, and of experts: on a cluster, their links do not depend on other axes.
DENSE_AXES, FIXED_AXES = ("Y", "C"), ("Y", "C", "Z")


def compute_s(space: Space, case: TrainingCase, g: Group, remat: str) -> float:
    """The step of any plan of a group, at least: nothing is communicated, all data ranks share the update.

    Experts are where they put the fewest parameters on a chip, so that reading them takes least; nothing else
    that depends on their place is counted.
    """
    case = anywhere(case)
    return _step_s(space, case, g, space.sharings(g.mesh, g.mesh.data_ranks)[0], remat, axes=())


def tensor_s(space: Space, case: TrainingCase, g: Group, remat: str) -> float:
    """The same with the collectives of tensor and context parallelism, however experts are split."""
    case = anywhere(case)
    placed = {one.expert_tp: one for one in reversed(space.sharings(g.mesh, g.mesh.data_ranks))}
    try:
        return min(_step_s(space, case, g, one, remat, axes=DENSE_AXES) for one in placed.values())
    except ClusterError:  # the plan with least in it has a mesh that the machine does not have
        return compute_s(space, case, g, remat)


@lru_cache(maxsize=64)
def _anywhere(efficiency: TrainingEfficiency) -> TrainingEfficiency:
    return efficiency.without_placement()


def anywhere(case: TrainingCase) -> TrainingCase:
    """The same case without what depends on where experts are."""
    return replace(case, efficiency=_anywhere(case.efficiency)) if case.model.experts else case


def exposed_s(space: Space, case: TrainingCase, g: Group, sharing: Sharing, remat: str) -> float:
    """The same for one place of experts, with all collectives that do not depend on how data ranks share."""
    return _step_s(space, case, g, sharing, remat, axes=FIXED_AXES)


def _step_s(
    space: Space, case: TrainingCase, g: Group, sharing: Sharing, remat: str, *, axes: tuple[str, ...]
) -> float:
    plan = space.plan(**plan_fields(g, sharing), zero=space.candidates["zero"][-1], remat=remat)
    s = case.shape(plan)
    # on a torus every link depends on the whole mesh
    known = axes and not isinstance(case.machine, Slice)
    return case.seconds(s, [row for row in case.activations(s) if row.axes in axes] if known else ()).total_s


def kept_bytes(held: TrainingMemory) -> float:
    """What plans with other remats hold, at least, given the one that keeps least: no layer at work."""
    return held.total - held.recomputed_layer


def state_bytes(held: TrainingMemory) -> float:
    """What any plan of a spread holds, at least, given one with most of ZeRO, of that remat.

    Less of ZeRO may gather and buffer less, but keeps no less of the state.
    """
    return kept_bytes(held) - held.gathered_weights - held.buffers
