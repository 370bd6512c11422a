"""What would a TPU slice do with this program? Ask its compiler, with no TPU.

`compile(fn, "A[I, J_X]", "B[J_X, K]", out="C[I, K]", topology="v5e:2x4", mesh=Mesh(X=2, Y=4), I=512, …)`
hands back what the real TPU compiler made of a sharded function: its collectives, its memory on each chip,
its FLOPs, its own estimate in cycles. With no topology, the same for this machine's devices (simulated ones,
if need be), which can also run it.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from scalingbook_lib import notation
from scalingbook_lib.lab import devices
from scalingbook_lib.lab.compiler import hlo, memory, overflow, sharding, slices, unread, work
from scalingbook_lib.lab.compiler import schedule as lab_schedule
from scalingbook_lib.lab.compiler.memory import CompiledMemory
from scalingbook_lib.lab.compiler.overflow import Allocation, DoesNotFit
from scalingbook_lib.lab.compiler.slices import NoTpuCompiler, as_printed, why_not
from scalingbook_lib.lab.compiler.text import Text
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
    "why_not",
]


@dataclass(frozen=True)
class Program(Result):
    """A compiled program, and what its text says. Figures are those of one device of the mesh."""

    target: str
    chip: Chip | None
    mesh: jax.sharding.Mesh
    memory: CompiledMemory
    text: str = field(repr=False)
    compiled: Any = field(repr=False, compare=False)

    @functools.cached_property
    def parsed(self) -> Text:
        """Its text, read once for all figures here and for whatever else is given the program."""
        return Text.of(self.text)

    @functools.cached_property
    def collectives(self) -> hlo.Collectives:
        """What it communicates."""
        return hlo.collectives(self.parsed, self.mesh)

    @functools.cached_property
    def fusions(self) -> tuple[work.Fusion, ...]:
        """Its kernels, with the compiler's estimates."""
        return work.fusions(self.parsed)

    @functools.cached_property
    def flops(self) -> int:
        """The FLOPs of all its matmuls, loops included."""
        return work.matmul_flops(self.parsed)

    @functools.cached_property
    def cycles(self) -> int:
        """The TPU compiler's estimate for all kernels together, the links' time not included; 0 on a CPU."""
        return work.cycles(self.fusions)

    @property
    def estimated_s(self) -> float | None:
        """The compiler's estimate in seconds at the chip's clock: no measurement, and no time on links."""
        clock = self.chip.clock_hz if self.chip else None
        return self.cycles / clock if clock and self.cycles else None

    @functools.cached_property
    def not_counted(self) -> tuple[unread.UncountedPart, ...]:
        """What its text does not tell: then `flops`, `cycles` and `collectives` are at least so much."""
        return unread.unread(self.parsed)

    @property
    def vmem_bytes(self) -> int:
        """The largest scratch in VMEM that one kernel reserves."""
        return work.vmem_bytes(self.parsed)

    @property
    def prefetched_bytes(self) -> int:
        """What it copies from HBM into VMEM ahead of its use."""
        return work.prefetched_bytes(self.parsed)

    def schedule(self, *, copies: bool = False) -> lab_schedule.ProgramSchedule:
        """The order in which it computes and communicates."""
        return lab_schedule.schedule(self.parsed, self.mesh, copies=copies)

    def run(self, *arrays: Any) -> Any:
        """Its result for these arrays, placed as it expects them; on this machine's devices alone."""
        if self.chip is not None:
            raise RuntimeError(f"{self.target} is not here to run on; compile with topology=None to run here")
        placed = [jax.device_put(x, s) for x, s in zip(arrays, self.compiled.input_shardings[0], strict=True)]
        return self.compiled(*placed)

    def __str__(self) -> str:
        seconds = f", {si(self.estimated_s, 's')} at its clock" if self.estimated_s else ""
        estimate = f"; the compiler estimates {self.cycles:,} cycles{seconds}" if self.cycles else ""
        least = "≥ " if any(one.flops for one in self.not_counted) else ""
        work = f"{least}{si(self.flops, 'FLOPs')} of matmuls per device{estimate}"
        lines = (f"{self.target} as {notation.format_sizes(self.mesh.shape)}: {work}", self.memory)
        return "\n".join(map(str, (*lines, self.collectives.table(), *self.not_counted)))


def available() -> bool:
    """Can this machine compile for TPUs? `why_not()` says why it cannot."""
    return not why_not()


