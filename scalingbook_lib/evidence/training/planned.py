"""The plan and machine of a published training run, by the same rules for all runs.

What a source does not say is filled in by what its software does, never by what fits the time. Chapter:
Training.
"""

from dataclasses import dataclass, replace
from functools import cache

from scalingbook_lib.calibrated.default_machine import default_machine
from scalingbook_lib.calibrated.training_efficiency import attention_kernel
from scalingbook_lib.evidence.measured.published import families
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan, TrainingCase, TrainingEfficiency, memory
from scalingbook_lib.training.links import host_known
from scalingbook_lib.training.times import Seconds
from scalingbook_lib.units import BF16, FP8, FP16, FP32

REMAT = {
    "none": "none",
    "selective": "none",
    "selective_op": "alternate",
    "full": "full",
    "minimal": "selective",
}
"""Rematerialization policies by the sources' names; a fused kernel always recomputes scores."""


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """A published run in the library's terms; `kernel` names the attention kernel of its software."""

    run: TrainingRun
    model: Transformer
    machine: Machine
    plan: Plan
    kernel: str


@cache
def planned(run: TrainingRun) -> TrainingSetup:
    """The model, the machine and the plan of a run."""
    on = default_machine(run.chip, run.chips // run.dcn, run.tp)
    return TrainingSetup(run, model(run), on, plan(run), attention_kernel(run.software))


def seconds(run: TrainingRun, efficiency: TrainingEfficiency) -> Seconds:
    """The step time of a run's plan at that efficiency, by term."""
    p = planned(run)
    causal = p.kernel != "unfused"  # a fused kernel skips masked pairs
    case = TrainingCase(p.model, p.machine, batch=run.batch, T=run.T, efficiency=efficiency, causal=causal)
    return case.seconds(case.shape(p.plan))


def model(run: TrainingRun) -> Transformer:
    """The model as published; with multi-token prediction, one more layer and unembedding."""
    m = run.model
    return replace(m, L=m.L + 1, V=2 * m.V) if run.convention == "bridge+MTP" else m


def plan(run: TrainingRun) -> Plan:
    """The plan as published; by default a microbatch of one and the lightest rematerialization that fits."""
    schedule, chunks = _stages(run)
    logit_bytes = _rule(run, "logit_bytes")
    single = bool(run.chip.torus) or _rule(run, "weights") == "fp32"  # fp32 weights without a master copy
    found = Plan(
        tp=run.tp,
        cp=run.cp,
        fsdp=run.fsdp,
        pp=run.pp,
        dp=run.dp,
        dcn=run.dcn,
        ep=run.ep,
        zero=run.zero,
        microbatch=run.microbatch or 1,
        compute=run.dtype,
        activations=BF16 if "bf16" in run.chip.rates() else FP16,
        schedule=schedule,
        chunks=chunks,
        sequence_parallel=attention_kernel(run.software) != "unfused" or run.remat == "selective",
        collective_matmul="async" in run.variant or not _rule(run, "exposed"),
        context=_rule(run, "context") or "ring",
        prefetch=_rule(run, "prefetch") != "late",
        frozen=run.convention == "frozen",
        master=None if single else FP32,
        expert_tp=1 if run.experts and run.ep > 1 and run.tp > 1 else None,
        logit_bytes=float(logit_bytes) if logit_bytes else None,
        expert_domains=4 if run.model.name == "DeepSeek-V3" else None,
        offload_layers=run.offload_layers,
    )
    found = replace(found, weights=FP32) if single else found
    if found.frozen and run.dtype == FP8:  # nothing updates them, so no wider copy is needed
        found = replace(found, weights=FP8)
    return replace(found, remat=_remat(run, found))


def _stages(run: TrainingRun) -> tuple[str, int]:
    """The pipeline schedule: interleaved in the published chunks, by default of one layer each."""
    microbatches = run.batch // (run.dcn * run.dp * run.fsdp * (run.microbatch or 1))
    chunks = run.chunks or (1 if microbatches % run.pp else run.model.L // run.pp)
    return ("interleaved", chunks) if run.pp > 1 and chunks > 1 else ("1f1b", 1)


def _rule(run: TrainingRun, name: str) -> str:
    """A rule of a run's family that rows do not give; "" for most families and for unknown software.

    `remat`: Megatron saves what fused kernels save; what does not fit is offloaded. `weights`: one fp32 copy,
    no master. `exposed`: tensor-parallel collectives do not overlap matmuls. `prefetch`: Composer gathers
    weights "late" in the backward pass. `context`: keys and values are gathered first, exposed.
    `logit_bytes`: of cross entropy as in PyTorch, or as XLA fuses MaxText's, which has a custom gradient.
    """
    return families("training").get(run.family, {}).get(name, "")


def _remat(run: TrainingRun, found: Plan) -> str:
    if run.remat is None:
        return _rule(run, "remat") or _lightest(run, found)
    if run.remat.startswith("offload:") and not host_known(run.chip):
        return "full"  # a link whose rate nobody publishes
    return REMAT.get(run.remat, run.remat)


def _lightest(run: TrainingRun, found: Plan) -> str:
    for remat in ("none", "selective", "alternate"):
        held = memory(model(run), replace(found, remat=remat), batch=run.batch, T=run.T)
        if held.total <= run.chip.hbm_bytes:
            return remat
    return "full"
