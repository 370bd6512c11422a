"""Which instructions does the TPU itself run? Bundles, one a cycle, with a slot for each of its units.

The compiler writes them out only where it was told so before it started, so another process compiles the
function once more. What is counted is the program as it stands: a loop's bundles once.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalingbook_lib.hlo import bundles
from scalingbook_lib.hlo.bundles import Bundles
from scalingbook_lib.lab import devices as lab_devices
from scalingbook_lib.lab.compiler import child, slices

# libtpu reads its flags once, when it is loaded: no flag that is set later has any effect in this process.
FLAGS = "--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"


def dump(fn: Callable, args: tuple, how: dict[str, Any]) -> tuple[Bundles, ...]:
    """Compile in another process that writes out the bundles of every kernel, and read them."""
    if reason := slices.why_not():
        raise slices.NoTpuCompiler(reason)
    lab_devices.prepare()
    asked = pickle.dumps({"fn": child.packed(fn), "args": args, "how": how})
    with tempfile.TemporaryDirectory(prefix="llo-") as folder:
        told = os.environ | {"LIBTPU_INIT_ARGS": FLAGS.format(folder=folder)}
        command = [sys.executable, "-m", child.__name__]
        ran = subprocess.run(command, input=asked, env=told, capture_output=True, check=False)
        if ran.returncode:
            last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"the second process could not compile it: {''.join(last)}")
        return bundles.read(Path(folder))
