"""The flags that turn a launch into another, in the words of its launcher and of its command.

What both launches would write is compared. A flag is removed only if the command has it, and so is one that
says the same thing in another way.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from scalingbook_lib.launch import accelerate, deepspeed, emit, megatron, tensorrt_llm
from scalingbook_lib.launch.flags import Table, table
from scalingbook_lib.launch.reading import Account
from scalingbook_lib.launch.serving import ServingLaunch
from scalingbook_lib.launch.training import TrainingLaunch
from scalingbook_lib.training import Plan

_TRAINING: dict[str, Any] = emit.TRAINING | {"megatron_bridge": megatron}
_TRAINERS: dict[str, Any] = {"accelerate": accelerate, "deepspeed": deepspeed}
"""Launchers whose settings depend on how the command writes them."""
_SERVING: dict[str, Any] = emit.SERVING | {"tensorrt_llm": tensorrt_llm}
_FILES = ("accelerate", "deepspeed", "tensorrt_llm")
"""Launchers whose names without dashes are those of a YAML or JSON file."""
_SAME = {"chunks": "layers_per_chunk", "granularity": "recompute"}
"""Keys of which a command has one, by the key that is written here."""
_IMPLIES = {"ep": "a2a"}
"""Keys that a flag of another key sets."""

_NEEDS = {"torchtitan": {"tp_overlap": "compile"}}
"""Keys that a key needs, which the command may lack."""


def training(launch: TrainingLaunch, plan: Plan) -> tuple[str, ...]:
    """The flags that change for another plan of a launch."""
    try:
        before, after = dict(_of_plan(launch, launch.plan)), dict(_of_plan(launch, plan))
    except (ValueError, KeyError):
        return ()
    return _changed(launch.launcher, launch.account, before, after)


def _of_plan(launch: TrainingLaunch, plan: Plan) -> Iterable[tuple[str, object]]:
    if launch.launcher in _TRAINERS:
        return _TRAINERS[launch.launcher].flags_of(launch, plan)
    module = _TRAINING[launch.launcher]
    return module.flags_of(launch.model, launch.machine, plan, launch.batch, launch.T)


def serving(launch: ServingLaunch, other: ServingLaunch) -> tuple[str, ...]:
    """The flags that change for another layout or other caps of a server."""
    module = _SERVING[launch.launcher]
    before, after = dict(module.flags_of(launch)), dict(module.flags_of(other))
    replicas = emit.flag_of(launch.launcher, "dp")
    given = replicas in {each.flag for each in launch.account.used}
    if not given and launch.layout.attention_dp == other.layout.attention_dp:
        for flags in (before, after):  # the command starts one replica, and others stay beside it
            flags.pop("dp", None)
    return _changed(launch.launcher, launch.account, before, after)


def _changed(
    launcher: str, account: Account, before: dict[str, object], after: dict[str, object]
) -> tuple[str, ...]:
    rows = table(launcher)
    used = {each.flag for each in account.used}
    new = [key for key, value in after.items() if before.get(key) != value]
    needed = [
        key for of, key in _NEEDS.get(launcher, {}).items() if of in new and after[of] in (True, "true")
    ]
    new += [key for key in needed if rows.of(key).flag not in used]
    gone = [key for key in before if key not in after]
    told = [_set(launcher, flag, after[key]) for key in new for flag in _names(rows, [key])]
    others = [_SAME.get(key) for key in (*new, *gone)] + [_IMPLIES.get(key) for key in gone]
    removed = dict.fromkeys(_names(rows, [*gone, *(key for key in others if key)]))
    return (*told, *(f"without {flag}" for flag in removed if flag in used))


def _names(rows: Table, keys: Iterable[str]) -> Iterator[str]:
    """The flags of keys, or of their own names; none where a launcher has none."""
    for key in keys:
        row = rows.of(key) if rows.has(key) else rows.find(key)
        if row:
            yield row.flag


def _set(launcher: str, flag: str, value: object) -> str:
    if flag.startswith("-"):
        return flag if value is True else f"{flag} {value}"
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"{flag}: {shown}" if launcher in _FILES else f"{flag}={shown}"
