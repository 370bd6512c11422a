"""Reads torchtitan: a TOML file, or the same names on the command line.

FSDP takes the ranks that are left (`data_parallel_shard_degree = -1`). Expert parallelism borrows ranks of
FSDP, context and tensor parallelism. The local batch counts sequences of a data-parallel rank, and a pipeline
divides it into microbatches; after v0.2.2, a microbatch is counted in tokens. Weights are kept in fp32 and
gathered in half precision.
"""

from collections.abc import Iterator
from typing import Any

from scalingbook_lib.launch.flags import meanings
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.training import (
    Given,
    TrainingLaunch,
    assume_kernel,
    chips_of,
    divided,
    domains,
    fill,
    model_of,
    on_all_nodes,
    sequence_of,
)
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import ModelError, Transformer, find
from scalingbook_lib.training import Plan
from scalingbook_lib.training.remat import FULL_LAYERS
from scalingbook_lib.units import BF16, FP8, FP32

NAME = "torchtitan"
LOGIT_BYTES = 14.0  # cross entropy in PyTorch: logits in bf16 and fp32, their softmax and its gradient


def always(model: Transformer) -> dict[str, Any]:
    """The fields of a plan that are the same in every launch."""
    return {
        "overlap": "full",
        "sequence_parallel": True,
        "logit_bytes": LOGIT_BYTES,
        "master": None,
        "moments": FP32,
        "expert_domains": domains(model),
    }


def read(r: Reading, given: Given) -> TrainingLaunch:
    """The launch of these settings."""
    if r.given("config") and not r.given("flavor"):
        raise r.refuse(
            "config",
            "is a Python function that sets the model and the plan, and nothing is executed here",
            "give the file that has it, as in config_registry.py:llama3_8b",
        )
    r.idle("config", "module")
    if given.model:
        r.idle("name", "flavor")
    named = None if given.model else _model(r)
    model = model_of(r, given, named, "write the name and flavor of [model]")
    T = sequence_of(r, given, "sequence")
    tp, pp, cp, dp = r.whole("tp"), r.whole("pp"), r.whole("cp"), r.whole("dp", -1)
    machine = chips_of(given, _started(r), "GPUs", r)
    degrees = {"tp": tp, "pp": pp, "cp": cp, "dp": dp, "fsdp": r.whole("fsdp", -1)}
    found = fill(r, degrees, machine.chips, "GPUs")
    ranks = found["fsdp"] * found["dp"]
    schedule, chunks = _schedule(r, model, pp)
    batch, microbatch = _batch(r, given, T, ranks, pp)
    plan = Plan(
        **found,
        **always(model),
        **_experts(r, model, tp),
        **_types(r),
        **({"context": r.meaning("context"), "zigzag": bool(r.word("balancer"))} if cp > 1 else {}),
        zero=_zero(r, pp),
        schedule=schedule,
        chunks=chunks,
        microbatch=microbatch,
        remat=given.remat or _remat(r, model.L),
        collective_matmul=r.on("tp_overlap") if tp > 1 else True,
        offload_optimizer=r.on("offload"),
    )
    if cp == 1:
        r.idle("context", "balancer")
    if tp == 1:
        r.idle("tp_overlap")
    _compile(r, overlapped=tp > 1 and r.on("tp_overlap"))
    assume_kernel(r, machine.chip)
    if r.on("offload"):
        r.unexpressed("offload", "the optimizer state is counted on the host, weights and gradients are not")
    return TrainingLaunch(
        launcher=NAME, model=model, machine=machine, batch=batch, T=T, plan=plan, account=r.account()
    )


def _compile(r: Reading, *, overlapped: bool) -> None:
    """Ask whether the model is compiled, as the runs of the calibration are; TP overlap needs it."""
    components = r.get("compiled")
    compiled = r.on("compile") and isinstance(components, tuple) and "model" in components
    if overlapped and not compiled:
        raise r.refuse(
            "tp_overlap",
            "needs a compiled model",
            "add compile.enable=true, with model in compile.components",
        )
    if not compiled:  # then the account says that the prediction is of a compiled run
        for key in ("compile", "compiled"):
            r.asked.pop(key, None)


