"""Writes the launch flags of a plan or a layout, and proves them by reading them back.

The flags that come out are read like any command. Fields in which the plan then differs are listed; if one of
them changes the predicted time or memory, the flags are refused, because they would launch something else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from scalingbook_lib.inference import Layout, largest_batch
from scalingbook_lib.launch import maxtext, megatron, sglang, torchtitan, vllm
from scalingbook_lib.launch.commands import Command, from_text
from scalingbook_lib.launch.flags import table
from scalingbook_lib.launch.memory_fraction import CARD, STATIC
from scalingbook_lib.launch.reading import Account, Reading
from scalingbook_lib.launch.serving import DRAFT_HEAD, HEAD, Draft, ServingLaunch
from scalingbook_lib.launch.settings import LaunchError
from scalingbook_lib.launch.training import Given
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan, TrainingCase

TRAINING = {"maxtext": maxtext, "megatron": megatron, "torchtitan": torchtitan}
SERVING = {"vllm": vllm, "sglang": sglang}
_STARTS = {
    "maxtext": "python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml",
    "megatron": "torchrun {ranks} pretrain_gpt.py",
    "torchtitan": "torchrun {ranks} -m torchtitan.train",
    "vllm": "vllm serve {model}",
    "sglang": "python3 -m sglang.launch_server --model-path {model}",
}
_MOST_FRACTION = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """A launch command, and the fields that it leaves out; these change neither time nor memory."""

    launcher: str
    lines: tuple[str, ...]
    not_expressed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The command, one flag on a line."""
        return " \\\n  ".join(self.lines)

    def __str__(self) -> str:
        return self.text


