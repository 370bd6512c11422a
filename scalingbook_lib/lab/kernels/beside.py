"""What does the TPU compiler make of a kernel, and what of the same product left to XLA?

Each function compiles both for a slice (`topology="v5e:1x1"`, `"v5e:2x2"`), with no TPU, and hands back the
two programs, the VMEM that the kernel's formula predicts, and the bytes that its text moves. XLA's estimate
in cycles covers its own fusions alone: of a kernel written by hand it knows nothing, and of links neither.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from scalingbook_lib.lab.compiler import aot, sharding
from scalingbook_lib.lab.compiler.aot import Program
from scalingbook_lib.lab.kernels import attention as flash
from scalingbook_lib.lab.kernels import ring, traffic
from scalingbook_lib.lab.kernels.traffic import KernelTraffic
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16, Result, binary, si


@dataclass(frozen=True, slots=True)
class Beside(Result):
    """One piece of work as a kernel and as XLA's program; `predicted_vmem_bytes` is the kernel's formula."""

    kernel: Program
    xla: Program
    moved: KernelTraffic
    predicted_vmem_bytes: int | None = None

    @property
    def hbm_s(self) -> float:
        """What the kernel's BlockSpecs fetch and store, at the rate of the chip's HBM."""
        return self.moved.hbm_bytes / self.kernel.chip.hbm_bytes_per_s if self.kernel.chip else 0.0

    def __str__(self) -> str:
        predicted = self.predicted_vmem_bytes
        formula = f" (predicted {binary(predicted)})" if predicted else ""
        mine = f"{binary(self.kernel.vmem_bytes)} of VMEM{formula}, {_hbm(self.kernel)}; {self.moved}"
        mine += f" ({si(self.hbm_s, 's')} at HBM's rate)" if self.hbm_s else ""
        seconds, received = self.xla.estimated_s, self.xla.collectives.received_bytes
        its = f"{binary(self.xla.vmem_bytes)} of VMEM, {_hbm(self.xla)}"
        its += f"; receives {si(received, 'B')}" if received else ""
        its += f"; the compiler estimates {si(seconds, 's')}, links not counted" if seconds else ""
        return f"kernel: {mine}\nXLA:    {its}"


def attention(
    T: int,
    S: int,
    K: int,
    G: int,
    *,
    H: int = 128,
    block: int = 256,
    keys: int = 512,
    causal: bool = True,
    topology: str = "v5e:1x1",
) -> Beside:
    """Q[K, G, T, H], K[K, S, H], V[K, S, H] → O: flash, and with all scores written out."""
    needed = flash.vmem_bytes(block, keys, G, H=H)
    how = {"block": block, "keys": keys, "causal": causal, "vmem_bytes": allowed(needed)}
    both = (
        lambda q, k, v: flash.flash(q, k, v, **how),
        lambda q, k, v: flash.plain(q, k, v, causal=causal),
    )
    return on_one_chip(
        both, ("Q[K, G, T, H]", "K[K, S, H]", "V[K, S, H]"), needed, topology, T=T, S=S, K=K, G=G, H=H
    )


def all_gather(I: int, J: int, *, both_ways: bool = False, topology: str = "v5e:2x2") -> Beside:
    """A[I_X, J] → A[I, J] in bf16 over a whole slice, by remote DMA and by XLA's collective."""
    both = (
        lambda x: ring.all_gather(x, "X", both_ways=both_ways),
        lambda x: jax.lax.all_gather(x, "X", tiled=True),
    )
    return on_a_ring(both, ("A[I_X, J]",), "A[I, J]", topology, I=I, J=J)


def on_one_chip(
    both: tuple[Callable, Callable], arrays: tuple[str, ...], needed: int, topology: str, **sizes: Any
) -> Beside:
    """A kernel and XLA's function of arrays in the notation; `needed` is the VMEM of the kernel's formula."""
    kernel, xla = (aot.compile(fn, *arrays, topology=topology, **sizes) for fn in both)
    structs = [sharding.struct(a, Mesh(X=1), BF16, **sizes) for a in arrays]
    return Beside(kernel, xla, traffic.moved(both[0], *structs), needed)


def on_a_ring(
    both: tuple[Callable, Callable],
    arrays: tuple[str, ...],
    out: str,
    topology: str,
    needed: int | None = None,
    **sizes: Any,
) -> Beside:
    """The same on all chips of a slice as one ring X, where both functions see one chip's blocks."""
    # one mesh axis over all of a torus: XLA and the kernel both see a ring of all chips
    sides = topology.partition(":")[2].split("x")
    on = aot.mesh_for(topology, Mesh(X=math.prod(int(side) for side in sides)))
    kernel, xla = (
        aot.compile(fn, *arrays, out=out, mesh=on, topology=topology, local=True, **sizes) for fn in both
    )
    structs = [sharding.struct(a, on, BF16, **sizes) for a in arrays]
    moved = traffic.moved(sharding.local(both[0], *arrays, out=out, on=on), *structs)
    return Beside(kernel, xla, moved, needed)


def allowed(needed: int) -> int | None:
    """A quarter more than the formula where that exceeds the 16 MiB that a kernel has unasked."""
    # the compiler's own scratch comes on top of what the kernel declares
    wanted = int(1.25 * needed)
    return wanted if wanted > 16 * 2**20 else None


def _hbm(program: Program) -> str:
    return f"{binary(program.memory.temporaries)} of HBM for temporaries"
