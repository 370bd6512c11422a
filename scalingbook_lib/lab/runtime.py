"""What does this notebook run on? Its first cell asks, and tells it where something is new or real."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from scalingbook_lib.lab import devices
from scalingbook_lib.lab.devices import Devices
from scalingbook_lib.told import Told

WANTED = 8  # devices that the book's demos of sharding ask for
_SHOWN = {"jax": "JAX", "numpy": "NumPy", "matplotlib": "matplotlib", "ipywidgets": "ipywidgets"}


@dataclass(frozen=True, slots=True)
class Runtime(Told):
    """Versions, the devices that are here, and those that demos of sharding will have; None without JAX."""

    versions: tuple[tuple[str, str], ...]
    here: Devices | None
    demos: Devices | None

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.versions)
        if self.here is None or self.demos is None:
            return f"{versions}\nNo JAX here: cells of scalingbook_lib.lab will not run."
        here = "No TPU or GPU here" if self.here.platform == "cpu" else f"Here: {self.here}"
        return f"{versions}\n{here}. Demos of sharding run on {self.demos}."


def tell(*, installed: bool) -> None:
    """Print what there is, where the set-up has installed something or this machine has a TPU or a GPU."""
    if installed or (devices.has_accelerator() and os.environ.get("JAX_PLATFORMS") != "cpu"):
        print(runtime())


def runtime() -> Runtime:
    """What this program runs on; it starts JAX, with as many devices as the demos need."""
    try:
        demos = devices.simulate(WANTED)
    except ModuleNotFoundError:
        return Runtime(_versions(), None, None)
    return Runtime(_versions(), devices.here(), demos)


def _versions() -> tuple[tuple[str, str], ...]:
    own = ("scalingbook-lib", version("scalingbook-lib")), ("Python", platform.python_version())
    return (*own, *((shown, number) for name, shown in _SHOWN.items() if (number := _version(name))))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
