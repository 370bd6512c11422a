"""How does one look at a profile in the tools made for it? One call each, or a sentence on what to do."""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalingbook_lib.lab.profiler.file import chrome
from scalingbook_lib.lab.profiler.table import Trace
from scalingbook_lib.units import Told

UI = "https://ui.perfetto.dev"


@dataclass(frozen=True, slots=True)
class Opened(Told):
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
