"""Reads a row of a table of training runs, whatever the software; what the row leaves open is None or 1.

The library's own tables have annotation columns (`annotated`); for other tables, the public columns and the
rules of the row's software count. Chapter: Training.
"""

import re
from math import prod

from scalingbook_lib.evidence.measured.published import families
from scalingbook_lib.evidence.measured.training_runs.run import TrainingRun, products
from scalingbook_lib.evidence.reading.cells import (
    Cells,
    UnpredictedRow,
    annotated,
    first,
    needed,
    number,
    precision,
    text,
    whole,
)
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import model
from scalingbook_lib.evidence.reading.stacks import software_of
from scalingbook_lib.evidence.resources import Row, source
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.training.remat import FULL_LAYERS, MODULES

FLOPS_CONVENTIONS = {
    "frozen": r"lora|4n\b|frozen",
    "hardware": r"hardware|\bhfu\b|recompute (is )?counted|counts activation recompute|96bs",
    "6P": r"6\*?n \(all|incl(\.|udes|uding) (tied |input |the )?embedding|with self-attention",
    "full": r"non-causal|^((?!causal|half|halved|6\*?l\*?d\*?s).)*(full|12\*?l\*?d\*?s|72bs)",
    "half": r"causal|hal(f|ved)|6\*?l\*?d\*?s",
    "6N": r"6\*? ?n|6 ?\* ?p",
}
"""Patterns that tell how a source counts FLOPs; the first match counts."""
REMAT_POLICIES = {
    "none": r"^no(ne)?\b|^false|^off$",
    "selective_op": r"selective.?op|per-op",
    "selective": r"selective",
    "minimal": r"minimal|save_dot",
    "full": r"^full|^yes|^true|full remat|\ball layers",
}
"""Patterns that tell the rematerialization policy of a row."""
EVERY_NTH_LAYER = re.compile(r"selective[ _-]?layers?\b|every (?:other|second|(\d+)(?:st|nd|rd|th)) layer")
"""Every second layer by default, as in torchtitan's "selective" with a number and in IBM's fms-fsdp."""
SOME_LAYERS = re.compile(r"\b(\d+) (?:of|/) \d+ layers")  # Megatron's "block" method
MODULE_NAMES = re.compile(rf"\b({'|'.join(MODULES)})\b")  # of Megatron's --recompute-modules
LAYERS = "offload layers:"
"""A policy that keeps what kernels keep, and has all of so many layers in the host's memory."""
SAVED_TENSORS = {"in": r"\binput", "q,k,v": r"q,k,v|qkv", "context": r"context", "o": r"out_proj"}
"""The tensors that a row says are saved or offloaded, by the library's names."""
PRINTED = {
    "s": ("step_time_s", "step_time_derived_s"),
    "tok": ("tokens_per_s_per_chip",),
    "tf": ("tflops_per_chip",),
    "mfu": ("mfu", "hfu"),
    "mem": ("peak_mem_gib", "peak_memory_gib"),
}
SLICES = re.compile(r"\b(\d+) ?x ?(?:tpu ?)?v\d")  # '4x v5e-256'
ZERO_STAGES = {
    "0": r"no_shard|ddp|zero-?0",
    "1": r"zero-?1|distributed optimizer",
    "2": r"shard_grad|zero-?2",
    "3": r"full_shard|hybrid|zero-?3|fsdp|true|yes",
}
"""ZeRO stages, by the names of PyTorch and DeepSpeed."""
LOCAL_BATCH = "local_batch", "local_batch_size", "local_bs", "batch_per_rank"
"""Columns with the sequences of a step on each data rank, as torchtitan counts them."""
CHIP_BATCH = "per_device_batch", "per_device_batch_size", "batch_per_chip", "batch_per_device"
"""Columns with those of each chip, as MaxText counts them."""
LOCAL_BATCH_WORDS = re.compile(r"\blocal[ _-]?(?:batch|bs)(?:[ _-]?size)?\W{0,3}(\d+)\b")
MAX_CHIPS = 2**20


def read(row: Cells) -> TrainingRun:
    """The run of a row; raises `Refused` if the row says too little."""
    T, chips, on = needed(row, "seq"), needed(row, "chips"), chip(text(row, "chip", "accelerator"))
    stack, given, dtype = software_of("training", row), _printed(row), precision(text(row, "dtype"))
    family = families("training").get(stack.family, {})
    if dtype == "bf16" and dtype not in on.rates():
        dtype = "fp16"
    degrees = _parallelism(row, on, family, chips)
    ranks = degrees["fsdp"] * degrees["dp"] * degrees["dcn"]
    batch = written_batch(row, ranks, chips) or _batch(given, T, chips) or ranks
    near = max(round(batch / ranks), 1) * ranks
    if near != batch and "s" in given:
        given["s"] = str(float(given["s"]) * near / batch)  # scaled to a batch that divides by the ranks
    m = model(row, T)
    policy = (
        text(row, "policy") or None if "policy" in row else _remat_policy(text(row, "remat").lower(), m.L)
    )
    offloaded = int(policy.removeprefix(LAYERS)) if policy and policy.startswith(LAYERS) else 0
    return TrainingRun(
        id=text(row, "run_id"),
        family=stack.family,
        software=(stack.name, text(row, "family") or stack.family),
        model=m,
        chip=on,
        chips=chips,
        precision=dtype,
        T=T,
        batch=near,
        microbatch=whole(row, *annotated(row, "micro", "micro_batch")),
        chunks=whole(row, *annotated(row, "chunks", "vp")),
        **degrees,
        remat=None if offloaded else policy,
        offload_layers=offloaded,
        convention=_convention(row, given),
        printed=given,
        coarse=bool(family.get("coarse")) and "counts" in row,  # where FLOPs are known to the router
        peak_flops_per_s=1e12 * used
        if "mfu" in given and (used := number(row, "peak_tflops_used"))
        else on.flops_per_s(products(dtype)),
        source=source(family or row),
        variant=text(row, "variant") or ("async TP" if "async" in text(row, "name").lower() else ""),
        note=family.get("note", ""),
    )


