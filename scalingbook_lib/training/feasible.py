"""The reasons why a plan is impossible: what does not divide, and what does not fit in memory.

A vocabulary may always be padded, and on GPUs so may FSDP's shards; JAX on TPUs needs even shards.

Chapter: Training.
"""

from scalingbook_lib.machines import Chip, Machine, Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.remat import unknown
from scalingbook_lib.training.stages import too_few
from scalingbook_lib.units import percent, si


def reasons(model: Transformer, plan: Plan, T: int, machine: Machine) -> tuple[str, ...]:
    """Return one sentence for each thing that does not divide; the mesh, the batch and memory come later."""
    # the machine is one of `dcn` pods; ZeRO shards over fsdp · cp chips
    chips, shared = machine.chips * plan.dcn, plan.fsdp * plan.cp
    E = model.experts.E if model.experts else 0
    rules = (
        (
            lacks := model.expert_axis_error(
                ep=plan.ep, expert_tp=plan.expert_tp, expert_domains=plan.expert_domains
            ),
            lacks,
        ),
        (plan.chips != chips, f"the plan uses {plan.chips:,} chips, but the machine has {chips:,}"),
        (
            isinstance(machine, Slice) and plan.dcn == 1 and plan.chips in range(2 * chips, 2**20, chips),
            f"FSDP gathers weights within one pod, and a slice is one pod: for {plan.chips // chips} slices "
            f"with a replica each, write dcn={plan.chips // chips}, and fsdp for the chips of one slice",
        ),
        *(_tensor(model, plan, T) if plan.tp > 1 else ()),
        *(_context(model, plan, T) if plan.cp > 1 else ()),
        (
            plan.cp > 1 and sublayers.recurs(model),
            f"{model.name} has recurrent layers, and context parallelism is modeled for softmax attention "
            "alone: write cp=1, and shard sequences over fsdp or tp",
        ),
        (
            too_few(model.L, plan.pp, plan.chunks),
            f"{model.L} layers are too few for {plan.pp} stages of {plan.chunks} chunks: lower pp or chunks",
        ),
        (
            plan.stage_layers and sum(plan.stage_layers) != model.L,
            f"stage_layers has {sum(plan.stage_layers or ())} layers, the model has {model.L}",
        ),
        (
            plan.offload_layers > model.L,
            f"{plan.offload_layers} layers to offload are more than the {model.L} of the model",
        ),
        (strange := unknown(model, plan.remat), strange),
        (E % plan.ep, f"{E} experts are not divisible by ep={plan.ep}"),
        (  # XLA's shards are even; on GPUs the last one is padded
            isinstance(machine, Slice) and plan.zero and model.D % shared,
            f"D={model.D:,} is not divisible by fsdp · cp = {shared:,}, the number of chips that share the "
            "weights, and a sharded dimension has to be",
        ),
    )
    return tuple(why for broken, why in rules if broken)


type Rules = tuple[tuple[object, str], ...]  # whether each rule is broken, and the message


def _tensor(m: Transformer, plan: Plan, T: int) -> Rules:
    """Return the rules for heads, widths and tokens; too few KV heads for the TP degree are replicated."""
    Y, t = plan.tp, T // plan.cp
    narrow = m.experts.F if m.experts and plan.expert_ways > 1 else 0
    return (
        *((n % Y, f"{n:,} {what} are not divisible by tp={Y}") for what, n in sublayers.splits(m)),
        # a TP degree above K replicates whole heads: half a KV head would need another softmax
        *(
            (K % Y and Y % K, f"{K} key-value heads are neither a multiple nor a divisor of tp={Y}")
            for K in sublayers.kv_heads(m)
        ),
        (narrow % Y, f"experts of F={narrow:,} are not divisible by tp={Y}"),
        # between the matmuls, the residual stream is sharded by tokens
        (plan.sequence_parallel and t % Y, f"{t:,} tokens of a sequence are not divisible by tp={Y}"),
    )


def _context(m: Transformer, plan: Plan, T: int) -> Rules:
    """Return the rules of context parallelism: zigzag needs 2 cp shards, and Ulysses whole heads per chip."""
    ulysses, ways = plan.context == "ulysses", plan.cp * plan.tp
    # a chip has one shard from the front and one from the back, so all chips have the same number of pairs
    pieces = plan.cp if ulysses or not plan.zigzag else 2 * plan.cp
    return (
        (T % pieces, f"sequences of {T:,} do not divide into {pieces} pieces for cp={plan.cp}"),
        (
            # every chip gets whole heads of all tokens (jacobs2023ulysses)
            ulysses and (m.N % ways or m.K % ways),
            f"{m.N} heads with {m.K} keys and values are not divisible by cp · tp = {ways}",
        ),
    )


def too_large(nbytes: float, chip: Chip, headroom: float = 0.0) -> str:
    """Return the message for a plan that does not fit; `headroom` is the share of the HBM to leave free."""
    has, most = si(chip.hbm_bytes, "B"), (1 - headroom) * chip.hbm_bytes
    if headroom <= 0:
        return f"a chip would hold {si(nbytes, 'B')}, and {chip.name} has {has}"
    digits = next((n for n in (3, 4, 5) if si(nbytes, "B", n) != si(most, "B", n)), 6)
    held, allowed = (si(n, "B", digits) for n in (nbytes, most))
    return (
        f"a chip would hold {held}, and only {allowed} of the {has} of {chip.name} may be used, with a "
        f"headroom of {percent(headroom)}"
    )
