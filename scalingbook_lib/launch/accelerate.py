"""Reads Hugging Face Accelerate: its YAML or the options of `accelerate launch`, and the trainer's arguments.

FSDP version 1 names a sharding strategy, version 2 whether weights are resharded after the forward pass.
Weights are kept in fp32 under mixed precision. The batch is the trainer's: sequences of each data-parallel
rank times the accumulation steps.
"""

from collections.abc import Iterator
from typing import Any

from scalingbook_lib.launch import adapters
from scalingbook_lib.launch.adapters import Loaded
from scalingbook_lib.launch.deepspeed import named_model
from scalingbook_lib.launch.flags import meanings, table
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import (
    Given,
    TrainingLaunch,
    assume_kernel,
    chips_of,
    divided,
    model_of,
    on_all_nodes,
    refuse_both_halves,
    sequence_of,
)
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.training import Plan
from scalingbook_lib.units import BF16, FP8, FP16, FP32, INT8, DType

NAME = "accelerate"
LOGIT_BYTES = 14.0


def read(r: Reading, given: Given) -> TrainingLaunch:
    """The launch of these settings."""
    model = model_of(r, given, named_model(r, given), "write --model_name_or_path")
    T = sequence_of(r, given, "sequence")
    r.idle("nodes_named", "distributed_type", "use_fsdp", "use_deepspeed")
    if r.word("distributed_type").upper() in ("MEGATRON_LM", "TPU", "XLA"):
        raise r.refuse(
            "distributed_type",
            "is another framework's plan, which is not read from this file",
            "give the command of Megatron-LM or MaxText, or write FSDP, DEEPSPEED or MULTI_GPU",
        )
    # by Accelerate's option or by torchrun's
    started = r.whole("gpus") if r.given("gpus") else on_all_nodes(r, "processes_per_node")
    if started is None and isinstance(given.machine, Chip) and r.setting("program").value == "python":
        r.assume("The command starts one process, on one GPU.")
        started = 1
    machine = chips_of(given, started, "processes", r)
    options = r.word("trainer_fsdp").lower().split()
    if any("hybrid" in option for option in options):
        raise r.refuse(
            "trainer_fsdp",
            "does not say over how many GPUs it shards",
            "write an Accelerate config with dp_replicate",
        )
    deepspeed = r.word("distributed_type").upper() == "DEEPSPEED" or r.on("use_deepspeed")
    sharded = r.word("distributed_type").upper() == "FSDP" or r.on("use_fsdp") or bool(options)
    degrees = _degrees(r, machine.chips, sharded or deepspeed)
    if sharded and not deepspeed and r.word("strategy").upper().startswith("HYBRID"):
        degrees = _within_nodes(r, degrees, machine)
    ranks = degrees["fsdp"] * degrees["dp"]
    batch, microbatch = _batch(r, given, ranks)
    zero, prefetch = _zero(r, sharded=sharded, deepspeed=deepspeed)
    if options:
        zero = 2 if "shard_grad_op" in options else 0 if "no_shard" in options else 3
        if "offload" in options:
            r.unexpressed("trainer_fsdp", "the offload of weights and optimizer state is not counted")
    if r.on("offload"):
        r.unexpressed("offload", "the optimizer state is counted on the host, weights and gradients are not")
    half = _half(r)
    load = adapters.loaded(r, model, half)
    if half is FP32:
        _refuse_fp32(machine.chip)
        r.assume("No mixed precision is set: matmuls are in fp32.")
    plan = Plan(
        **degrees,
        frozen=load.adapters,
        **({"context": r.meaning("context")} if degrees["cp"] > 1 else {}),
        zero=zero,
        prefetch=prefetch,
        microbatch=microbatch,
        sequence_parallel=False,
        logit_bytes=LOGIT_BYTES,
        remat=given.remat or _remat(r),
        offload_optimizer=r.on("offload") or r.word("offload_optimizer").lower() in ("cpu", "nvme"),
        **_types(r, half, load, deepspeed=deepspeed, sharded=zero > 0),
    )
    kernel = _kernel(r, machine.chip)
    if r.given("flash"):
        r.idle("flash")
    return TrainingLaunch(
        launcher=NAME,
        model=model,
        machine=machine,
        batch=batch,
        T=T,
        plan=plan,
        kernel=kernel,
        account=r.account(),
    )


