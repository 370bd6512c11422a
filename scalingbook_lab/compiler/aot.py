"""Compile a sharded function ahead of time for a TPU slice, with no TPU attached.

`compile(fn, "A[I, J_X]", "B[J_X, K]", out="C[I, K]", topology="v5e:2x4", mesh=Mesh(X=2, Y=4), I=512, …)`
returns a `Program`: the collectives, the memory on each chip, the FLOPs and the TPU compiler's estimate in
cycles. Without a topology it compiles for this machine's devices (simulated ones if necessary), on which the
program can also run.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from scalingbook_lab import devices
from scalingbook_lab.compiler import compile_process, memory, sharding, slices
from scalingbook_lab.compiler.memory import CompiledMemory
from scalingbook_lab.compiler.slices import NoTpuCompiler, as_printed, why_not
from scalingbook_lib import hlo, notation
from scalingbook_lib.hlo import cost, not_counted, out_of_memory
from scalingbook_lib.hlo import schedule as lab_schedule
from scalingbook_lib.hlo.module import HloModule
from scalingbook_lib.hlo.out_of_memory import DoesNotFit, HbmAllocation
from scalingbook_lib.machines.chips import Chip, SliceError
from scalingbook_lib.notation import Array
from scalingbook_lib.units import BF16, DType, Result, si

__all__ = [
    "CompiledMemory",
    "DoesNotFit",
    "NoTpuCompiler",
    "Program",
    "as_printed",
    "available",
    "compile",
    "mesh_for",
    "portable",
    "why_not",
]


@dataclass(frozen=True)
class Program(Result):
    """A compiled program. All numbers are for one device of the mesh.

    `target` names the devices. `chip` is None if the program is compiled for this machine's devices.
    """

    target: str
    chip: Chip | None
    mesh: jax.sharding.Mesh
    memory: CompiledMemory
    text: str = field(repr=False)
    compiled: Any = field(repr=False, compare=False)

    @functools.cached_property
    def parsed(self) -> HloModule:
        """The parsed program text, cached for all properties."""
        return HloModule.of(self.text)

    @functools.cached_property
    def collectives(self) -> hlo.Collectives:
        """The program's collectives with their axes, bytes and counts."""
        return hlo.collectives(self.parsed, self.mesh)

    @functools.cached_property
    def fusions(self) -> tuple[cost.Fusion, ...]:
        """The program's kernels with the compiler's estimates."""
        return cost.fusions(self.parsed)

    @functools.cached_property
    def flops(self) -> int:
        """The FLOPs of all matmuls, counted once per iteration inside loops."""
        return cost.matmul_flops(self.parsed)

    @functools.cached_property
    def cycles(self) -> int:
        """The TPU compiler's estimate for all kernels in cycles, without link time; 0 on a CPU."""
        return cost.cycles(self.fusions)

    @property
    def estimated_s(self) -> float | None:
        """The compiler's estimate in seconds at the chip's clock rate, without link time; None on a CPU."""
        clock = self.chip.clock_hz if self.chip else None
        return self.cycles / clock if clock and self.cycles else None

    @functools.cached_property
    def not_counted(self) -> tuple[not_counted.NotCounted, ...]:
        """The operations whose cost the program text does not reveal.

        If there are any, `flops`, `cycles` and `collectives` are lower bounds.
        """
        return not_counted.not_counted(self.parsed)

    @property
    def vmem_bytes(self) -> int:
        """The largest VMEM scratch that any one kernel reserves, in bytes."""
        return cost.vmem_bytes(self.parsed)

    @property
    def prefetched_bytes(self) -> int:
        """The bytes that the program copies from HBM into VMEM ahead of their use."""
        return cost.prefetched_bytes(self.parsed)

    def schedule(self, *, copies: bool = False) -> lab_schedule.ProgramSchedule:
        """Return the order in which the program computes and communicates; with `copies`, also its copies
        into VMEM.
        """
        return lab_schedule.schedule(self.parsed, self.mesh, copies=copies)

    def run(self, *arrays: Any) -> Any:
        """Run the program on these arrays, placed as it expects them, and return the result.

        Raises RuntimeError if the program is compiled for a slice that is not attached.
        """
        if self.chip is not None:
            raise RuntimeError(f"{self.target} is not here to run on; compile with topology=None to run here")
        placed = [jax.device_put(x, s) for x, s in zip(arrays, self.compiled.input_shardings[0], strict=True)]
        return self.compiled(*placed)

    def __str__(self) -> str:
        seconds = f", {si(self.estimated_s, 's')} at its clock" if self.estimated_s else ""
        estimate = f"; the compiler estimates {self.cycles:,} cycles{seconds}" if self.cycles else ""
        bound = "≥ " if any(one.flops for one in self.not_counted) else ""
        work = f"{bound}{si(self.flops, 'FLOPs')} of matmuls per device{estimate}"
        lines = (f"{self.target} as {notation.format_sizes(self.mesh.shape)}: {work}", self.memory)
        return "\n".join(map(str, (*lines, self.collectives.table(), *self.not_counted)))


