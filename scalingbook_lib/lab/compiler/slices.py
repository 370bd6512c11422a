"""Which TPU slice is a program compiled for, and which chip stands where on its torus?

A topology is named as libtpu names it, `v5e:2x4`. Mesh axes are laid over it as `chips.Slice.mesh` lays them:
each is a product of whole torus axes.
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
from typing import Any

import numpy as np

from scalingbook_lib.evidence.local_benchmark import HALF_CHIP_DEVICES, chip_of_device
from scalingbook_lib.lab import devices as lab_devices
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

PRINTED = "0.0.51"  # the libtpu of uv.lock: the book's figures are what it said


class NoTpuCompiler(RuntimeError):
    """This machine cannot compile for TPUs; the message says why, and what would help."""


@dataclass(frozen=True, slots=True)
class Topology:
    """A slice as the compiler knows it: the chip, the torus, and its devices by their place.

    A chip of v4, v5e, v5p and v6e is one device; one of v2, v3 and TPU7x is two, which form a last axis of 2.
    """

    name: str
    chip: Chip
    torus: tuple[int, ...]
    devices: Any

    @property
    def devices_per_chip(self) -> int:
        """1, or 2 where each core of a chip is a device of its own."""
        return int(self.devices.size) // math.prod(self.torus)

    @property
    def hbm_bytes(self) -> float:
        """The HBM that one device has."""
        return self.chip.hbm_bytes / self.devices_per_chip

    def grid(self, sizes: Mapping[str, int]) -> Any:
        """The devices as a grid of these mesh axes, each a product of whole torus axes."""
        sides = [(k, n) for k, n in enumerate(self.devices.shape) if n > 1]
        # every way to give each side of the torus to one mesh axis: at most four sides, so a search is enough
        for owners in itertools.product(sizes, repeat=len(sides)):
            owned = {
                name: [side for side, o in zip(sides, owners, strict=True) if o == name] for name in sizes
            }
            if all(math.prod(n for _, n in owned[name]) == size for name, size in sizes.items()):
                order = [k for name in sizes for k, _ in owned[name]]
                whole = [k for k in range(self.devices.ndim) if k not in order]
                return self.devices.transpose(order + whole).reshape(tuple(sizes.values()))
        wanted = ", ".join(f"{name}={size}" for name, size in sizes.items())
        sides = " x ".join(map(str, self.devices.shape))
        raise SliceError(
            f"a mesh of {wanted} does not fit {self.name}: each mesh axis is a product of whole axes "
            f"of {sides}, and all {self.devices.size} devices are used"
        )


def why_not() -> str:
    """Why this machine cannot compile for TPUs; empty where it can."""
    if not exists_here():
        here = f"{platform.system()} on {platform.machine()}"
        return f"the TPU compiler (libtpu) exists for Linux on x86-64 alone, and this is {here}"
    if importlib.util.find_spec("libtpu") is None:
        return "the TPU compiler is not installed; install it with: pip install libtpu (about 590 MB)"
    return too_old(metadata.version("libtpu"), metadata.requires("jax") or [])


def exists_here() -> bool:
    """Is there a TPU compiler for this kind of machine?"""
    return platform.system() == "Linux" and platform.machine() in ("x86_64", "AMD64")


def as_printed() -> bool:
    """Is this the compiler whose figures the book prints? Another one may choose and estimate otherwise."""
    return not why_not() and metadata.version("libtpu") == PRINTED


def too_old(installed: str, requirements: Iterable[str]) -> str:
    """Why a libtpu older than JAX was built for will not do: it ends the process with a segfault."""
    wanted = wanted_version(requirements)
    # compared as numbers: as text, 0.0.9 would be later than 0.0.51
    if [int(n) for n in re.findall(r"\d+", installed)] >= [int(n) for n in wanted.split(".")]:
        return ""
    return f"libtpu {installed} is older than this JAX needs; install it with: pip install libtpu=={wanted}"


def wanted_version(requirements: Iterable[str]) -> str:
    """The libtpu that a JAX with these requirements was built for; "0" where they name none."""
    return next(iter(re.findall(r"libtpu==([\d.]*\d)", " ".join(requirements))), "0")


@functools.cache
def topology(name: str) -> Topology:
    """The slice of that name, `v5e:2x4`; NoTpuCompiler where this machine has no compiler for it."""
    if reason := why_not():
        raise NoTpuCompiler(reason)
    lab_devices.prepare()
    from jax.experimental import topologies

    generation, _, shape = name.partition(":")
    if generation not in GENERATIONS or not shape:
        known = ", ".join(GENERATIONS)
        raise SliceError(f"{name!r} is no topology; write one as in v5e:2x4, with one of {known}")
    options = _options(generation, shape)
    try:
        with quiet():
            found = topologies.get_topology_desc(name, platform="tpu", **options)
    except Exception as error:  # libtpu's own kinds of error, one for each cause
        raise SliceError(f"the TPU compiler knows no slice {name}: {str(error).splitlines()[0]}") from error
    return Topology(name, GENERATIONS[generation], _sides(shape), _by_place(found.devices))


def of_mesh(mesh: Any) -> Topology | None:
    """The slice that the devices of a reader's own mesh are of; None where they are this machine's."""
    import jax

    devices = list(mesh.devices.flat)
    if devices[0].platform != "tpu" or set(devices) <= set(jax.devices()):
        return None
    kind = devices[0].device_kind
    one = chip_of_device(kind)  # a device: of a TPU7x half a chip
    named = [
        (name, chip) for name, chip in GENERATIONS.items() if HALF_CHIP_DEVICES.get(chip.name, chip) == one
    ]
    if not named:
        raise SliceError(f"{kind} is no chip of the library; it knows {', '.join(GENERATIONS)}")
    ((generation, chip),) = named
    places = _by_place(devices)
    sides = places.shape[: chip.topology().dims]
    return Topology(f"{generation}:{'x'.join(map(str, sides))}", chip, sides, places)


def _options(generation: str, shape: str) -> dict[str, Any]:
    # without "megacore" the two cores of a v4 would be two devices, as on v3. One chip alone is no whole
    # host, which libtpu takes for granted unless it is told.
    options: dict[str, Any] = {"chip_config_name": "megacore"} if generation == "v4" else {}
    return options | ({"chips_per_host_bounds": (1, 1, 1)} if math.prod(_sides(shape)) == 1 else {})


def _sides(shape: str) -> tuple[int, ...]:
    try:
        return tuple(int(side) for side in shape.split("x"))
    except ValueError:
        raise SliceError(f"{shape!r} is no shape of a slice; write one as in 2x4 or 4x4x4") from None


def _by_place(devices: list[Any]) -> Any:
    """The devices in an array indexed by their coordinates on the torus and the core on the chip."""
    # the order in which devices are listed is no order on the torus: only their coordinates count
    places = [(*d.coords, d.core_on_chip) for d in devices]
    grid = np.empty(tuple(max(axis) + 1 for axis in zip(*places, strict=True)), object)
    for place, device in zip(places, devices, strict=True):
        grid[place] = device
    return grid


def whole(a: Any, on: Any) -> Any:
    """A shape or an array of NumPy's as a whole copy on every device; what has a sharding keeps it."""
    import jax

    if not hasattr(a, "shape") or not hasattr(a, "dtype") or getattr(a, "sharding", None) is not None:
        return a
    everywhere = jax.sharding.NamedSharding(on, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct(a.shape, jax.dtypes.canonicalize_dtype(a.dtype), sharding=everywhere)


def refuse_another_target(compiled: Any, on: Any, topology: str) -> None:
    """JAX compiles for the devices of its arguments and results; with none on the slice, for this machine."""
    import jax

    # the trap: a function of plain NumPy arrays compiles for the CPU, and its figures look like a TPU's
    used = {d for s in jax.tree.leaves(compiled.output_shardings) for d in s.device_set}
    if used - set(on.devices.flat):
        raise ValueError(
            f"no argument and no result of this function is on {topology}, so JAX compiled it for "
            f"{next(iter(used)).platform}; give one argument in the notation or as a jax.ShapeDtypeStruct, "
            "or `out`"
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what a C++ library writes to standard error out of a notebook's stored outputs."""
    # C++ writes to file descriptor 2 itself, which `contextlib.redirect_stderr` does not see
    saved = os.dup(2)
    try:
        with tempfile.TemporaryFile() as sink:
            os.dup2(sink.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
