"""Where do two set-ups differ, and what makes the difference?"""

from collections.abc import Iterator
from typing import Any

from scalingbook_lib.cli.workbench.answers import answered
from scalingbook_lib.cli.workbench.setup import FIELDS, Setup
from scalingbook_lib.units import percent, si

type Row = tuple[str, str, str, str]
_TRAINING = {"a training step": ("step_s", "s"), "tokens each second": ("tokens_per_s", "tokens/s")}
_SERVING = {
    "first token": ("ttft_s", "s"),
    "between two tokens": ("itl_s", "s"),
    "output tokens of a chip": ("output_tokens_per_s_per_chip", "tokens/s"),
    "USD for a million output tokens": ("usd_per_million_output_tokens", "USD"),
}
_RUN = {"the run": ("days", "days"), "chip-hours": ("chip_hours", ""), "USD of the run": ("usd", "USD")}


def inputs(one: Setup, other: Setup) -> list[str]:
    """What was set differently."""
    a, b = dict(one.values), dict(other.values)
    told = [
        f"{f.label}: {b[f.name] or 'none'} in place of {a[f.name] or 'none'}"
        for f in FIELDS
        if a[f.name] != b[f.name]
    ]
    return told + ["another config.json"] * (one.config != other.config)


def rows(one: Setup, other: Setup) -> list[Row]:
    """What comes out, side by side, and the second as a multiple of the first."""
    return [
        row for command in ("plan", "serve") for row in _rows(*(_values(s, command) for s in (one, other)))
    ]


def why(one: Setup, other: Setup) -> list[str]:
    """For a training step and a decode step, the term that changed most."""
    told = []
    for command, what in (("plan", "A training step"), ("serve", "A decode step")):
        a, b = (_values(s, command).get("terms_s", {}) for s in (one, other))
        changed = {name: b.get(name, 0.0) - a.get(name, 0.0) for name in {**a, **b}}
        if not (a and b) or not any(changed.values()):
            continue
        name = max(changed, key=lambda n: abs(changed[n]))
        more, whole = "more" if changed[name] > 0 else "less", sum(map(abs, changed.values()))
        share = percent(abs(changed[name]) / whole)
        told.append(f"{what}: {name} takes {si(abs(changed[name]), 's')} {more}, {share} of what changed.")
    return told


def _values(setup: Setup, command: str) -> dict[str, Any]:
    return dict(answered(setup, command).answer.values)


def _rows(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Row]:
    for names, one, other in (
        (_TRAINING, a, b),
        (_RUN, a.get("run") or {}, b.get("run") or {}),
        (_SERVING, a, b),
    ):
        for label, (key, unit) in names.items():
            if (first := one.get(key)) and (second := other.get(key)):
                yield label, _told(first, unit), _told(second, unit), f"{second / first:.3g} ×"
    if a.get("mfu") and b.get("mfu"):
        yield "MFU", percent(a["mfu"], 3), percent(b["mfu"], 3), f"{b['mfu'] / a['mfu']:.3g} ×"
    if a.get("memory_bytes") and b.get("memory_bytes"):
        first, second = a["memory_bytes"], b["memory_bytes"]
        what = "a chip holds in training" if "mfu" in a else "a chip holds in serving"
        yield what, si(first, "B"), si(second, "B"), f"{second / first:.3g} ×"


def _told(value: float, unit: str) -> str:
    return f"{value:,.3g} {unit}" if unit in ("USD", "days") and value < 1000 else si(value, unit)