def _kernel(r: Reading, chip: Chip) -> str | None:
    """The attention kernel, if the trainer's arguments name it; None is that of PyTorch's SDPA."""
    if not r.given("kernel"):
        assume_kernel(r, chip)
        return None
    found = meanings(NAME, "kernel").get(r.word("kernel").lower())
    if found is None:
        r.unexpressed("kernel", "this attention is not calibrated; counted as PyTorch's SDPA")
    return found


def _degrees(r: Reading, chips: int, sharded: bool) -> dict[str, int]:
    """The degrees of parallelism_config; without one, all processes shard (or replicate)."""
    tp, cp, dp = r.whole("tp"), r.whole("cp"), r.whole("dp")
    left, rest = divmod(chips, tp * cp * dp)
    if rest or not left:
        raise LaunchError(f"tp {tp} · cp {cp} · dp_replicate {dp} does not divide the {chips:,} processes")
    if r.given("fsdp") and r.whole("fsdp") != left:
        raise r.refuse(
            "fsdp", f"with tp {tp}, cp {cp} and dp_replicate {dp} does not make {chips:,}", f"write {left}"
        )
    return (
        {"tp": tp, "cp": cp, "dp": dp, "fsdp": left}
        if sharded
        else {"tp": tp, "cp": cp, "dp": dp * left, "fsdp": 1}
    )


