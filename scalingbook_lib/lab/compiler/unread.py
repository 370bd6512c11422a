"""What does a compiled program do that its text does not tell? Kernels, calls, loops of unknown length.

A table that leaves something out says so: `unread(program)` lists it, and figures of such a program are at
least so much. A kernel tells its own cost where its author has written a `cost_estimate`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from scalingbook_lib.lab.compiler import walk
from scalingbook_lib.lab.compiler.text import KINDS, Instruction, Text

# Calls that multiply nothing and send nothing: buffers, marks of libtpu and of the partitioner, copies.
SILENT = re.compile(
    r"AllocateBuffer|AsyncCollective\w+|Sharding|SPMD\w+|ConcatBitcast|PadToStatic|SliceToDynamic|MoveTo\w+"
    r"|annotate_device_placement|LayoutConstraint|\w*TopK|X64\w+|xla\.sdy\.\w+|xla_ffi_\w*sort\w*"
    r"|AssumeGatherIndicesInBound|GatherScatterIndicesBitpacked"
)
KERNEL = "tpu_custom_call"  # Pallas, by way of Mosaic


class UncountedPart(NamedTuple):
    """One thing that is not counted, and of which figures that is true."""

    words: str
    flops: bool
    transfers: bool

    def __str__(self) -> str:
        return self.words


def unread(program: Any) -> tuple[UncountedPart, ...]:
    """What the text of a program does not tell, each thing once, in the order of the program."""
    text = Text.of(program)
    return tuple(dict.fromkeys(_found(text)))


def estimate(i: Instruction, what: str) -> int | None:
    """What a kernel's author says of it: `flops`, `bytes_accessed`; None where nothing is said."""
    cost = re.search(r'"cost_estimate":\{([^}]*)\}', i.attributes)
    found = re.search(rf'"{what}":"(\d+)"', cost[1]) if cost else None
    return int(found[1]) if found else None


def _found(text: Text) -> Iterator[UncountedPart]:
    for visit in walk.visits(text):
        i = visit.instruction
        if i.opcode == "while" and walk.trip_count(text, visit.computation, i) is None:
            words = f"loop {i.name} runs as often as its data say: counted once"
            body = walk.visits(replace(text, entry=walk.body_of(text, i)))
            yield UncountedPart(
                words, True, any(inner.instruction.opcode.removesuffix("-start") in KINDS for inner in body)
            )
        elif i.opcode == "custom-call" and not walk.callees(i):
            yield from _call(i)


def _call(i: Instruction) -> Iterator[UncountedPart]:
    target = i.text("custom_call_target")
    if target == KERNEL:
        sends = '"has_communication":true' in i.attributes
        blind = estimate(i, "flops") is None
        blind = blind and i.name != "ragged-dot-metadata"  # XLA's own: it only counts the rows of each group
        lacking = ["its FLOPs"] * blind + ["what it sends to other devices"] * sends
        if lacking:
            yield UncountedPart(f"not counted: of kernel {i.name}, {' and '.join(lacking)}", blind, sends)
    elif not SILENT.fullmatch(target) and "lhs_contracting_dimensions" not in i.attributes:  # cuBLAS
        yield UncountedPart(f"not counted: what {target or i.name} computes and sends", True, True)
