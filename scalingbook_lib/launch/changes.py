"""Which single change of a launch would help most? Every neighbor that its launcher can express is predicted.

A training plan moves a factor of two between two degrees, shards its replicas, or changes a setting. Dtypes
stay, as they change results. A server changes its degrees, its caps or its schedule on the same chips; one
that does not fit may also take more of them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import permutations
from typing import Any

from scalingbook_lib.inference import Layout, Serving
from scalingbook_lib.launch import change_flags, emit, megatron, vllm
from scalingbook_lib.launch.serving import ServingLaunch
from scalingbook_lib.launch.training import TrainingLaunch, of_size
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan, TrainingStep

LEAST_GAIN = 0.01
"""A smaller gain is not worth a change."""
MOST_LOST = 0.1
"""The share of the throughput that a change for latency may cost."""
_DEGREES = {
    "maxtext": ("tp", "cp", "fsdp", "pp"),
    "megatron": ("tp", "cp", "fsdp", "pp"),
    "megatron_bridge": ("tp", "cp", "fsdp", "pp"),
    "torchtitan": ("tp", "cp", "fsdp", "pp", "dp"),
    "accelerate": ("tp", "fsdp", "dp"),
    "deepspeed": ("tp", "fsdp"),
}
_SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "maxtext": {
        "remat": ("none", "selective", "save:q,k,v,o", "save:q,k,v", "full"), "loss_tiles": (4, 8),
        "zigzag": (True,),
    },
    "megatron": {
        "remat": ("none", "full"), "zero": (1,), "sequence_parallel": (True,), "collective_matmul": (True,),
        "overlap": ("full",), "chunks": (1, 2, 4, 8),
    },
    "torchtitan": {
        "remat": ("none", "alternate", "full"), "zero": (2, 3), "collective_matmul": (True,),
        "chunks": (1, 2, 4), "zigzag": (True,),
    },
    "accelerate": {"remat": ("none", "full"), "zero": (2, 3)},
    "deepspeed": {"remat": ("none", "full"), "zero": (1, 2, 3)},
}  # fmt: skip
_SETTINGS["megatron_bridge"] = _SETTINGS["megatron"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingChange:
    """A change of a training plan, in its launcher's flags if it has any, and the step then."""

    what: str
    flags: tuple[str, ...]
    step: TrainingStep
    gain: float  # the share of the step time that is saved


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingChange:
    """A change of a server, in its flags, and the serving then."""

    what: str
    flags: tuple[str, ...]
    launch: ServingLaunch
    served: Serving
    helps: str  # "throughput", "ITL" or, of a server that does not fit, "fit"
    gain: float | None  # None of a server that does not fit


def training(
    launch: TrainingLaunch,
    now: TrainingStep,
    judge: Callable[[Plan], TrainingStep | None],
    most: int = 2,
    headroom: float = 0.0,
) -> tuple[TrainingChange, ...]:
    """The best changes by time; of a plan that does not fit, those that make it fit.

    `judge` gives the step of a plan, or None where it cannot be. A change leaves the share `headroom` of the
    HBM free, or holds no more than the plan does now.
    """
    hbm_bytes = now.machine.chip.hbm_bytes
    fits = now.memory.total <= hbm_bytes
    room = (1 - headroom) * hbm_bytes
    room = max(room, now.memory.total) if fits else room
    found: list[tuple[Plan, TrainingStep]] = []
    for plan in dict.fromkeys(neighbors(launch)):
        step = judge(plan)
        if step is None or not _deals_layers(launch, plan):
            continue
        if step.memory.total <= room if fits else step.memory.total < now.memory.total:
            found.append((plan, step))
    if not fits and any(step.memory.total <= room for _, step in found):
        found = [one for one in found if one[1].memory.total <= room]
    elif not fits:
        found = sorted(found, key=lambda one: one[1].memory.total)[:most]
    chosen: list[TrainingChange] = []
    kinds: set[str] = set()
    for plan, step in sorted(found, key=lambda one: one[1].total_s):
        gain = 1 - step.total_s / now.total_s
        kind = _kind(launch.plan, plan)
        if (fits and gain < LEAST_GAIN) or kind in kinds:
            continue
        kinds.add(kind)
        told = _told(launch, plan)
        chosen.append(
            TrainingChange(what=told, flags=change_flags.training(launch, plan), step=step, gain=gain)
        )
        if len(chosen) == most:
            break
    return tuple(chosen)


