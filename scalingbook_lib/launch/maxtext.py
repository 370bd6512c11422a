"""Reads MaxText: a YAML file, or `name=value` after the training module.

Every axis of the mesh has a degree within a slice (ici) and one across slices (dcn). The batch is counted in
sequences for each JAX device, and all devices count, also those of tensor and context parallelism. A chip of
TPU v2, v3 and TPU7x is two devices; their degrees are folded into those of chips. Weights are sharded by
fsdp and by expert, which also split the tokens.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

from scalingbook_lib.launch.flags import meanings
from scalingbook_lib.launch.reading import Reading
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import (
    Given,
    TrainingLaunch,
    chips_of,
    domains,
    fill,
    mean_type,
    model_of,
    sequence_of,
    software,
)
from scalingbook_lib.machines import Chip, Machine, Slice, chips, machine_names
from scalingbook_lib.models import ModelError, Transformer, find
from scalingbook_lib.models.parts import Experts
from scalingbook_lib.training import Plan
from scalingbook_lib.training.remat import named
from scalingbook_lib.units import BF16, FP32, matrix_unit_dtype
from scalingbook_lib.units import dtype as dtype_of

NAME = "maxtext"
AXES = (
    "data", "fsdp", "fsdp_transpose", "tensor", "tensor_sequence", "context", "context_usp_ulysses",
    "pipeline", "expert", "sequence", "autoregressive", "context_autoregressive", "diloco",
)  # fmt: skip
_TWO_DEVICES = ("TPU v2", "TPU v3", "TPU7x")  # without megacore: a device is a TensorCore, or a chiplet
_FOLDED = ("fsdp", "fsdp_transpose", "data", "expert", "tensor", "tensor_sequence", "context", "pipeline")
TENSORS = {
    "decoder_layer_input": ("in",), "context": ("context",), "query_proj": ("q",), "key_proj": ("k",),
    "value_proj": ("v",), "kv_proj": ("k", "v"), "qkv_proj": ("q", "k", "v"), "out_proj": ("o",),
    "mlpwi_0": ("gate",), "mlpwi_1": ("up",), "mlpwi": ("gate", "up"), "mlpwo": ("down",),
    "moe_mlpwi_0": ("expert gate",), "moe_mlpwi_1": ("expert up",), "moe_mlpwo": ("expert down",),
}  # fmt: skip
"""The products that MaxText's checkpoint names mean; a product is emitted under its first name."""
LOGIT_BYTES = 2.0  # its cross entropy has a gradient of its own


def devices_per_chip(chip: Chip) -> int:
    """The JAX devices of a chip."""
    return 2 if chip.name in _TWO_DEVICES else 1


def always(model: Transformer) -> dict[str, Any]:
    """The fields of a plan that are the same in every launch."""
    return {
        "overlap": "full",
        "collective_matmul": True,  # XLA's
        "logit_bytes": LOGIT_BYTES,
        "master": None,  # the weights themselves are kept in weight_dtype
        "expert_domains": domains(model),
    }


def read(r: Reading, given: Given) -> TrainingLaunch:
    """The launch of these settings."""
    model = model_of(r, given, _model(r), "write model_name=llama3-8b")
    T = sequence_of(r, given, "sequence")
    machine, pods = _machine(r, given)
    per_chip = devices_per_chip(machine.chip)
    axes, across = _axes(r, machine, pods, per_chip)
    if per_chip > 1:
        axes = _fold(axes, per_chip)
        r.assume(
            f"A {machine.chip.name} chip is {per_chip} JAX devices; the degrees below are those of chips."
        )
    slices = pods if isinstance(machine, Slice) else 1  # GPUs of all nodes are one machine
    batch, accumulation = _batch(r, given, machine.chips * per_chip * slices)
    fields: dict[str, Any] = _degrees(r, model, axes) | {"dcn": across} | _types(r) | always(model)
    fields |= _pipeline(r, model, fields["pp"])
    ranks = fields["fsdp"] * fields["dp"] * fields["dcn"]
    microbatches = _microbatches(r, fields["pp"])
    each, rest = divmod(batch, ranks * accumulation * microbatches)
    if rest or not each:
        raise LaunchError(
            f"{batch:,} sequences do not divide into {ranks:,} data-parallel ranks with {accumulation} "
            f"accumulation steps of {microbatches} microbatches; change per_device_batch_size"
        )
    offload = r.on("offload_optimizer")
    plan = Plan(
        **fields,
        microbatch=each,
        remat=given.remat or _remat(r, model),
        loss_tiles=r.whole("loss_tiles"),
        offload_optimizer=offload,
    )
    for release in software(NAME, machine.chip)[1:]:
        r.assume(f"MaxText on {machine.chip.name} is as fast as in its published recipes ({release}).")
    return TrainingLaunch(
        launcher=NAME, model=model, machine=machine, batch=batch, T=T, plan=plan, account=r.account()
    )