def available() -> bool:
    """Return whether this machine can compile for TPUs; if not, `why_not()` gives the reason."""
    return not why_not()


def portable(program: Program) -> dict[str, Any]:
    """Return a program as plain values, which `compile` reads where a child process compiled it."""
    return {
        "target": program.target,
        "chip": program.chip,
        "sizes": dict(program.mesh.shape),
        "memory": program.memory,
        "text": program.text,
    }


def _from_child(folder: Path, fn: Callable, args: tuple, how: dict[str, Any]) -> Program:
    """Return the program that a child process compiled with the libtpu in that folder."""
    how = {name: value for name, value in how.items() if value is not None}
    found = compile_process.compile_aside(folder, fn, args, how)
    sizes = found.pop("sizes")
    # its devices are not in this process; all that a program's properties need is the sizes of its axes
    mesh: Any = jax.sharding.AbstractMesh(tuple(sizes.values()), tuple(sizes))
    return Program(mesh=mesh, compiled=None, **found)


def mesh_for(topology: str | None, sizes: Any) -> jax.sharding.Mesh:
    """Return the JAX mesh over a slice, or over this machine's devices if `topology` is None.

    Raises SliceError if the axes do not fit the slice, and NoTpuCompiler if there is no compiler.
    """
    if topology is None:
        return sharding.mesh(sizes)
    return sharding.mesh(sizes, slices.topology(topology).grid(hlo.sizes_of(sizes)).flatten().tolist())


def compile(
    fn: Callable,
    *args: Any,
    mesh: Any = None,
    topology: str | None = None,
    out: str | Array | Sequence[str | Array] | None = None,
    dtype: DType | Mapping[str, DType] = BF16,
    local: bool = False,
    options: Mapping[str, Any] | None = None,
    donate: Sequence[int] = (),
    **sizes: int,
) -> Program:
    """Compile a sharded function for a TPU slice (`topology="v5e:2x4"`) or, without one, for this machine.

    Arguments are arrays in the notation, alone or within lists and dicts, with dimensions from `sizes` and
    data types from `dtype` (one for all arrays, or one by array name). An argument may also be anything that
    `jax.jit(fn).lower` takes; a shape without a sharding is replicated. A JAX `mesh` over the devices of a
    slice selects that slice, and so does the mesh of the arguments' shardings. `out` fixes the result's
    sharding; without it the compiler chooses. With `local`, `fn` is written for the shards of one device and
    communicates explicitly. `donate` lists the arguments whose memory the results may reuse.

    On a machine whose TPU needs another libtpu than the compiler, a child process compiles; see
    `slices.aside`.

    Raises DoesNotFit if HBM or VMEM is too small, NoTpuCompiler if there is no compiler for the topology, and
    SliceError if the mesh does not fit the topology.
    """
    if topology is not None and (folder := slices.aside()):
        how = {"mesh": mesh, "topology": topology, "out": out, "dtype": dtype, "local": local}
        return _from_child(folder, fn, args, how | {"options": options, "donate": tuple(donate)} | sizes)
    slice_, on = _target(topology, mesh, args)
    structs = jax.tree.map(lambda a: sharding.argument(a, on, dtype, sizes), args)
    # without a sharding, a scalar or a table would be on this machine's CPU, and JAX would compile for the
    # CPU
    structs = jax.tree.map(lambda a: slices.replicated(a, on), structs) if slice_ else structs
    if local:
        if out is None or not all(isinstance(a, str | Array) for a in args):
            raise ValueError("local=True needs every argument and `out` in the notation, as in out='C[I, K]'")
        fn = sharding.local(fn, *args, out=out, on=on)
    shardings = {} if local else sharding.results(out, on)
    jitted = jax.jit(fn, donate_argnums=tuple(donate), **shardings)
    compiled = compile_jitted(jitted, structs, options, abroad=slice_ is not None)
    if slice_:
        slices.check_target(compiled, on, slice_.name)
    usage = memory.memory(compiled, slice_.hbm_bytes if slice_ else None)
    if not usage.fits:  # newer versions of libtpu have already raised by now, older ones have not
        raise DoesNotFit("HBM", usage.needed, int(usage.limit or 0), memory.allocations(usage))
    target = f"{slice_.chip.name} {slice_.name.partition(':')[2]}" if slice_ else _device_names(on)
    return Program(target, slice_.chip if slice_ else None, on, usage, compiled.as_text(), compiled)


