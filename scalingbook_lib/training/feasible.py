"""Why can a plan not be? Whether everything divides, and whether it fits; nothing is assumed.

Vocabularies are padded everywhere, and so are FSDP's shards on GPUs; JAX on TPUs wants them even.

Chapter: Training.
"""

from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.units import si


def reasons(model: Transformer, plan: Plan, T: int, machine: Machine) -> tuple[str, ...]:
    """What does not divide, one sentence each. The mesh, the batch and memory are judged after these."""
    chips = machine.chips * plan.dcn
    found = [] if plan.chips == chips else [f"the plan is for {plan.chips:,} chips, there are {chips:,}"]
    if plan.tp > 1:
        found += _tensor(model, plan, T)
    if plan.cp > 1:
        found += _context(model, plan, T)
    if plan.pp > 1 and plan.pp * plan.chunks > model.L:
        found.append(
            f"{model.L} layers are fewer than {plan.pp} stages of {plan.chunks} chunks: lower pp or chunks"
        )
    if plan.ep > 1 and (model.experts is None or model.experts.E % plan.ep):
        E = model.experts.E if model.experts else 0
        found.append(f"{E} experts do not divide over ep={plan.ep}")
    if isinstance(machine, Slice) and plan.zero and model.D % (plan.fsdp * plan.cp):
        shared = plan.fsdp * plan.cp
        found.append(
            f"D={model.D:,} does not divide over the fsdp · cp = {shared:,} chips that share the weights, "
            "as a sharded array must"
        )
    if model.linear:
        found.append(f"{model.name} has linear attention, whose activations are not counted")
    return tuple(found)


def _tensor(m: Transformer, plan: Plan, T: int) -> list[str]:
    """Heads, widths and (with sequence parallelism) tokens; fewer KV heads than ways are copied."""
    Y, found = plan.tp, []
    if m.N % Y:
        found.append(f"{m.N} heads do not divide over tp={Y}")
    if m.K % Y and Y % m.K:
        found.append(f"{m.K} key-value heads neither divide over tp={Y} nor go into it")
    if m.F % Y and m.moe_layers < m.L:
        found.append(f"F={m.F:,} does not divide over tp={Y}")
    if m.experts and plan.expert_ways > 1 and m.experts.F % Y:
        found.append(f"experts of F={m.experts.F:,} do not divide over tp={Y}")
    if plan.sequence_parallel and (T // plan.cp) % Y:
        found.append(f"{T // plan.cp:,} tokens of a sequence do not divide over tp={Y}")
    return found


def _context(m: Transformer, plan: Plan, T: int) -> list[str]:
    """A ring needs two pieces a chip, for a balanced causal mask; Ulysses needs heads for every chip."""
    pieces = plan.cp if plan.context == "ulysses" else 2 * plan.cp
    found = [f"sequences of {T:,} do not divide into {pieces} pieces for cp={plan.cp}"] if T % pieces else []
    if plan.context == "ulysses" and (m.N % (plan.cp * plan.tp) or m.K % (plan.cp * plan.tp)):
        found.append(
            f"{m.N} heads with {m.K} keys and values do not divide over cp · tp = {plan.cp * plan.tp}"
        )
    return found


def too_large(nbytes: float, chip: Chip) -> str:
    """The reason of memory."""
    return f"a chip would hold {si(nbytes, 'B')}, and {chip.name} has {si(chip.hbm_bytes, 'B')}"
