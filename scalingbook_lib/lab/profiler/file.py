"""How is a trace kept, and how does one look at it in the tools made for it?

As a small JSON file, times in whole nanoseconds, read back without JAX. `chrome` writes the same as Trace
Event JSON, which Perfetto and chrome://tracing open: one call for each viewer, or a sentence on what to do.
"""

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scalingbook_lib.lab.profiler.table import COLLECTIVE, Moment, Op, Trace
from scalingbook_lib.lab.profiler.times import Event
from scalingbook_lib.units import Result

FORMAT = 1
_PLAIN = ("title", "platform", "kind", "devices", "simulated", "warmup", "versions")
HERE = (Path(__file__).parent / "traces", Path(__file__).parents[3] / "data" / "traces")  # installed, or not


def save(trace: Trace, path: str | Path) -> Path:
    """Write a trace into a JSON file: some 30 bytes for each event."""
    written: dict[str, Any] = {"format": FORMAT} | {name: getattr(trace, name) for name in _PLAIN}
    written["ops"] = [{k: v for k, v in asdict(op).items() if v not in ("", None)} for op in trace.ops]
    written["events"] = [[e.op, e.device, e.run, *map(_ns, e[3:])] for e in trace.events]
    written["host"] = [[m.name, *map(_ns, m[1:])] for m in trace.host]
    Path(path).write_text(_lines(written) + "\n")
    return Path(path)


def load(path: str | Path) -> Trace:
    """Read a trace that `save` wrote: a path, or the name of one that travels with the book."""
    found = _find(path)
    kept = json.loads(found.read_text())
    if kept.get("format") != FORMAT:
        raise ValueError(
            f"{found.name}: format {kept.get('format')!r} is not {FORMAT}; write it with trace.save"
        )
    return Trace(
        **{name: kept[name] for name in _PLAIN},
        ops=tuple(Op(**op) for op in kept["ops"]),
        events=tuple(Event(*e[:3], *(ns / 1e9 for ns in e[3:])) for e in kept["events"]),
        host=tuple(Moment(name, start / 1e9, took * 1e-9) for name, start, took in kept["host"]),
    )


def names() -> tuple[str, ...]:
    """The traces that travel with the book."""
    return tuple(sorted({path.stem for folder in HERE for path in folder.glob("*.json")}))


def chrome(trace: Trace, path: str | Path) -> Path:
    """Write a trace for Perfetto: a process for each device, a thread for what computes and what moves."""
    events = [_slice(trace, e) for e in trace.events]
    events += [_slice_of(m.name, m.start_s, m.took_s, len(events), 0) for m in trace.host]
    events += [
        {"ph": "M", "pid": d, "tid": 0, "name": "process_name", "args": {"name": f"{trace.platform} {d}"}}
        for d in sorted({e.device for e in trace.events})
    ]
    with gzip.open(path, "wt") as file:
        json.dump({"traceEvents": events}, file)
    return Path(path)


def _slice(trace: Trace, e: Event) -> dict[str, Any]:
    op = trace.ops[e.op]
    told = {"what": op.moves or op.kind, "scope": op.source, "run": e.run}
    told |= {"flops": op.flops, "bytes": op.nbytes}
    found = _slice_of(op.name, e.start_s, e.took_s, e.device, int(op.kind == COLLECTIVE))
    return found | {"args": told}


def _slice_of(name: str, start_s: float, took_s: float, device: int, lane: int) -> dict[str, Any]:
    """Trace Event JSON counts in microseconds."""
    return {"ph": "X", "name": name, "pid": device, "tid": lane, "ts": start_s * 1e6, "dur": took_s * 1e6}


def _find(path: str | Path) -> Path:
    for found in (Path(path), *(folder / f"{path}.json" for folder in HERE)):
        if found.is_file():
            return found
    raise FileNotFoundError(f"no trace {str(path)!r}; give a file, or one of: {', '.join(names())}")


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _lines(written: dict[str, Any]) -> str:
    """JSON with a line for each operation and each moment, events eight to a line: diffs stay readable."""
    parts = []
    for name, value in written.items():
        if not isinstance(value, list):
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
            continue
        wide = 8 if name == "events" else 1
        each = [json.dumps(v, separators=(",", ":")) for v in value]
        rows = [", ".join(each[i : i + wide]) for i in range(0, len(each), wide)]
        parts.append(f"{json.dumps(name)}: [\n" + ",\n".join(rows) + "\n]")
    return "{" + ",\n".join(parts) + "}"


UI = "https://ui.perfetto.dev"


@dataclass(frozen=True, slots=True)
class Opened(Result):
    """What was started, and where to look; `stop()` ends it."""

    said: str
    process: Any = field(default=None, repr=False, compare=False)

    def stop(self) -> None:
        """End the server, if one was started."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10)

    def __str__(self) -> str:
        return self.said


def xprof(profile: Trace | str, port: int = 8791) -> Opened:
    """Start XProf on a profile's folder; where it is not installed, say how to get it.

    A trace that was loaded from a small file has no profiler's files any more: Perfetto can show it.
    """
    folder = profile.folder if isinstance(profile, Trace) else str(profile)
    if not folder:
        return Opened(
            "this trace was kept without the profiler's files, which XProf needs; use trace.perfetto"
        )
    command = _command(folder, port)
    if command is None:
        command = f"xprof --port {port} --logdir {folder}"
        return Opened(f"XProf is not installed; pip install xprof, then: {command}")
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Opened(f"XProf shows it at http://localhost:{port} until stop() is called{_colab(port)}", started)


def perfetto(trace: Trace, path: str | Path = "trace.json.gz") -> Opened:
    """Write a trace for Perfetto, and say where to drop it: Perfetto runs in the browser, nothing is sent."""
    return Opened(f"open {UI} and drop {chrome(trace, path).name} on it, or load it as a trace file")


def _command(folder: str, port: int) -> list[str] | None:
    """XProf, or TensorBoard with its plugin, whichever is there."""
    for tool in ("xprof", "tensorboard"):
        beside = Path(sys.executable).with_name(tool)
        found = str(beside) if beside.exists() else shutil.which(tool)
        if found:
            return [found, "--port", str(port), "--logdir", folder]
    return None


def _colab(port: int) -> str:
    if "google.colab" not in sys.modules:
        return ""
    return f"; in Colab: from google.colab import output; output.serve_kernel_port_as_window({port})"