def _target(topology: str | None, mesh: Any, args: Any) -> tuple[slices.Topology | None, jax.sharding.Mesh]:
    """Return the slice (None for this machine) and the mesh over it.

    The caller's own mesh is kept if it is over a slice.
    """
    meshes = (getattr(getattr(a, "sharding", None), "mesh", None) for a in jax.tree.leaves(args))
    own = mesh if mesh is not None else next((m for m in meshes if m is not None), None)
    if isinstance(own, jax.sharding.Mesh) and (found := slices.of_mesh(own)) is not None:
        if topology is not None and slices.topology(topology).name != found.name:
            raise SliceError(f"the mesh is over {found.name}, not {topology}; leave out one of them")
        return found, own
    slice_ = slices.topology(topology) if topology else None
    sizes = hlo.sizes_of(own) if own is not None else {"X": slice_.devices.size if slice_ else 1}
    return slice_, mesh_for(topology, sizes)


def compile_jitted(jitted: Any, structs: Any, options: Mapping[str, Any] | None, *, abroad: bool) -> Any:
    """Return a compiled function; XLA's out-of-memory error is raised as DoesNotFit.

    `abroad` means that it is compiled for devices that are not this machine's.
    """
    precision = jax.config.jax_default_matmul_precision
    # the precision that `devices.simulate` sets is meant for this machine's real devices, not for a slice
    ignored = abroad and precision == devices.EXACT and jax.devices()[0].platform != "cpu"
    with jax.default_matmul_precision(None if ignored else precision):
        lowered = jitted.lower(*structs)
    try:
        with slices.stderr_silenced():  # libtpu warns about the absent host
            return lowered.compile(compiler_options=dict(options) if options else None)
    except jax.errors.JaxRuntimeError as error:
        if (out_of_memory_error := out_of_memory.read(str(error))) is None:
            raise
        raise out_of_memory_error.with_arguments(_argument_allocations(structs)) from None


def _argument_allocations(structs: Any) -> tuple[HbmAllocation, ...]:
    """Return one device's shard of every argument, largest first."""
    arrays = [a for a in jax.tree.leaves(structs) if getattr(a, "sharding", None) is not None]
    blocks = [(a.sharding.shard_shape(a.shape), a.dtype) for a in arrays]
    allocations = [
        (math.prod(shape) * dtype.itemsize, f"argument {dtype.name}{list(shape)}") for shape, dtype in blocks
    ]
    return tuple(HbmAllocation(nbytes, what) for nbytes, what in sorted(allocations, reverse=True))


def _device_names(on: jax.sharding.Mesh) -> str:
    """Return this machine's devices in words, such as '8 simulated devices'."""
    first = on.devices.flat[0]
    if first.platform == "cpu" and on.devices.size > 1:
        return f"{on.devices.size} simulated devices"
    return f"{on.devices.size} × {first.device_kind}"