def _model(r: Reading) -> Transformer | None:
    name = r.word("model")
    if name and name != "default":
        try:
            return find(meanings(NAME, "model").get(name, name))
        except ModelError as error:
            raise r.refuse("model", "is not a model of the catalog", f"add --model: {error}") from error
    if not r.given("shape.D"):
        return None
    n: dict[str, Any] = {letter: r.whole(f"shape.{letter}") for letter in "DNKFLHV"}
    experts = None
    if (count := r.whole("shape.experts")) > 1:
        width = r.whole("shape.expert_F", -1)
        experts = Experts(E=count, k=r.whole("shape.topk"), F=n["F"] if width == -1 else width)
    return Transformer(name="the model of the command", tied=r.on("shape.tied"), experts=experts, **n)


def _machine(r: Reading, given: Given) -> tuple[Machine, int]:
    """The machine of one slice, and the number of slices."""
    across = [r.whole(f"dcn.{axis}", -1) for axis in AXES]
    said = [n for key in ("slices", "topology_slices") if (n := r.maybe(key, -1)) and n > 0]
    slices = max(said) if said else prod(degree for degree in across if degree > 1)
    if given.machine is None or isinstance(given.machine, Chip):
        name = r.word("device_type") or r.word("topology")
        shape, kind = r.word("topology_shape"), r.word("compute_type")
        if kind and shape:
            name = f"{kind}:{shape}"
        if name:
            named = machine_names.read(name, chips.find)
            if named.note:
                r.assume(f"{named.note}.")
            return named.machine, slices
    inside = [r.whole(f"ici.{axis}", -1) for axis in AXES]
    chip = given.machine if isinstance(given.machine, Chip) else given.machine and given.machine.chip
    torus = chip is not None and chip.torus
    explicit = inside if torus else [*inside, *across]
    counted = None if -1 in explicit else prod(explicit)
    if counted and torus and chip:
        counted = max(counted // devices_per_chip(chip), 1)
    return chips_of(given, counted, "devices", r), slices


def _axes(r: Reading, machine: Machine, pods: int, per_chip: int) -> tuple[dict[str, int], int]:
    """The degrees within a slice by axis (of all chips on GPUs), and the replicas across slices."""
    inside = {f"ici.{axis}": r.whole(f"ici.{axis}", -1) for axis in AXES}
    outside = {f"dcn.{axis}": r.whole(f"dcn.{axis}", -1) for axis in AXES}
    if isinstance(machine, Slice):
        outside = fill(r, outside, pods, "slices")
        shared = [key for key, degree in outside.items() if degree > 1 and key != "dcn.data"]
        if shared:
            raise r.refuse(
                shared[0],
                "shards across slices, and here slices hold replicas",
                "write it within a slice, and dcn_data_parallelism for the slices",
            )
        found = fill(r, inside, machine.chips * per_chip, "devices of a slice")
        return {key.partition(".")[2]: degree for key, degree in found.items()}, outside["dcn.data"]
    if -1 in inside.values() and -1 in outside.values():  # GPUs have no slices: one of them fills up
        outside = {key: 1 if degree == -1 else degree for key, degree in outside.items()}
    both = fill(r, {**inside, **outside}, machine.chips, "GPUs")
    return {axis: both[f"ici.{axis}"] * both[f"dcn.{axis}"] for axis in AXES}, 1


def _fold(axes: dict[str, int], per_chip: int) -> dict[str, int]:
    """The degrees of chips, of which each is several neighboring devices."""
    for axis in _FOLDED:
        if axes[axis] % per_chip == 0:
            return axes | {axis: axes[axis] // per_chip}
    raise LaunchError(
        f"no axis of the mesh divides by the {per_chip} devices of a chip; write an even degree"
    )


def _batch(r: Reading, given: Given, devices: int) -> tuple[int, int]:
    """The sequences of a step and the accumulation steps."""
    accumulation = r.whole("accumulation")
    if given.batch:
        return given.batch, accumulation
    each = r.number("chip_batch")
    batch = each * devices * accumulation
    if each <= 0 or abs(batch - round(batch)) > 1e-6 * batch or round(batch) < 1:
        raise r.refuse(
            "chip_batch",
            f"is not a whole number of sequences on {devices:,} devices",
            f"write a multiple of 1/{devices:,}",
        )
    return round(batch), accumulation


def _degrees(r: Reading, model: Transformer, axes: dict[str, int]) -> dict[str, Any]:
    """The plan's degrees of chips, of those of the mesh."""
    for axis in ("autoregressive", "context_autoregressive", "diloco", "sequence"):
        if axes[axis] > 1:
            raise r.refuse(f"ici.{axis}", "is not for training here", "write 1")
    if axes["tensor"] > 1 and axes["tensor_sequence"] > 1:
        raise r.refuse("ici.tensor_sequence", "stands beside ici_tensor_parallelism", "use one of them")
    if axes["context"] > 1 and axes["context_usp_ulysses"] > 1:
        raise r.refuse("ici.context_usp_ulysses", "stands beside ring attention (USP)", "use one of them")
    experts = axes["expert"] if model.experts else 1
    found: dict[str, Any] = {
        "tp": axes["tensor"] * axes["tensor_sequence"],
        "sequence_parallel": axes["tensor"] == 1,
        "cp": axes["context"] * axes["context_usp_ulysses"],
        "pp": axes["pipeline"],
        "fsdp": axes["fsdp"] * axes["fsdp_transpose"] * axes["expert"],
        "dp": axes["data"],
        "ep": experts,
        "zero": 3,
    }
    if found["cp"] > 1:
        ulysses = axes["context_usp_ulysses"] > 1
        found |= {"context": "ulysses" if ulysses else r.meaning("context"), "zigzag": r.on("zigzag")}
    else:
        r.idle("context", "zigzag")
    if r.on("zero1"):
        if found["fsdp"] == 1:
            found |= {"fsdp": found["dp"], "dp": 1, "zero": 1}
        else:
            r.unexpressed("zero1", "beside FSDP, the optimizer state is counted as sharded by FSDP alone")
    return found


def _pipeline(r: Reading, model: Transformer, pp: int) -> dict[str, Any]:
    """A circular pipeline interleaves `repeats` chunks; without, all microbatches wait as in GPipe."""
    if pp == 1:
        r.idle("stage_layers", "repeats", "pipeline_microbatches")
        return {}
    layers, repeats = r.whole("stage_layers"), r.whole("repeats", -1)
    chunks = model.L // (pp * layers) if repeats == -1 else repeats
    if pp * layers * chunks != model.L:
        raise r.refuse(
            "stage_layers",
            f"with {pp} stages and {chunks} repeats does not make the {model.L} layers",
            f"let stages x layers x repeats be {model.L}",
        )
    return {"schedule": "interleaved", "chunks": chunks} if chunks > 1 else {"schedule": "gpipe"}


def _microbatches(r: Reading, pp: int) -> int:
    count = r.whole("pipeline_microbatches", -1) if pp > 1 else 1
    return pp if count == -1 else count


def _types(r: Reading) -> dict[str, Any]:
    """Dtypes: weights and gradients as said, matmuls in `dtype` or the quantized type, moments on average."""
    compute = r.dtype("compute", BF16)
    weights, gradients = r.dtype("weights", FP32), r.dtype("gradients", FP32)
    narrow = r.meaning("quantization")
    return {
        "weights": weights,
        "gradients": gradients,
        "reduced": compute if compute.bytes < gradients.bytes else None,
        "compute": matrix_unit_dtype(dtype_of(narrow)) if narrow else compute,
        "activations": compute,
        "moments": mean_type(r.dtype("first_moment", weights), weights),
    }


def _remat(r: Reading, model: Transformer) -> str:
    if r.word("remat") != "custom":
        r.idle(*(f"tensor.{name}" for name in TENSORS))
        return of_model(r.meaning("remat") or "none", model)
    saved, offloaded = [], []
    for name, products in TENSORS.items():
        place = r.word(f"tensor.{name}")
        if place not in ("device", "offload", "remat"):
            raise r.refuse(f"tensor.{name}", "is not a place", "write device, offload or remat")
        into = {"device": saved, "offload": offloaded}.get(place)
        if into is not None:
            into.extend(one for one in products if one not in into)
    return policy([name for name in saved if name != "in"], offloaded)


def of_model(remat: str, model: Transformer) -> str:
    """A policy by tensor, with the experts' products beside the dense ones where the model has experts."""
    if ":" not in remat or not model.experts:
        return remat
    clauses = []
    for clause in remat.split(";"):
        where, _, names = clause.partition(":")
        more = [f"expert {name}" for name in names.split(",") if name in ("gate", "up", "down")]
        clauses.append(f"{where}:{','.join([*names.split(','), *more])}")
    return ";".join(clauses)


def policy(saved: list[str], offloaded: list[str]) -> str:
    """'save:q,k;offload:in'; full rematerialization where nothing is kept."""
    parts = [
        f"{where}:{','.join(names)}" for where, names in (("save", saved), ("offload", offloaded)) if names
    ]
    return ";".join(parts) or "full"


def searched(model: Transformer) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The fields and the candidates of plans that a command can express."""
    fixed = always(model) | {"weights": FP32, "gradients": FP32, "reduced": BF16, "moments": FP32}
    remats = ("none", "selective", "save:q,k,v,o", "full")
    tried: dict[str, tuple[Any, ...]] = {
        "zero": (3,), "schedule": ("gpipe", "interleaved"), "expert_tp": (None,),
        "remat": tuple(of_model(one, model) for one in remats),
    }  # fmt: skip
    return fixed, tried


def flags_of(
    model: Transformer, machine: Machine, plan: Plan, batch: int, T: int
) -> Iterator[tuple[str, object]]:
    """The keys and values of a plan; what cannot be said is left out, which reading back shows."""
    per_chip = devices_per_chip(machine.chip)
    devices = machine.chips * plan.dcn * per_chip
    names = {means: value for value, means in reversed(meanings(NAME, "model").items())}
    if name := names.get(_typed(model.name)):
        yield "model", name
    m = plan.microbatches(batch)
    steps = 1 if plan.pp > 1 else m
    yield "chip_batch", _fraction(batch, devices * steps)
    yield "sequence", T
    if steps > 1:
        yield "accumulation", steps
    shared = plan.fsdp * per_chip // plan.ep if plan.fsdp * per_chip % plan.ep == 0 else plan.fsdp * per_chip
    yield "ici.fsdp", shared if plan.zero == 3 or plan.fsdp == 1 else per_chip
    yield "ici.data", plan.dp if plan.zero == 3 or plan.fsdp == 1 else plan.dp * plan.fsdp
    if plan.zero == 1 and plan.fsdp > 1:
        yield "zero1", "true"
    if plan.dcn > 1:
        yield "dcn.data", plan.dcn
    if plan.tp > 1:
        yield ("ici.tensor_sequence" if plan.sequence_parallel else "ici.tensor"), plan.tp
    if plan.cp > 1:
        yield ("ici.context_usp_ulysses" if plan.context == "ulysses" else "ici.context"), plan.cp
        if plan.context != "ulysses":
            yield "context", {"ring": "ring", "gather": "all_gather"}[plan.context]
        if not plan.zigzag:
            yield "zigzag", "false"
    if plan.ep > 1:
        yield "ici.expert", plan.ep
    if plan.pp > 1:
        yield "ici.pipeline", plan.pp
        yield "stage_layers", max(model.L // (plan.pp * plan.chunks), 1)
        yield "repeats", plan.chunks
        yield "pipeline_microbatches", m
    yield from _remat_flags(plan.remat, model)
    yield from _type_flags(plan)
    if plan.loss_tiles > 1:
        yield "loss_tiles", plan.loss_tiles
    if plan.offload_optimizer:
        yield "offload_optimizer", "true"


def _remat_flags(remat: str, model: Transformer) -> Iterator[tuple[str, object]]:
    known = {of_model(means, model): value for value, means in reversed(meanings(NAME, "remat").items())}
    if remat in known:
        yield "remat", known[remat]
        return
    yield "remat", "custom"
    kept = named(remat)
    for place, names in (("device", kept.saved), ("offload", kept.offloaded)):
        for name in names:
            flag = next((flag for flag, products in TENSORS.items() if products == (name,)), None)
            if flag:
                yield f"tensor.{flag}", place


def _type_flags(plan: Plan) -> Iterator[tuple[str, object]]:
    words = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    yield "compute", words.get(plan.activations.name, plan.activations.name)
    yield "weights", words.get(plan.weights.name, plan.weights.name)
    if plan.gradients.name != "fp32":
        yield "gradients", words.get(plan.gradients.name, plan.gradients.name)
    if plan.moments != plan.weights:
        yield "first_moment", words.get(plan.moments.name.partition("/")[0], plan.moments.name)
    if plan.compute != plan.activations:
        yield "quantization", plan.compute.name


def _fraction(batch: int, devices: int) -> str:
    """The sequences of a device, as exactly as a decimal can say it."""
    return str(batch // devices) if batch % devices == 0 else f"{batch / devices:.12g}"


def _typed(name: str) -> str:
    return name.lower().replace(" ", "-")
