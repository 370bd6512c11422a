"""The environment variables of every kernel that runs the book's cells, so that outputs are reproducible.

Standard library only, because the tests' conftest applies it before anything else is imported.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("scalingbook_lib", "scalingbook_lab", "scalingbook_book", "scalingbook_cli")

QUIET = {
    "JAX_PLATFORMS": "cpu",  # the stored outputs come from simulated devices, whatever this machine has
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # two notebooks may compile for TPU at once
    "TPU_SKIP_MDS_QUERY": "1",  # there is no metadata server to ask
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",  # three answers that a TPU host would give; without them libtpu
    "TPU_WORKER_HOSTNAMES": "localhost",  # says on standard error that it cannot find them
    "TPU_WORKER_ID": "0",
    "TPU_MIN_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "PYTHONHASHSEED": "0",
}


PROFILE = """# Written by tools/environment.py
c.IPKernelApp.log_level = 40  # its warnings are about the machine, not about a cell
c.HistoryManager.enabled = False
"""
_LOAD = f"""
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("compile_cache", {str(ROOT / "tools" / "compiled" / "compile_cache.py")!r})
sys.modules["compile_cache"] = module = module_from_spec(spec)
spec.loader.exec_module(module)
"""
COMPILE_CACHE = f"c.InteractiveShellApp.exec_lines = [{f'exec({_LOAD!r}, {{}})'!r}]  # leaves no names\n"


def apply(*, compile_cache: bool = False) -> None:
    """Set the variables that are not set, for this process and the kernels that it starts."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    folder = ROOT / ".make" / ("ipython-cached" if compile_cache else "ipython")
    text = PROFILE + COMPILE_CACHE if compile_cache else PROFILE
    os.environ.setdefault("IPYTHONDIR", str(profile(folder, text)))


def profile(folder: Path, text: str) -> Path:
    """Write the book's own IPython profile, so that a user's start-up files do not change outputs."""
    config = folder / "profile_default" / "ipython_kernel_config.py"
    if not config.exists() or config.read_text() != text:
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text)
    return folder
