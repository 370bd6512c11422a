"""Record the book's profiles: four performance mistakes, each before and after its correction.

`lessons.record("serial-before")` records one on this machine's devices, real ones if there are enough;
`profiles.load("serial-before")` loads the one that ships with the book.
`python -m scalingbook_lab.profiler.lessons data/traces` records all of them again. XLA:TPU hoists the
all-reduce of "serial" out of the loop on its own; XLA:CPU does not. Chapter: Profiling.
"""

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from scalingbook_lab import devices
from scalingbook_lab.compiler import sharding
from scalingbook_lab.profiler import trace
from scalingbook_lib.notation import Mesh
from scalingbook_lib.profiles import Trace, save

MESH = Mesh(X=4)
LENGTHS, PADDED = (96, 100, 104, 108, 112, 120), 128
NAMES = (
    "layer",
    "sharding-before",
    "sharding-after",
    "recompile-before",
    "recompile-after",
    "serial-before",
    "serial-after",
    "input-before",
    "input-after",
)
WAITING, READING = "next batch", "read"  # host annotations: the loop waits for a batch; a thread reads one
BATCHES, READ_S = 6, 0.006  # number of batches, and the seconds to read one, as from a disk


def record(name: str, *, smaller: int = 1, runs: int = 3) -> Trace:
    """Record one lesson; each dimension that matters is smaller by the factor `smaller`.

    Raises ValueError for an unknown name.
    """
    lesson, _, when = name.partition("-")
    if name not in NAMES:
        raise ValueError(f"no lesson {name!r}; there are: {', '.join(NAMES)}")
    return _LESSONS[lesson](when == "before", smaller, runs)


def layer(split: str = "H[B, F_X]") -> Callable:
    """Return two matmuls with a nonlinearity between them; `split` is the sharding of the activations."""

    def layer(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        with jax.named_scope("up"):
            h = jnp.tanh(x @ w)
        h = lax.with_sharding_constraint(h, sharding.named(split, MESH))
        with jax.named_scope("down"):
            return h @ v

    return jax.jit(layer, out_shardings=sharding.named("Y[B, D]", MESH))


def summed(each: bool) -> Callable:
    """Return the gradient of several microbatches on one device of X.

    It is all-reduced after each microbatch, or once after all of them.
    """

    def gradient(w: jax.Array, x: jax.Array) -> jax.Array:
        with jax.named_scope("gradient"):
            return jax.grad(lambda w: jnp.square(jnp.tanh(x @ w)).sum())(w)

    def accumulate(w: jax.Array, batches: jax.Array) -> jax.Array:
        def one(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            g = gradient(w, x)
            with jax.named_scope("sum"):
                return total + (lax.psum(g, "X") if each else g), None

        total, _ = lax.scan(one, jnp.zeros_like(w), batches)
        with jax.named_scope("sum"):
            return total if each else lax.psum(total, "X")

    return accumulate


def accumulate(each: bool) -> Callable:
    """Return the same gradient on four devices, as a function of global arrays."""
    return jax.jit(sharding.local(summed(each), "W[D, F]", "X[N, B_X, D]", out="G[D, F]", on=MESH))


def score(x: jax.Array) -> jax.Array:
    """Compute a score for a batch of any length."""
    with jax.named_scope("score"):
        return jnp.tanh(x @ x.T).sum()


def read(rows: int) -> Iterator[np.ndarray]:
    """Yield batches from a slow source."""
    for _ in range(BATCHES):
        with jax.profiler.TraceAnnotation(READING):
            time.sleep(READ_S)
            batch = np.ones((rows, rows), np.float32)
        yield batch


def prefetch(batches: Iterator, limit: int = 2) -> Iterator:
    """Yield the same batches, with a thread reading up to `limit` of them ahead."""
    ready: queue.Queue = queue.Queue(limit)

    def fill() -> None:
        for batch in batches:
            ready.put(batch)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        yield ready.get()


def _layer(before: bool, smaller: int, runs: int) -> Trace:
    arrays = _arrays({"X[B, D]": (512, 512), "W[D, F_X]": (512, 2048), "V[F_X, D]": (2048, 512)}, smaller)
    return trace.record(layer(), *arrays, runs=runs, title="a layer on four devices")


def _sharding(before: bool, smaller: int, runs: int) -> Trace:
    arrays = _arrays({"X[B, D]": (2048, 128), "W[D, F_X]": (128, 4096), "V[F_X, D]": (4096, 128)}, smaller)
    if before:
        return trace.record(layer("H[B, F]"), *arrays, runs=runs, title="the hidden layer gathered")
    return trace.record(layer(), *arrays, runs=runs, title="the hidden layer split")


def _serial(before: bool, smaller: int, runs: int) -> Trace:
    arrays = _arrays({"W[D, F]": (512, 512), "X[N, B_X, D]": (12, 256, 512)}, smaller)
    title = "a sum in each of twelve microbatches" if before else "one sum behind twelve microbatches"
    return trace.record(accumulate(before), *arrays, runs=runs, title=title)


def _recompile(before: bool, smaller: int, runs: int) -> Trace:
    """Run six batches of different lengths, as they are or padded to one length that is already compiled."""
    jax.clear_caches()
    fn = jax.jit(score)
    batches = [jnp.ones((n if before else PADDED, 256 // smaller)) for n in LENGTHS]
    jax.block_until_ready((batches, fn(jnp.ones((PADDED, 256 // smaller)))))
    title = "six batches of six lengths" if before else "six batches padded to one length"
    with trace.recording(title=title) as recorded:
        for x in batches:
            with jax.profiler.StepTraceAnnotation(trace.STEP):
                jax.block_until_ready(fn(x))
    return recorded.trace


def _input(before: bool, smaller: int, runs: int) -> Trace:
    """Run six steps that each wait for their batch, or take one that a thread has read ahead."""
    rows = 1024 // smaller
    fn = jax.jit(score)
    jax.block_until_ready(fn(jnp.ones((rows, rows))))
    batches = read(rows) if before else prefetch(read(rows))
    title = "a loop that reads its batches" if before else "batches read ahead by a thread"
    with trace.recording(title=title, annotations=(WAITING, READING)) as recorded:
        for _ in range(BATCHES):
            with jax.profiler.TraceAnnotation(WAITING):
                x = next(batches)
            with jax.profiler.StepTraceAnnotation(trace.STEP):
                jax.block_until_ready(fn(x))
    return recorded.trace


def _arrays(shapes: dict[str, tuple[int, ...]], smaller: int) -> list[Any]:
    """Return arrays on the mesh; a dimension of at most 16 is a count and keeps its size."""
    sizes = {text: tuple(n // smaller if n > 16 else n for n in shape) for text, shape in shapes.items()}
    return [sharding.place(jnp.full(shape, 0.01), text, MESH) for text, shape in sizes.items()]


_LESSONS = {
    "layer": _layer,
    "sharding": _sharding,
    "serial": _serial,
    "recompile": _recompile,
    "input": _input,
}


def main(folder: str, *names: str, tries: int = 5) -> None:
    """Record lessons into files; of several tries keep the fastest, which other programs disturbed least."""
    devices.simulate(4)
    for name in names or NAMES:
        found = min((record(name) for _ in range(tries)), key=_duration_s)
        print(f"{save(found, Path(folder) / f'{name}.json').name}: {found}\n")


def _duration_s(found: Trace) -> float:
    """Return the seconds from the first event to the last, compilations included."""
    return max([e.end_s for e in found.events] + [m.end_s for m in found.host])


if __name__ == "__main__":
    main(*sys.argv[1:])
