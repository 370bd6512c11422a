"""Counts the matmul FLOPs of a compiled program, and sums the TPU compiler's estimate of its cycles.

FLOPs are counted from the program's text, a loop's body once per trip (XLA's own `cost_analysis` counts it
once). `estimated_cycles` is the TPU compiler's estimate of each fusion: not a measurement, and without the
time on the links.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from scalingbook_lib.hlo import gpu_calls, not_counted, walk
from scalingbook_lib.hlo.module import Computation, HloError, HloModule, Instruction, shapes_in
from scalingbook_lib.hlo.walk import Visit
from scalingbook_lib.units import Result, si

# XLA:CPU writes a matmul as `dot`; the TPU compiler turns each into a `convolution`; XLA:GPU calls cuBLAS.
MATMULS = ("dot", "convolution")
# of a dot; in a call of cuBLAS
CONTRACTED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions": ?\[)([\d,"]*)')
COPIES = ("copy", "copy-start")
NOT_ESTIMATED = 2**63 - 1  # what the compiler writes if it has no estimate


@dataclass(frozen=True, slots=True)
class Fusion(Result):
    """One kernel: its kind, its estimated cycles, FLOPs and VMEM scratch per run, and how often it runs."""

    name: str
    kind: str
    cycles: int
    times: int | None
    flops: int
    vmem_bytes: int
    source: str = ""

    def __str__(self) -> str:
        flops = f", {si(self.flops, 'FLOPs')}" if self.flops else ""
        times = f", {self.times}×" if self.times != 1 else ""
        return f"{self.kind} {self.name}: {self.cycles:,} cycles{flops}{times}"


def fusions(program: Any) -> tuple[Fusion, ...]:
    """The kernels of a program with the compiler's estimates, in the order of the schedule."""
    module = HloModule.of(program)
    visits = walk.visits(module, lambda visit: cycles_of(visit.instruction))
    found = (fusion(module, visit) for visit in visits if visit.inside is None)
    return tuple(f for f in found if f.cycles or f.flops)


def fusion(module: HloModule, visit: Visit) -> Fusion:
    """One instruction as a kernel, with its estimate, its FLOPs and its VMEM scratch."""
    i = visit.instruction
    flops = _flops_within(module, visit.computation, i)
    kind = "matmul" if flops else "copy" if i.opcode in COPIES else "elementwise"
    return Fusion(i.name, kind, cycles_of(i), visit.times, flops, vmem_of(i), i.quoted("op_name"))


def cycles(kernels: Iterable[Fusion]) -> int:
    """The estimated cycles of one run of a program's kernels, loops included, collectives not."""
    return sum(_times(f) * f.cycles for f in kernels)


def matmul_flops(program: Any) -> int:
    """The FLOPs of all matmuls that one device computes in one run, loops included."""
    return _total(program, lambda visit: flops_of(visit.computation, visit.instruction))


def _total(program: Any, weigh: Callable[[Visit], int]) -> int:
    """The sum of `weigh` over all visits of one run, loops included; of branches, the largest sum."""
    return sum(weigh(visit) * _times(visit) for visit in walk.visits(HloModule.of(program), weigh))


def vmem_bytes(program: Any) -> int:
    """The largest VMEM scratch, in bytes, that one kernel reserves; 0 if the compiler does not report it."""
    return max((vmem_of(v.instruction) for v in walk.visits(HloModule.of(program))), default=0)


def prefetched_bytes(program: Any) -> int:
    """The bytes that the program copies from HBM into VMEM ahead of their use, in one run."""

    def weigh(visit: Visit) -> int:
        # `copy-start` returns (the destination, the source, a context); a destination with S(1) is in VMEM
        to = visit.instruction.type.lstrip("(").split("}")[0]
        moves = visit.instruction.opcode == "copy-start" and "S(1)" in to
        return int(shapes_in(to)[0].nbytes) if moves else 0

    return _total(program, weigh)


def cycles_of(i: Instruction) -> int:
    """The compiler's estimate of one instruction in cycles; 0 if it has none."""
    # only in the `backend_config` of libtpu's optimized program; XLA:CPU has no estimate
    found = re.search(r'"estimated_cycles":"(\d+)"', i.attributes)
    return int(found[1]) if found and int(found[1]) != NOT_ESTIMATED else 0


def vmem_of(i: Instruction) -> int:
    """The VMEM scratch, in bytes, that one instruction reserves; 0 if the compiler does not report it."""
    # a list of (memory, offset, size), in which memory 1 is VMEM; other memories are not counted here
    used = re.search(r'"used_scoped_memory_configs":\[([^\]]*)\]', i.attributes)
    sizes = re.findall(r'"memory_space":"1","offset":"\d+","size":"(\d+)"', used[1]) if used else []
    return sum(map(int, sizes))