def _model(r: Reading) -> Transformer | None:
    name, flavor = r.word("name"), r.word("flavor")
    if not r.given("flavor") or flavor == "debugmodel":
        return None
    known = meanings(NAME, "model").get(f"{name} {flavor}", f"{name}-{flavor}")
    try:
        return find(known)
    except ModelError as error:
        raise r.refuse(
            "flavor", f"of {name} is not a model of the catalog", f"add --model: {error}"
        ) from error


def _started(r: Reading) -> int | None:
    counted = on_all_nodes(r, "processes_per_node")
    return r.whole("gpus") if counted is None and r.given("gpus") else counted


def _batch(r: Reading, given: Given, T: int, ranks: int, pp: int) -> tuple[int, int]:
    """The sequences of a step, and those of a microbatch of a data-parallel rank."""
    if r.given("microbatch_tokens"):
        return _token_batch(r, given, T, ranks, pp)
    local = r.whole("local_batch")
    if given.batch and not r.given("local_batch"):
        local = max(given.batch // ranks, 1)
    total = r.whole("global_batch", -1)
    batch = given.batch or (local * ranks if total == -1 else total)
    divided(r, "local_batch", batch, local * ranks, "sequences of a step")
    if pp == 1:
        r.idle("pipeline_microbatch")
        return batch, local
    microbatch = r.whole("pipeline_microbatch")
    divided(r, "local_batch", local, microbatch, "sequences of a rank")
    return batch, microbatch


def _token_batch(r: Reading, given: Given, T: int, ranks: int, pp: int) -> tuple[int, int]:
    microbatch = divided(r, "microbatch_tokens", r.whole("microbatch_tokens"), T, "tokens of a microbatch")
    count = r.whole("pipeline_microbatches") if pp > 1 else 1
    tokens = r.whole("global_tokens", -1)
    batch = microbatch * count * ranks if tokens == -1 else divided(r, "global_tokens", tokens, T, "tokens")
    return given.batch or batch, microbatch


def _zero(r: Reading, pp: int) -> int:
    """ZeRO-3, or ZeRO-2 where weights stay gathered between forward and backward pass."""
    word = r.word("reshard")
    if word not in ("default", "always", "never"):
        raise r.refuse("reshard", "is not known", "write default, always or never")
    return 2 if word == "never" or (word == "default" and pp > 1) else 3


def _schedule(r: Reading, model: Transformer, pp: int) -> tuple[str, int]:
    if pp == 1:
        r.idle("schedule", "stage_layers", "pipeline_microbatch", "pipeline_microbatches")
        return "1f1b", 1
    schedule = r.meaning("schedule")
    layers = r.maybe("stage_layers")
    chunks = 2 if schedule == "interleaved" else 1
    if layers:
        chunks = max(-(-model.L // (pp * layers)), 1)
    if schedule != "interleaved":
        return schedule, 1
    if chunks < 2:
        raise r.refuse("stage_layers", "leaves one stage for each rank", "write fewer layers, or 1F1B")
    return schedule, chunks


def _experts(r: Reading, model: Transformer, tp: int) -> dict[str, Any]:
    ep, each = r.whole("ep"), r.whole("expert_tp")
    if not model.experts:
        if ep > 1:
            raise r.refuse("ep", f"needs experts, which {model.name} does not have", "write 1")
        r.idle("expert_tp")
        r.lacks("EP", "MOE")
        return {}
    if each not in (1, tp):
        raise r.refuse("expert_tp", "is neither 1 nor the tensor-parallel degree", f"write 1 or {tp}")
    # without expert parallelism, tensor parallelism splits the experts
    return {"ep": ep, "expert_tp": None if each == tp or ep == 1 else 1}


def _types(r: Reading) -> dict[str, Any]:
    weights, half, reduced = (
        r.dtype("weights", FP32),
        r.dtype("compute", BF16),
        r.dtype("reduced", FP32),
    )
    converters = r.word("converters")
    for kind in ("quantize.linear.float8", "quantize.linear.mx", "quantize.grouped_mm.float8"):
        if kind not in converters and f"{kind.rpartition('.')[2]}" not in converters:
            r.inert(kind, "because model.converters does not name it")
    narrow = any(name in converters for name in ("float8", "mx"))
    return {
        "weights": weights,
        "gradients": weights,
        "reduced": None if reduced == weights else reduced,
        "compute": FP8 if narrow else half,
        "activations": half,
    }


def _remat(r: Reading, layers: int) -> str:
    mode = r.word("remat") or "none"
    if mode == "memory_budget":
        r.unexpressed("remat", "the compiler chooses what it recomputes; counted as selective")
        return "alternate"
    found = r.meaning("remat") if r.word("remat") else "none"
    if mode != "selective":
        r.idle("remat_option")
        return found
    option = r.word("remat_option")
    if option == "op":
        return found
    if not option.isdigit() or int(option) < 1:
        raise r.refuse("remat_option", "is neither op nor a number of layers", "write op or 2")
    if int(option) == 1:
        return "full"
    if not r.given("remat_option"):
        r.assume(f"By default, one layer in {option} is recomputed.")
    return f"{FULL_LAYERS}{layers // int(option)}" if layers >= int(option) else "none"


def searched(model: Transformer) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The fields and the candidates of plans that a command can express."""
    fixed = always(model) | {"weights": FP32, "gradients": FP32, "reduced": None}
    tried: dict[str, tuple[Any, ...]] = {
        "zero": (2, 3), "schedule": ("1f1b", "interleaved"), "remat": ("none", "alternate", "full"),
        "chunks": (2, 4),
    }  # fmt: skip
    return fixed, tried


def flags_of(
    model: Transformer, machine: Machine, plan: Plan, batch: int, T: int
) -> Iterator[tuple[str, object]]:
    """The keys and values of a plan; what cannot be said is left out, which reading back shows."""
    typed = model.name.lower().replace(" ", "-")
    for words, means in meanings(NAME, "model").items():
        if means == typed:
            yield "name", words.split()[0]
            yield "flavor", words.split()[1]
            break
    yield "sequence", T
    yield "local_batch", plan.microbatch if plan.pp == 1 else batch // plan.ranks
    yield "global_batch", batch
    yield "fsdp", plan.fsdp
    yield "dp", plan.dp
    yield "tp", plan.tp
    if plan.tp > 1 and plan.collective_matmul:
        yield "tp_overlap", True
    if plan.cp > 1:
        yield "cp", plan.cp
        words = {means: value for value, means in meanings(NAME, "context").items()}
        if plan.context in words:
            yield "context", words[plan.context]
        if not plan.zigzag:
            yield "balancer", "none"
    if plan.pp > 1:
        yield "pp", plan.pp
        yield (
            "schedule",
            {means: value for value, means in reversed(meanings(NAME, "schedule").items())}[plan.schedule],
        )
        yield "pipeline_microbatch", plan.microbatch
        if plan.chunks > 1:
            yield "stage_layers", max(model.L // (plan.pp * plan.chunks), 1)
    if model.experts:
        yield "ep", plan.ep
        if plan.ep > 1 and plan.tp > 1:
            yield "expert_tp", plan.expert_ways
    yield "reshard", "never" if plan.zero == 2 else "always"
    half = {"bf16": "bfloat16", "fp32": "float32"}
    yield "compute", half.get(plan.activations.name, plan.activations.name)
    if plan.weights != FP32:
        yield "weights", half.get(plan.weights.name, plan.weights.name)
    if plan.compute is FP8:
        yield "converters", "float8"
    yield "compile", True  # as in the runs of the calibrated efficiency; async TP needs it
    modes = {"none": "none", "full": "full", "alternate": "selective"}
    if plan.remat in modes:
        yield "remat", modes[plan.remat]
        if plan.remat == "alternate":
            yield "remat_option", "op"
    elif plan.remat.startswith(FULL_LAYERS) and not model.L % (some := int(plan.remat[len(FULL_LAYERS) :])):
        yield "remat", "selective"
        yield "remat_option", model.L // some
