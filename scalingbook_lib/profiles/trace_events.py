"""Reads a profiler's trace.json or trace.json.gz, written for trace viewers next to the `*.xplane.pb`.

It has Chrome's trace event format: processes are the planes of the profile, and threads are their lines.
Times are in microseconds, and every statistic is a string.
"""

import json
import re
from typing import Any

from scalingbook_lib.profiles.protobuf import XEvent, XLine, XPlane

MOST_EVENTS = 1_000_000  # the profiler writes at most this many and drops the rest


_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[{\]])")  # not [build-system] of TOML


def begins(content: bytes) -> bool:
    """Whether a file begins like the JSON of a trace: with an object, or with a list of objects."""
    return bool(_JSON.match(content))


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
    _refuse_other_tools(set(named["process_name"].values()), name)
    found: dict[Any, list[XLine]] = {}
    for (pid, tid), own in lines.items():
        line = named["thread_name"].get((pid, tid), str(tid))
        found.setdefault(pid, []).append(XLine(line, tuple(own)))
    return tuple(
        XPlane(named["process_name"].get((pid, None), str(pid)), tuple(own)) for pid, own in found.items()
    )


_OF_PYTORCH = {"schemaVersion", "deviceProperties", "distributedInfo", "record_shapes", "with_stack"}
_CATEGORIES = {"cpu_op", "cuda_runtime", "python_function", "user_annotation"}


def _refuse_pytorch(stored: Any, name: str) -> None:
    """Raise a ValueError for a trace of torch.profiler, whose events name no compiled program.

    Its own keys may be gone, for example because another tool merged or cut the trace, but its events have
    categories, which JAX does not write.
    """
    events = stored.get("traceEvents") if isinstance(stored, dict) else stored
    if not isinstance(events, list):
        return
    kinds = {str(event.get("cat")) for event in events if isinstance(event, dict)}
    if (isinstance(stored, dict) and _OF_PYTORCH & set(stored)) or _CATEGORIES & kinds:
        raise ValueError(
            f"{name} is a trace of PyTorch's profiler, which is not read: its events name kernels, and no "
            "operations of a compiled program; give a profile of JAX or TensorFlow"
        )


def _refuse_other_tools(processes: set[str], name: str) -> None:
    """Raise a ValueError for a trace with Chrome's format that no profiler of XLA wrote."""
    if not any(process.startswith(("/host:", "/device:")) for process in processes):
        raise ValueError(
            f"{name} is a Chrome trace of another tool: none of its processes is /host:CPU or a /device:, as "
            "in a trace of the profiler of JAX or TensorFlow; give one of those, or the *.xplane.pb"
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
