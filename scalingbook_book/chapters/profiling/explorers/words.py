"""Explain each part of a line of HLO in a sentence."""

import math
import re
from collections.abc import Callable

from scalingbook_lib import collectives
from scalingbook_lib.evidence.compiled.layout import ArrayLayout
from scalingbook_lib.evidence.compiled.line import ProgramRecord
from scalingbook_lib.units import binary, si
from scalingbook_lib.words import pluralize

OPERATIONS = {
    "all-gather": "every chip of a group ends up with the shards of all",
    "all-reduce": "every chip of a group ends up with the sum over the group",
    "all-to-all": "every chip sends a part of its shard to every other chip",
    "collective-permute-start": "it starts to send a shard to another chip while the program continues",
    "copy-start": "it starts a copy, and the program continues until the copy-done",
    "copy": "the same elements in another memory or order; it moves bytes and computes nothing",
    "bitcast": "the same bytes with another shape; it costs nothing",
    "parameter": "an argument of the program, in the layout that the compiler chose",
    "reduce": "one dimension is reduced to one number, here its largest element",
    "while": "a loop; its body appears once in the text but runs many times",
    "custom-call": "code that XLA did not generate: a Pallas kernel, of which XLA knows only the shapes",
}
_FREE = ("bitcast", "parameter")
_KINDS = {
    "kOutput": "a matmul (to a TPU, a convolution) with what follows it",
    "kLoop": "elementwise work in one loop",
    "kCustom": "a pattern for which the compiler has special code",
}


def _name(line: ProgramRecord) -> str:
    root = " ROOT marks the result of the program." if line.root else ""
    timed = "it takes no time" if line.operation in _FREE else "a profile shows its time under this name"
    return f"%{line.name}: other lines refer to the result by this name, and {timed}.{root}"


def _sizes(line: ProgramRecord) -> str:
    a = _largest(line)
    shard = (
        f" This is the shard on each of {line.devices} chips, not the whole array."
        if line.devices > 1
        else ""
    )
    tuple_ = f" The type is a tuple of {len(line.arrays)}." if len(line.arrays) > 1 else ""
    elements = f"{pluralize(math.prod(a.dims), 'element')} of {a.element_bytes:g} byte"
    return f"{a.type}: {elements}{'s' * (a.element_bytes != 1)}, {binary(a.bytes)}.{tuple_}{shard}"


def _order(line: ProgramRecord) -> str:
    a = _largest(line)
    if len(a.dims) < 2:
        return f"{a.type} has fewer than two dimensions, so there is no order to choose."
    inner, outer = a.order[0], a.order[-1]
    plain = a.order == tuple(reversed(range(len(a.dims))))
    said = (
        f"{{{','.join(map(str, a.order))}}} lists the fastest dimension first. Dimension {inner}, of "
        f"{a.dims[inner]:,}, varies fastest, and dimension {outer}, of {a.dims[outer]:,}, is the outermost."
    )
    return said + (" This is the order in which the program wrote them." if plain else _turned(a))


def _turned(a: ArrayLayout) -> str:
    straight = ArrayLayout(a.dtype, a.dims, tuple(reversed(range(len(a.dims)))), a.tiles, a.space)
    if straight.stored_bytes > a.stored_bytes:
        return f" The compiler transposed it: as written, it would take {binary(straight.stored_bytes)}."
    return " The compiler transposed it for the next line. As written, it would take the same memory."


def _tiles(line: ProgramRecord) -> str:
    a = _largest(line)
    sides = " by ".join(f"{n:,}" for n in a.tile)
    share = f"{a.rows_per_word} {'rows' if len(a.tile) > 1 else 'elements'} share a word of 32 bits"
    packed = f" The last pair, ({a.rows_per_word},1): {share}."
    packed = packed if a.rows_per_word > 1 else ""
    if a.stored_bytes == a.bytes:
        return f"{a.tiled}: tiles of {sides}. {a.type} fills them, so there is no padding.{packed}"
    sizes = " × ".join(f"{n:,}" for n in a.stored)
    padded = f"so {a.type} is stored as {sizes}, {a.ratio:.3g} times its elements"
    return f"{a.tiled}: tiles of {sides}, {padded}.{packed}"


def _memory(line: ProgramRecord) -> str:
    spaces = dict.fromkeys((a.space, a.where) for a in line.arrays)
    said = ", ".join(f"S({space}): {where}" if space else f"no S(...): {where}" for space, where in spaces)
    big = _largest(line)
    if big.space == 1:
        found = f"finds {binary(big.stored_bytes)} in VMEM"
        return f"{said}. An operation that reads this line {found} and does not wait for HBM."
    return f"{said[0].upper()}{said[1:]}."