def neighbors(launch: TrainingLaunch) -> Iterator[Plan]:
    """The plans one change away that the launcher can express."""
    plan, kind = launch.plan, launch.launcher
    for less, more in permutations(_DEGREES[kind], 2):
        if getattr(plan, less) % 2 == 0 and (plan.zero or {less, more} != {"fsdp", "dp"}):
            yield from _with(plan, {less: getattr(plan, less) // 2, more: getattr(plan, more) * 2})
    if plan.dp > 1 and "dp" in _DEGREES[kind]:  # shard all replicas
        for zero in (plan.zero,) if plan.zero else (2, 3):
            yield from _with(plan, {"fsdp": plan.fsdp * plan.dp, "dp": 1, "zero": zero})
    each = launch.accumulation * plan.microbatch
    for microbatch in (plan.microbatch * 2, plan.microbatch // 2):
        if microbatch and each % microbatch == 0:
            yield from _with(plan, {"microbatch": microbatch})
    if launch.model.experts and kind != "deepspeed":
        for ep in (plan.ep * 2, plan.ep // 2):
            yield from _with(plan, {"ep": max(ep, 1)})
    for name, values in _SETTINGS[kind].items():
        for value in values:
            if value != getattr(plan, name):
                yield from _with(plan, {name: value})


def _deals_layers(launch: TrainingLaunch, plan: Plan) -> bool:
    """Whether the layers divide into the stages of a plan, unless the launch says how many each has."""
    counted = launch.launcher != "megatron" or not megatron.stages_divide(launch.model, launch.plan)
    return counted or megatron.stages_divide(launch.model, plan)


def _with(plan: Plan, changed: dict[str, Any]) -> Iterator[Plan]:
    """The plan with these fields, if there is one; a pipeline of one stage has no schedule."""
    pp = changed.get("pp", plan.pp)
    chunks = changed.get("chunks", plan.chunks) if pp > 1 else 1
    if "chunks" in changed and pp == 1:
        return
    plain = "1f1b" if plan.schedule == "interleaved" else plan.schedule
    more: dict[str, Any] = {}
    if "pp" in changed or "chunks" in changed:
        kind = "interleaved" if chunks > 1 else plain
        more = {"chunks": chunks, "schedule": kind, "stage_layers": None}
    if changed.get("tp") and plan.expert_tp not in (None, 1):
        more["expert_tp"] = None
    try:
        found = replace(plan, **changed | more)
    except ValueError:
        return
    if emit.canonical(found) != emit.canonical(plan):
        yield found


def _kind(plan: Plan, other: Plan) -> str:
    """The field that a change is about: two changes of the degrees are one kind."""
    changed = {f.name for f in fields(Plan) if getattr(plan, f.name) != getattr(other, f.name)}
    return "degrees" if changed & {"tp", "cp", "pp", "fsdp", "dp"} else ",".join(sorted(changed))


_WORDS = {
    "tp": "TP", "cp": "CP", "pp": "PP", "ep": "EP", "dp": "replicas", "zero": "ZeRO",
    "chunks": "virtual stages",
    "collective_matmul": "TP overlap", "overlap": "overlap", "sequence_parallel": "sequence parallelism",
    "loss_tiles": "loss tiles", "zigzag": "balanced context parallelism",
}  # fmt: skip
_HIDDEN = ("schedule", "stage_layers", "expert_tp")


def _told(launch: TrainingLaunch, other: Plan) -> str:
    """'TP 8 → 4, FSDP 16 → 32'."""
    plan, told = launch.plan, []
    for f in fields(Plan):
        old, new = getattr(plan, f.name), getattr(other, f.name)
        if old != new and f.name not in _HIDDEN:
            word = _WORDS.get(f.name, f.name)
            if f.name == "fsdp":
                word = "FSDP" if other.zero == 3 or launch.launcher == "accelerate" else "DP"
            told.append(f"{word} {_said(old)} → {_said(new)}")
    return ", ".join(told)


def _said(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def serving(
    launch: ServingLaunch, now: Serving, judge: Callable[[ServingLaunch], Serving | None]
) -> tuple[ServingChange, ...]:
    """The change that raises the throughput most, and the one that lowers the ITL most at about the same.

    `judge` gives the serving of a launch, or None where it cannot be or nothing fits.
    """
    found = [(one, served) for one in _others(launch) if (served := judge(one)) is not None]
    rate = launch.replicas * now.tokens_per_s

    def change(helps: str, one: ServingLaunch, served: Serving, gain: float) -> ServingChange:
        told, flags = _served_difference(launch, one), change_flags.serving(launch, one)
        return ServingChange(what=told, flags=flags, launch=one, served=served, helps=helps, gain=gain)

    chosen: list[ServingChange] = []
    gains = [(one.replicas * s.tokens_per_s / rate - 1, n) for n, (one, s) in enumerate(found)]
    if gains and max(gains)[0] >= LEAST_GAIN:
        gain, n = max(gains)
        chosen.append(change("throughput", *found[n], gain))
    steady = [n for gain, n in gains if gain >= -MOST_LOST]
    lower = [(1 - found[n][1].itl_s / now.itl_s, n) for n in steady] if now.itl_s else []
    if lower and max(lower)[0] >= LEAST_GAIN:
        gain, n = max(lower)
        if all(found[n][0] is not one.launch for one in chosen):
            chosen.append(change("ITL", *found[n], gain))
    return tuple(chosen)


def fitting(
    launch: ServingLaunch, judge: Callable[[ServingLaunch], Serving | None], most: int = 2
) -> tuple[ServingChange, ...]:
    """The changes that make a server fit, by throughput, with one for each kind.

    They use the chips of the machine; where none fits there, those of one with two, four, ... times as many.
    """
    for machine in _growing(launch.machine):
        wider = _wider(replace(launch, machine=machine))
        found = [(one, served) for one in wider if (served := judge(one)) is not None]
        if found:
            break
    else:
        return ()
    chosen: dict[str, ServingChange] = {}
    for one, served in sorted(found, key=lambda one: -one[0].replicas * one[1].tokens_per_s):
        told, flags = _served_difference(launch, one), change_flags.serving(launch, one)
        wider = f"{told} on {machine.chips:,} chips" if machine is not launch.machine else told
        change = ServingChange(what=wider, flags=flags, launch=one, served=served, helps="fit", gain=None)
        chosen.setdefault(told.partition(" ")[0], change)
    return tuple(chosen.values())[:most]


_MOST_CHIPS = 64
"""The largest machine that is proposed for a server that does not fit."""


def _growing(machine: Machine) -> Iterator[Machine]:
    """The machine, and machines of more of its chips."""
    yield machine
    chips = 2 * machine.chips
    while chips <= _MOST_CHIPS:
        with suppress(ValueError):  # there is no slice of so many
            yield of_size(machine.chip, chips)
        chips *= 2


def _wider(launch: ServingLaunch) -> Iterator[ServingLaunch]:
    """The launches one change away, and those that spread a replica over more chips."""
    yield from _others(launch)
    layout, times = launch.layout, 2
    while layout.chips * times <= launch.machine.chips:
        ep = layout.ep * times if 1 < layout.ep == layout.tp else layout.ep
        yield from _laid_out(launch, ({"pp": layout.pp * times}, {"tp": layout.tp * times, "ep": ep}))
        times *= 2


def _others(launch: ServingLaunch) -> Iterator[ServingLaunch]:
    """The launches one change away on the same chips."""
    yield from _laid_out(launch, _layouts(launch.layout, launch.model.experts is not None, launch.launcher))
    for chunk in (launch.chunk // 4, launch.chunk // 2, launch.chunk * 2):
        if chunk >= 256:
            yield replace(launch, chunk=chunk)
    if launch.max_sequences:
        yield replace(launch, max_sequences=launch.max_sequences * 2)
        yield replace(launch, max_sequences=max(launch.max_sequences // 2, 1))
    if launch.fraction < 0.9:
        yield replace(launch, fraction=0.9)


def _laid_out(launch: ServingLaunch, layouts: Iterable[dict[str, int]]) -> Iterator[ServingLaunch]:
    """The launches with these fields of the layout, where the server accepts them."""
    layout, server = launch.layout, launch.launcher
    for changed in layouts:
        try:
            other = replace(layout, **changed)
            other.check(launch.model)
        except ValueError:
            continue
        if other != layout and launch.machine.chips % other.chips == 0:
            caps, chunk = launch.max_sequences, launch.chunk
            if server == "vllm" and not _fits_vllm(launch.model, other):
                continue
            if server in ("vllm", "tensorrt_llm"):  # whose ranks have caps of their own
                caps = caps // layout.attention_dp * other.attention_dp if caps else caps
                chunk = chunk // layout.attention_dp * other.attention_dp
            yield replace(launch, layout=other, max_sequences=caps, chunk=chunk)


def _fits_vllm(model: Transformer, layout: Layout) -> bool:
    """Whether vLLM accepts the decode context parallelism of a layout."""
    return vllm.decode_context_fits(model, layout.group, layout.kv_sequence)


def _layouts(layout: Layout, moe: bool, server: str) -> Iterator[dict[str, int]]:
    for tp in (layout.tp * 2, layout.tp // 2):
        if tp >= layout.attention_dp:
            yield {"tp": tp, "ep": tp if 1 < layout.ep == layout.tp else min(layout.ep, tp)}
    if layout.pp > 1 and layout.pp % 2 == 0:
        yield {"pp": layout.pp // 2, "tp": layout.tp * 2}
    if layout.tp % 2 == 0 and layout.ep == 1:
        yield {"pp": layout.pp * 2, "tp": layout.tp // 2}
    if moe:
        yield {"ep": layout.tp if layout.ep == 1 else 1}
        yield {"attention_dp": layout.tp if layout.attention_dp == 1 else 1, "kv_sequence": 1}
        if server == "vllm" or layout.ep > 1:
            yield {"attention_dp": layout.tp, "ep": layout.tp, "kv_sequence": 1}
    if server == "vllm" and layout.group > 1:
        yield {"kv_sequence": layout.kv_sequence * 2}


def _served_difference(launch: ServingLaunch, other: ServingLaunch) -> str:
    words = {
        "tp": "TP",
        "pp": "PP",
        "ep": "EP",
        "attention_dp": "attention DP",
        "kv_sequence": "KV over tokens",
    }
    told = [
        f"{word} {getattr(launch.layout, name)} → {getattr(other.layout, name)}"
        for name, word in words.items()
        if getattr(launch.layout, name) != getattr(other.layout, name)
    ]
    for name, word in {
        "chunk": "batched tokens",
        "max_sequences": "max sequences",
        "fraction": "memory",
    }.items():
        if getattr(launch, name) != getattr(other, name) and not told:
            told.append(f"{word} {getattr(launch, name):,} → {getattr(other, name):,}")
    return ", ".join(told)
