"""Lists the parts of a compiled program that its text does not reveal.

They are kernels, custom calls and loops of unknown length. FLOPs, cycles and bytes of such a program are
lower bounds. A Pallas kernel reveals its cost if its author has written a `cost_estimate`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from scalingbook_lib.hlo import gpu_calls, walk
from scalingbook_lib.hlo.module import COLLECTIVE_OPCODES, HloModule, Instruction

# Custom calls without matmuls and transfers: buffers, markers of libtpu and of the partitioner, copies.
SILENT = re.compile(
    r"AllocateBuffer|AsyncCollective\w+|Sharding|SPMD\w+|ConcatBitcast|PadToStatic|SliceToDynamic|MoveTo\w+"
    r"|annotate_device_placement|LayoutConstraint|\w*TopK|X64\w+|xla\.sdy\.\w+|xla_ffi_\w*sort\w*"
    r"|AssumeGatherIndicesInBound|GatherScatterIndicesBitpacked"
)
KERNEL = "tpu_custom_call"  # Pallas, through Mosaic


class NotCounted(NamedTuple):
    """One thing that is not counted, and whether it may have FLOPs or transfers."""

    message: str
    flops: bool
    transfers: bool

    def __str__(self) -> str:
        return self.message


def not_counted(program: Any) -> tuple[NotCounted, ...]:
    """The parts that the text of a program does not reveal, each once, in the order of the program."""
    module = HloModule.of(program)
    return tuple(dict.fromkeys(_found(module)))


def cost_estimate(i: Instruction, what: str) -> int | None:
    """The `flops` or `bytes_accessed` in a kernel's `cost_estimate`; None if it has none."""
    cost = re.search(r'"cost_estimate":\{([^}]*)\}', i.attributes)
    found = re.search(rf'"{what}":"(\d+)"', cost[1]) if cost else None
    return int(found[1]) if found else None


def _found(module: HloModule) -> Iterator[NotCounted]:
    """Everything that is not counted, once per visit."""
    for visit in walk.visits(module):
        i = visit.instruction
        if i.opcode == "while" and walk.trip_count(module, visit.computation, i) is None:
            message = f"loop {i.name} has a data-dependent trip count: counted once"
            body = walk.visits(replace(module, entry=walk.body_of(module, i)))
            opcodes = {visit.instruction.opcode.removesuffix("-start") for visit in body}
            yield NotCounted(message, True, bool(opcodes & {*COLLECTIVE_OPCODES}))
        elif i.opcode == "custom-call" and not walk.callees(i):
            yield from _custom_call(i)


def _custom_call(i: Instruction) -> Iterator[NotCounted]:
    """The parts of a custom call that are not counted."""
    target = i.quoted("custom_call_target")
    if target == KERNEL:
        sends = '"has_communication":true' in i.attributes
        # XLA's own kernel ragged-dot-metadata only counts the rows of each group
        no_cost = cost_estimate(i, "flops") is None and i.name != "ragged-dot-metadata"
        missing = ["its FLOPs"] * no_cost + ["what it sends to other devices"] * sends
        if missing:
            yield NotCounted(f"not counted: of kernel {i.name}, {' and '.join(missing)}", no_cost, sends)
    elif gpu_calls.is_attention(i) and not gpu_calls.has_scores(i):
        yield NotCounted(f"not counted: the FLOPs of {target}", True, False)
    elif gpu_calls.is_attention(i):
        if (masked := gpu_calls.mask(i)) and "CAUSAL" in masked:
            message = (
                f"kernel {i.name} skips about half of the scores ({masked} mask): counted as if it did not"
            )
            yield NotCounted(message, False, False)
    elif target.startswith("__cublas$") and "lhs_contracting_dimensions" in i.attributes:
        return
    elif gpu_calls.only_computes(target):
        if not target.startswith("__cub$"):  # which sorts
            yield NotCounted(f"not counted: the FLOPs of {target}", True, False)
    elif not SILENT.fullmatch(target):
        yield NotCounted(f"not counted: what {target or i.name} computes and sends", True, True)
