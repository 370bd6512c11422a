"""What does one cell of a systolic array hold, and what does it do in a cycle?"""

from dataclasses import dataclass, replace

Loading = tuple[int, int] | None  # a tile and a weight of it
Arriving = tuple[int, int, int] | None  # a tile, a row of X and its element


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell at the end of a cycle; None: there is nothing of the kind in it.

    `waiting` is the second register. `useful`: what it multiplies is in both matrices, and no padding.
    """

    weight: int | None = None
    tile: int | None = None
    waiting: int | None = None
    waiting_tile: int | None = None
    activation: int | None = None
    partial: int | None = None
    row: int | None = None
    useful: bool = False
    loading: bool = False

    @property
    def busy(self) -> bool:
        """Whether it multiplied in this cycle."""
        return self.activation is not None


def multiply(cell: Cell, arriving: Arriving, above: int) -> Cell:
    """Take the activation; with the first of a new tile, change over to the weight that waits."""
    cell = replace(cell, activation=None, partial=None, row=None, useful=False, loading=False)
    if arriving is None:
        return cell
    tile, row, activation = arriving
    if cell.tile != tile:
        cell = replace(cell, weight=cell.waiting, tile=cell.waiting_tile)
    if cell.tile != tile or cell.weight is None:
        raise AssertionError("a row met the weights of another tile")
    return replace(cell, activation=activation, row=row, partial=above + activation * cell.weight)


def load(cell: Cell, falling: Loading, double_buffered: bool) -> Cell:
    """Take over the weight that comes from above, into the second register where there is one."""
    if falling is None:
        return cell
    tile, weight = falling
    if double_buffered:
        return replace(cell, waiting=weight, waiting_tile=tile, loading=True)
    if cell.busy:
        raise AssertionError("a cell with one register cannot load while it multiplies")
    return replace(cell, weight=weight, tile=tile, loading=True)
