"""Compares two set-ups: their inputs, their results, and the term that changed most."""

from collections.abc import Iterator
from typing import Any

from scalingbook_cli.workbench.answers import answered
from scalingbook_cli.workbench.setup import FIELDS, WorkbenchSetup
from scalingbook_lib.units import count_in_words, si

type Row = tuple[str, str, str, str]
_TRAINING = {"Training step": ("step_time_s", "s"), "Training throughput": ("tokens_per_s", "tokens/s")}
_SERVING = {
    "TTFT": ("ttft_s", "s"),
    "ITL": ("itl_s", "s"),
    "Output throughput per chip": ("output_tokens_per_s_per_chip", "tokens/s"),
    "Cost per million output tokens": ("usd_per_million_output_tokens", "USD"),
}
_RUN = {"Training run": ("days", "days"), "Chip-hours": ("chip_hours", ""), "Cost of the run": ("usd", "USD")}


def inputs(one: WorkbenchSetup, other: WorkbenchSetup) -> list[str]:
    """The inputs that differ."""
    a, b = dict(one.values), dict(other.values)
    told = [
        f"{f.label}: {b[f.name] or 'none'} instead of {a[f.name] or 'none'}"
        for f in FIELDS
        if a[f.name] != b[f.name]
    ]
    return told + ["a different config.json"] * (one.config != other.config)


def rows(one: WorkbenchSetup, other: WorkbenchSetup) -> list[Row]:
    """The results side by side, and the second over the first."""
    return [
        row for command in ("plan", "serve") for row in _rows(*(_values(s, command) for s in (one, other)))
    ]


def why(one: WorkbenchSetup, other: WorkbenchSetup) -> list[str]:
    """For a training step and a decode step, the term that changed most."""
    told = []
    for command, what in (("plan", "training step"), ("serve", "decode step")):
        a, b = (_values(s, command).get("terms_s", {}) for s in (one, other))
        changed = {name: b.get(name, 0.0) - a.get(name, 0.0) for name in {**a, **b}}
        if not (a and b) or not any(changed.values()):
            continue
        name = max(changed, key=lambda n: abs(changed[n]))
        more, whole = "more" if changed[name] > 0 else "less", sum(map(abs, changed.values()))
        share = f"{abs(changed[name]) / whole:.0%}"
        most = f"{name} takes {si(abs(changed[name]), 's')} {more}, which is {share} of all changes"
        told.append(f"In the {what}, {most}.")
    return told


def _values(setup: WorkbenchSetup, command: str) -> dict[str, Any]:
    return dict(answered(setup, command).answer.values)


def _rows(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Row]:
    for names, one, other in (
        (_TRAINING, a, b),
        (_RUN, a.get("run") or {}, b.get("run") or {}),
        (_SERVING, a, b),
    ):
        for label, (key, unit) in names.items():
            if (first := one.get(key)) and (second := other.get(key)):
                yield label, _told(first, unit), _told(second, unit), f"{second / first:.3g}×"
    if a.get("mfu") and b.get("mfu"):
        yield "MFU", f"{a['mfu']:.1%}", f"{b['mfu']:.1%}", f"{b['mfu'] / a['mfu']:.3g}×"
    if a.get("memory_bytes") and b.get("memory_bytes"):
        first, second = a["memory_bytes"], b["memory_bytes"]
        what = f"Memory per chip, {'training' if 'mfu' in a else 'serving'}"
        yield what, si(first, "B"), si(second, "B"), f"{second / first:.3g}×"


def _told(value: float, unit: str) -> str:
    """Days and dollars for people: '2,880 days', '26.5 million USD'."""
    if unit in ("USD", "days"):
        return f"{count_in_words(value)} {unit}"
    return si(value, unit)