def _parallelism(row: Cells, on: Chip, family: Row, chips: int) -> dict[str, int]:
    """The degrees of parallelism; those not given are 1, and the data ranks are what remains."""
    degrees = {name: whole(row, name) or 1 for name in ("tp", "pp", "cp")}
    slices = _slices(row, on, chips)
    ranks, rest = divmod(chips, prod(degrees.values()) * slices)
    if rest or chips > MAX_CHIPS:
        raise UnpredictedRow(f"{chips:,} chips are not a multiple of tp · pp · cp in {slices} slices")
    shards, zero = _shards(row, on, family, ranks)
    split = {"fsdp": shards, "dp": ranks // shards, "dcn": slices, "zero": zero}
    return degrees | split | {"ep": whole(row, "ep") or 1}


def _printed(row: Cells) -> dict[str, str]:
    """The printed quantities by a short name; for other tables, all there are, with a derived time last."""
    if "printed" in row:
        if not row["printed"]:
            raise UnpredictedRow(text(row, "use") or "the row does not say what is printed")
        return {name: row[PRINTED[name][0]] for name in row["printed"].split()}
    found = {name: value for name, columns in PRINTED.items() if (value := number(row, *columns))}
    if not number(row, "step_time_s") and found.keys() & {"tok", "tf", "mfu"}:
        found.pop("s", None)
    if not found.keys() & {"s", "tok", "tf", "mfu"}:
        raise UnpredictedRow("the row prints no step_time_s, tokens_per_s_per_chip, tflops_per_chip or mfu")
    if found.get("mfu", 0.0) > 1.5:  # in percent
        found["mfu"] /= 100
    return {name: str(value) for name, value in found.items()}


def written_batch(row: Cells, ranks: int, chips: int) -> int | None:
    """The sequences of a step: as written, or from those of a data rank or a chip; None if no cell says."""
    own = whole(row, *LOCAL_BATCH)
    said = LOCAL_BATCH_WORDS.search(f"{text(row, 'name')} {text(row, 'notes')}".lower())
    local = own or (int(said[1]) if said else None)
    each = whole(row, *CHIP_BATCH)
    return whole(row, "global_batch") or (local * ranks if local else each * chips if each else None)


def _batch(given: dict[str, str], T: int, chips: int) -> int | None:
    """The sequences of a step, if its time and token rate are printed; None if only a rate is."""
    if "s" not in given:
        return None
    if "tok" not in given:
        raise UnpredictedRow("the row prints the time of a step and does not say global_batch")
    return max(round(float(given["s"]) * float(given["tok"]) * chips / T), 1)


def _slices(row: Cells, on: Chip, chips: int) -> int:
    """The number of slices joined by DCN: as written ('4x v5e-256'), or the fewest that hold the chips."""
    if not on.torus:
        return 1
    said = SLICES.search(text(row, "name").lower())
    return whole(row, "slices") or (int(said[1]) if said else -(-chips // on.torus.pod_chips))


def _shards(row: Cells, on: Chip, family: Row, ranks: int) -> tuple[int, int]:
    """The data ranks that shard state and the ZeRO stage, from the row or else from its software."""
    said, named = text(row, "fsdp"), re.search(r"zero-?1[= ]+(\d+)", text(row, "name").lower())
    if shards := whole(row, "shards"):
        return shards, whole(row, "zero") or 0
    written = int(said) if said.isdigit() else 0
    if shared := first(ZERO_STAGES, said):
        return (ranks if int(shared) else 1), int(shared)
    if written > 1:
        return (written if ranks % written == 0 else ranks), 3
    if named and ranks % int(named[1]) == 0:
        return int(named[1]), 1
    return ranks, 3 if on.torus or family.get("weights") == "fp32" else 1


def _remat_policy(said: str, layers: int) -> str | None:
    """The policy that a cell says of a model with that many layers; None if it says none."""
    if every := EVERY_NTH_LAYER.search(said):
        return f"{FULL_LAYERS}{layers // int(every[1] or 2)}"
    if (some := SOME_LAYERS.search(said)) and 0 < int(some[1]) < layers:
        return f"{FULL_LAYERS}{int(some[1])}"
    if modules := [name for name in MODULES if name in MODULE_NAMES.findall(said)]:
        return f"recompute:{','.join(modules)}"
    kept = ",".join(name for name, words in SAVED_TENSORS.items() if re.search(words, said))
    if "offload" in said or ("save" in said and kept):
        return f"{'offload' if 'offload' in said else 'save'}:{kept or 'in'}"
    return first(REMAT_POLICIES, said)


def _convention(row: Cells, given: dict[str, str]) -> str | None:
    """How the source counts FLOPs, or None if it does not say."""
    if "counts" in row:
        return text(row, "counts") or None
    name = text(row, "name").lower()
    if "lora" in name or "mtp" in name:
        return "frozen" if "lora" in name else "bridge+MTP"
    only_hfu = "mfu" in given and "tf" not in given and not text(row, "mfu")
    return "hardware" if only_hfu else first(FLOPS_CONVENTIONS, text(row, "flops_convention"))
