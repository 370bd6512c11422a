"""Reads Megatron-LM's arguments and Megatron-Bridge's configuration, which name the same things.

The data-parallel degree is what the chips leave over tensor, pipeline and context parallelism. Experts are
spread over the same chips: expert parallelism is cut out of data, context and tensor parallelism
and does not multiply the chips. The distributed optimizer (ZeRO-1) shards the state over the data- and
context-parallel ranks together. The microbatch counts sequences of a data-parallel rank.
"""

from collections.abc import Iterator
from typing import Any

from scalingbook_lib.launch import megatron_models
from scalingbook_lib.launch.flags import meanings
from scalingbook_lib.launch.megatron_models import BRIDGE, LM
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import (
    Given,
    TrainingLaunch,
    assume_adapters,
    chips_of,
    divided,
    domains,
    mean_type,
    model_of,
    on_all_nodes,
    refuse_both_halves,
    sequence_of,
)
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan
from scalingbook_lib.training.remat import FULL_LAYERS, MODULES
from scalingbook_lib.units import BF16, FP4, FP8, FP16, FP32, DType

_ENDS = ("embedding_as_layer", "loss_as_layer")
_NEGLIGIBLE = ("moe_router", "")
"""Modules whose recomputation is too little to count."""


def read(r: Reading, given: Given) -> TrainingLaunch:
    """The launch of these settings, of either program."""
    if r.table.launcher == BRIDGE:
        given = megatron_models.of_recipe(r, given)
    model = model_of(
        r,
        given,
        megatron_models.of_shape(r, given),
        "write its shape (--num-layers, --hidden-size, ... and --vocab-size)",
    )
    if given.model and r.maybe("shape.V") == model.V:
        r.idle("shape.V")
    elif given.model:
        r.asked.pop("shape.V", None)
    T = sequence_of(r, given, "sequence")
    _refuse_positions(r, T)
    tp, pp, cp = r.whole("tp"), r.whole("pp"), r.whole("cp")
    machine = chips_of(given, _started(r, tp * pp * cp), "GPUs", r)
    ranks, rest = divmod(machine.chips, tp * pp * cp)
    if rest or not ranks:
        raise LaunchError(
            f"tensor {tp} · pipeline {pp} · context {cp} = {tp * pp * cp:,} does not divide the "
            f"{machine.chips:,} chips of {machine.name}; write degrees that do, or another --machine"
        )
    microbatch = r.whole("microbatch") if r.given("microbatch") or not given.batch else 1
    batch = given.batch or r.maybe("global_batch") or microbatch * ranks
    if given.batch:
        r.idle("global_batch")
    divided(r, "global_batch", batch, microbatch * ranks, "sequences")
    fields: dict[str, Any] = (
        {"tp": tp, "pp": pp, "cp": cp, "microbatch": microbatch, "overlap": _overlap(r)}
        | _sharding(r, ranks, cp)
        | _experts(r, model, tp)
        | _pipeline(r, model, pp)
        | _types(r)
        | _offload(r, pp)
    )
    fields["sequence_parallel"] = r.on("sequence_parallel") if tp > 1 else True
    fields["collective_matmul"] = r.on("tp_overlap") if tp > 1 else True
    if tp == 1:
        r.idle("sequence_parallel", "tp_overlap")
    if cp > 1:
        fields["context"] = _context(r)
    else:
        r.idle("context")
    if r.table.has("peft") and r.word("peft"):
        fields["frozen"] = True
        assume_adapters(r)
    plan = Plan(**fields, remat=given.remat or _remat(r, model, pp, fields))
    return TrainingLaunch(
        launcher=r.table.launcher,
        model=model,
        machine=machine,
        batch=batch,
        T=T,
        plan=plan,
        account=r.account(),
    )


def _refuse_positions(r: Reading, T: int) -> None:
    """Refuse sequences that are longer than the positions, as Megatron does."""
    positions = r.maybe("shape.positions") if r.table.has("shape.positions") else None
    if positions is not None and positions < T:
        raise r.refuse("shape.positions", f"is less than the sequence of {T:,} tokens", f"write at least {T}")


