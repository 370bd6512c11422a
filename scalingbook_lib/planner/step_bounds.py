"""Lower bounds of a training step, for a search that prunes.

Each is the step time, as `training` computes it, of a plan with some terms left out, so it is also a bound
for any objective that is never below the step time. Chapter: Training Llama 3.
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
    """Return a lower bound for all plans of a group: no communication, and a fully sharded optimizer step.

    Experts have the placement with the fewest parameters per chip, so that reading them takes least time.
    Nothing else that depends on their placement is counted.
    """
    case = anywhere(case)
    return _step_s(space, case, g, space.sharings(g.mesh, g.mesh.data_ranks)[0], remat, axes=())


def tensor_s(space: Space, case: TrainingCase, g: Group, remat: str) -> float:
    """Return the same bound with the collectives of TP and CP, for any sharding of experts."""
    case = anywhere(case)
    placed = {one.expert_tp: one for one in reversed(space.sharings(g.mesh, g.mesh.data_ranks))}
    try:
        return min(_step_s(space, case, g, one, remat, axes=DENSE_AXES) for one in placed.values())
    except ClusterError:  # the machine does not have the mesh of the bounding plan
        return compute_s(space, case, g, remat)


@lru_cache(maxsize=64)
def _anywhere(efficiency: TrainingEfficiency) -> TrainingEfficiency:
    return efficiency.without_placement()


def anywhere(case: TrainingCase) -> TrainingCase:
    """Return the case without losses that depend on where experts are."""
    return replace(case, efficiency=_anywhere(case.efficiency)) if case.model.experts else case


def exposed_s(space: Space, case: TrainingCase, g: Group, sharing: Sharing, remat: str) -> float:
    """Return the same bound for one placement of experts, with all collectives that ZeRO does not change."""
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
    """Return a lower bound of the memory under other policies: without the recomputed layer."""
    return held.total - held.recomputed_layer


def state_bytes(held: TrainingMemory) -> float:
    """Return a lower bound of the memory of a spread, given its plan with the highest ZeRO stage.

    A lower stage may gather and buffer less, but it holds at least as much training state.
    """
    return kept_bytes(held) - held.gathered_weights - held.buffers