def mesh_for(topology: str | None, sizes: Any) -> jax.sharding.Mesh:
    """The JAX mesh over a slice, or over this machine's devices, for functions that name their mesh."""
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

    Arguments are arrays in the notation, alone or within lists and dicts, their dimensions given by `sizes`
    and their type by `dtype` (one for all, or by array name), or whatever `jax.jit(fn).lower` takes; a
    shape without a sharding is whole on every device of a slice. A `mesh` of JAX's own over the devices of a
    slice is taken as it is, and so is that of the arguments' shardings. `out` fixes the result's sharding;
    without it the compiler chooses. With `local`, `fn` is written for one device's blocks and communicates by
    itself. Where HBM or VMEM is too small the error is DoesNotFit.
    """
    where, on = _laid(topology, mesh, args)
    structs = jax.tree.map(lambda a: sharding.argument(a, on, dtype, sizes), args)
    # a scalar or a table without a sharding would lie on this machine's CPU, and JAX would compile for that
    structs = jax.tree.map(lambda a: slices.whole(a, on), structs) if where else structs
    if local:
        if out is None or not all(isinstance(a, str | Array) for a in args):
            raise ValueError("local=True needs every argument and `out` in the notation, as in out='C[I, K]'")
        fn = sharding.local(fn, *args, out=out, on=on)
    placed = {} if local else sharding.results(out, on)
    jitted = jax.jit(fn, donate_argnums=tuple(donate), **placed)
    compiled = _compiled(jitted, structs, options, abroad=where is not None)
    if where:
        slices.refuse_another_target(compiled, on, where.name)
    held = memory.memory(compiled, where.hbm_bytes if where else None)
    if not held.fits:  # today's libtpu has refused by now; older ones leave it to us
        raise DoesNotFit("HBM", held.needed, int(held.limit or 0), memory.parts(held))
    target = f"{where.chip.name} {where.name.partition(':')[2]}" if where else _machine(on)
    return Program(target, where.chip if where else None, on, held, compiled.as_text(), compiled)


def _laid(topology: str | None, mesh: Any, args: Any) -> tuple[slices.Topology | None, jax.sharding.Mesh]:
    """The slice, None for this machine, and the mesh over it: the reader's own where it is over a slice."""
    named = (getattr(getattr(a, "sharding", None), "mesh", None) for a in jax.tree.leaves(args))
    own = mesh if mesh is not None else next((m for m in named if m is not None), None)
    if isinstance(own, jax.sharding.Mesh) and (there := slices.of_mesh(own)) is not None:
        if topology is not None and slices.topology(topology).name != there.name:
            raise SliceError(f"the mesh is over {there.name}, not {topology}; leave out one of them")
        return there, own
    where = slices.topology(topology) if topology else None
    sizes = hlo.sizes_of(own) if own is not None else {"X": where.devices.size if where else 1}
    return where, mesh_for(topology, sizes)


def _compiled(jitted: Any, structs: Any, options: Mapping[str, Any] | None, *, abroad: bool) -> Any:
    asked = jax.config.jax_default_matmul_precision
    # what `devices.simulate` has set for the real devices of this machine is not meant for a slice
    own = abroad and asked == devices.EXACT and jax.devices()[0].platform != "cpu"
    with jax.default_matmul_precision(None if own else asked):
        lowered = jitted.lower(*structs)
    try:
        with slices.quiet():  # libtpu's warnings are about a host that is not there
            return lowered.compile(compiler_options=dict(options) if options else None)
    except jax.errors.JaxRuntimeError as error:
        if (known := overflow.read(str(error))) is None:
            raise
        raise known.asked_for(_arguments(structs)) from None


def _arguments(structs: Any) -> tuple[Allocation, ...]:
    """One device's share of every argument."""
    arrays = [a for a in jax.tree.leaves(structs) if getattr(a, "sharding", None) is not None]
    blocks = [(a.sharding.shard_shape(a.shape), a.dtype) for a in arrays]
    named = [
        (math.prod(shape) * dtype.itemsize, f"argument {dtype.name}{list(shape)}") for shape, dtype in blocks
    ]
    return tuple(Allocation(nbytes, what) for nbytes, what in sorted(named, reverse=True))


def _machine(on: jax.sharding.Mesh) -> str:
    first = on.devices.flat[0]
    if first.platform == "cpu" and on.devices.size > 1:
        return f"{on.devices.size} simulated devices"
    return f"{on.devices.size} × {first.device_kind}"
