"""Reads Hugging Face Accelerate: its YAML or the options of `accelerate launch`, and the trainer's arguments.

FSDP version 1 names a sharding strategy, version 2 whether weights are resharded after the forward pass.
Weights are kept in fp32 under mixed precision. The batch is the trainer's: sequences of each data-parallel
rank times the accumulation steps.
"""

from typing import Any

from scalingbook_lib.launch.deepspeed import named_model
from scalingbook_lib.launch.flags import meanings
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import (
    Given,
    TrainingLaunch,
    assume_adapters,
    assume_kernel,
    chips_of,
    divided,
    model_of,
    on_all_nodes,
    sequence_of,
)
from scalingbook_lib.machines import Chip
from scalingbook_lib.training import Plan
from scalingbook_lib.units import BF16, FP8, FP16, FP32, DType

NAME = "accelerate"
LOGIT_BYTES = 14.0


def read(r: Reading, given: Given) -> TrainingLaunch:
    """The launch of these settings."""
    model = model_of(r, given, named_model(r, given), "write --model_name_or_path")
    T = sequence_of(r, given, "sequence")
    r.idle("nodes_named", "distributed_type", "use_fsdp", "use_deepspeed")
    # by Accelerate's option or by torchrun's
    started = r.whole("gpus") if r.given("gpus") else on_all_nodes(r, "processes_per_node")
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
    ranks = degrees["fsdp"] * degrees["dp"]
    batch, microbatch = _batch(r, given, ranks)
    zero, prefetch = _zero(r, sharded=sharded, deepspeed=deepspeed)
    if options:
        zero = 2 if "shard_grad_op" in options else 0 if "no_shard" in options else 3
        if "offload" in options:
            r.unexpressed("trainer_fsdp", "the offload of weights and optimizer state is not counted")
    if r.on("offload"):
        r.unexpressed("offload", "the optimizer state is counted on the host, weights and gradients are not")
    if adapters := r.on("peft"):
        assume_adapters(r)
    plan = Plan(
        **degrees,
        frozen=adapters,
        **({"context": r.meaning("context")} if degrees["cp"] > 1 else {}),
        zero=zero,
        prefetch=prefetch,
        microbatch=microbatch,
        sequence_parallel=False,
        logit_bytes=LOGIT_BYTES,
        remat=given.remat or _remat(r),
        offload_optimizer=r.on("offload") or r.word("offload_optimizer").lower() in ("cpu", "nvme"),
        **_types(r, deepspeed=deepspeed),
    )
    kernel = _kernel(r, machine.chip)
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


def _batch(r: Reading, given: Given, ranks: int) -> tuple[int, int]:
    steps = r.whole("accumulation")
    if not r.given("device_batch") and given.batch:
        micro, rest = divmod(given.batch, ranks * steps)
        if rest or not micro:
            raise LaunchError(
                f"{given.batch:,} sequences do not divide by {ranks:,} ranks and {steps} accumulation steps; "
                "write a multiple in --batch"
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
    if not r.given("remat") and not r.given("trainer_remat"):
        r.assume(
            "The configuration does not say what the model recomputes; counted as nothing (see --remat)."
        )
    return "none"


def _types(r: Reading, *, deepspeed: bool) -> dict[str, Any]:
    """FSDP keeps weights in fp32 and gathers them in half precision; DeepSpeed keeps a master copy."""
    own = "bf16" if r.on("bf16") else "fp16" if r.on("fp16") else "fp32"
    word = r.meaning("precision") if r.given("precision") else own
    if r.given("precision"):
        r.idle("bf16", "fp16")
    half: DType = {"bf16": BF16, "fp16": FP16, "fp8": BF16}.get(word, FP32)
    if half is FP32:
        r.assume("No mixed precision is set: matmuls are in fp32.")
    compute = FP8 if word == "fp8" else half
    if deepspeed:
        return {"weights": half, "compute": compute, "activations": half, "gradients": half, "master": FP32}
    reduced = half if half is not FP32 else None
    return {
        "weights": FP32, "compute": compute, "activations": half, "gradients": FP32, "reduced": reduced,
        "master": None,
    }  # fmt: skip
