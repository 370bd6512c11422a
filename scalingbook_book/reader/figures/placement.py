"""Draw the block of an array that each device holds: a box per device, with its blocks and index ranges.

Beside each label, a square represents the whole array, whatever its shape, with the block filled in. Blocks
of one array with the same indices have the same color on every device.

>>> a = placed("A[I_X, J]", Mesh(X=2), (8, 4))
>>> [a.label(block) for block in a.blocks]
['A[0:4, :]', 'A[4:8, :]']
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from scalingbook_book.reader.draw.svg import fit, measure
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, Area, BlockRow, Shape, Words
from scalingbook_book.reader.figures.shards import subscripted
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.words import join_and

type Block = tuple[tuple[int, int], ...]  # for each dimension, its first index and the one after its last
type Stretch = tuple[float, float]  # start and end, as fractions of a side

INKS = 5  # colors of blocks; IDLE is the color of outlines
WRONG = 1  # the color of a wrong device, which also has a cross and a dashed border
SMALL, SIDE, GAP, LINE = 11.0, 24.0, 6.0, 18.0
WHOLE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Placed:
    """An array on the devices of a mesh: its name, its shape, and the block of each device, if it has one."""

    name: str
    shape: tuple[int, ...]
    blocks: tuple[Block | None, ...]  # in mesh order, with the last axis fastest
    text: str = ""  # in the book's notation
    summed: bool = False  # the blocks are summands, a different one on each device

    def __str__(self) -> str:
        return self.text or self.name

    def label(self, block: Block | None) -> str:
        """Return the block as its letter and ranges, as in NumPy (`A[0:8, :]`); for a scalar, its name."""
        if block is None:
            return "nothing"
        if self.summed:
            return f"summand of {replace(self, summed=False).label(block)}"
        ranges = (
            ":" if (start, end) == (0, n) else f"{start}:{end}"
            for (start, end), n in zip(block, self.shape, strict=True)
        )
        return f"{self.name}[{', '.join(ranges)}]" if block else self.name


def placed(text: str, mesh: Mesh, shape: Sequence[int]) -> Placed:
    """Return an array of this shape, placed by the notation: `placed("A[I_X, J]", Mesh(X=2), (8, 4))`."""
    array = parse(text, mesh)
    held = array.blocks(mesh, **dict(zip(array.names, shape, strict=True)))
    blocks = tuple(tuple((one.start, one.stop) for one in block) for block in held.values())
    return Placed(array.name, tuple(shape), blocks, array.canonical(), bool(array.partial))


@dataclass(frozen=True, slots=True)
class Values:
    """The numbers that a device holds: whether they are right, some of them, and some of the expected ones.

    `of` is the block of the right result that these numbers are equal to, if there is one.
    """

    right: bool
    of: Block | None = None
    holds: str = ""
    should: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """A result compared with the right one, device by device."""

    holds: Placed
    should: Placed
    values: tuple[Values, ...]

    @property
    def equal(self) -> bool:
        """Whether the numbers are right, wherever they are."""
        return self.holds.shape == self.should.shape and all(values.right for values in self.values)

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether each device holds the expected block with the right numbers."""
        same = self.holds.shape == self.should.shape
        blocks = zip(self.holds.blocks, self.should.blocks, self.values, strict=True)
        return tuple(same and held == wanted and values.right for held, wanted, values in blocks)


def asked(mesh: Mesh, given: Sequence[Placed], answer: Sequence[Placed] = ()) -> Figure:
    """Draw the devices with what each holds and, if given, what it must return."""
    must = f", and {_blocks(answer)} that it must return" if answer else ""
    free = "" if answer else " You may place the result as you like."
    caption = f"What each device holds of {_joined(given)}{must}. Equal blocks have the same color.{free}"
    return _figure(mesh, _boxes(mesh, (("holds", given), ("must return", answer))), caption)


def spread(mesh: Mesh, arrays: Sequence[Placed]) -> Figure:
    """Draw the devices with their blocks of the same array in several shardings."""
    sections = [(f"as {subscripted(str(array))}", [array]) for array in arrays]
    caption = f"What each device holds of {_joined(arrays)}. Equal blocks have the same color."
    return _figure(mesh, _boxes(mesh, sections), caption)


