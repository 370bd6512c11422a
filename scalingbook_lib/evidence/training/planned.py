"""Which plan, on which machine, is a published run? The same rules for all of them.

What a source does not say is filled in by what its software does, never by what fits a time. Chapter:
Training.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import isqrt

from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.machines import Cluster, Machine, Slice
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
LOGIT_BYTES = {"torchtitan": 14.0, "maxtext": 2.0}
"""Of each logit: cross entropy as PyTorch has it, and MaxText's, whose own gradient XLA fuses."""
RACK = 64  # chips of a GB200's or GB300's domain of 72 that runs use, as powers of two divide them


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
    return Planned(run, model(run), machine(run), plan(run), kernel)


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


def machine(run: TrainingRun) -> Machine:
    """Chips in whole domains under switches for all of them; or one slice, as cubic as it comes."""
    if run.chip.torus:
        return Slice(run.chip, min(_shapes(run), key=lambda sides: max(sides) / min(sides)))
    domain = min(run.chip.domain_chips or run.chip.chips_per_host, run.chips)
    domain = RACK if domain > RACK else domain
    nodes = run.chips // domain
    return Cluster(chip=run.chip, chips=run.chips, domain=domain, ports=64 if nodes <= 32 else 2 * nodes)


def _shapes(run: TrainingRun) -> Iterator[tuple[int, ...]]:
    """The sides of every slice with so many chips, the shortest first."""
    n, torus = run.chips // run.dcn, run.chip.wiring()
    for a in (a for a in range(1, isqrt(n) + 1) if n % a == 0):
        rest = n // a
        squares = [(a, rest)]
        cubes = [(a, b, rest // b) for b in range(a, isqrt(rest) + 1) if rest % b == 0]
        yield from (sides for sides in (squares if torus.dims == 2 else cubes) if torus.exists(sides))


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
        logit_bytes=LOGIT_BYTES.get("maxtext" if maxtext else run.family),
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
