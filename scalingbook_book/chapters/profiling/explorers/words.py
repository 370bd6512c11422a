"""What do the parts of a line of HLO mean? A sentence for each part of a line."""

import math
import re
from collections.abc import Callable

from scalingbook_lib import collectives
from scalingbook_lib.evidence.compiled.layout import ArrayLayout
from scalingbook_lib.evidence.compiled.line import ProgramRecord
from scalingbook_lib.units import binary, count, si

OPERATIONS = {
    "all-gather": "every chip of a group ends with the shards of all",
    "all-reduce": "every chip of a group ends with the sum over the group",
    "all-to-all": "every chip sends a part of its shard to every other",
    "collective-permute-start": "a shard sets out to one other chip, and the program goes on meanwhile",
    "copy-start": "a copy sets out, and the program goes on until its copy-done",
    "copy": "the same elements in another place or order; it moves bytes and computes nothing",
    "bitcast": "the same bytes under another shape; it costs nothing at all",
    "parameter": "an argument of the program, laid out as the compiler wants it",
    "reduce": "one dimension becomes one number, here its largest element",
    "while": "a loop; its body stands once in the text and runs many times, which a count must know",
    "custom-call": "code that XLA did not write: a Pallas kernel, of which it knows shapes and no more",
}
_FREE = ("bitcast", "parameter")
_KINDS = {
    "kOutput": "a matmul (a convolution, to a TPU) with what follows it",
    "kLoop": "work element by element, in one loop",
    "kCustom": "a pattern for which the compiler has code of its own",
}


def _name(line: ProgramRecord) -> str:
    root = " ROOT marks what the program hands back." if line.root else ""
    timed = "it takes no time" if line.operation in _FREE else "a profile shows its time under this name"
    return f"%{line.name}: other lines name it as an operand, and {timed}.{root}"


def _sizes(line: ProgramRecord) -> str:
    a = _largest(line)
    shard = f" It is what one chip of {line.devices} has, not the whole array." if line.devices > 1 else ""
    tuple_ = f" The type is a tuple of {len(line.arrays)}." if len(line.arrays) > 1 else ""
    elements = (
        f"{count(math.prod(a.dims))} element{'s' * (math.prod(a.dims) != 1)} of {a.element_bytes:g} byte"
    )
    return f"{a.type}: {elements}{'s' * (a.element_bytes != 1)}, {binary(a.bytes)}.{tuple_}{shard}"


def _order(line: ProgramRecord) -> str:
    a = _largest(line)
    if len(a.dims) < 2:
        return f"{a.type} has fewer than two dimensions: there is no order to choose."
    inner, outer = a.order[0], a.order[-1]
    plain = a.order == tuple(reversed(range(len(a.dims))))
    said = (
        f"{{{','.join(map(str, a.order))}}} counts from inside: dimension {inner}, of {a.dims[inner]:,}, "
        f"varies fastest, and dimension {outer}, of {a.dims[outer]:,}, is the outermost."
    )
    return said + (" It is the order in which the program wrote them." if plain else _turned(a))


def _turned(a: ArrayLayout) -> str:
    straight = ArrayLayout(a.dtype, a.dims, tuple(reversed(range(len(a.dims)))), a.tiles, a.space)
    if straight.stored_bytes > a.stored_bytes:
        return f" The compiler turned it: as written, these tiles would take {binary(straight.stored_bytes)}."
    return " The compiler turned it for the next line's sake: as written, it would take as much."


def _tiles(line: ProgramRecord) -> str:
    a = _largest(line)
    sides = " by ".join(f"{n:,}" for n in a.tile)
    share = f"{a.rows_per_word} {'rows' if len(a.tile) > 1 else 'elements'} share a word of 32 bits"
    packed = f" The last pair, ({a.rows_per_word},1): {share}."
    packed = packed if a.rows_per_word > 1 else ""
    if a.stored_bytes == a.bytes:
        return f"{a.tiled}: tiles of {sides}, and {a.type} fills them: no padding.{packed}"
    sizes = " × ".join(f"{n:,}" for n in a.stored)
    padded = f"so {a.type} is stored as {sizes}, {a.ratio:.3g} times its elements"
    return f"{a.tiled}: tiles of {sides}, {padded}.{packed}"


