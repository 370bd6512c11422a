"""Count the bytes that a Pallas kernel moves, from the traced function.

Pallas fetches a block when the next step's block differs from the current one, and stores a block of the
result when the next step's block differs. The grid and the index maps of the BlockSpecs therefore determine
how often each is moved. Remote DMAs are written out step by step. (With scalar prefetch the index maps depend
on data, so only DMAs are counted.)
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from scalingbook_lib.units import Result, si


@dataclass(frozen=True, slots=True)
class KernelTraffic(Result):
    """The bytes that one device's kernels fetch into VMEM, store from it, and send to other devices."""

    fetched: tuple[int, ...]  # of each argument that has a BlockSpec
    stored: tuple[int, ...]
    sent: tuple[int, ...]  # by each remote DMA

    @property
    def hbm_bytes(self) -> int:
        """The bytes that BlockSpecs move between HBM and VMEM, in both directions."""
        return sum(self.fetched) + sum(self.stored)

    @property
    def sent_bytes(self) -> int:
        """The bytes that leave over the links."""
        return sum(self.sent)

    def __str__(self) -> str:
        parts = []
        if self.hbm_bytes:
            each = " + ".join(si(n, "B") for n in self.fetched)
            parts.append(f"fetches {each}, stores {si(sum(self.stored), 'B')}")
        if self.sent:
            parts.append(f"sends {si(self.sent_bytes, 'B')} in {len(self.sent)} remote DMAs")
        return "; ".join(parts) or "moves nothing by BlockSpecs or remote DMAs"


def moved(fn: Callable, *structs: Any) -> KernelTraffic:
    """Return the traffic of a function of global arrays (use `sharding.local` for a device's shards).

    Raises ValueError if the function calls no Pallas kernel.
    """
    calls = [e for e in _equations(jax.make_jaxpr(fn)(*structs).jaxpr) if e.primitive.name == "pallas_call"]
    if not calls:
        raise ValueError("no Pallas kernel is called; give a function that calls one of lab.kernels")
    fetched, stored, sent = [], [], []
    for call in calls:
        mapping = call.params["grid_mapping"]
        known = () if mapping.num_index_operands else mapping.block_mappings
        blocks = [_block_bytes(mapping.grid, b) for b in known]
        fetched += [n for n in blocks[: mapping.num_inputs] if n]
        stored += [n for n in blocks[mapping.num_inputs :] if n]
        sent += [n for e in _equations(call.params["jaxpr"]) if (n := _sent_bytes(e))]
    return KernelTraffic(tuple(fetched), tuple(stored), tuple(sent))


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Yield all equations, including those of inner functions and branches."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values() if equation.primitive.name != "pallas_call" else ():
            for inner in value if isinstance(value, list | tuple) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from _equations(inner)


def _block_bytes(grid: tuple[int, ...], block: Any) -> int:
    """Return a block's bytes times the number of index changes, or 0 if DMAs move the block instead."""
    if not grid or "any" in str(block.transformed_block_aval):
        return 0
    array = block.array_aval if hasattr(block, "array_aval") else block.array_shape_dtype
    # a side of None is one element that the kernel does not see as a dimension; some JAX versions have a type
    # for it
    sides = [getattr(side, "block_size", 1 if side is None else side) for side in block.block_shape]
    sides = [side if isinstance(side, int) else 1 for side in sides]
    return math.prod(sides) * array.dtype.itemsize * _changes(grid, block.index_map_jaxpr)


def _changes(grid: tuple[int, ...], index_map: Any) -> int:
    """Return how often the block index changes along the grid, whose last axis runs fastest."""
    # evaluate the index map for all steps of the grid at once, and compare consecutive results
    steps = np.indices(grid).reshape(len(grid), -1).astype(np.int32)
    found = jax.vmap(jaxpr_as_fun(index_map))(*steps)
    places = np.stack([np.broadcast_to(np.asarray(axis), steps.shape[1:]) for axis in found])
    return 1 + int((places[:, 1:] != places[:, :-1]).any(0).sum())


def _sent_bytes(equation: Any) -> int:
    """Return the bytes of a remote DMA, or 0 for any other equation."""
    if equation.primitive.name != "dma_start":
        return 0
    # a DMA's parameters are flattened: source, its slice, destination, semaphores, and the device last
    source, *others = jax.tree.unflatten(equation.params["tree"], equation.invars)
    if others[-1] is None:  # no device_id: a copy within this device
        return 0
    transforms = source.transforms if hasattr(source, "transforms") else others[0]
    array = equation.invars[0].aval
    shape = transforms[-1].get_indexer_shape() if transforms else array.shape
    return math.prod(shape) * array.dtype.itemsize
