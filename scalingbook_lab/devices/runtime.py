"""Report the versions and devices that a notebook runs on. A notebook's first cell calls `begin`."""

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

from scalingbook_lab import devices
from scalingbook_lab.compiler import slices
from scalingbook_lab.devices import Devices
from scalingbook_lib import __version__
from scalingbook_lib.units import Result

DEMO_DEVICES = 8  # number of devices that the book's sharding demos request
_SHOWN = {"jax": "JAX", "numpy": "NumPy", "ipywidgets": "ipywidgets"}


@dataclass(frozen=True, slots=True)
class Runtime(Result):
    """Package versions, this machine's devices, and those of sharding demos; both are None without JAX."""

    versions: tuple[tuple[str, str], ...]
    here: Devices | None
    demos: Devices | None

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.versions)
        if self.here is None or self.demos is None:
            return f"{versions}\nNo JAX here: cells of scalingbook_lab will not run."
        here = "No TPU or GPU here" if self.here.platform == "cpu" else f"Here: {self.here}"
        return f"{versions}\n{here}. Demos of sharding run on {self.demos}."


def begin(*, installed: bool) -> None:
    """Print the runtime if the first cell installed something, or if this machine has a TPU or a GPU.

    If the library was just installed, also install the TPU compiler unless JAX already has a usable one.
    """
    if installed:
        install_tpu_compiler()
    if installed or (devices.has_accelerator() and os.environ.get("JAX_PLATFORMS") != "cpu"):
        print(runtime())


def install_tpu_compiler() -> None:
    """Install the libtpu that this JAX was built for if it is missing; if that fails, print pip's reason.

    On a machine with a TPU, the libtpu that the TPU runs on is never replaced: the other one goes into a
    folder of its own, from which only child processes that compile load it.
    """
    try:
        version = slices.wanted_version(metadata.requires("jax") or [])
    except metadata.PackageNotFoundError:
        return
    if not (slices.is_supported_platform() and slices.why_not()) or slices.aside():
        return
    requirement = f"libtpu=={version}.*" if version != "0" else "libtpu"
    where, target = "", []
    if devices.has_tpu():
        where, target = " beside the one that the TPU runs on", ["--target", str(slices.aside_folder())]
    print(
        f"Installing {requirement}, the TPU compiler that this JAX was built for{where}: a few hundred MB.",
        flush=True,
    )
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *target, "--no-deps", requirement]
    result = subprocess.run(pip, capture_output=True, text=True, check=False)
    if result.returncode:
        print(
            f"It could not be installed, so cells that compile for TPUs will not run: {result.stderr.strip()}"
        )


def runtime() -> Runtime:
    """Return what this program runs on. This starts JAX with as many devices as the demos need."""
    try:
        demos = devices.simulate(DEMO_DEVICES)
    except ModuleNotFoundError:
        return Runtime(_versions(), None, None)
    return Runtime(_versions(), devices.here(), demos)


def _versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of this library, of Python and of the packages that notebooks use."""
    own = ("scalingbook-lib", __version__), ("Python", platform.python_version())
    return (*own, *((shown, number) for name, shown in _SHOWN.items() if (number := _version(name))))


def _version(name: str) -> str:
    """Return the version of an installed package, or "" if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
