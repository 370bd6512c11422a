"""What does every device hold, and what should it hold? A wrong result as a drawing in text.

Each device of a mesh is a box with the first numbers of its block, from the entry that is farthest off, and
under it the numbers that belong there. It is shown in a terminal and in a notebook alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import batched

import numpy as np

NUMBERS = 3  # of each block
IN_A_ROW = 4  # devices beside one another


@dataclass(frozen=True, slots=True)
class Block:
    """One device: its place on the mesh, the block that it holds, and the block that it should hold."""

    place: str
    holds: np.ndarray
    should: np.ndarray
    right: bool


def boxes(blocks: list[Block]) -> str:
    """The devices as boxes, at most so many in a row."""
    drawn = [_box(block) for block in blocks]
    width = max(len(line) for box in drawn for line in box)
    filled = [_filled(box, width) for box in drawn]
    return "\n".join("".join(lines) for row in batched(filled, IN_A_ROW) for lines in zip(*row, strict=True))


def _box(block: Block) -> list[str]:
    """The lines of one box, not yet equally long."""
    at = _farthest(block)
    sign = "✓" if block.right else "✗"
    return [f"{block.place} {sign}", f"holds   {_row(block.holds, at)}", f"should  {_row(block.should, at)}"]


def _filled(lines: list[str], width: int) -> Iterator[str]:
    head, *rest = lines
    yield f"┌ {head} {'─' * (width - len(head))}┐"
    for line in rest:
        yield f"│ {line:<{width}} │"
    yield f"└{'─' * (width + 2)}┘"


def _farthest(block: Block) -> int:
    """Where a block is farthest off, as an index of all its numbers; its beginning if it is right."""
    if block.right or block.holds.shape != block.should.shape:
        return 0
    off = np.nan_to_num(np.abs(block.holds - block.should), nan=np.inf)
    return min(int(off.argmax()), max(off.size - NUMBERS, 0))


def _row(numbers: np.ndarray, at: int) -> str:
    shown = [f"{x:.3g}" for x in numbers.ravel()[at : at + NUMBERS]]
    before, behind = "… " if at else "", " …" if at + NUMBERS < numbers.size else ""
    return f"{before}{' '.join(f'{x:>6}' for x in shown)}{behind}"