def _memory(line: ProgramRecord) -> str:
    spaces = dict.fromkeys((a.space, a.where) for a in line.arrays)
    said = ", ".join(f"S({space}) is {where}" if space else f"no mark is {where}" for space, where in spaces)
    big = _largest(line)
    if big.space == 1:
        found = f"finds {binary(big.stored_bytes)} in VMEM"
        return f"{said}. What reads this line {found} and does not wait for HBM."
    return f"{said[0].upper()}{said[1:]}."


def _operation(line: ProgramRecord) -> str:
    if line.operation == "fusion":
        kind = next((k for k in _KINDS if f"kind={k}" in line.calls), "kLoop")
        if "all-reduce-scatter" in " ".join(line.calls):
            kept = "fusion: here an all-reduce of which each chip keeps its shard"
            return f"{kept}. It is a reduce-scatter, and no search for that word finds it."
        one = "fusion: several operations in one kernel, so nothing between them goes to HBM"
        return f"{one}; {kind}, {_KINDS[kind]}."
    return f"{line.operation}: {OPERATIONS[line.operation]}."


def _operands(line: ProgramRecord) -> str:
    if not line.operands:
        return f"{line.operation} reads no other line: it comes from outside."
    names = " and ".join(f"%{name}" for name in line.operands)
    copied = " A copy-done among them says that it waits for a copy begun earlier." * any(
        name.startswith("copy-done") for name in line.operands
    )
    types = "the types stand in those lines" if len(line.operands) > 1 else "the type stands in that line"
    return f"It reads {names}; {types}.{copied}"


def _callee(line: ProgramRecord) -> str:
    if not line.calls:
        return f"{line.operation} calls no other computation."
    if line.operation == "custom-call":
        return f"{line.calls[0].partition('=')[2]}: the kernel's code is not in this text at all."
    kind = next((f" {k} is {said}." for k, said in _KINDS.items() if f"kind={k}" in line.calls), "")
    called = [call.partition("=")[2] for call in line.calls if not call.startswith("kind")]
    return f"What it does stands in {' and '.join(called)}, further up in the text.{kind}"


def _who(line: ProgramRecord) -> str:
    if not line.groups and not line.moves:
        where = "on one chip" if line.devices <= 1 else f"on each of {line.devices} chips by itself"
        return f"This line runs {where}: no groups, so nothing goes over a link."
    if line.moves:
        ring, mate = _ring(dict(line.moves)), dict(line.moves)[0]
        said = f"Pairs of sender and receiver, chip 0 to chip {mate} first: rings of {ring}"
        return f"{said}, and every chip's {si(line.arrays[0].bytes, 'B')} move one place."
    many, size = len(line.groups), len(line.groups[0])
    first = ", ".join(map(str, line.groups[0]))
    kind = "reduce-scatter" if line.operation == "fusion" else line.operation
    # the line has the bytes of its result: of these two, one shard of the array
    whole = (size if kind in ("reduce-scatter", "all-to-all") else 1) * line.arrays[0].bytes
    received = collectives.bytes_received(kind, whole, size)
    hidden = "" if line.participants else " They stand in the computation that it calls, not in the line."
    groups = f"{many} groups of {size}{_form(line.participants)}"
    talk = f"{groups}: chips {first} talk to each other, along {_axes(line)}"
    return f"{talk}, and each takes in {si(received, 'B')}.{hidden}"


def _form(who: str) -> str:
    if "mesh[" in who:
        return " (the mesh and the axis by name)"
    found = re.search(r"\[(\d+),(\d+)\]<=\[([\d,]+)\]", who)
    if not found:
        return ""
    turned = ", turned" if "T(" in who else ""
    sides = found[3].replace(",", " × ")
    return f" (0, 1, 2 ... written as {sides}{turned}, then cut into rows of {found[2]})"


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
        return "No op_name: no operation of the program became this line, the compiler put it in."
    if "/" not in line.source:
        return f"It is the argument {line.source}, or what was made of it before anything was computed."
    path = line.source.split("/")
    scope = f", in the named scope {path[-2]!r}" if len(path) > 2 and path[-2] != path[0] else ""
    return f"It comes from {path[-1]} in {path[0]}{scope}: the way back from a profile to a line of Python."


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
"""For each part of a line what it says, in a sentence."""
