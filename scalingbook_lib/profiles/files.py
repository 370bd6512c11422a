"""Stores a trace as a small JSON file, with times in whole nanoseconds, and loads it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scalingbook_lib import git_lfs
from scalingbook_lib.profiles.intervals import Event
from scalingbook_lib.profiles.trace import HostEvent, Op, Trace

FORMAT = 1
_PLAIN = ("title", "platform", "kind", "devices", "simulated", "warmup", "versions")
FOLDERS = (
    Path(__file__).parent / "traces",
    Path(__file__).parents[2] / "data" / "traces",
)  # in a wheel; in the repository


def save(trace: Trace, path: str | Path) -> Path:
    """Write a trace to a JSON file of about 30 bytes per event; returns the file's path."""
    written: dict[str, Any] = {"format": FORMAT} | {name: getattr(trace, name) for name in _PLAIN}
    written["ops"] = [{k: v for k, v in asdict(op).items() if v not in ("", None)} for op in trace.ops]
    written["events"] = [[e.op, e.device, e.run, *map(_ns, e[3:])] for e in trace.events]
    written["host"] = [[m.name, *map(_ns, m[1:])] for m in trace.host]
    Path(path).write_text(_json(written) + "\n")
    return Path(path)


def load(path: str | Path) -> Trace:
    """Load a trace that `save` wrote: from a path, or by the name of one that is shipped with the book.

    Raises a FileNotFoundError if there is none, and a ValueError for a file of another format.
    """
    found = _find(path)
    stored = _stored(found)
    if stored.get("format") != FORMAT:
        raise ValueError(
            f"{found.name}: format {stored.get('format')!r} is not {FORMAT}; write it with profiles.save"
        )
    return Trace(
        **{name: stored[name] for name in _PLAIN},
        ops=tuple(Op(**op) for op in stored["ops"]),
        events=tuple(Event(*e[:3], *(ns / 1e9 for ns in e[3:])) for e in stored["events"]),
        host=tuple(HostEvent(name, start / 1e9, duration / 1e9) for name, start, duration in stored["host"]),
    )


def _stored(found: Path) -> dict[str, Any]:
    """The object of a stored trace. Raises a ValueError that identifies the file if it is of another kind."""
    content = found.read_bytes()
    if git_lfs.is_pointer(content):
        raise ValueError(git_lfs.refusal(found.name))
    if found.name.endswith((".xplane.pb", ".xplane.pb.gz")):
        raise ValueError(f"{found.name} is a profiler's file; read it with profiles.xplane.read")
    try:
        stored = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{found.name} is not JSON; give a file that profiles.save wrote") from error
    if not isinstance(stored, dict) or "traceEvents" in stored:
        raise ValueError(
            f"{found.name} is a trace for viewers such as Perfetto, not one that profiles.save wrote; "
            "read the *.xplane.pb next to it with profiles.xplane.read"
        )
    return stored


def names() -> tuple[str, ...]:
    """The names of the traces that are shipped with the book."""
    return tuple(sorted({path.stem for folder in FOLDERS for path in folder.glob("*.json")}))


def _find(path: str | Path) -> Path:
    """The file of a trace. Raises a FileNotFoundError if there is none."""
    for found in (Path(path), *(folder / f"{path}.json" for folder in FOLDERS)):
        if found.is_file():
            return found
    raise FileNotFoundError(f"no trace {str(path)!r}; give a file, or one of: {', '.join(names())}")


def _ns(seconds: float) -> int:
    """Seconds as whole nanoseconds."""
    return round(seconds * 1e9)


def _json(written: dict[str, Any]) -> str:
    """JSON with one operation or host event per line and eight events per line, for readable diffs."""
    parts = []
    for name, value in written.items():
        if not isinstance(value, list):
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
            continue
        per_line = 8 if name == "events" else 1
        each = [json.dumps(v, separators=(",", ":")) for v in value]
        rows = [", ".join(each[i : i + per_line]) for i in range(0, len(each), per_line)]
        parts.append(f"{json.dumps(name)}: [\n" + ",\n".join(rows) + "\n]")
    return "{" + ",\n".join(parts) + "}"
