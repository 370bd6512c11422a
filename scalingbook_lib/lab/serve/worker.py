"""What does one set of devices have, and what does it run: weights, cache, blocks, and compiled steps?

A `Worker` runs rows: each some next tokens of one sequence, put where the cache of that sequence is. Groups
(the devices of A, X and Z) have pools of their own, so a sequence's rows are always those of its group.
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

from scalingbook_lib.lab.serve import decode, requests
from scalingbook_lib.lab.serve.layout import OUTER, Cache, Config
from scalingbook_lib.lab.serve.paging import Pool
from scalingbook_lib.units import Result

MOVED = PartitionSpec(None, "C", "Y")  # blocks on their way: [blocks, tokens_C, K_Y, H]


@dataclass(frozen=True, slots=True)
class CacheWrite(Result):
    """The tokens `first` to `first + count - 1` of a sequence, to be put into the cache."""

    of: requests.Served
    first: int
    count: int

    @property
    def last(self) -> bool:
        """Does the sequence's next word come out of this row?"""
        return self.first + self.count == len(self.of.tokens)

    def __str__(self) -> str:
        return f"tokens {self.first} to {self.first + self.count - 1} of request {self.of.ticket}"


class Worker(Result):
    """A configuration with its weights, its cache, and the pools of its groups."""

    def __init__(self, weights: Mapping[str, Any], config: Config, *, prefixes: bool = True) -> None:
        if not config.blocks or config.scanned:
            raise ValueError("the engine pages the cache of each layer; write Config(..., blocks=64)")
        self._set_up(config, prefixes)
        self.params, self.cache = config.params(weights), config.cache()

    def _set_up(self, config: Config, prefixes: bool) -> None:
        """Places and pools, which need no devices."""
        self.config = config
        self.groups = config.ways(OUTER)
        self.slots = config.sequences // self.groups
        self.pools = [
            Pool((config.blocks or 0) // self.groups, config.block, prefixes) for _ in range(self.groups)
        ]
        self.inside: list[requests.Served] = []  # those that have a place, oldest first
        self.ran: Counter[tuple[int, int]] = Counter()  # runs of each program, by T and rows

    def of(self, group: int) -> list[requests.Served]:
        """The sequences of a group, oldest first."""
        return [s for s in self.inside if s.group == group]

    def enter(self, s: requests.Served, group: int, blocks: list[int], cached: int = 0) -> None:
        """A sequence gets a place and blocks, of which some are full already."""
        taken = {other.slot for other in self.of(group)}
        s.group, s.slot = group, next(i for i in range(self.slots) if i not in taken)
        s.blocks, s.cached, s.known = blocks, cached, cached // self.config.block
        self.inside = sorted([*self.inside, s], key=lambda s: s.ticket)

    def leave(self, s: requests.Served) -> None:
        """It gives everything back."""
        self.inside.remove(s)
        self.pools[s.group].release(s.blocks)
        s.blocks, s.cached, s.known, s.slot = [], 0, 0, -1

    def run(self, rows: Iterable[CacheWrite], *, T: int, places: int) -> list[int]:
        """Put rows of up to T tokens into the cache, `places` for each group: the word after each row."""
        rows = list(rows)
        # the shapes are those of the program, however many rows there are: what is left over has count 0, and
        # its tokens go nowhere. So there is one compiled program for each T and number of places.
        size = self.groups * places
        tokens, tables = np.zeros((size, T), np.int32), np.zeros((size, self.config.width), np.int32)
        start, count = np.zeros((2, size), np.int32)
        at, used = [], Counter[int]()
        for row in rows:
            i = row.of.group * places + used[row.of.group]
            used[row.of.group] += 1
            at.append(i)
            tokens[i, : row.count] = row.of.tokens[row.first : row.first + row.count]
            tables[i, : len(row.of.blocks)] = row.of.blocks
            start[i], count[i] = row.first, row.count
        program = decode.program(self.config, T, size, greedy=True)
        words, self.cache = program.run(self.params, tokens, self.cache, start, count, tables)
        self.ran[T, size] += 1
        return np.asarray(words)[at].tolist()

    def learn(self, s: requests.Served) -> None:
        """Blocks that are full by now can be shared."""
        size, tokens = self.config.block, s.tokens
        # a block is shared only when it is full: nobody writes to it again
        while (s.known + 1) * size <= s.cached:
            s.known += 1
            self.pools[s.group].learn(tokens[: s.known * size], s.blocks[s.known - 1])

    @property
    def flops(self) -> int:
        """The FLOPs of the matmuls of all runs, on all devices."""
        programs = {(T, rows): p for (T, rows, *_), p in self.config.programs.items()}
        return sum(n * programs[key].flops for key, n in self.ran.items()) * self.config.on.devices.size

    @property
    def block_bytes(self) -> int:
        """The bytes of one block in all layers."""
        return sum(a.nbytes for a in jax.tree.leaves(self.cache)) // (self.config.blocks or 1)

    def send(self, s: requests.Served) -> Cache:
        """The blocks of a sequence, out of the cache."""
        return self._take(self.cache, self._ids(s.group, s.blocks))

    def receive(self, blocks: Cache, group: int, to: Sequence[int]) -> None:
        """Blocks of other devices, moved to these and put in their places."""
        moved = jax.tree.map(lambda a: jax.device_put(a, self.config.placed(MOVED)), blocks)
        self.cache = self._put(self.cache, moved, self._ids(group, to))

    def _ids(self, group: int, blocks: Sequence[int]) -> np.ndarray:
        """Where blocks of a group lie among all; those that fill up the array lie nowhere."""
        # `blocks` is one past the last one: what is read there is clipped, what is written is dropped
        found = np.full(self.config.width, self.config.blocks, np.int32)
        found[: len(blocks)] = np.asarray(blocks) + group * self.pools[group].count
        return found

    @functools.cached_property
    def _take(self) -> Any:
        """Blocks out of the cache: one program for sequences of any length."""

        def take(cache: Cache, ids: jax.Array) -> Cache:
            return jax.tree.map(lambda a: a.at[ids].get(mode="clip"), cache)

        jitted = jax.jit(take, out_shardings=self.config.placed(MOVED))
        return jitted.lower(self.config.structs[1], self._ids(0, ())).compile()

    @functools.cached_property
    def _put(self) -> Any:
        """Blocks into the cache, which is used up."""

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
