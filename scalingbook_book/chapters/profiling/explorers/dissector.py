"""Explorer that explains the parts of one line of optimized HLO."""

import math
from collections.abc import Callable

from scalingbook_book.chapters.profiling.explorers.tiles import DRAWN, shown, tile_cell
from scalingbook_book.chapters.profiling.explorers.words import PARTS
from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    View,
)
from scalingbook_lib.evidence.compiled.layout import ArrayLayout
from scalingbook_lib.evidence.compiled.line import ProgramRecord
from scalingbook_lib.evidence.compiled.lines import LINES
from scalingbook_lib.units import binary, count_in_words, si

_WIDE = 42  # characters of a line of text in the table, as many as a narrow screen shows

WRITTEN: dict[str, Callable[[ProgramRecord], str]] = {
    "name": lambda line: "ROOT " * line.root + f"%{line.name}",
    "sizes": lambda line: ", ".join(a.type for a in line.arrays),
    "order": lambda line: _each(line, lambda a: f"{{{','.join(map(str, a.order))}}}"),
    "tiles": lambda line: _each(line, lambda a: a.tiled or "none"),
    "memory": lambda line: _each(line, lambda a: f"S({a.space})" if a.space else "no mark"),
    "operation": lambda line: line.operation,
    "operands": lambda line: ", ".join(f"%{name}" for name in line.operands) or "none",
    "calls": lambda line: ", ".join(line.calls) or "none",
    "groups": lambda line: line.participants or ("not in this line" if line.groups else "none"),
    "source": lambda line: line.source or "none",
}


def _each(line: ProgramRecord, part: Callable[[ArrayLayout], str]) -> str:
    return " and ".join(dict.fromkeys(map(part, line.arrays)))


def _dissected(*, line: str, part: str) -> View:
    taken = LINES[line]
    return View(
        PARTS[part](taken),
        (_table(taken, part), _picture(taken, part)),
        (*_numbers(taken), Readout("from the program", 0, "", taken.program)),
        columns=2,
    )


def _numbers(line: ProgramRecord) -> tuple[Readout, ...]:
    largest = max(line.arrays, key=lambda a: a.bytes)
    return (
        Readout("elements", math.prod(largest.dims), "", count_in_words(math.prod(largest.dims))),
        Readout("bytes without padding", largest.bytes, "", binary(largest.bytes)),
        Readout("bytes as stored", largest.stored_bytes, "", binary(largest.stored_bytes)),
        Readout("stored in", largest.space, "", largest.where),
    )


def _table(line: ProgramRecord, part: str) -> Grid:
    """Every part as it is written in the line, the chosen one in color."""
    cells = [[Cell(_wrapped(w(line)), 1 if p == part else None, level=1.2)] for p, w in WRITTEN.items()]
    return Grid("The line, part by part", list(WRITTEN), (), cells)


def _wrapped(text: str) -> str:
    """The text in lines of at most _WIDE characters, broken at a comma or a slash if one is near."""
    lines = []
    while len(text) > _WIDE:
        ends = (text.rfind(mark, _WIDE // 2, _WIDE) + len(mark) for mark in ("},", ", ", ",", "/", " "))
        cut = next((end for end in ends if end >= _WIDE // 2), _WIDE)
        lines.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return "\n".join([*lines, text])


def _picture(line: ProgramRecord, part: str) -> Grid | Bars:
    if part == "groups" and line.mesh:
        return _devices(line)
    return _tiles(max(line.arrays, key=lambda a: a.bytes)) if part in ("order", "tiles") else _bytes(line)


def _devices(line: ProgramRecord) -> Grid:
    """The mesh of chips; chips that communicate with each other have the same color."""
    names, sizes = list(line.mesh), list(line.mesh.values())
    rows, columns = sizes[0], math.prod(sizes[1:])
    group = {d: k for k, devices in enumerate(line.groups) for d in devices}
    goals = dict(line.moves)
    cells = [
        [_device(d, group.get(d), goals.get(d)) for d in range(r * columns, (r + 1) * columns)]
        for r in range(rows)
    ]
    said = "arrows point to receivers" if goals else "one color per group" if group else "no communication"
    return Grid(
        f"The {rows * columns} chips: {said}",
        [f"{names[0]} = {r}" for r in range(rows)],
        [f"{names[-1]} = {c}" for c in range(columns)],
        cells,
    )


def _device(d: int, group: int | None, goal: int | None) -> Cell:
    if goal is not None:
        return Cell(f"{d} → {goal}", 0, f"chip {d} sends to chip {goal}")
    return Cell(str(d), group, f"chip {d}" + (f", group {group}" if group is not None else ""))


def _tiles(a: ArrayLayout) -> Grid:
    """The two inner dimensions in tiles, full and partly filled."""
    down, across = ([1, *a.physical[-2:]][-2:]), [1, 1, *a.tile][-2:]
    counts = [-(-n // side) for n, side in zip(down, across, strict=True)]
    kept = [shown(n) for n in counts]
    cells = [[tile_cell(down, across, i, j) for j in kept[1]] for i in kept[0]]
    more = "" if all(n <= DRAWN for n in counts) else ", some omitted"
    size = f"{across[0]} × {across[1]}"
    title = f"{a.type}: {counts[0]:,} × {counts[1]:,} tile{'s' * (math.prod(counts) > 1)} of {size}{more}"
    return Grid(title, (), (), cells)


def _bytes(line: ProgramRecord) -> Bars:
    """Bytes of every array of the type: of its elements, and as stored."""
    kept = [a for a in line.arrays if a.bytes > 8] or list(line.arrays)
    labels = [f"{a.type} in {a.where}" for a in kept]
    series = (
        Series("elements", [a.bytes for a in kept], 0),
        Series("as stored", [a.stored_bytes for a in kept], 1),
    )
    largest = max(a.stored_bytes for a in kept)
    title = f"Result of the line: {si(sum(a.stored_bytes for a in kept), 'B')} as stored"
    return Bars(Scale("size", "B", high=1.05 * largest), labels, series, title=title)


DISSECTOR = Explorer(
    key="profiling.dissector",
    title="The parts of a line of HLO",
    question="What does each part of an optimized HLO line mean, and how much memory does its result take?",
    controls={
        "line": Choice("line", tuple(LINES), "all-gather over Y"),
        "part": Choice("part", tuple(WRITTEN), "groups"),
    },
    view=_dissected,
)