def _operation(line: ProgramRecord) -> str:
    if line.operation == "fusion":
        kind = next((k for k in _KINDS if f"kind={k}" in line.calls), "kLoop")
        if "all-reduce-scatter" in " ".join(line.calls):
            kept = "fusion: here an all-reduce of which each chip keeps its shard"
            return f"{kept}. It is a reduce-scatter, but you won't find it by searching for that word."
        one = "fusion: several operations in one kernel, so what lies between them never goes to HBM"
        return f"{one}; {kind}, {_KINDS[kind]}."
    return f"{line.operation}: {OPERATIONS[line.operation]}."


def _operands(line: ProgramRecord) -> str:
    if not line.operands:
        return f"{line.operation} reads no other line, because it comes from outside the program."
    names = " and ".join(f"%{name}" for name in line.operands)
    copied = " A copy-done among them means that it waits for a copy that started earlier." * any(
        name.startswith("copy-done") for name in line.operands
    )
    types = "their types are in those lines" if len(line.operands) > 1 else "its type is in that line"
    return f"It reads {names}; {types}.{copied}"


def _callee(line: ProgramRecord) -> str:
    if not line.calls:
        return f"{line.operation} calls no other computation."
    if line.operation == "custom-call":
        return f"{line.calls[0].partition('=')[2]}: the code of the kernel is not in this text."
    kind = next((f" {k} marks {said}." for k, said in _KINDS.items() if f"kind={k}" in line.calls), "")
    called = [call.partition("=")[2] for call in line.calls if not call.startswith("kind")]
    return f"Its computation is defined in {' and '.join(called)}, further up in the text.{kind}"


def _who(line: ProgramRecord) -> str:
    if not line.groups and not line.moves:
        where = "on one chip" if line.devices <= 1 else f"on each of {line.devices} chips by itself"
        return f"This line runs {where}. It has no groups, so it sends nothing over a link."
    if line.moves:
        ring, mate = _ring(dict(line.moves)), dict(line.moves)[0]
        said = f"Pairs of sender and receiver; the first is chip 0 to chip {mate}. They form rings of {ring}"
        return f"{said}, and every chip sends {si(line.arrays[0].bytes, 'B')} to the next one."
    many, size = len(line.groups), len(line.groups[0])
    first = ", ".join(map(str, line.groups[0]))
    kind = "reduce-scatter" if line.operation == "fusion" else line.operation
    # the line has the bytes of its result: of these two, one shard of the array
    whole = (size if kind in ("reduce-scatter", "all-to-all") else 1) * line.arrays[0].bytes
    received = collectives.bytes_received(kind, whole, size)
    hidden = "" if line.participants else " The groups are in the computation that it calls, not here."
    groups = f"{many} groups of {size}{_form(line.participants)}"
    talk = f"{groups}: chips {first} communicate along {_axes(line)}"
    return f"{talk}, and each receives {si(received, 'B')}.{hidden}"


def _form(who: str) -> str:
    if "mesh[" in who:
        return " (written with the names of the mesh axes)"
    found = re.search(r"\[(\d+),(\d+)\]<=\[([\d,]+)\]", who)
    if not found:
        return ""
    turned = ", transposed" if "T(" in who else ""
    sides = found[3].replace(",", " × ")
    return f" (0, 1, 2 ... written as {sides}{turned}, then divided into rows of {found[2]})"


def _axes(line: ProgramRecord) -> str:
    """The mesh axes along which the devices of a group differ."""
    names, sizes = list(line.mesh), list(line.mesh.values())
    strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    places = {
        tuple(d // stride % size for stride, size in zip(strides, sizes, strict=True)) for d in line.groups[0]
    }
    return "".join(name for k, name in enumerate(names) if len({p[k] for p in places}) > 1)


def _ring(goals: dict[int, int]) -> int:
    at, length = goals[0], 1
    while at != 0:
        at, length = goals[at], length + 1
    return length


def _source(line: ProgramRecord) -> str:
    if not line.source:
        return "There is no op_name, because the compiler added this line on its own."
    if "/" not in line.source:
        return f"It is the argument {line.source}, or a copy of it made before anything was computed."
    path = line.source.split("/")
    scope = f", in the named scope {path[-2]!r}" if len(path) > 2 and path[-2] != path[0] else ""
    return f"It comes from {path[-1]} in {path[0]}{scope}. The op_name leads back to your code."


def _largest(line: ProgramRecord) -> ArrayLayout:
    return max(line.arrays, key=lambda a: a.bytes)


PARTS: dict[str, Callable[[ProgramRecord], str]] = {
    "name": _name,
    "sizes": _sizes,
    "order": _order,
    "tiles": _tiles,
    "memory": _memory,
    "operation": _operation,
    "operands": _operands,
    "calls": _callee,
    "groups": _who,
    "source": _source,
}
"""The sentence about each part of a line, by the name of the part."""