def _started(r: Reading, least: int) -> int | None:
    """The processes that the command starts; None where it does not say, or starts fewer than a replica."""
    if r.given("gpus"):
        return r.whole("gpus")
    counted = on_all_nodes(r, "processes_per_node")
    if counted and counted % least:
        r.assume(
            f"The command starts {counted:,} processes, and its degrees need a multiple of {least:,}; "
            "it is meant for more nodes."
        )
        return None
    return counted


def _overlap(r: Reading) -> str:
    """Gradients (and with ZeRO-3 also weights) travel under the matmuls if the flags say so."""
    grad = r.on("overlap_grad")
    param = r.on("overlap_param")
    if grad and not param and r.given("overlap_param"):
        r.unexpressed(
            "overlap_param", "the all-gather of weights is counted as overlapped, like the gradients"
        )
    return "full" if grad else "none"


def _sharding(r: Reading, ranks: int, cp: int) -> dict[str, Any]:
    """The ZeRO stage, and the ranks that share state; over other instances it is replicated."""
    zero = 1 if r.on("distributed_optimizer") else 0
    if r.on("megatron_fsdp"):
        zero = int(r.meaning("strategy"))
    elif r.table.has("torch_fsdp2") and r.on("torch_fsdp2"):
        zero = 2 if r.on("no_reshard") else 3
    else:
        r.idle("strategy")
    instances = r.whole("instances")
    shared = divided(r, "instances", ranks, instances, "data-parallel ranks")
    return {"fsdp": shared, "dp": instances, "zero": zero}


def _experts(r: Reading, model: Transformer, tp: int) -> dict[str, Any]:
    """EP, and the chips that split one expert: all of TP, or one."""
    ep, each = r.whole("ep"), r.maybe("expert_tp")
    if not model.experts:
        if ep > 1:
            raise r.refuse("ep", f"needs experts, which {model.name} does not have", "write 1")
        r.idle("ep", "expert_tp")
        r.lacks("EP", "MOE")
        return {}
    if each not in (None, 1, tp):
        raise r.refuse("expert_tp", "is neither 1 nor the tensor-parallel degree", f"write 1 or {tp}")
    limited = r.maybe("expert_domains") or domains(model)
    return {"ep": ep, "expert_tp": None if each == tp else each, "expert_domains": limited}


def _pipeline(r: Reading, model: Transformer, pp: int) -> dict[str, Any]:
    """1F1B, interleaved with virtual stages; uneven first and last stages without them."""
    if pp == 1:
        r.idle("layers_per_chunk", "chunks", "layout", "first_layers", "last_layers", *_ENDS)
        return {}
    chunks = r.maybe("chunks") or 1
    if r.table.has("layers_per_chunk") and (layers := r.maybe("layers_per_chunk")):
        per_stage = divided(r, "layers_per_chunk", model.L, pp, "layers")
        chunks = divided(r, "layers_per_chunk", per_stage, layers, "layers of a stage")
    r.unexpressed("layout", "the stages are counted with equal loads")
    if not any(r.given(key) for key in ("layout", "first_layers", "last_layers")):
        _refuse_uneven(r, model, pp, chunks)
    found: dict[str, Any] = {"schedule": "interleaved", "chunks": chunks} if chunks > 1 else {}
    first, last = r.maybe("first_layers", 0), r.maybe("last_layers", 0)
    if first is None and last is None:
        return found
    if chunks > 1:
        for key in ("first_layers", "last_layers"):
            r.unexpressed(key, "with virtual stages, layers are counted as dealt evenly")
        return found
    middle = pp - (first is not None) - (last is not None)
    left = model.L - (first or 0) - (last or 0)
    key = "first_layers" if first is not None else "last_layers"
    each = divided(r, key, left, middle, "layers for the stages between") if middle else 0
    ends = ([] if first is None else [first]), ([] if last is None else [last])
    return found | {"stage_layers": (*ends[0], *[each] * middle, *ends[1])}


