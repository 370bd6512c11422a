"""The questions for every peer: the library's published runs, as plain numbers."""

from scalingbook_lib.evidence import inference, training
from scalingbook_lib.evidence.measured import inference_runs
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.training import candidate_plans
from scalingbook_lib.machines import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import DType


def every() -> list[dict]:
    """Return each run that efficiencies are fitted to, with the ids of the tables."""
    found = [_training(run) for run in candidate_plans.all_runs()]
    return found + [_serving(run) for run in inference_runs.all_runs()]


def _training(run: TrainingRun) -> dict:
    p = training.planned(run)
    return {
        "table": "training",
        "id": run.id,
        "model": _model(p.model),
        "chip": _chip(run.chip, run.dtype),
        "type": run.dtype.name,
        "T": run.T,
        "batch": run.batch,
        "microbatch": p.plan.microbatch,
        "chips": run.chips,
        "tp": run.tp * run.cp,  # no peer supports context parallelism
        "pp": run.pp,
        "ep": run.ep,
        "chunks": p.plan.chunks,
        "ranks": run.chips // (run.tp * run.cp * run.pp),
        "zero": run.zero,
        "remat": p.plan.remat,
    }


def _serving(run: inference_runs.InferenceRun) -> dict:
    p = inference.planned(run)
    return {
        "table": "inference",
        "id": run.id,
        "kind": run.kind,
        "model": _model(run.model),
        "chip": _chip(run.chip, run.compute),
        "type": run.weights.name if "int4" not in run.weights.name else "int4",
        "kv_bytes": run.kv.bytes,
        "tp": run.tp,
        "pp": run.pp,
        "P": run.P,
        "G": run.G,
        "S": run.S,
        "B": run.B or int(p.batch),
        "groups": p.layout.attention_dp,
    }


def _model(m: Transformer) -> dict:
    """Return a model whose experts all have the same width; a dense model has one expert, always active."""
    experts = (
        {"E": m.experts.E, "k": m.experts.k, "F": m.experts.F} if m.experts else {"E": 1, "k": 1, "F": m.F}
    )
    names = ("name", "L", "D", "N", "K", "H", "V", "gated", "params")
    return {name: getattr(m, name) for name in names} | {"active": m.active_params} | experts


def _chip(chip: Chip, dtype: DType) -> dict:
    """Return documented rates; a link rate is that of one chip in one direction."""
    rates = {"hbm": chip.hbm_bytes_per_s, "link": chip.links * chip.link_bytes_per_s}
    return {"name": chip.name, "bf16": chip.flops_per_s(), "own": chip.flops_per_s(dtype)} | rates
