"""How much work is in a compiled program, and how long does the compiler expect it to take?

FLOPs of every matmul, counted from the program's text with loops included (XLA's own `cost_analysis` counts a
loop's body once), and `estimated_cycles`, the TPU compiler's estimate for each fusion: an estimate, no
measurement, and one without the time on the links.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from scalingbook_lib.lab.compiler import unread, walk
from scalingbook_lib.lab.compiler.text import Computation, HloError, Instruction, Text, shapes_in
from scalingbook_lib.lab.compiler.walk import Visit
from scalingbook_lib.units import Result, si

# XLA:CPU writes a product as `dot`; the TPU compiler makes a `convolution` of each; XLA:GPU calls cuBLAS.
MATMULS = ("dot", "convolution")
SUMMED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions":\[)([\d,"]*)')  # of a dot; in a call of cuBLAS
COPIES = ("copy", "copy-start")
NOT_ESTIMATED = 2**63 - 1  # what the compiler writes where it has no estimate


@dataclass(frozen=True, slots=True)
class Fusion(Result):
    """One kernel of a program: what it computes, the compiler's estimate for one run, how often it runs."""

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
    text = Text.of(program)
    visits = walk.visits(text, lambda visit: cycles_of(visit.instruction))
    found = (fusion(text, visit) for visit in visits if visit.inside is None)
    return tuple(f for f in found if f.cycles or f.flops)


def fusion(text: Text, visit: Visit) -> Fusion:
    """One instruction as a kernel: its estimate, its FLOPs, its VMEM."""
    i = visit.instruction
    flops = _flops_within(text, visit.computation, i)
    kind = "matmul" if flops else "copy" if i.opcode in COPIES else "elementwise"
    return Fusion(i.name, kind, cycles_of(i), visit.times, flops, vmem_of(i), i.text("op_name"))


def cycles(kernels: Iterable[Fusion]) -> int:
    """The compiler's estimate for one run of a program's kernels, loops included, collectives not."""
    return sum(_times(f) * f.cycles for f in kernels)


def matmul_flops(program: Any) -> int:
    """The FLOPs of all matmuls that one device computes in one run, loops included."""
    return _total(program, lambda visit: flops_of(visit.computation, visit.instruction))


def _total(program: Any, weigh: Callable[[Visit], int]) -> int:
    """What all visits of one run have of it, loops included; of branches, the one that has most."""
    return sum(weigh(visit) * _times(visit) for visit in walk.visits(Text.of(program), weigh))


def vmem_bytes(program: Any) -> int:
    """The largest scratch in VMEM that any one kernel reserves, where the compiler reports it."""
    return max((vmem_of(v.instruction) for v in walk.visits(Text.of(program))), default=0)


def prefetched_bytes(program: Any) -> int:
    """The bytes that the program copies from HBM into VMEM ahead of their use."""

    def weigh(visit: Visit) -> int:
        # `copy-start` returns (what is being made, what it is made of, a context): the first is in VMEM, S(1)
        to = visit.instruction.type.lstrip("(").split("}")[0]
        moves = visit.instruction.opcode == "copy-start" and "S(1)" in to
        return int(shapes_in(to)[0].nbytes) if moves else 0

    return _total(program, weigh)


def cycles_of(i: Instruction) -> int:
    """The compiler's estimate for one instruction; 0 where it gives none."""
    # in the `backend_config` of libtpu's optimised program alone; XLA:CPU has no estimate
    found = re.search(r'"estimated_cycles":"(\d+)"', i.attributes)
    return int(found[1]) if found and int(found[1]) != NOT_ESTIMATED else 0


def vmem_of(i: Instruction) -> int:
    """The scratch in VMEM that one instruction reserves; 0 where the compiler does not say."""
    # a list of (memory, offset, size): memory 1 is VMEM; what the kernel asks of others is not counted here
    used = re.search(r'"used_scoped_memory_configs":\[([^\]]*)\]', i.attributes)
    sizes = re.findall(r'"memory_space":"1","offset":"\d+","size":"(\d+)"', used[1]) if used else []
    return sum(map(int, sizes))


def _times(counted: Fusion | Visit) -> int:
    return 1 if counted.times is None else counted.times  # `unread` says which loops count once


def _flops_within(text: Text, here: Computation, i: Instruction) -> int:
    """The matmul FLOPs of one instruction: its own, or those of the computation it calls."""
    if flops := flops_of(here, i):
        return flops
    # a fusion calls one computation, which may hold a product and what follows it
    within = [text.computations[name] for name in walk.callees(i)] if i.opcode == "fusion" else []
    return sum(_flops_within(text, c, part) for c in within for part in c.instructions.values())


def flops_of(here: Computation, i: Instruction) -> int:
    """Of a product, one multiply and one add per term; of a kernel, what its author says."""
    if i.opcode in MATMULS or (i.opcode == "custom-call" and SUMMED.search(i.attributes)):
        return _flops(here, i)
    if i.opcode == "reduce" and i.text("op_name").endswith("dot_general"):
        # with one row there is nothing for the matrix unit to do: XLA multiplies and sums on the vector unit
        terms = walk.behind(here, i.operands[0])
        return 2 * math.prod(terms.shapes[0].dims) if terms is not None and terms.opcode == "multiply" else 0
    return (unread.estimate(i, "flops") or 0) if i.opcode == "custom-call" else 0


def _flops(here: Computation, i: Instruction) -> int:
    """2 · outputs · terms of each."""
    # from shapes as they are, without the padding that the tiles of a TPU add
    left, right = (operand.shapes[0].dims for operand in here.operands(i)[:2])
    if i.opcode == "convolution":
        return _convolution_flops(i, left, right)
    summed = SUMMED.search(i.attributes)
    terms = math.prod(left[int(k)] for k in re.findall(r"\d+", summed[1])) if summed else 1
    return 2 * math.prod(i.shapes[0].dims) * terms


def _convolution_flops(i: Instruction, left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """On a TPU a matmul is a convolution: batch by features, summed over input features and window places."""
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
        # a batched product is a convolution with dilation, of whose places all but one in so many are holes:
        # counting the window's size alone would give the product of the batch with itself
        places *= window.touched(left[lhs.index(at)], right[rhs.index(at)], dims[out.index(at)])
    return 2 * outputs * right[rhs.index("i")] * places


class _Window(NamedTuple):
    """How a window goes over one spatial dimension: in steps, from the padding in front on, with gaps."""

    stride: int
    pad: int
    dilate: int  # of the input
    window_dilate: int

    def touched(self, size: int, window: int, out: int) -> int:
        """How many pairs of an output place and a window place meet an input that is there, not padding."""
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