def answered(mesh: Mesh, found: Compared) -> Figure:
    """Draw what each device holds of a result and what it should hold; a cross marks a wrong device."""
    holds, should = _Drawn(found.holds, found.should), _Drawn(found.should, found.holds)
    boxes: list[_Box] = []
    for k, (place, right, values) in enumerate(zip(places(mesh), found.right, found.values, strict=True)):
        if values.right:
            word, held = "holds", holds.row(found.holds.blocks[k])
        elif values.of is not None:
            word, held = "holds the values of", should.row(values.of, values.holds)
        else:
            word, held = "holds wrong values in", holds.row(found.holds.blocks[k], values.holds, known=False)
        wanted = should.row(found.should.blocks[k], "" if values.right else values.should)
        boxes.append(_Box(place, ((word, [held]), ("should hold", [wanted])), right))
    wrong = found.right.count(False)
    marked = "the device that is wrong" if wrong == 1 else f"the {wrong} devices that are wrong"
    caption = (
        f"What each device holds of {found.should}, and what it should hold. A cross and a dashed border"
    )
    return _figure(mesh, boxes, f"{caption} mark {marked}.")


def _figure(mesh: Mesh, boxes: Sequence["_Box"], caption: str) -> Figure:
    """Return the boxes with their caption, and a description of what each of them shows."""
    alt = f"The devices of the mesh {mesh} with their blocks. {' '.join(map(str, boxes))}"
    return Figure(key="", alt=alt, caption=caption, parts=lambda wide: [_sheet(wide, boxes)])


def places(mesh: Mesh) -> list[str]:
    """Return the coordinates of every device of a mesh as text: 'X=0, Y=3'."""
    return [", ".join(f"{a}={i}" for a, i in zip(mesh.axes, at, strict=True)) for at in mesh.coordinates()]


@dataclass(frozen=True, slots=True)
class _Row:
    """A block as drawn: its label, its part of the square, its color index, and some numbers."""

    label: str
    part: tuple[Stretch, Stretch] | None  # down and across; None if there is no block
    look: int | None  # None if its numbers are not those of the block
    numbers: str = ""

    def __str__(self) -> str:
        return f"{self.label} ({self.numbers})" if self.numbers else self.label


@dataclass(frozen=True, slots=True)
class _Box:
    """A device as drawn: its coordinates, its blocks under headings, and whether they are right."""

    place: str
    sections: tuple[tuple[str, Sequence[_Row]], ...]
    right: bool | None = None  # None if nothing is judged

    @property
    def head(self) -> str:
        """The coordinates, after a mark for right or wrong."""
        return {None: "", True: "✓ ", False: "✗ "}[self.right] + self.place

    @property
    def high(self) -> float:
        """The height of the box."""
        return 24 + sum(LINE + (SIDE + GAP) * len(rows) for _, rows in self.sections if rows)

    def __str__(self) -> str:
        said = "; ".join(f"{word} {', '.join(map(str, rows))}" for word, rows in self.sections if rows)
        said = re.sub(r"_\{(\w+)\}", r"_\1", said)  # a subscript as in the notation
        judged = {None: "", True: " is right", False: " is wrong"}[self.right]
        return f"{self.place}{judged}: {said}."


def _boxes(mesh: Mesh, sections: Iterable[tuple[str, Sequence[Placed]]]) -> list[_Box]:
    """Return the devices with their blocks of these arrays, each group under its heading."""
    drawn = [(word, [_Drawn(array) for array in arrays]) for word, arrays in sections]
    return [
        _Box(place, tuple((word, [one.row(one.array.blocks[k]) for one in some]) for word, some in drawn))
        for k, place in enumerate(places(mesh))
    ]


class _Drawn:
    """An array whose blocks are drawn.

    It knows the two dimensions that the squares show, and a color for each block.
    """

    def __init__(self, array: Placed, other: Placed | None = None) -> None:
        self.array, rank = array, len(array.shape)
        alike = [array] if other is None or len(other.shape) != rank else [array, other]
        blocks = [(one.shape, block) for one in alike for block in one.blocks if block is not None]
        split = {d for shape, block in blocks for d in range(rank) if block[d] != (0, shape[d])}
        # the dimensions that are sharded, then the last ones
        self.plane = sorted(sorted(range(rank), key=lambda d: (d not in split, -d))[:2])
        every = sorted({block for _, block in blocks})
        self.looks = {block: k for k, block in enumerate(every)}

    def row(self, block: Block | None, numbers: str = "", *, known: bool = True) -> _Row:
        """Return a block of the array as drawn; `known` says whether the numbers are those of the block."""
        label = self.array.label(block)
        if block is None:
            return _Row(label, None, None, numbers)
        sizes = [max(n, 1) for n in self.array.shape]  # an array may be empty
        part = [(block[d][0] / sizes[d], block[d][1] / sizes[d]) for d in self.plane]
        down, across = (*part, WHOLE, WHOLE)[:2]
        known = known and not self.array.summed
        return _Row(label, (down, across), self.looks[block] if known else None, " ".join(numbers.split()))


