"""One set of devices of the serving engine: weights, cache, block pools and compiled steps.

A `Worker` runs rows. Each row is the next few tokens of one sequence, which are appended to that sequence's
cache. Groups (the devices of A, X and Z) have their own pools, so a sequence's rows always run in its group.
Chapter: Inference.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from scalingbook_lab.serve import decode, requests
from scalingbook_lab.serve.layout import OUTER, Cache, Config
from scalingbook_lab.serve.paging import Pool
from scalingbook_lib.units import Result

MOVED = PartitionSpec(None, "C", "Y")  # blocks in transit: [blocks, tokens_C, K_Y, H]


@dataclass(frozen=True, slots=True)
class CacheWrite(Result):
    """Tokens `first` to `first + count - 1` of a sequence, to be appended to the cache."""

    request: requests.ServedRequest
    first: int
    count: int

    @property
    def last(self) -> bool:
        """Whether the row contains the sequence's last token, so that its logits predict the next one."""
        return self.first + self.count == len(self.request.tokens)

    def __str__(self) -> str:
        return f"tokens {self.first} to {self.first + self.count - 1} of request {self.request.ticket}"


class Worker(Result):
    """A configuration with its weights, its cache, and the block pools of its groups.

    Raises ValueError if the configuration does not page the cache of each layer.
    """

    def __init__(self, weights: Mapping[str, Any], config: Config, *, share_prefixes: bool = True) -> None:
        if not config.blocks or config.scanned:
            raise ValueError("the engine pages the cache of each layer; write Config(..., blocks=64)")
        self._set_up(config, share_prefixes)
        self.params, self.cache = config.params(weights), config.cache()

    def _set_up(self, config: Config, share_prefixes: bool) -> None:
        """Create slots and pools, which need no devices."""
        self.config = config
        self.groups = config.degree(OUTER)
        self.slots = config.sequences // self.groups
        self.pools = [
            Pool((config.blocks or 0) // self.groups, config.block, share_prefixes)
            for _ in range(self.groups)
        ]
        self.running: list[requests.ServedRequest] = []  # the sequences that have a slot, oldest first
        self.runs: Counter[tuple[int, int]] = Counter()  # number of runs of each program, by T and rows

    def in_group(self, group: int) -> list[requests.ServedRequest]:
        """Return the sequences of a group, oldest first."""
        return [s for s in self.running if s.group == group]

    def add(self, s: requests.ServedRequest, group: int, blocks: list[int], cached: int = 0) -> None:
        """Give a sequence a slot and blocks, whose first `cached` tokens are already filled."""
        used_slots = {other.slot for other in self.in_group(group)}
        s.group, s.slot = group, next(i for i in range(self.slots) if i not in used_slots)
        s.blocks, s.cached, s.registered = blocks, cached, cached // self.config.block
        self.running = sorted([*self.running, s], key=lambda s: s.ticket)

    def remove(self, s: requests.ServedRequest) -> None:
        """Release a sequence's slot and blocks."""
        self.running.remove(s)
        self.pools[s.group].release(s.blocks)
        s.blocks, s.cached, s.registered, s.slot = [], 0, 0, -1

    def run(self, rows: Iterable[CacheWrite], *, T: int, rows_per_group: int) -> list[int]:
        """Append rows of up to T tokens to the cache, `rows_per_group` per group.

        Returns the next token of each row.
        """
        rows = list(rows)
        # the program's shapes do not depend on the number of rows: unused rows have count 0, and their tokens
        # are dropped. There is one compiled program per T and number of rows.
        size = self.groups * rows_per_group
        tokens, tables = np.zeros((size, T), np.int32), np.zeros((size, self.config.width), np.int32)
        start, count = np.zeros((2, size), np.int32)
        indices, rows_in_group = [], Counter[int]()
        for row in rows:
            i = row.request.group * rows_per_group + rows_in_group[row.request.group]
            rows_in_group[row.request.group] += 1
            indices.append(i)
            tokens[i, : row.count] = row.request.tokens[row.first : row.first + row.count]
            tables[i, : len(row.request.blocks)] = row.request.blocks
            start[i], count[i] = row.first, row.count
        program = decode.program(self.config, T, size, greedy=True)
        tokens_out, self.cache = program.run(self.params, tokens, self.cache, start, count, tables)
        self.runs[T, size] += 1
        return np.asarray(tokens_out)[indices].tolist()

    def register(self, s: requests.ServedRequest) -> None:
        """Let other sequences share the blocks of `s` that are full by now."""
        size, tokens = self.config.block, s.tokens
        # only full blocks are shared, because they are never written again
        while (s.registered + 1) * size <= s.cached:
            s.registered += 1
            self.pools[s.group].register(tokens[: s.registered * size], s.blocks[s.registered - 1])

    @property
    def flops(self) -> int:
        """The matmul FLOPs of all runs, on all devices."""
        programs = {(T, rows): p for (T, rows, *_), p in self.config.programs.items()}
        return (
            sum(n * programs[key].flops for key, n in self.runs.items())
            * self.config.device_mesh.devices.size
        )

    @property
    def block_bytes(self) -> int:
        """The bytes of one block in all layers."""
        return sum(a.nbytes for a in jax.tree.leaves(self.cache)) // (self.config.blocks or 1)

    def send(self, s: requests.ServedRequest) -> Cache:
        """Copy the blocks of a sequence out of the cache."""
        return self._take(self.cache, self._ids(s.group, s.blocks))

    def receive(self, blocks: Cache, group: int, to: Sequence[int]) -> None:
        """Copy blocks from other devices into the blocks `to` of this cache."""
        moved = jax.tree.map(lambda a: jax.device_put(a, self.config.placed(MOVED)), blocks)
        self.cache = self._put(self.cache, moved, self._ids(group, to))

    def _ids(self, group: int, blocks: Sequence[int]) -> np.ndarray:
        """Return the indices of a group's blocks among all blocks, padded with an out-of-range index."""
        # the index `config.blocks` is out of range: reads there are clipped, and writes are dropped
        ids = np.full(self.config.width, self.config.blocks, np.int32)
        ids[: len(blocks)] = np.asarray(blocks) + group * self.pools[group].count
        return ids

    @functools.cached_property
    def _take(self) -> Any:
        """The compiled program that copies blocks out of the cache, for sequences of any length."""

        def take(cache: Cache, ids: jax.Array) -> Cache:
            return jax.tree.map(lambda a: a.at[ids].get(mode="clip"), cache)

        jitted = jax.jit(take, out_shardings=self.config.placed(MOVED))
        return jitted.lower(self.config.structs[1], self._ids(0, ())).compile()

    @functools.cached_property
    def _put(self) -> Any:
        """The compiled program that copies blocks into the cache, which is donated."""

        def put(cache: Cache, blocks: Cache, ids: jax.Array) -> Cache:
            return jax.tree.map(lambda a, b: a.at[ids].set(b, mode="drop"), cache, blocks)

        cache, ids = self.config.structs[1], self._ids(0, ())
        moved = jax.eval_shape(lambda a: jax.tree.map(lambda x: x[ids], a), cache)
        place = self.config.placed(MOVED)
        moved = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place), moved)
        place = jax.tree.map(lambda a: a.sharding, cache)
        return jax.jit(put, out_shardings=place, donate_argnums=0).lower(cache, moved, ids).compile()

    def __str__(self) -> str:
        return f"{self.config}\n" + "\n".join(str(pool) for pool in self.pools)
