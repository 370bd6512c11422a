"""Run the ring kernels under the race detector of JAX's interpreter.

A race leaves the interpreter's threads in an undefined state, so every experiment runs in a process of its
own: `detect("sum, two buffers, no credit")`, or `python -m scalingbook_lab.kernels.races "gather" 4`.
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

TIMEOUT_S = 120
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
class RaceReport(Result):
    """The result of one experiment: the two racing accesses, if any, and which devices were right."""

    name: str
    devices: int
    accesses: tuple[str, ...]
    right: tuple[bool, ...]

    @property
    def race(self) -> bool:
        """Whether the detector found two accesses that are not ordered."""
        return bool(self.accesses)

    def __str__(self) -> str:
        if self.race:
            return f"{self.name} on {self.devices} devices: a race, {' against '.join(self.accesses)}"
        return f"{self.name} on {self.devices} devices: no race, {sum(self.right)} of {len(self.right)} right"


def detect(name: str, n: int = 4) -> RaceReport:
    """Run one of EXPERIMENTS on n simulated devices and return its report.

    Raises ValueError for an unknown name, and RuntimeError if the process ends without a report.
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"{name!r} is not an experiment; write one of {'; '.join(EXPERIMENTS)}")
    command = [sys.executable, "-m", "scalingbook_lab.kernels.races", name, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return read(name, n, done.stdout + done.stderr)


def read(name: str, n: int, output: str) -> RaceReport:
    """Parse the report in an experiment's output."""
    _, race, after = output.partition("RACE DETECTED")
    if race:
        found = [f"a {kind} at {file}:{line}" for kind, file, line in _ACCESS.findall(after)]
        return RaceReport(name, n, tuple(found[:2]) or ("unnamed accesses",), ())
    if not (right := re.search(r"right: (\[.*\])", output)):
        raise RuntimeError(f"the experiment {name!r} ended without a report: {output.strip()[-300:]}")
    return RaceReport(name, n, (), tuple(json.loads(right[1])))


def _run(name: str, n: int) -> list[bool]:
    """Run an experiment in this process; return for each device whether its result is right."""
    from scalingbook_lab import devices

    devices.simulate(n)
    import jax
    import jax.numpy as jnp
    import numpy as np

    from scalingbook_lab.compiler import sharding
    from scalingbook_lab.kernels.interpreter import interpreter

    on = sharding.mesh(X=n)
    kernel, texts, out, oracle = _experiment(name, interpreter(races=True))
    # small arrays, because with large ones the interpreter of JAX 0.7 can deadlock
    arrays = [jnp.arange(16.0 * n * 128).reshape(16 * n, 128) % 7 - 3, jnp.eye(128, 128 * n)][: len(texts)]
    placed = [sharding.place(a, text, on) for a, text in zip(arrays, texts, strict=True)]
    got = jax.jit(sharding.local(kernel, *texts, out=out, on=on))(*placed)
    want = np.asarray(oracle(*arrays))
    return [bool((np.asarray(s.data) == want[s.index]).all()) for s in got.addressable_shards]


def _experiment(name: str, interpret: Any) -> tuple[Callable, list[str], str, Callable]:
    """Return the kernel for one device's shards, its argument and result shardings, and the right result."""
    from scalingbook_lab.kernels import collective_matmul, ring, ring_sum

    both_ways = name.endswith("both ways")
    if name.startswith("gather"):
        gather = functools.partial(ring.all_gather, axis="X", both_ways=both_ways, interpret=interpret)
        return gather, ["A[I_X, J]"], "A[I, J]", lambda x: x
    if name.startswith("matmul"):
        multiply = functools.partial(
            collective_matmul.all_gather_matmul,
            axis="X",
            rows=8,
            columns=128,
            both_ways=both_ways,
            interpret=interpret,
        )
        return multiply, ["X[B_X, D]", "W[D, F_X]"], "Y[B, F_X]", lambda x, w: x @ w
    buffers, credit = 2 if "two" in name else None, "no credit" not in name
    add = functools.partial(
        ring_sum.all_reduce, axis="X", buffers=buffers, credit=credit, interpret=interpret
    )
    return add, ["A[I_X, J]"], "A[I_X, J]", _block_sums


def _block_sums(x: Any) -> Any:
    """Compute the expected all-reduce: every device's block is the sum of all blocks of 16 rows."""
    import jax.numpy as jnp

    n = x.shape[0] // 16
    return jnp.tile(x.reshape(n, 16, -1).sum(0), (n, 1))


if __name__ == "__main__":
    try:
        print("right:", json.dumps(_run(sys.argv[1], int(sys.argv[2]))), flush=True)
    except Exception as error:
        print(error, flush=True)
    os._exit(0)  # after a race, JAX cannot shut down cleanly
