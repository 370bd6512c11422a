"""Which plan, on which machine, is a published run? The same rules for all of them.

What a source does not say is filled in by what its software does, never by what fits a time. Chapter:
Training.
"""

from dataclasses import dataclass, replace
from functools import cache

from scalingbook_lib.evidence.joined import machine
from scalingbook_lib.evidence.measured.published import families
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Case, Efficiency, Plan, memory
from scalingbook_lib.training.times import Seconds
from scalingbook_lib.units import BF16, FP16, FP32

REMAT = {
    "none": "none",
    "selective": "none",
    "selective_op": "alternate",
    "full": "full",
    "minimal": "selective",
}
"""What a source calls its policy: the scores that "selective" does again, a fused kernel does by itself."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A published run as the library asks for it; `kernel` names the attention that its software had."""

    run: TrainingRun
    model: Transformer
    machine: Machine
    plan: Plan
    kernel: str


@cache
def planned(run: TrainingRun) -> Planned:
    """The model, the machine and the plan of a run."""
    on = machine(run.chip, run.chips // run.dcn)
    return Planned(run, model(run), on, plan(run), _rule(run, "kernel") or "attention")


def seconds(run: TrainingRun, efficiency: Efficiency) -> Seconds:
    """The step by term, of a run's plan at that efficiency."""
    p = planned(run)
    causal = p.kernel != "unfused"  # a fused kernel skips what the mask throws away
    case = Case(p.model, p.machine, batch=run.batch, T=run.T, efficiency=efficiency, causal=causal)
    return case.seconds(case.shape(p.plan))


def model(run: TrainingRun) -> Transformer:
    """As published; where the token after the next is predicted too, with one more layer and unembedding."""
    m = run.model
    return replace(m, L=m.L + 1, V=2 * m.V) if run.convention == "bridge+MTP" else m


def plan(run: TrainingRun) -> Plan:
    """The split as published; where none is named, a microbatch of one and the lightest rematerialization."""
    schedule, chunks = _stages(run)
    logit_bytes = _rule(run, "logit_bytes")
    single = bool(run.chip.torus) or _rule(run, "weights") == "fp32"  # one copy of the weights, no master
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
        sequence_parallel=_rule(run, "kernel") != "unfused" or run.remat == "selective",
        collective_matmul="async" in run.variant or not _rule(run, "exposed"),
        context=_rule(run, "context") or "ring",
        prefetch=_rule(run, "prefetch") != "late",
        frozen=run.convention == "frozen",
        master=None if single else FP32,
        expert_tp=1 if run.experts and run.ep > 1 and run.tp > 1 else None,
        logit_bytes=float(logit_bytes) if logit_bytes else None,
        expert_domains=4 if run.model.name == "DeepSeek-V3" else None,
    )
    found = replace(found, weights=FP32) if single else found
    return replace(found, remat=_remat(run, found))


def _stages(run: TrainingRun) -> tuple[str, int]:
    """Interleaved in the published chunks; where nobody says how many, of one layer each."""
    microbatches = run.batch // (run.dcn * run.dp * run.fsdp * (run.microbatch or 1))
    chunks = run.chunks or (1 if microbatches % run.pp else run.model.L // run.pp)
    return ("interleaved", chunks) if run.pp > 1 and chunks > 1 else ("1f1b", 1)


def _rule(run: TrainingRun, name: str) -> str:
    """What a family does that rows do not say; "" for most, and for software that nobody knows.

    `kernel`: attention was "unfused", and its scores passed through memory, or it was of the "early" fused
    ones (Triton, 2022 and 2023, for the A100). `remat`: Megatron keeps what fused kernels keep; what does not
    fit waits on the host. `weights`: one fp32 copy and no master. `exposed`: products overlap no collective
    of tensor parallelism. `prefetch`: Composer asks "late" for weights in the backward pass. `context`: keys
    and values are gathered first, and waited for. `logit_bytes`: of cross entropy as PyTorch has it, or as
    XLA fuses MaxText's, which has a gradient of its own.
    """
    return families("training").get(run.family, {}).get(name, "")


def _remat(run: TrainingRun, found: Plan) -> str:
    if run.remat is None:
        return _rule(run, "remat") or _lightest(run, found)
    offloads = run.remat.startswith("offload")  # activations wait in the memory of the host
    if offloads and not run.chip.host_bytes_per_s and not run.chip.pcie_bytes_per_s:
        return "full"  # nobody says how fast that chip reaches its host
    return REMAT.get(run.remat, run.remat)


def _lightest(run: TrainingRun, found: Plan) -> str:
    for remat in ("none", "selective", "alternate"):
        held = memory(model(run), replace(found, remat=remat), batch=run.batch, T=run.T)
        if held.total <= run.chip.hbm_bytes:
            return remat
    return "full"