def searched(launcher: str, model: Transformer) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The fixed fields and the candidates of the plans that a training launcher can express."""
    return TRAINING[launcher].searched(model)


def training(
    launcher: str, model: Transformer, machine: Machine, plan: Plan, *, batch: int, T: int
) -> Emission:
    """The command that launches a plan; a LaunchError says which field it cannot express."""
    name = table(launcher).name
    if launcher != "maxtext" and machine.chip.torus:
        raise LaunchError(f"{name} does not run on {machine.chip.name}; write --emit maxtext")
    keys: list[tuple[str, object]] = list(TRAINING[launcher].flags_of(model, machine, plan, batch, T))
    lines = tuple(_lines(launcher, keys, _STARTS[launcher].format(ranks=_ranks(machine))))
    text = " \\\n".join(lines)
    given = Given(model=model, machine=machine)
    try:
        command = from_text(text, launcher=launcher)
        back = TRAINING[launcher].read(Reading(table(launcher), command.settings), given)
    except ValueError as error:
        raise LaunchError(f"{name} cannot express this plan: {error}") from error
    read = replace(back.plan, dcn=plan.dcn) if launcher != "maxtext" else back.plan
    lost = differences(plan, read)
    if (back.batch, back.T) != (batch, T):
        lost = [*lost, f"batch {batch:,} of {T:,} tokens"]
    if lost and not _same(model, machine, plan, read, batch, T):
        raise LaunchError(
            f"{name} cannot express {', '.join(lost)} of this plan, and that changes time or memory; leave "
            "the options out, or write the flags of another launcher"
        )
    notes = (
        *_model_notes(launcher, command, given, keys),
        *([megatron.NOTE] if launcher == "megatron" else []),
    )
    return Emission(launcher=launcher, lines=lines, not_expressed=tuple(lost), notes=notes)


def _model_notes(
    launcher: str, command: Command, given: Given, keys: list[tuple[str, object]]
) -> Iterator[str]:
    """What the flags do not say of the model: all of it, or some parts."""
    name, model = table(launcher).name, given.model
    assert model
    written = {key for key, _ in keys}
    if not written & {"model", "flavor", "shape.L"}:
        yield f"Name the model yourself: {name} has no flags here for {model.name}."
    if "shape.L" in written and launcher == "megatron":
        built = megatron.read(Reading(table(launcher), command.settings), replace(given, model=None)).model
        parts = dict.fromkeys((*model.by_part, *built.by_part))
        unlike = [part for part in parts if model.by_part.get(part) != built.by_part.get(part)]
        unlike += ["attention windows"] * (model.windows != built.windows)
        if unlike:
            yield f"{model.name} has other {', '.join(unlike)} than these flags build; add what they lack."


def _ranks(machine: Machine) -> str:
    node = min(machine.chip.chips_per_host, machine.chips)
    return f"--nproc_per_node {node} --nnodes {-(-machine.chips // node)}"


def _lines(launcher: str, keys: list[tuple[str, object]], start: str) -> Iterator[str]:
    """The start after its environment variables, and a flag on each line."""
    written = [(flag, value) for key, value in keys if (flag := flag_of(launcher, key))]
    yield " ".join([*(f"{flag[1:]}={value}" for flag, value in written if flag[0] == "$"), start])
    for flag, value in written:
        if launcher == "maxtext":
            yield f"{flag}={value}"
        elif flag[0] != "$":
            yield _argument(flag if flag[0] == "-" else f"--{flag}", value)


def _argument(flag: str, value: object) -> str:
    if value is True:
        return flag
    return f"--no-{flag.lstrip('-')}" if value is False else f"{flag} {value}"


def flag_of(launcher: str, key: str) -> str | None:
    """The flag of a key, or of its own name where no reader asks for it; None if the launcher has none."""
    rows = table(launcher)
    row = rows.of(key) if rows.has(key) else rows.find(key)
    return row and row.flag


def differences(plan: Plan, other: Plan) -> list[str]:
    """The fields in which two plans differ, where they mean something, as 'remat=full'."""
    one, two = canonical(plan), canonical(other)
    return [
        f"{f.name}={getattr(plan, f.name)}"
        for f in fields(Plan)
        if getattr(one, f.name) != getattr(two, f.name)
    ]


def canonical(plan: Plan) -> Plan:
    """The plan with one value for fields that say nothing in it, such as the schedule of one stage."""
    same: dict[str, Any] = {"overlap": plan.hidden}
    if plan.tp == 1:
        same |= {"sequence_parallel": True, "collective_matmul": True, "expert_tp": None}
    elif plan.expert_tp == plan.tp:
        same["expert_tp"] = None
    if plan.ep == 1:
        same["expert_domains"] = None
    if plan.cp == 1:
        same |= {"context": "ring", "zigzag": True}
    if plan.pp == 1:
        same |= {"schedule": "1f1b", "chunks": 1, "stage_layers": None}
    if plan.fsdp * plan.cp == 1:
        same["zero"] = 3
    if plan.reduced == plan.gradients:
        same["reduced"] = None
    return replace(plan, **same)


def _same(model: Transformer, machine: Machine, plan: Plan, read: Plan, batch: int, T: int) -> bool:
    """Whether two plans take the same time and hold the same memory."""
    case = TrainingCase(model, machine, batch=batch, T=T)

    def told(one: Plan) -> tuple[float, float]:
        s = case.shape(one)
        return case.seconds(s).total_s, case.held(s).total

    try:
        mine, theirs = told(plan), told(read)
    except ValueError:
        return False
    return all(abs(a - b) <= 1e-9 * max(a, b) for a, b in zip(mine, theirs, strict=True))


def serving_launch(
    launcher: str,
    model: Transformer,
    machine: Machine,
    layout: Layout,
    *,
    sequences: int,
    S: int,
    chunk: int,
    policy: str,
    fraction: float,
    max_length: int | None = None,
    drafts: int = 0,
    draft: Draft = HEAD,
) -> ServingLaunch:
    """A layout with its caps, and the smallest memory fraction of at least `fraction` that holds them."""
    one = ServingLaunch(
        launcher=launcher,
        model=model,
        machine=machine,
        layout=layout,
        rule={"vllm": CARD, "sglang": STATIC}[launcher],
        fraction=fraction,
        chunk=chunk,
        policy=policy,
        max_sequences=sequences,
        max_length=max_length,
        drafts=drafts,
        draft=draft,
        account=Account((), (), (), (), ()),
    )
    share = round(fraction, 2)
    while share <= _MOST_FRACTION:
        tried = replace(one, fraction=share)
        if largest_batch(model, layout, machine, S=S, reserve=tried.reserve) >= sequences:
            return tried
        share = round(share + 0.01, 2)
    raise LaunchError(
        f"{table(launcher).name} does not hold {sequences:,} sequences with {_MOST_FRACTION:.0%} of the "
        "memory; write a smaller --batch"
    )


def serving(one: ServingLaunch, name: str) -> Emission:
    """The command that serves a layout; `name` is that of the checkpoint."""
    keys = list(SERVING[one.launcher].flags_of(one))
    stored = [pair for pair in keys if pair[0] != "quantization"]
    if len(stored) < len(keys):  # a checkpoint that is stored so needs no flag
        try:
            return _served(one, name, stored)
        except LaunchError:
            pass
    return _served(one, name, keys)


def _served(one: ServingLaunch, name: str, keys: list[tuple[str, object]]) -> Emission:
    module = SERVING[one.launcher]
    lines = tuple(_lines(one.launcher, keys, _STARTS[one.launcher].format(model=name)))
    read: Callable[[Reading, Given], ServingLaunch] = module.read
    # any acceptance length: it is no flag, and without one the drafts are not read
    given = Given(model=one.model, machine=one.machine, acceptance_length=1.0 if one.drafts else None)
    label = table(one.launcher).name
    try:
        command = from_text(" \\\n".join(lines), launcher=one.launcher)
        back = read(Reading(table(one.launcher), command.settings), given)
    except ValueError as error:
        raise LaunchError(f"{label} cannot express this layout: {error}") from error
    lost = [
        f"{f.name}={getattr(one.layout, f.name)}"
        for f in fields(Layout)
        if _typed(one.layout, f.name) != _typed(back.layout, f.name)
    ]
    lost += [
        f"{what}={getattr(one, what)}"
        for what in ("chunk", "policy", "max_sequences", "max_length", "fraction", "drafts", "draft")
        if getattr(one, what) != getattr(back, what)
    ]
    if lost:
        raise LaunchError(
            f"{label} cannot express {', '.join(lost)} of this layout, and that changes time or memory; "
            "leave the options out, or write the flags of another server"
        )
    replicas = one.replicas // max(int(str(dict(keys).get("dp", 1))) // one.layout.attention_dp, 1)
    notes = [f"Start {replicas} such servers behind a router."] if replicas > 1 else []
    if one.drafts:
        notes.append("How many of the drafted tokens are accepted is measured; it is no flag.")
    if any(DRAFT_HEAD in line for line in lines):
        notes.append(f"Write the checkpoint of the draft head for {DRAFT_HEAD}.")
    return Emission(launcher=one.launcher, lines=lines, notes=tuple(notes))


def _typed(layout: Layout, name: str) -> object:
    """A field, with the types that follow from others where it has none of its own."""
    value = getattr(layout, name)
    followed = {
        "experts": "weights",
        "outer": "weights",
        "experts_compute": "compute",
        "dispatch": "activations",
    }
    return getattr(layout, followed[name]) if value is None and name in followed else value