def _times(counted: Fusion | Visit) -> int:
    return 1 if counted.times is None else counted.times  # `unread` says which loops count once


def _flops_within(module: HloModule, computation: Computation, i: Instruction) -> int:
    """The matmul FLOPs of one instruction: its own, or those of the fusion that it calls."""
    if flops := flops_of(computation, i):
        return flops
    # a fusion calls one computation, which may hold a matmul and the operations after it
    called = [module.computations[name] for name in walk.callees(i)] if i.opcode in walk.FUSIONS else []
    return sum(_flops_within(module, c, part) for c in called for part in c.instructions.values())


def flops_of(computation: Computation, i: Instruction) -> int:
    """The FLOPs of a matmul, of cuDNN's attention, or of a Pallas kernel by its `cost_estimate`; otherwise 0.

    A matmul has a multiply and an add per term.
    """
    if gpu_calls.is_attention(i):
        return gpu_calls.attention_flops(computation, i)
    if i.opcode in MATMULS or (i.opcode == "custom-call" and CONTRACTED.search(i.attributes)):
        return _flops(computation, i)
    if i.opcode == "reduce" and i.quoted("op_name").endswith("dot_general"):
        # with one row the matrix unit is not used: XLA multiplies and sums on the vector unit
        terms = walk.resolve(computation, i.operands[0])
        return 2 * math.prod(terms.shapes[0].dims) if terms is not None and terms.opcode == "multiply" else 0
    return (not_counted.cost_estimate(i, "flops") or 0) if i.opcode == "custom-call" else 0


def _flops(computation: Computation, i: Instruction) -> int:
    """2 · outputs · terms summed for each, from the unpadded shapes."""
    # unpadded, without the padding that the tiles of a TPU add
    left, right = (operand.shapes[0].dims for operand in computation.operands(i)[:2])
    if i.opcode == "convolution":
        return _convolution_flops(i, left, right)
    summed = CONTRACTED.search(i.attributes)
    terms = math.prod(left[int(k)] for k in re.findall(r"\d+", summed[1])) if summed else 1
    return 2 * math.prod(i.shapes[0].dims) * terms


def _convolution_flops(i: Instruction, left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """The FLOPs of a convolution, which is how the TPU compiler writes a matmul.

    Batch by features, summed over the input features and the positions of the window. Raises an HloError if
    the text lacks the dimensions' labels.
    """
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", i.attributes)
    if labels is None:
        raise HloError(f"convolution {i.name} has no dim_labels; give the whole text of the program")
    # `b0f_0io->b0f`: of the input batch, a window's dimension and features; of the kernel window, input and
    # output features. Input features and the window's places are summed, for each of batch and output
    # features.
    lhs, rhs, out = labels[1], labels[2], labels[3]
    dims = i.shapes[0].dims
    outputs = dims[out.index("b")] * dims[out.index("f")]
    places = 1
    for spatial, window in enumerate(_windows(i, len(lhs) - 2)):
        at = str(spatial)
        # a batched matmul is a convolution with dilation, most of whose positions are holes:
        # counting the window's size alone would count the matmul once per pair of batch elements
        places *= window.touched(left[lhs.index(at)], right[rhs.index(at)], dims[out.index(at)])
    return 2 * outputs * right[rhs.index("i")] * places


class _Window(NamedTuple):
    """The motion of a window over one spatial dimension: stride, padding in front, and dilations."""

    stride: int
    pad: int
    dilate: int  # of the input
    window_dilate: int

    def touched(self, size: int, window: int, out: int) -> int:
        """The number of pairs of an output and a window position that meet an input element, not padding."""
        last = (size - 1) * self.dilate
        corners = (o * self.stride - self.pad for o in range(out))
        places = (corner + k * self.window_dilate for corner in corners for k in range(window))
        return sum(0 <= at <= last and at % self.dilate == 0 for at in places)


def _windows(i: Instruction, rank: int) -> list[_Window]:
    """The window of each spatial dimension."""
    found = re.search(r"window=\{([^}]*)\}", i.attributes)
    written = dict(part.split("=") for part in found[1].split()) if found else {}

    def per(key: str, default: str) -> list[str]:
        return written[key].split("x") if key in written else [default] * rank

    pads = [int(pad.split("_")[0]) for pad in per("pad", "0_0")]
    strides, lhs, rhs = ([int(n) for n in per(key, "1")] for key in ("stride", "lhs_dilate", "rhs_dilate"))
    return list(map(_Window, strides, pads, lhs, rhs))