def _within_nodes(r: Reading, degrees: dict[str, int], machine: Machine) -> dict[str, int]:
    """The degrees of a hybrid strategy, which shards within a node and replicates over the nodes."""
    nodes = r.whole("nodes_named") if r.given("nodes_named") else 1
    each = machine.chips // nodes if nodes > 1 else min(machine.chip.chips_per_host, machine.chips)
    inside = max(each // (degrees["tp"] * degrees["cp"]), 1)
    copies = divided(r, "strategy", degrees["fsdp"], inside, "ranks")
    return degrees | {"fsdp": inside, "dp": degrees["dp"] * copies}


def _batch(r: Reading, given: Given, ranks: int) -> tuple[int, int]:
    steps = r.whole("accumulation")
    if not r.given("device_batch") and given.batch:
        micro, rest = divmod(given.batch, ranks * steps)
        if rest or not micro:
            raise LaunchError(
                f"{given.batch:,} sequences do not divide by {ranks:,} ranks and {steps} accumulation steps; "
                "write a multiple in --batch"
            )
        if micro > 1:
            r.assume(
                f"The configuration sets no batch of a process: each takes its {micro:,} sequences at once."
            )
        return given.batch, micro
    if not r.given("device_batch"):
        raise LaunchError(
            "the configuration does not say the batch; add --per_device_train_batch_size to the command, or "
            "--batch with the sequences of a step"
        )
    micro = r.whole("device_batch")
    batch = given.batch or micro * steps * ranks
    divided(r, "device_batch", batch, micro * ranks, "sequences of a step")
    return batch, micro


def _zero(r: Reading, *, sharded: bool, deepspeed: bool) -> tuple[int, bool]:
    """The ZeRO stage, and whether a layer's weights are gathered ahead in the backward pass."""
    if deepspeed:
        zero = r.whole("zero", 0)
        if zero > 3:
            raise r.refuse("zero", "is not a ZeRO stage", "write 0, 1, 2 or 3")
        return zero, True
    if not sharded:
        r.idle("strategy", "reshard", "fsdp_version", "wrap", "backward_prefetch")
        return 0, True
    version = r.whole("fsdp_version")
    if r.word("wrap").upper() in ("", "NO_WRAP") and "auto_wrap" not in r.word("trainer_fsdp"):
        r.assume("Without fsdp_auto_wrap_policy, FSDP gathers the whole model at once, which is not counted.")
    prefetch = r.word("backward_prefetch").upper() not in ("BACKWARD_POST", "NO_PREFETCH") or version == 2
    if version == 2:
        r.idle("strategy", "backward_prefetch")
        return 3 if r.word("reshard").lower() in ("true", "full_shard", "1") else 2, prefetch
    if not r.given("strategy") and r.word("reshard").upper().endswith(("SHARD", "SHARD_GRAD_OP")):
        return {"SHARD_GRAD_OP": 2, "NO_SHARD": 0}.get(r.word("reshard").upper(), 3), prefetch
    r.idle("reshard")
    return int(r.meaning("strategy")), prefetch


def _remat(r: Reading) -> str:
    if r.on("remat") or (r.given("trainer_remat") and r.on("trainer_remat")):
        return "full"
    if found := adapters.factory_remat(r):
        return found
    if not r.given("remat") and not r.given("trainer_remat"):
        r.assume(
            "The configuration does not say what the model recomputes; counted as nothing (see --remat)."
        )
    return "none"


def _half(r: Reading) -> DType:
    """The dtype of mixed precision; fp32 without it."""
    if r.setting("bf16").text == "auto":  # Axolotl's: where the chip has it
        r.idle("bf16")
        bf16 = True
    else:
        refuse_both_halves(r, "bf16", "fp16")
        bf16 = r.on("bf16")
    own = "bf16" if bf16 else "fp16" if r.on("fp16") else "fp32"
    word = r.meaning("precision") if r.given("precision") else own
    if r.given("precision"):
        r.idle("bf16", "fp16")
    return {"bf16": BF16, "fp16": FP16, "fp8": BF16}.get(word, FP32)


def _refuse_fp32(chip: Chip) -> None:
    """Refuse matmuls in fp32 on a chip for which the catalog has no rate of them."""
    if "fp32" not in chip.rates():
        raise LaunchError(
            f"no mixed precision is set, and the catalog has no rate of fp32 matmuls for {chip.name}; add "
            "--bf16, or --mixed_precision bf16"
        )


def _types(r: Reading, half: DType, load: Loaded, *, deepspeed: bool, sharded: bool) -> dict[str, Any]:
    """FSDP keeps trained weights in fp32 and gathers them in half precision; DeepSpeed keeps a master copy.

    Without sharding, weights, gradients and moments have the dtype in which the model is loaded.
    """
    fp8 = r.given("precision") and r.meaning("precision") == "fp8"
    compute = FP8 if fp8 else half
    common: dict[str, Any] = {"compute": compute, "activations": half, "moments": FP32}
    if deepspeed:
        weights = load.weights if load.quantized else half
        return common | {"weights": weights, "gradients": half, "master": FP32}
    reduced = half if half is not FP32 else None
    if load.adapters:
        return common | {"weights": load.weights, "gradients": FP32, "reduced": reduced, "master": None}
    kept = FP32 if sharded else load.weights
    return common | {
        "weights": kept,
        "gradients": kept,
        "reduced": reduced if kept is FP32 else None,
        "moments": _moments(r, kept),
        "master": None,
    }


def _moments(r: Reading, weights: DType) -> DType:
    """The dtype of Adam's moments: that of the weights, or 8 bits."""
    if not r.given("optim"):
        return weights
    found = meanings(NAME, "optim").get(r.word("optim").lower())
    if found is None:
        r.unexpressed("optim", "counted as AdamW")
        return weights
    if r.word("optim").startswith("paged"):
        r.unexpressed("optim", "counted in the memory of the GPU, from which its pages may move to the host")
    return INT8 if found == "int8" else weights


def flags_of(launch: TrainingLaunch, plan: Plan) -> Iterator[tuple[str, object]]:
    """The keys and values of another plan of a launch, in the settings that its command or file has."""
    rows = table(NAME)
    flags = {each.flag: each.value.lower() for each in launch.account.used}
    used = {row.key: flags[row.flag] for row in rows.rows if row.key and row.flag in flags}
    deepspeed = used.get("distributed_type") == "deepspeed" or used.get("use_deepspeed") == "true"
    yield "tp", plan.tp
    if deepspeed:
        yield "zero", plan.zero
    elif plan.zero:
        yield "dp", plan.dp
        yield "fsdp", plan.fsdp
        yield from _fsdp_flags(used, plan)
    yield "device_batch", plan.microbatch
    yield "accumulation", plan.microbatches(launch.batch)
    if plan.remat == "full":
        yield "remat" if "remat" in used else "trainer_remat", True


def _fsdp_flags(used: dict[str, str], plan: Plan) -> Iterator[tuple[str, object]]:
    """FSDP by the trainer's option, or by Accelerate's of version 1 or 2."""
    whole = plan.zero == 3
    if "trainer_fsdp" in used:
        yield "trainer_fsdp", f'"{"full_shard" if whole else "shard_grad_op"} auto_wrap"'
        return
    if "use_fsdp" not in used:
        yield "distributed_type", "FSDP"
    if "wrap" not in used:  # without it, the whole model is gathered at once
        yield "wrap", "TRANSFORMER_BASED_WRAP"
    if used.get("fsdp_version") == "2":
        yield "reshard", str(whole).lower()
    elif plan.dp > 1 and "strategy" in used and used["strategy"].startswith("hybrid"):
        yield "strategy", "HYBRID_SHARD" if whole else "HYBRID_SHARD_ZERO2"
    else:
        yield "strategy", "FULL_SHARD" if whole else "SHARD_GRAD_OP"
