"""Describe TPU slices to the compiler, and lay mesh axes over their tori.

A topology has libtpu's name for it, such as `v5e:2x4`. Mesh axes are assigned to it as in `chips.Slice.mesh`:
each mesh axis is a product of whole torus axes.
"""

import functools
import importlib.util
import itertools
import math
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from scalingbook_lab import devices as lab_devices
from scalingbook_lib.evidence.local_benchmark import HALF_CHIP_DEVICES, chip_of_device
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip, SliceError

GENERATIONS = {
    "v2": chips.V2,
    "v3": chips.V3,
    "v4": chips.V4,
    "v5e": chips.V5E,
    "v5p": chips.V5P,
    "v6e": chips.V6E,
    "tpu7x": chips.TPU7X,
}

LOCKED_LIBTPU = "0.0.51"  # the version in uv.lock, whose results the book prints


_ELSEWHERE = (
    "; here only a child process can compile for TPUs, so pass arrays in the notation and a mesh such as "
    "Mesh(X=8) to aot.compile"
)


class NoTpuCompiler(RuntimeError):
    """Raised when this machine cannot compile for TPUs; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Topology:
    """A slice as the compiler describes it: the chip, the torus, and its devices by their coordinates.

    Each chip of v4, v5e, v5p and v6e is one device. Each chip of v2, v3 and TPU7x is two devices, which form
    a last axis of size 2.
    """

    name: str
    chip: Chip
    torus: tuple[int, ...]
    devices: Any

    @property
    def devices_per_chip(self) -> int:
        """1, or 2 if each core of a chip is a device of its own."""
        return int(self.devices.size) // math.prod(self.torus)

    @property
    def hbm_bytes(self) -> float:
        """The HBM of one device in bytes."""
        return self.chip.hbm_bytes / self.devices_per_chip

    def grid(self, sizes: Mapping[str, int]) -> Any:
        """Return the devices as a grid of these mesh axes.

        Raises SliceError unless each mesh axis is a product of whole torus axes.
        """
        sides = [(k, n) for k, n in enumerate(self.devices.shape) if n > 1]
        # try every assignment of torus sides to mesh axes; there are at most four sides
        for owners in itertools.product(sizes, repeat=len(sides)):
            sides_of = {
                name: [side for side, o in zip(sides, owners, strict=True) if o == name] for name in sizes
            }
            if all(math.prod(n for _, n in sides_of[name]) == size for name, size in sizes.items()):
                order = [k for name in sizes for k, _ in sides_of[name]]
                replicated = [k for k in range(self.devices.ndim) if k not in order]
                return self.devices.transpose(order + replicated).reshape(tuple(sizes.values()))
        required = ", ".join(f"{name}={size}" for name, size in sizes.items())
        sides = " x ".join(map(str, self.devices.shape))
        raise SliceError(
            f"a mesh of {required} does not fit {self.name}: each mesh axis is a product of whole axes "
            f"of {sides}, and all {self.devices.size} devices are used"
        )


def why_not() -> str:
    """Return why this machine cannot compile for TPUs, or "" if it can."""
    if not is_supported_platform():
        here = f"{platform.system()} on {platform.machine()}"
        return f"the TPU compiler (libtpu) exists for Linux on x86-64 alone, and this is {here}"
    if importlib.util.find_spec("libtpu") is None:
        return "the TPU compiler is not installed; install it with: pip install libtpu (about 590 MB)"
    return outdated(metadata.version("libtpu"), metadata.requires("jax") or [])


def is_supported_platform() -> bool:
    """Return whether a TPU compiler exists for this operating system and processor."""
    return platform.system() == "Linux" and platform.machine() in ("x86_64", "AMD64")


def as_printed() -> bool:
    """Return whether this is the compiler whose numbers the book prints.

    Another version may choose and estimate differently.
    """
    return not why_not() and metadata.version("libtpu") == LOCKED_LIBTPU


def outdated(installed: str, requirements: Iterable[str]) -> str:
    """Return why an installed libtpu is too old for this JAX, or "" if it is new enough.

    A libtpu older than the one that JAX was built for ends the process with a segmentation fault.
    """
    required = wanted_version(requirements)
    # compared as numbers, because as text 0.0.9 would be newer than 0.0.51
    if [int(n) for n in re.findall(r"\d+", installed)] >= [int(n) for n in required.split(".")]:
        return ""
    return f"libtpu {installed} is older than this JAX needs; install it with: pip install libtpu=={required}"


def aside_folder() -> Path:
    """Return where a second libtpu is installed, beside the one that the machine's TPU runs on."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "scalingbook" / f"libtpu-{wanted_version(metadata.requires('jax') or [])}"


def aside() -> Path | None:
    """Return the folder of the libtpu that only child processes load, or None if this process needs none.

    On a machine with a TPU, the installed libtpu is the one that the TPU runs on, and it stays as it is.
    """
    if not lab_devices.has_tpu() or not why_not():
        return None
    folder = aside_folder()
    return folder if (folder / "libtpu").is_dir() else None


