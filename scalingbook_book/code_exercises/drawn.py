"""Extract from JAX's shards what every device holds of a result and what it should hold.

`reader.figures.placement` draws both as a picture. `boxes` draws them as text, with the first numbers of each
shard, starting at the entry with the largest error.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import batched
from typing import Any

import jax
import numpy as np

from scalingbook_book.reader.figures.placement import Block, Compared, Placed, Values

NUMBERS = 3  # numbers shown of each block
IN_A_ROW = 4  # devices in a row

type Near = Callable[[np.ndarray, np.ndarray], bool]


def placed(array: jax.Array, name: str, mesh: jax.sharding.Mesh, text: str = "") -> Placed:
    """Return the shards of an array and the devices that hold them."""
    held = {shard.device: shard.index for shard in array.addressable_shards}
    return Placed(name, array.shape, tuple(_block(held.get(d), array.shape) for d in mesh.devices.flat), text)


def compared(
    got: jax.Array, wanted: np.ndarray, asked: Placed | None, mesh: jax.sharding.Mesh, near: Near
) -> Compared:
    """Compare a result with the right one; without `asked` any placement is accepted."""
    holds = placed(got, asked.name if asked else "result", mesh)
    if holds.shape != wanted.shape:  # the shapes cannot be compared
        whole = (tuple((0, n) for n in wanted.shape),) * mesh.size
        should = asked or Placed(holds.name, wanted.shape, whole, "the result")
        return Compared(holds, should, (Values(right=True),) * mesh.size)
    should = asked or replace(holds, text="the result")
    data = {shard.device: exact(shard.data) for shard in got.addressable_shards}
    right = {block: exact(wanted[_slices(block)]) for block in should.blocks if block is not None}
    values: list[Values] = []
    for device, held, block in zip(mesh.devices.flat, holds.blocks, should.blocks, strict=True):
        if held is None or block is None:
            values.append(Values(right=True))
            continue
        there, wants = data[device], right[block]
        if near(there, exact(wanted[_slices(held)])):
            values.append(Values(True, held, _row(there), _row(wants)))
            continue
        of = (b for b, numbers in right.items() if numbers.shape == there.shape and near(there, numbers))
        at = _farthest(there, wants)
        values.append(Values(False, next(of, None), _row(there, at), _row(wants, at)))
    return Compared(holds, should, tuple(values))


def exact(a: Any) -> np.ndarray:
    """Return the array as float64, which represents bf16 and small integers exactly."""
    return np.asarray(a).astype(np.float64)


def boxes(found: Compared, places: Sequence[str]) -> str:
    """Return the devices as boxes of text, several in a row, or "" if the result has another shape."""
    if found.holds.shape != found.should.shape:
        return ""
    drawn = [_box(*one) for one in zip(places, found.right, found.values, strict=True)]
    width = max(len(line) for box in drawn for line in box)
    filled = [_bordered(box, width) for box in drawn]
    return "\n".join("".join(lines) for row in batched(filled, IN_A_ROW) for lines in zip(*row, strict=True))


def _box(place: str, right: bool, values: Values) -> list[str]:
    """Return the lines of one box, without padding."""
    return [f"{place} {'✓' if right else '✗'}", f"holds   {values.holds}", f"should  {values.should}"]


def _bordered(lines: list[str], width: int) -> Iterator[str]:
    head, *rest = lines
    yield f"┌ {head} {'─' * (width - len(head))}┐"
    for line in rest:
        yield f"│ {line:<{width}} │"
    yield f"└{'─' * (width + 2)}┘"


def _block(index: tuple[slice, ...] | None, shape: tuple[int, ...]) -> Block | None:
    if index is None:
        return None
    return tuple(one.indices(n)[:2] for one, n in zip(index, shape, strict=True))


def _slices(block: Block) -> tuple[slice, ...]:
    return tuple(slice(*one) for one in block)


def _farthest(holds: np.ndarray, should: np.ndarray) -> int:
    """Return the index of the entry with the largest error, or 0 if the shard has another shape."""
    if holds.shape != should.shape:
        return 0
    off = np.nan_to_num(np.abs(holds - should), nan=np.inf)
    return min(int(off.argmax()), max(off.size - NUMBERS, 0))


def _row(numbers: np.ndarray, at: int = 0) -> str:
    shown = [f"{x:.3g}" for x in numbers.ravel()[at : at + NUMBERS]]
    before, behind = "… " if at else "", " …" if at + NUMBERS < numbers.size else ""
    return f"{before}{' '.join(f'{x:>6}' for x in shown)}{behind}"
