"""Which plan, on which machine, is a published run? The same rules for all of them.

What a source does not say is filled in by what its software does, never by what fits a time. Chapter:
Training.
"""

from dataclasses import dataclass, replace
from functools import cache

from scalingbook_lib.evidence.joined import machine
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Case, Efficiency, Plan, memory
from scalingbook_lib.training.times import Seconds
from scalingbook_lib.units import FP32

REMAT = {
    "none": "none",
    "selective": "none",
    "selective_op": "alternate",
    "full": "full",
    "minimal": "selective",
}
"""What a source calls its policy: the scores that "selective" does again, a fused kernel does by itself."""
MEGATRON = ("megatron", "dgxc-llama", "dgxc-gpt", "dgxc-nemotron", "nemo", "mbridge")
"""These keep what fused kernels keep; what does not fit waits on the host (Megatron-Bridge, its recipes)."""
UNFUSED = ("megatron-sc21", "korthikanti22", "mt-nlg")
"""Before fused attention: every pair is computed, and its scores pass through memory."""
EARLY = ("mpt",)
"""The first fused kernels (Triton, 2022 and 2023), written for the A100."""
GATHERS = ("llama3-405b",)
"""Context parallelism that gathers keys and values first, and waits for them; the others send them around."""


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
    kernel = "unfused" if run.family in UNFUSED else "early" if run.family in EARLY else "attention"
    on = machine(run.chip, run.chips // run.dcn)
    return Planned(run, model(run), on, plan(run), kernel)


def seconds(run: TrainingRun, efficiency: Efficiency) -> Seconds:
    """The step by term, of a run's plan at that efficiency.

    Of frozen weights nobody computes, sums or applies gradients: a third of their products, and what is moved
    once a step or for gradients, are left out.
    """
    p = planned(run)
    causal = p.kernel != "unfused"  # a fused kernel skips what the mask throws away
    case = Case(p.model, p.machine, batch=run.batch, T=run.T, efficiency=efficiency, causal=causal)
    shape = case.shape(p.plan)
    if run.convention != "frozen":
        return case.seconds(shape)
    moved = [row for row in case.traffic(shape) if not row.once and "gradients" not in row.name]
    found = case.seconds(shape, moved)
    spared_s = found.optimizer_s + (found.math.total - found.math.attention) / 3
    return replace(found, optimizer_s=0.0, total_s=found.total_s - spared_s)


def model(run: TrainingRun) -> Transformer:
    """As published; where the token after the next is predicted too, with one more layer and unembedding."""
    m = run.model
    return replace(m, L=m.L + 1, V=2 * m.V) if run.convention == "bridge+MTP" else m


def plan(run: TrainingRun) -> Plan:
    """The split as published; where none is named, a microbatch of one and the lightest rematerialization."""
    schedule, chunks = _stages(run)
    maxtext = bool(run.chip.torus) or run.family == "dgxc-maxtext-70b"
    single = maxtext or run.family in ("torchtitan", "mpt")  # one fp32 copy of the weights, no master
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
        schedule=schedule,
        chunks=chunks,
        sequence_parallel=run.family not in UNFUSED or run.remat == "selective",
        collective_matmul=_overlaps(run),
        context="gather" if run.family in GATHERS else "ring",
        master=None if single else FP32,
        expert_tp=1 if run.experts and run.ep > 1 and run.tp > 1 else None,
        expert_domains=4 if run.model.name == "DeepSeek-V3" else None,
    )
    found = replace(found, weights=FP32) if single else found
    return replace(found, remat=_remat(run, found))


def _stages(run: TrainingRun) -> tuple[str, int]:
    """Interleaved in the published chunks; where nobody says how many, of one layer each."""
    microbatches = run.batch // (run.dcn * run.dp * run.fsdp * (run.microbatch or 1))
    chunks = run.chunks or (1 if microbatches % run.pp else run.model.L // run.pp)
    return ("interleaved", chunks) if run.pp > 1 and chunks > 1 else ("1f1b", 1)


def _overlaps(run: TrainingRun) -> bool:
    """Whether products overlap collectives of tensor parallelism: on TPUs, and in Megatron since 2023."""
    if run.family == "torchtitan":
        return "async" in run.variant
    return run.family not in (*UNFUSED, *EARLY, "dgxc-maxtext-70b", "llama3-405b")


def _remat(run: TrainingRun, found: Plan) -> str:
    if run.remat is None:
        return "none" if run.family.startswith(MEGATRON) else _lightest(run, found)
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