def wanted_version(requirements: Iterable[str]) -> str:
    """Return the libtpu version that a JAX with these requirements was built for, or "0" if none is named."""
    return next(iter(re.findall(r"libtpu==([\d.]*\d)", " ".join(requirements))), "0")


@functools.cache
def topology(name: str) -> Topology:
    """Return the slice with this name, such as `v5e:2x4`.

    Raises NoTpuCompiler if this machine has no compiler, and SliceError if the compiler has no such slice.
    """
    if reason := why_not():
        raise NoTpuCompiler(f"{reason}{_ELSEWHERE if aside() else ''}")
    lab_devices.prepare()
    from jax.experimental import topologies

    generation, _, shape = name.partition(":")
    if generation not in GENERATIONS or not shape:
        known = ", ".join(GENERATIONS)
        raise SliceError(f"{name!r} is no topology; write one as in v5e:2x4, with one of {known}")
    options = _options(generation, shape)
    try:
        with stderr_silenced():
            found = topologies.get_topology_desc(name, platform="tpu", **options)
    except Exception as error:  # libtpu raises several exception types of its own
        raise SliceError(
            f"the TPU compiler does not support the slice {name}: {str(error).splitlines()[0]}"
        ) from error
    return Topology(name, GENERATIONS[generation], _sides(shape), _by_coordinates(found.devices))


def of_mesh(mesh: Any) -> Topology | None:
    """Return the slice that contains the devices of a JAX mesh, or None if they are this machine's.

    Raises SliceError for a chip that the library lacks.
    """
    import jax

    devices = list(mesh.devices.flat)
    if devices[0].platform != "tpu" or set(devices) <= set(jax.devices()):
        return None
    kind = devices[0].device_kind
    one = chip_of_device(kind)  # the chip as JAX's devices see it: half of a TPU7x
    matches = [
        (name, chip) for name, chip in GENERATIONS.items() if HALF_CHIP_DEVICES.get(chip.name, chip) == one
    ]
    if not matches:
        raise SliceError(f"{kind} is no chip of the library; it knows {', '.join(GENERATIONS)}")
    ((generation, chip),) = matches
    grid = _by_coordinates(devices)
    sides = grid.shape[: chip.topology().dims]
    return Topology(f"{generation}:{'x'.join(map(str, sides))}", chip, sides, grid)


def _options(generation: str, shape: str) -> dict[str, Any]:
    """Return the compiler's options for a topology."""
    # without "megacore" the two cores of a v4 would be two devices, as on v3. libtpu assumes whole hosts, so
    # a single chip has to be declared.
    options: dict[str, Any] = {"chip_config_name": "megacore"} if generation == "v4" else {}
    return options | ({"chips_per_host_bounds": (1, 1, 1)} if math.prod(_sides(shape)) == 1 else {})


def _sides(shape: str) -> tuple[int, ...]:
    """Return the sides of a slice's shape, such as '2x4'. Raises SliceError if they are not integers."""
    try:
        return tuple(int(side) for side in shape.split("x"))
    except ValueError:
        raise SliceError(f"{shape!r} is not a shape of a slice; write one as in 2x4 or 4x4x4") from None


def _by_coordinates(devices: list[Any]) -> Any:
    """Return the devices in an array indexed by their torus coordinates and by the core on the chip."""
    # devices are not listed in torus order, so only their coordinates count
    coordinates = [(*d.coords, d.core_on_chip) for d in devices]
    grid = np.empty(tuple(max(axis) + 1 for axis in zip(*coordinates, strict=True)), object)
    for position, device in zip(coordinates, devices, strict=True):
        grid[position] = device
    return grid


def replicated(a: Any, on: Any) -> Any:
    """Mark a shape or a NumPy array as replicated on every device; anything that has a sharding keeps it."""
    import jax

    if not hasattr(a, "shape") or not hasattr(a, "dtype") or getattr(a, "sharding", None) is not None:
        return a
    everywhere = jax.sharding.NamedSharding(on, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct(a.shape, jax.dtypes.canonicalize_dtype(a.dtype), sharding=everywhere)


def check_target(compiled: Any, on: Any, topology: str) -> None:
    """Raise ValueError if JAX compiled for other devices than those of the slice.

    JAX compiles for the devices of the arguments and results. If none of them is on the slice, it compiles
    for this machine.
    """
    import jax

    # a function of plain NumPy arrays compiles for the CPU, and its numbers would be mistaken for a TPU's
    used = {d for s in jax.tree.leaves(compiled.output_shardings) for d in s.device_set}
    if used - set(on.devices.flat):
        raise ValueError(
            f"no argument and no result of this function is on {topology}, so JAX compiled it for "
            f"{next(iter(used)).platform}; give one argument in the notation or as a jax.ShapeDtypeStruct, "
            "or `out`"
        )


@contextmanager
def stderr_silenced() -> Iterator[None]:
    """Keep what C++ libraries write to standard error out of a notebook's stored outputs."""
    # C++ writes directly to file descriptor 2, which `contextlib.redirect_stderr` does not redirect
    saved = os.dup(2)
    try:
        with tempfile.TemporaryFile() as sink:
            os.dup2(sink.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
