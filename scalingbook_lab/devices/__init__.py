"""Select the devices of a program: real devices, or devices that are simulated on the CPU.

Call `devices.simulate(8)` before JAX is first used, in the first cell of a notebook.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalingbook_lib.units import Result

_TPU_FILES = "/dev/accel*", "/dev/vfio/[0-9]*"
_ACCELERATOR_FILES = (*_TPU_FILES, "/dev/nvidia[0-9]*", "/dev/kfd")
_TPU_VARIABLES = "COLAB_TPU_ADDR", "TPU_NAME", "TPU_WORKER_ID", "TPU_CHIPS_PER_HOST_BOUNDS"
"""What Colab, Kaggle and Google Cloud set on a machine with a TPU, and `prepare` never sets."""
WITHOUT_TPU = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",  # there is no metadata server to ask for the TPU type
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
}
"""The environment variables of a process in which libtpu compiles and touches no device."""
_NAMES = {"tpu": "TPU", "gpu": "GPU", "cuda": "GPU", "rocm": "GPU", "cpu": "CPU"}
EXACT = "highest"
"""The fp32 matmul precision on real devices; JAX's other name for it, "float32", also affects slices."""


@dataclass(frozen=True, slots=True)
class Devices(Result):
    """The devices from which this program's meshes are built."""

    platform: str
    kind: str
    count: int
    simulated: bool

    def __str__(self) -> str:
        if not self.simulated:
            plural = "s" if self.count > 1 else ""
            return (
                f"{self.count} real {_NAMES.get(self.platform, self.platform)} device{plural} ({self.kind})"
            )
        return (
            f"{self.count} simulated devices on this machine's CPU: "
            "values, shardings and collectives are real, times are not"
        )


def simulate(n: int = 8) -> Devices:
    """Provide n devices: real ones if there are enough, otherwise n devices simulated on the CPU.

    Call it before JAX is first used; afterwards it raises RuntimeError, unless the devices already exist.
    Arrays without an explicit placement then go to these devices. Real devices multiply fp32 in full fp32
    precision, so that their results agree with those of simulated devices. Put work for one real device next
    to simulated ones on `jax.devices()[0]`.
    """
    prepare()
    import jax

    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        with suppress(RuntimeError):  # if JAX has already started, only its number of devices counts
            jax.config.update("jax_num_cpu_devices", n)
    devices = get(n)
    if devices[0] not in jax.devices():
        jax.config.update("jax_default_device", devices[0])
    elif devices[0].platform != "cpu" and jax.config.jax_default_matmul_precision is None:
        # by default a TPU multiplies fp32 as bf16, and a GPU as TF32
        jax.config.update("jax_default_matmul_precision", EXACT)
    return describe(devices)


def here() -> Devices:
    """Return the devices of JAX's default platform, which is the fastest kind that this machine has."""
    import jax

    return describe(jax.devices())


def describe(devices: Sequence[Any]) -> Devices:
    """Describe these JAX devices; several devices on a CPU are simulated ones."""
    first, n = devices[0], len(devices)
    return Devices(first.platform, first.device_kind, n, first.platform == "cpu" and n > 1)


def get(n: int | None = None) -> list[Any]:
    """Return n devices of whichever kind there are more of (real ones if equal), or all of them without n.

    Raises RuntimeError if JAX has started with fewer devices.
    """
    import jax

    real, cpus = jax.devices(), jax.devices("cpu")
    devices = real if len(real) >= len(cpus) else cpus
    if n is None or n <= len(devices):
        return devices[:n]
    raise RuntimeError(
        f"JAX has started with {len(real)} {real[0].platform} devices, and {n} are needed; "
        f"restart the kernel and run this cell first: devices.simulate({n})"
    )


def prepare() -> None:
    """Set the environment variables that JAX and libtpu read when they start, unless they are already set."""
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")  # otherwise a second process on the machine dies
    if has_accelerator():
        return
    for name, value in WITHOUT_TPU.items():
        os.environ.setdefault(name, value)
    import jax

    if not jax.config.jax_platforms:  # JAX was imported before the environment variable was set
        with suppress(RuntimeError):
            jax.config.update("jax_platforms", "cpu")


def has_accelerator() -> bool:
    """Return whether this machine has a TPU or a GPU that programs can use."""
    return any(any(Path("/").glob(pattern.lstrip("/"))) for pattern in _ACCELERATOR_FILES)


def has_tpu() -> bool:
    """Return whether this machine has a TPU: by its device files, or by what Colab and Kaggle set."""
    files = any(any(Path("/").glob(pattern.lstrip("/"))) for pattern in _TPU_FILES)
    return files or any(os.environ.get(name) for name in _TPU_VARIABLES)
