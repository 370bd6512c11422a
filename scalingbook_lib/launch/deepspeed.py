"""Reads DeepSpeed's JSON, and the arguments of the program beside it.

Of the batch, the microbatch and the accumulation steps, two give the third. ZeRO shards over all data-
parallel GPUs. Rematerialization is up to the model: a Hugging Face trainer has --gradient_checkpointing.
"""

from collections.abc import Iterator
from typing import Any

from scalingbook_lib.launch import adapters
from scalingbook_lib.launch.flags import table
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import (
    Given,
    TrainingLaunch,
    assume_kernel,
    chips_of,
    model_of,
    on_all_nodes,
    refuse_both_halves,
    refuse_model,
    sequence_of,
)
from scalingbook_lib.models import ModelError, Transformer, find
from scalingbook_lib.training import Plan
from scalingbook_lib.units import BF16, FP16, FP32, DType

NAME = "deepspeed"
LOGIT_BYTES = 14.0


def read(r: Reading, given: Given) -> TrainingLaunch:
    """The launch of these settings."""
    _drop_auto(r)
    model = model_of(r, given, named_model(r, given), "write --model_name_or_path")
    T = sequence_of(r, given, "sequence")
    tp, cp = r.whole("tp"), r.whole("ulysses")
    machine = chips_of(given, on_all_nodes(r, "gpus_per_node"), "GPUs", r)
    ranks, rest = divmod(machine.chips, tp * cp)
    if rest or not ranks:
        raise LaunchError(
            f"tensor {tp} · sequence {cp} does not divide the {machine.chips:,} GPUs; write degrees that do"
        )
    batch, microbatch = batch_of(r, given, ranks)
    zero = r.whole("zero", 0)
    if zero > 3:
        raise r.refuse("zero", "is not a ZeRO stage", "write 0, 1, 2 or 3")
    types = _types(r)
    load = adapters.loaded(r, model, types["weights"])
    if load.quantized:
        types["weights"] = load.weights
    plan = Plan(
        frozen=load.adapters,
        tp=tp,
        cp=cp,
        fsdp=ranks,
        zero=zero,
        microbatch=microbatch,
        sequence_parallel=False,
        context="ulysses" if cp > 1 else "ring",
        overlap="none" if r.get("overlap") is False else "full",
        logit_bytes=LOGIT_BYTES,
        remat=given.remat or _remat(r),
        offload_optimizer=_offload(r),
        **types,
    )
    assume_kernel(r, machine.chip)
    return TrainingLaunch(
        launcher=NAME, model=model, machine=machine, batch=batch, T=T, plan=plan, account=r.account()
    )


def _drop_auto(r: Reading) -> None:
    """Leave out what the trainer fills in: 'auto'."""
    r.settings = {
        flag: one for flag, one in r.settings.items() if one.value != "auto" or not r.table.find(flag)
    }


def named_model(r: Reading, given: Given) -> Transformer | None:
    """The model of --model_name_or_path, unless one is given: then the path is where its weights are."""
    if given.model:
        r.idle("model")
        return None
    if not r.given("model"):
        return None
    try:
        return find(r.word("model"))
    except ModelError as error:
        raise refuse_model(r, error) from error


def batch_of(r: Reading, given: Given, ranks: int) -> tuple[int, int]:
    """The sequences of a step, and those of a microbatch."""
    micro = r.maybe("microbatch") or (r.whole("microbatch_arg") if r.given("microbatch_arg") else None)
    steps = r.maybe("accumulation") if r.given("accumulation") else None
    total = given.batch or r.maybe("global_batch")
    if micro is None and total is None:
        raise LaunchError(
            "the configuration does not say the batch: train_batch_size and train_micro_batch_size_per_gpu "
            "are missing or auto; write one of them, or add --batch with the sequences of a step"
        )
    if micro is None and total:
        micro, rest = divmod(total, ranks * (steps or 1))
        if rest or not micro:
            raise LaunchError(
                f"a batch of {total:,} sequences does not divide by {ranks:,} GPUs and {steps or 1} "
                "accumulation steps; write a multiple"
            )
    assert micro
    batch = total or micro * (steps or 1) * ranks
    if batch % (micro * ranks) or (steps and batch != micro * steps * ranks):
        raise LaunchError(
            f"{micro} sequences x {steps or 'n'} accumulation steps x {ranks:,} GPUs is not the batch of "
            f"{batch:,}; correct one of the three"
        )
    return batch, micro


def _offload(r: Reading) -> bool:
    device = r.word("offload_optimizer").lower()
    if device == "nvme":
        r.unexpressed("offload_optimizer", "counted as the memory of the host, not as NVMe")
    return device in ("cpu", "nvme")


def _remat(r: Reading) -> str:
    if found := adapters.factory_remat(r):
        return found
    if not r.given("trainer_remat"):
        r.assume(
            "The configuration does not say what the model recomputes; counted as nothing (see --remat)."
        )
        return "none"
    return "full" if r.on("trainer_remat") else "none"


def _types(r: Reading) -> dict[str, Any]:
    half: DType = BF16
    refuse_both_halves(r, "bf16", "fp16")
    refuse_both_halves(r, "trainer_bf16", "trainer_fp16")
    if r.on("fp16") or r.on("bf16"):
        half = FP16 if r.on("fp16") else BF16
        r.idle("trainer_fp16", "trainer_bf16")
    elif r.on("trainer_fp16") or r.on("trainer_bf16"):  # which fill in what the file leaves to "auto"
        half = FP16 if r.on("trainer_fp16") else BF16
    else:
        r.assume("Neither bf16 nor fp16 is enabled in the file; read as bf16.")
    gradients, reduced = r.dtype("gradients", half), r.get("reduced")
    return {
        "weights": half,
        "compute": half,
        "activations": half,
        "gradients": gradients,
        "reduced": reduced,
        "moments": FP32,
        "master": FP32,
    }


def flags_of(launch: TrainingLaunch, plan: Plan) -> Iterator[tuple[str, object]]:
    """The keys and values of another plan of a launch, in the settings that its command or file has."""
    used = {each.flag for each in launch.account.used}
    rows = table(NAME)
    yield "tp", plan.tp
    yield "zero", plan.zero
    trainer = rows.of("microbatch_arg").flag in used
    yield "microbatch_arg" if trainer else "microbatch", plan.microbatch
    yield "accumulation", plan.microbatches(launch.batch)
    if plan.remat == "full":
        yield "trainer_remat", True