def _refuse_uneven(r: Reading, model: Transformer, pp: int, chunks: int) -> None:
    """Refuse layers that do not divide into the stages, and those of a stage into its chunks, as Megatron.

    The models of Megatron-Bridge set flags of their own here, such as those of Llama 3.1 405B.
    """
    ends = sum(r.on(key) for key in _ENDS)
    dealt = model.L + ends  # the longest stages hold as many layers as with equal loads
    if r.table.launcher == LM and dealt % (pp * chunks):
        key = "chunks" if r.given("chunks") and not dealt % pp else "pp"
        raise r.refuse(
            key,
            f"makes {pp * chunks:,} parts, into which {dealt:,} layers do not divide",
            "write a divisor, or other counts with --decoder-first-pipeline-num-layers and "
            "--decoder-last-pipeline-num-layers",
        )


def stages_divide(model: Transformer, plan: Plan) -> bool:
    """Whether the layers of a plan divide into its stages and their chunks, as flags without a layout do."""
    return plan.stage_layers is not None or model.L % (plan.pp * plan.chunks) == 0


def _context(r: Reading) -> str:
    named = r.get("context")
    kinds = tuple(named) if isinstance(named, tuple) else (str(named),)
    known = meanings(r.table.launcher, "context")
    if len(set(kinds)) > 1 or kinds[0] not in known:
        r.unexpressed("context", "a mix of exchanges is counted as a ring")
        return "ring"
    return known[kinds[0]]


def _types(r: Reading) -> dict[str, Any]:
    """Half-precision weights with a master copy; gradients in fp32 under bf16 unless the command says so."""
    half = FP16 if r.table.has("fp16") and r.on("fp16") else BF16
    if half is FP16:
        refuse_both_halves(r, "bf16", "fp16")
    if r.table.has("bf16") and not r.on("bf16") and half is BF16:
        r.assume("Neither --bf16 nor --fp16 is set, and Megatron would train in fp32; read as --bf16.")
    compute = half
    if r.word("fp8"):
        compute = FP8
    elif r.word("fp4"):
        compute = FP4
    if r.table.has("precision") and r.given("precision"):
        compute = {"fp8": FP8, "fp4": FP4, "fp16": FP16}.get(r.meaning("precision"), compute)
    wide = _wide_gradients(r, half)
    accumulated = FP32 if wide else half
    aware = r.on("precision_aware")  # otherwise main_grads_dtype has no effect
    gradients = r.dtype("gradients", accumulated) if aware and r.given("gradients") else accumulated
    found: dict[str, Any] = {
        "weights": FP8 if r.on("fp8_param") else half,
        "compute": compute,
        "activations": half,
        "gradients": gradients,
        "reduced": gradients if wide else half,
    }
    found["reduced"] = None if found["reduced"] == gradients else found["reduced"]
    if aware:
        first, second, master = (r.dtype(key, FP32) for key in ("first_moment", "second_moment", "master"))
        found |= {"moments": mean_type(first, second), "master": master}
    else:
        r.idle("gradients", "first_moment", "second_moment", "master")
    return found


def _wide_gradients(r: Reading, half: DType) -> bool:
    """Whether gradients are accumulated and reduced in fp32."""
    if r.table.has("reduce_bf16"):
        narrow = r.on("reduce_bf16")
        return r.on("reduce_fp32") or (half is BF16 and not narrow)
    return r.on("reduce_fp32")


