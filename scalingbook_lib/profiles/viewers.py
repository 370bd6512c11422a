"""Opens a trace in Perfetto, chrome://tracing or XProf."""

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalingbook_lib.profiles.intervals import Event
from scalingbook_lib.profiles.trace import COLLECTIVE, Trace
from scalingbook_lib.units import Result

UI = "https://ui.perfetto.dev"


def chrome(trace: Trace, path: str | Path) -> Path:
    """Write a trace as gzipped Trace Event JSON, which Perfetto and chrome://tracing open; returns its path.

    Each device is a process, with one thread for compute and one for communication.
    """
    events = [_trace_event(trace, e) for e in trace.events]
    events += [_complete_event(m.name, m.start_s, m.duration_s, len(events), 0) for m in trace.host]
    events += [
        {"ph": "M", "pid": d, "tid": 0, "name": "process_name", "args": {"name": f"{trace.platform} {d}"}}
        for d in sorted({e.device for e in trace.events})
    ]
    with gzip.open(path, "wt") as file:
        json.dump({"traceEvents": events}, file)
    return Path(path)


def _trace_event(trace: Trace, e: Event) -> dict[str, Any]:
    """An event of the trace in Trace Event JSON."""
    op = trace.ops[e.op]
    arguments = {"what": op.moves or op.kind, "scope": op.source, "run": e.run}
    arguments |= {"flops": op.flops, "bytes": op.nbytes}
    found = _complete_event(op.name, e.start_s, e.duration_s, e.device, int(op.kind == COLLECTIVE))
    return found | {"args": arguments}


def _complete_event(name: str, start_s: float, duration_s: float, device: int, thread: int) -> dict[str, Any]:
    """A complete event ("X") of Trace Event JSON, whose times are in microseconds."""
    return {
        "ph": "X",
        "name": name,
        "pid": device,
        "tid": thread,
        "ts": start_s * 1e6,
        "dur": duration_s * 1e6,
    }


@dataclass(frozen=True, slots=True)
class Viewer(Result):
    """A viewer that was started, or instructions for starting it; `stop()` ends it."""

    message: str
    process: Any = field(default=None, repr=False, compare=False)

    def stop(self) -> None:
        """End the server, if one was started."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10)

    def __str__(self) -> str:
        return self.message


def xprof(profile: Trace | str, port: int = 8791) -> Viewer:
    """Start XProf on a profile's folder, or say how to install it.

    A trace that was loaded from a JSON file has no profiler files: Perfetto can show it.
    """
    folder = profile.folder if isinstance(profile, Trace) else str(profile)
    if not folder:
        return Viewer(
            "this trace was stored without the profiler's files, which XProf needs; use profiles.perfetto"
        )
    command = _command(folder, port)
    if command is None:
        command = f"xprof --port {port} --logdir {folder}"
        return Viewer(f"XProf is not installed; pip install xprof, then: {command}")
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Viewer(f"XProf shows it at http://localhost:{port} until stop() is called{_colab(port)}", started)


def perfetto(trace: Trace, path: str | Path = "trace.json.gz") -> Viewer:
    """Write a trace for Perfetto and say where to open it.

    Perfetto runs in the browser and uploads nothing.
    """
    return Viewer(f"open {UI} and drop {chrome(trace, path).name} on it, or load it as a trace file")


def _command(folder: str, port: int) -> list[str] | None:
    """The command of XProf, or of TensorBoard with its plugin; None if neither is installed."""
    for tool in ("xprof", "tensorboard"):
        local = Path(sys.executable).with_name(tool)
        found = str(local) if local.exists() else shutil.which(tool)
        if found:
            return [found, "--port", str(port), "--logdir", folder]
    return None


def _colab(port: int) -> str:
    """Instructions for opening the port in Colab; "" elsewhere."""
    if "google.colab" not in sys.modules:
        return ""
    return f"; in Colab: from google.colab import output; output.serve_kernel_port_as_window({port})"
