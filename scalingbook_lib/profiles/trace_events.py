"""Reads a profiler's trace.json or trace.json.gz, written for trace viewers next to the `*.xplane.pb`.

It has Chrome's trace event format: processes are the planes of the profile, and threads are their lines.
Times are in microseconds, and every statistic is a string.
"""

import json
from typing import Any

from scalingbook_lib.profiles.protobuf import XEvent, XLine, XPlane

MOST_EVENTS = 1_000_000  # the profiler writes at most this many and drops the rest


def planes(content: bytes, name: str) -> tuple[XPlane, ...]:
    """The planes of a `trace.json`.

    Raises a ValueError that calls the file `name` if it is another kind of file.
    """
    try:
        stored = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{name} begins like a trace.json and is not complete JSON ({error}); copy it again, or give the "
            "*.xplane.pb"
        ) from error
    _refuse_pytorch(stored, name)
    try:
        events = stored["traceEvents"]
        spans = [event for event in events if event.get("ph") == "X"]
        named = {key: _named(events, key) for key in ("process_name", "thread_name")}
        lines: dict[tuple[Any, Any], list[XEvent]] = {}
        for event in spans:
            lines.setdefault((event["pid"], event.get("tid")), []).append(_event(event))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{name} is JSON, but not a profiler's trace.json, which has traceEvents; give that or the "
            "*.xplane.pb"
        ) from error
    if len(spans) >= MOST_EVENTS:
        raise ValueError(
            f"{name} has {len(spans):,} events, the most that the profiler writes to a trace.json; "
            "give the *.xplane.pb next to it, which has all of them"
        )
    found: dict[Any, list[XLine]] = {}
    for (pid, tid), own in lines.items():
        line = named["thread_name"].get((pid, tid), str(tid))
        found.setdefault(pid, []).append(XLine(line, tuple(own)))
    return tuple(
        XPlane(named["process_name"].get((pid, None), str(pid)), tuple(own)) for pid, own in found.items()
    )


_OF_PYTORCH = {"schemaVersion", "deviceProperties", "distributedInfo", "record_shapes", "with_stack"}


def _refuse_pytorch(stored: Any, name: str) -> None:
    """Raise a ValueError for a trace of torch.profiler, whose events name no compiled program."""
    if isinstance(stored, dict) and "traceEvents" in stored and _OF_PYTORCH & set(stored):
        raise ValueError(
            f"{name} is a trace of PyTorch's profiler, which is not read: its events name kernels, and no "
            "operations of a compiled program; give a profile of JAX or TensorFlow"
        )


def _named(events: list[dict[str, Any]], kind: str) -> dict[tuple[Any, Any], str]:
    """The names of processes or threads, by process and thread."""
    return {
        (event["pid"], event.get("tid") if kind == "thread_name" else None): str(event["args"]["name"])
        for event in events
        if event.get("ph") == "M" and event.get("name") == kind
    }


def _event(event: dict[str, Any]) -> XEvent:
    return XEvent(
        str(event["name"]),
        1e3 * float(event["ts"]),
        1e3 * float(event.get("dur", 0)),
        dict(event.get("args", {})),
    )
