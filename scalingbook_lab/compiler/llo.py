"""Dump the instruction bundles (LLO) that the TPU compiler generates for a function.

The compiler dumps them only if its flags were set before it started, so another process compiles the function
again.
"""

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalingbook_lab import devices as lab_devices
from scalingbook_lab.compiler import compile_process, slices
from scalingbook_lib.hlo import bundles
from scalingbook_lib.hlo.bundles import Bundles

# libtpu reads its flags once, when it is loaded, so a flag that is set later has no effect in this process.
FLAGS = "--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"


def dump(fn: Callable, args: tuple, how: dict[str, Any]) -> tuple[Bundles, ...]:
    """Return the bundles of every kernel, dumped by another process that compiles the function.

    Raises NoTpuCompiler if there is no compiler, and RuntimeError if the compilation fails.
    """
    aside = slices.aside()
    if aside is None and (reason := slices.why_not()):
        raise slices.NoTpuCompiler(reason)
    lab_devices.prepare()
    job = pickle.dumps({"fn": compile_process.pack(fn), "args": args, "how": how})
    with tempfile.TemporaryDirectory(prefix="llo-") as folder:
        environment = compile_process.environment(aside) | {"LIBTPU_INIT_ARGS": FLAGS.format(folder=folder)}
        command = [sys.executable, "-m", compile_process.__name__]
        done = subprocess.run(command, input=job, env=environment, capture_output=True, check=False)
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"the second process could not compile it: {''.join(last)}")
        return bundles.read(Path(folder))
