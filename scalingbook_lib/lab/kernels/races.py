"""Does anything order each write before the read that needs it? Ask the race detector.

After a race the interpreter's threads are in no state to go on, so every experiment has a process of its own:
`look("sum, two buffers, no credit")`, or `python -m scalingbook_lib.lab.kernels.races "gather" 4`.
"""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.units import Result

PATIENCE_S = 120
_ACCESS = re.compile(r"(read|write) of .*?([\w-]+\.py):(\d+)")

EXPERIMENTS = (
    "gather",
    "gather both ways",
    "matmul",
    "matmul both ways",
    "sum",
    "sum, two buffers",
    "sum, two buffers, no credit",
)


@dataclass(frozen=True, slots=True)
class RaceVerdict(Result):
    """What became of one experiment: the two accesses that race, if any, and who had the right result."""

    name: str
    devices: int
    accesses: tuple[str, ...]
    right: tuple[bool, ...]

    @property
    def race(self) -> bool:
        """Did the detector find two accesses that nothing orders?"""
        return bool(self.accesses)

    def __str__(self) -> str:
        if self.race:
            return f"{self.name} on {self.devices} devices: a race, {' against '.join(self.accesses)}"
        return f"{self.name} on {self.devices} devices: no race, {sum(self.right)} of {len(self.right)} right"


def look(name: str, n: int = 4) -> RaceVerdict:
    """One of EXPERIMENTS on n simulated devices, with the race detector on."""
    if name not in EXPERIMENTS:
        raise ValueError(f"{name!r} is no experiment; write one of {'; '.join(EXPERIMENTS)}")
    command = [sys.executable, "-m", "scalingbook_lib.lab.kernels.races", name, str(n)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return read(name, n, ran.stdout + ran.stderr)


def read(name: str, n: int, said: str) -> RaceVerdict:
    """What an experiment's process wrote."""
    _, raced, after = said.partition("RACE DETECTED")
    if raced:
        found = [f"a {kind} at {file}:{line}" for kind, file, line in _ACCESS.findall(after)]
        return RaceVerdict(name, n, tuple(found[:2]) or ("accesses that it does not name",), ())
    if not (right := re.search(r"right: (\[.*\])", said)):
        raise RuntimeError(f"the experiment {name!r} ended without a verdict: {said.strip()[-300:]}")
    return RaceVerdict(name, n, (), tuple(json.loads(right[1])))


def _run(name: str, n: int) -> list[bool]:
    """In the process of its own: do it, and say which devices have the right result."""
    from scalingbook_lib.lab import devices

    devices.simulate(n)
    import jax
    import jax.numpy as jnp
    import numpy as np

    from scalingbook_lib.lab.compiler import sharding
    from scalingbook_lib.lab.kernels.interpreter import interpreter

    on = sharding.mesh(X=n)
    kernel, texts, out, oracle = _experiment(name, interpreter(races=True))
    # small arrays: with large ones the interpreter of JAX 0.7 can wait for itself forever
    arrays = [jnp.arange(16.0 * n * 128).reshape(16 * n, 128) % 7 - 3, jnp.eye(128, 128 * n)][: len(texts)]
    placed = [sharding.place(a, text, on) for a, text in zip(arrays, texts, strict=True)]
    got = jax.jit(sharding.local(kernel, *texts, out=out, on=on))(*placed)
    want = np.asarray(oracle(*arrays))
    return [bool((np.asarray(s.data) == want[s.index]).all()) for s in got.addressable_shards]


def _experiment(name: str, interpret: Any) -> tuple[Callable, list[str], str, Callable]:
    """The kernel on one device's blocks, the shardings of its arguments and result, and what it should be."""
    from scalingbook_lib.lab.kernels import collective_matmul, ring, ring_sum

    both = name.endswith("both ways")
    if name.startswith("gather"):
        gather = functools.partial(ring.all_gather, axis="X", both_ways=both, interpret=interpret)
        return gather, ["A[I_X, J]"], "A[I, J]", lambda x: x
    if name.startswith("matmul"):
        multiply = functools.partial(
            collective_matmul.all_gather_matmul,
            axis="X",
            rows=8,
            columns=128,
            both_ways=both,
            interpret=interpret,
        )
        return multiply, ["X[B_X, D]", "W[D, F_X]"], "Y[B, F_X]", lambda x, w: x @ w
    buffers, credit = 2 if "two" in name else None, "no credit" not in name
    add = functools.partial(
        ring_sum.all_reduce, axis="X", buffers=buffers, credit=credit, interpret=interpret
    )
    return add, ["A[I_X, J]"], "A[I_X, J]", _summed


def _summed(x: Any) -> Any:
    """Every device's block is the sum of all blocks of 16 rows."""
    import jax.numpy as jnp

    n = x.shape[0] // 16
    return jnp.tile(x.reshape(n, 16, -1).sum(0), (n, 1))


if __name__ == "__main__":
    try:
        print("right:", json.dumps(_run(sys.argv[1], int(sys.argv[2]))), flush=True)
    except Exception as error:
        print(error, flush=True)
    os._exit(0)  # after a race, JAX cannot be shut down in order
