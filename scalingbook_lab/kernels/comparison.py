"""Compile the same work as a Pallas kernel and as XLA's program, for a TPU slice that need not be attached.

Each function compiles both (`topology="v5e:1x1"`, `"v5e:2x2"`) and returns the two programs, the VMEM that
the kernel's formula predicts, and the bytes that the kernel moves. XLA's estimate in cycles covers only its
own fusions, so it includes neither hand-written kernels nor links.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from scalingbook_lab.compiler import aot, sharding
from scalingbook_lab.compiler.aot import Program
from scalingbook_lab.kernels import attention as flash
from scalingbook_lab.kernels import ring, traffic
from scalingbook_lab.kernels.traffic import KernelTraffic
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import BF16, Result, binary, si


@dataclass(frozen=True, slots=True)
class KernelComparison(Result):
    """The same work as a kernel and as XLA's program; `predicted_vmem_bytes` is the kernel's own formula."""

    kernel: Program
    xla: Program
    moved: KernelTraffic
    predicted_vmem_bytes: int | None = None

    @property
    def hbm_s(self) -> float:
        """The seconds that the kernel's fetches and stores take at full HBM bandwidth; 0 without a chip."""
        return self.moved.hbm_bytes / self.kernel.chip.hbm_bytes_per_s if self.kernel.chip else 0.0

    def __str__(self) -> str:
        predicted = self.predicted_vmem_bytes
        formula = f" (predicted {binary(predicted)})" if predicted else ""
        kernel_text = (
            f"{binary(self.kernel.vmem_bytes)} of VMEM{formula}, {_temporaries(self.kernel)}; {self.moved}"
        )
        kernel_text += f" ({si(self.hbm_s, 's')} at HBM's rate)" if self.hbm_s else ""
        seconds, received = self.xla.estimated_s, self.xla.collectives.received_bytes
        xla_text = f"{binary(self.xla.vmem_bytes)} of VMEM, {_temporaries(self.xla)}"
        xla_text += f"; receives {si(received, 'B')}" if received else ""
        xla_text += f"; the compiler estimates {si(seconds, 's')}, links not counted" if seconds else ""
        return f"kernel: {kernel_text}\nXLA:    {xla_text}"


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
) -> KernelComparison:
    """Compare flash attention with attention that keeps all scores in HBM, for Q[K, G, T, H] and S keys."""
    vmem_bytes = flash.vmem_bytes(block, keys, G, H=H)
    how = {"block": block, "keys": keys, "causal": causal, "vmem_bytes": vmem_limit(vmem_bytes)}
    both = (
        lambda q, k, v: flash.flash(q, k, v, **how),
        lambda q, k, v: flash.plain(q, k, v, causal=causal),
    )
    return on_one_chip(
        both, ("Q[K, G, T, H]", "K[K, S, H]", "V[K, S, H]"), vmem_bytes, topology, T=T, S=S, K=K, G=G, H=H
    )


def all_gather(I: int, J: int, *, both_ways: bool = False, topology: str = "v5e:2x2") -> KernelComparison:
    """Compare remote DMA with XLA's collective for A[I_X, J] → A[I, J] in bf16 over a whole slice."""
    both = (
        lambda x: ring.all_gather(x, "X", both_ways=both_ways),
        lambda x: jax.lax.all_gather(x, "X", tiled=True),
    )
    return on_a_ring(both, ("A[I_X, J]",), "A[I, J]", topology, I=I, J=J)


def on_one_chip(
    both: tuple[Callable, Callable], arrays: tuple[str, ...], vmem_bytes: int, topology: str, **sizes: Any
) -> KernelComparison:
    """Compile a kernel and XLA's function for one chip; `vmem_bytes` comes from the kernel's formula."""
    kernel, xla = (aot.compile(fn, *arrays, topology=topology, **sizes) for fn in both)
    structs = [sharding.struct(a, Mesh(X=1), BF16, **sizes) for a in arrays]
    return KernelComparison(kernel, xla, traffic.moved(both[0], *structs), vmem_bytes)


def on_a_ring(
    both: tuple[Callable, Callable],
    arrays: tuple[str, ...],
    out: str,
    topology: str,
    vmem_bytes: int | None = None,
    **sizes: Any,
) -> KernelComparison:
    """Compile both for all chips of a slice as one ring X; the functions take the shards of one chip."""
    # one mesh axis over the whole torus, so that XLA and the kernel both see a ring of all chips
    sides = topology.partition(":")[2].split("x")
    mesh = aot.mesh_for(topology, Mesh(X=math.prod(int(side) for side in sides)))
    kernel, xla = (
        aot.compile(fn, *arrays, out=out, mesh=mesh, topology=topology, local=True, **sizes) for fn in both
    )
    structs = [sharding.struct(a, mesh, BF16, **sizes) for a in arrays]
    moved = traffic.moved(sharding.local(both[0], *arrays, out=out, on=mesh), *structs)
    return KernelComparison(kernel, xla, moved, vmem_bytes)


def vmem_limit(vmem_bytes: int) -> int | None:
    """Return a kernel's `vmem_limit_bytes`: 1.25 times its formula if that exceeds 16 MiB, otherwise None."""
    # the compiler needs scratch memory in addition to what the kernel declares
    limit = int(1.25 * vmem_bytes)
    return limit if limit > 16 * 2**20 else None


def _temporaries(program: Program) -> str:
    """Return text such as '1 MiB of HBM for temporaries'."""
    return f"{binary(program.memory.temporaries)} of HBM for temporaries"