def _offload(r: Reading, pp: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if r.on("offload"):
        fraction = r.number("offload_fraction")
        if fraction >= 1:
            found["offload_optimizer"] = True
        else:
            r.unexpressed("offload_fraction", "a part of the optimizer state on the host is not counted")
            r.unexpressed("offload", "a part of the optimizer state on the host is not counted")
    else:
        r.idle("offload_fraction")
    layers = r.whole("offload_layers", 0)
    if layers and pp == 1:
        found["offload_layers"] = layers
    elif layers:
        r.unexpressed("offload_layers", "with a pipeline, the layers of a stage on the host are not counted")
    return found


def _remat(r: Reading, model: Transformer, pp: int, fields: dict[str, Any]) -> str:
    kind = r.word("granularity").lower()
    if r.table.launcher == BRIDGE and not r.given("granularity"):  # as scripts/performance sets it
        kind = "full" if r.given("recompute_layers") else "selective" if r.given("modules") else ""
    if not kind and r.table.has("recompute") and r.on("recompute"):
        kind = "selective"
    if kind == "full":
        return _full(r, model.L, pp * fields.get("chunks", 1))
    r.idle("method", "recompute_layers")
    if kind not in ("", "selective"):
        raise r.refuse("granularity", "is not a granularity", "write full or selective")
    if not kind:
        r.idle("modules")
        return "none"
    named = r.get("modules")
    modules = named if isinstance(named, tuple) else ("core_attn",)
    again = [one for one in MODULES if one in modules]
    others = [one for one in modules if one not in MODULES and one not in _NEGLIGIBLE]
    if others:
        r.unexpressed("modules", f"the recomputation of {', '.join(others)} is not counted")
    return f"recompute:{','.join(again)}" if again else "none"


def _full(r: Reading, all_layers: int, stages: int) -> str:
    """Full recomputation: of every layer, or with `block` of the first layers of each stage alone."""
    method, layers = r.word("method").lower(), r.maybe("recompute_layers") or 1
    if not method and r.table.launcher == BRIDGE and not r.given("granularity"):
        method = "block"
    if method == "block" and layers * stages < all_layers:
        return f"{FULL_LAYERS}{layers * stages}"
    if method == "uniform" and layers > 1:
        r.unexpressed("recompute_layers", "counted as one checkpoint for each layer, which stores more")
    return "full"


_EXPERT_KERNELS = (
    ("--moe-token-dispatcher-type", "alltoall"),
    ("--moe-grouped-gemm", True),
    ("--moe-permute-fusion", True),
    ("--moe-router-fusion", True),
)
"""What the prediction is for; the defaults are an all-gather of tokens and unfused kernels."""
_RUN = (
    ("--attention-dropout", 0),
    ("--hidden-dropout", 0),
    ("tokenizer", "NullTokenizer"),
    ("--mock-data", True),
    ("--train-iters", 50),
    ("--lr", "1e-4"),
)
"""What a run needs besides the plan: data, which is mock data here, and a schedule."""
NOTE = (
    "It runs on mock data for 50 steps. Replace --tokenizer-type, --mock-data, --train-iters and --lr with "
    "those of your run."
)


def searched(model: Transformer) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The fields and the candidates of plans that a command can express."""
    fixed: dict[str, Any] = {
        "weights": BF16, "activations": BF16, "gradients": FP32, "reduced": None, "moments": FP32,
        "master": FP32, "logit_bytes": None, "overlap": "full", "context": "ring",
    }  # fmt: skip
    return fixed, {"zero": (1,), "schedule": ("1f1b", "interleaved"), "remat": ("none", "full")}


def flags_of(
    model: Transformer, machine: Machine, plan: Plan, batch: int, T: int
) -> Iterator[tuple[str, object]]:
    """The keys and values of a plan; what cannot be said is left out, which reading back shows."""
    if model.experts and plan.tp > 1 and not plan.sequence_parallel:
        raise LaunchError(
            "Megatron-LM does not train experts with tensor parallelism and without sequence parallelism; "
            "leave --no-sequence-parallel out, or write --tp 1"
        )
    if plan.zero < 2 and (plan.tp > 1 or plan.cp > 1):  # Megatron refuses to start without it
        yield "$CUDA_DEVICE_MAX_CONNECTIONS", 1
    yield from megatron_models.shape_flags(model, plan, T)
    yield "sequence", T
    yield "microbatch", plan.microbatch
    yield "global_batch", batch
    yield "tp", plan.tp
    yield "pp", plan.pp
    if plan.cp > 1:
        yield "cp", plan.cp
        words = {means: value for value, means in reversed(meanings(LM, "context").items())}
        yield "context", words[plan.context]
    if plan.tp > 1 and plan.sequence_parallel:
        yield "sequence_parallel", True
    if plan.tp > 1 and plan.collective_matmul and plan.sequence_parallel:  # which it needs
        yield "tp_overlap", True
    if plan.chunks > 1:
        yield "chunks", plan.chunks
    if plan.stage_layers:
        yield "first_layers", plan.stage_layers[0]
        yield "last_layers", plan.stage_layers[-1]
    else:
        yield from _uneven_flags(model, plan)
    if model.experts:
        yield from _EXPERT_KERNELS
        yield "ep", plan.ep
        yield "expert_tp", plan.expert_ways
        if plan.expert_domains and plan.expert_domains != domains(model):
            yield "expert_domains", plan.expert_domains
    yield from _sharding_flags(plan)
    yield from _type_flags(plan)
    yield from _remat_flags(plan)
    if plan.offload_optimizer:
        yield "offload", True
    if plan.offload_layers:
        yield "offload_layers", plan.offload_layers
    yield from _RUN


def _uneven_flags(model: Transformer, plan: Plan) -> Iterator[tuple[str, object]]:
    """What makes layers divide into stages: the embedding and the loss as layers, or a short last stage."""
    parts = plan.pp * plan.chunks
    missing = -model.L % parts
    if 0 < missing <= len(_ENDS):
        yield from ((key, True) for key in _ENDS[:missing])
    elif missing and plan.chunks == 1 and missing < -(-model.L // parts):
        yield "last_layers", -(-model.L // parts) - missing


def _sharding_flags(plan: Plan) -> Iterator[tuple[str, object]]:
    if plan.zero == 1:
        yield "distributed_optimizer", True
    elif plan.zero > 1:
        yield "megatron_fsdp", True
        yield "strategy", {2: "optim_grads", 3: "optim_grads_params"}[plan.zero]
        yield "--ckpt-format", "fsdp_dtensor"  # the only one that Megatron-FSDP accepts
    if plan.dp > 1:
        yield "instances", plan.dp
    if plan.hidden == 1:
        yield "overlap_grad", True
        if plan.zero:
            yield "overlap_param", True


def _type_flags(plan: Plan) -> Iterator[tuple[str, object]]:
    half = plan.activations
    yield ("fp16" if half is FP16 else "bf16"), True
    if plan.compute is FP8:
        yield "fp8", "hybrid"
    elif plan.compute is FP4:
        yield "fp4", "e2m1"
    if plan.weights is FP8 and plan.zero:  # only sharded optimizers keep them
        yield "fp8_param", True
    if plan.gradients is half and half is BF16:
        yield "reduce_bf16", True
    if plan.gradients is FP32 and half is FP16:
        yield "reduce_fp32", True
    narrow = plan.master and (plan.moments, plan.master) != (FP32, FP32)
    if narrow or plan.offload_optimizer:  # the offloading optimizer is of this kind
        yield "precision_aware", True
    if narrow and plan.master:
        yield "first_moment", plan.moments.name
        yield "second_moment", plan.moments.name
        yield "master", plan.master.name


def _remat_flags(plan: Plan) -> Iterator[tuple[str, object]]:
    if plan.remat == "full":
        yield "granularity", "full"
        yield "method", "uniform"
        yield "recompute_layers", 1
    elif plan.remat.startswith(FULL_LAYERS):
        some, rest = divmod(int(plan.remat[len(FULL_LAYERS) :]), plan.pp * plan.chunks)
        if some and not rest:
            yield "granularity", "full"
            yield "method", "block"
            yield "recompute_layers", some
    elif plan.remat.startswith("recompute:"):
        yield "granularity", "selective"
        yield "modules", plan.remat.partition(":")[2].replace(",", " ")