def _blocks(arrays: Sequence[Placed]) -> str:
    """Return a device's blocks of these arrays as words of a caption."""
    if not any(array.shape for array in arrays):
        return "the result, one number,"
    return f"the block{'s' if len(arrays) > 1 else ''} of {_joined(arrays)}"


def _joined(arrays: Sequence[Placed]) -> str:
    return join_and(dict.fromkeys(map(str, arrays)))


def _sheet(wide: float, boxes: Sequence[_Box]) -> Sketch:
    """Return the boxes of all devices, four in a row, or two if there is less room."""
    across = min(4 if wide > 400 else 2, len(boxes))
    long, high = (wide - 2 + GAP) / across - GAP, max(box.high for box in boxes)
    shapes, squares = [], []
    for k, box in enumerate(boxes):
        x, y = 1 + (long + GAP) * (k % across), 1 + (high + GAP) * (k // across)
        wrong = box.right is False
        look = {"color": WRONG if wrong else IDLE, "shade": 0.1 if wrong else 0.03, "dashed": wrong}
        shapes.append(Area(x=x, y=y, wide=long, high=high, **look))
        shapes += _words(box, x + 8, y + 17, long - 16)
        squares += _squares(box, x + 8, y + 20)
    return Sketch(wide, -(-len(boxes) // across) * (high + GAP) - GAP + 2, [*shapes, *_painted(squares)])


def _words(box: _Box, x: float, y: float, room: float) -> Iterator[Words]:
    """Yield the coordinates of a device, with the headings and labels below."""

    def line(text: str, x: float, y: float, room: float, size: float, **how: bool) -> Words:
        return Words(x=x, y=y, text=fit(text, room, size), align="start", size=size, **how)

    yield line(box.head, x, y, room, 12, bold=True)
    for word, rows in box.sections:
        if rows:
            yield line(word, x, y + LINE - 1, room, SMALL, quiet=True)
            y += LINE
        for row in rows:
            yield line(row.label, x + SIDE + 7, y + (13 if row.numbers else 20), room - SIDE - 7, 12)
            if row.numbers:
                shown = _shortened(row.numbers, room - SIDE - 7)
                yield line(shown, x + SIDE + 7, y + 26, room - SIDE - 7, SMALL, quiet=True)
            y += SIDE + GAP


def _shortened(numbers: str, room: float) -> str:
    """Return as many of the leading numbers as fit."""
    while measure(numbers, SMALL) > room and " " in numbers.removesuffix(" …"):
        numbers = f"{numbers.removesuffix(' …').rpartition(' ')[0]} …"
    return numbers


def _squares(box: _Box, x: float, y: float) -> Iterator[tuple[float, float, _Row]]:
    """Yield the positions of a device's squares."""
    for _, rows in box.sections:
        y += LINE * bool(rows)
        for row in rows:
            yield x, y, row
            y += SIDE + GAP


def _painted(squares: Sequence[tuple[float, float, _Row]]) -> Iterator[Shape]:
    """Yield the outlines of all squares and their filled parts; blocks that look the same share a shape."""
    yield BlockRow(stretches=[(x, y, SIDE, IDLE) for x, y, _ in squares], high=SIDE, shade=0.04)
    alike: dict[tuple[float, float], list[tuple[float, float, float, int]]] = {}
    for x, y, row in squares:
        if row.part is None:
            continue
        (top, bottom), (left, right) = row.part
        x, y, wide, high = x + SIDE * left, y + SIDE * top, SIDE * (right - left), SIDE * (bottom - top)
        if row.look is None:
            yield Area(x=x, y=y, wide=wide, high=high, color=None, shade=0.0, dashed=True)
        else:
            shade = 0.65 if row.look % (2 * INKS) < INKS else 0.25
            alike.setdefault((high, shade), []).append((x, y, wide, row.look % INKS))
    for (high, shade), stretches in alike.items():
        yield BlockRow(stretches=stretches, high=high, shade=shade)
