"""Record traces, compilation stages and live ranges for the figures of the profiling chapter.

`rows()` reads the traces that are part of the book and runs the compiler. `python -m tools.record profiling`
writes the record, so that the figures need neither JAX nor a trace reader.
"""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from scalingbook_lab.compiler import aot, stack
from scalingbook_lab.profiler.lessons import READING
from scalingbook_lib import profiles
from scalingbook_lib.hlo import buffers, scopes
from scalingbook_lib.profiles.trace import COLLECTIVE, COMPILE, LOOP, Trace

WHOLE = ("recompile", "input")  # for these the time between the runs counts
LESSONS = [
    f"{name}-{when}" for name in ("sharding", "recompile", "serial", "input") for when in ("before", "after")
]
FOUND_BY = {  # the representative line of each stage for the scope: the shortest that contains this text
    "jaxpr": "tanh",
    "StableHLO": "tanh",
    "HLO": "tanh",
    "optimized HLO": "tanh",
    "schedule": "matmul",
    "LLO": "vmatmul",
}
LAYER: dict[str, Any] = {"T": 4096, "D": 4096, "K": 8, "G": 4, "H": 128, "F": 16384}
WEIGHTS = {
    "q": "W[D, K, G, H]",
    "k": "W[D, K, H]",
    "v": "W[D, K, H]",
    "o": "W[K, G, H, D]",
    "up": "W[D, F]",
    "down": "W[F, D]",
}


def rows() -> Iterator[dict[str, Any]]:
    """Yield the record: a row per trace, one for the stages, one for the buffers."""
    yield from (drawn(name) for name in LESSONS)
    yield {"title": "stages", "stages": stages()}
    yield {"title": "alive"} | alive(compiled())


def drawn(name: str) -> dict[str, Any]:
    """Return events of device 0 and the host in the median run or all runs: lane, kind, start and µs."""
    seen = profiles.load(name)
    whole = name.partition("-")[0] in WHOLE
    start, end = _all(seen) if whole else _median(seen)
    blocks = [
        (["computes", "moves"][op.kind == COLLECTIVE], op.moves or op.name, e.start_s, e.duration_s)
        for e in seen.events
        if e.device == 0 and start <= e.start_s < end and (op := seen.ops[e.op]).kind != LOOP
    ]
    blocks += [
        ("host", m.name, m.start_s, m.duration_s) for m in seen.host if whole and m.name in (COMPILE, READING)
    ]
    return {
        "title": name,
        "span_us": _us(end - start),
        "blocks": [
            [lane, what, _us(at - start), _us(took)] for lane, what, at, took in blocks if start <= at < end
        ],
    }


def _median(seen: Trace) -> tuple[float, float]:
    """Start and end of the run with the median duration."""
    spans = sorted(map(seen.span, range(seen.runs)), key=lambda span: span[1] - span[0])
    return spans[len(spans) // 2]


def _all(seen: Trace) -> tuple[float, float]:
    """From the start of the first step to the end of the last."""
    return 0.0, max(m.start_s + m.duration_s for m in seen.host)


def _us(seconds: float) -> float:
    return round(1e6 * seconds, 1)


def mlp(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
    """Return the chapter's two matmuls, each in a named scope."""
    with jax.named_scope("up"):
        h = jnp.tanh(x @ w)
    with jax.named_scope("down"):
        return h @ v


def stages() -> list[list[Any]]:
    """For each stage: its lines, those in the scope `up`, and the shortest of these that computes."""
    found = stack.of(mlp, "X[B, D]", "W[D, F]", "V[F, D]", llo=True, B=256, D=512, F=1024)
    told = []
    for stage in found.stages:
        named = [line.strip() for line in stage.of("up") if FOUND_BY[stage.name] in line]
        told.append([stage.name, len(stage.lines), len(stage.of("up")), min(named, key=len)])
    return told


def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention in three steps with grouped heads and no mask."""
    with jax.named_scope("scores"):
        s = jnp.einsum("tkgh,skh->kgts", q, k)
    with jax.named_scope("softmax"):
        p = jax.nn.softmax(s.astype(jnp.float32)).astype(s.dtype)
    with jax.named_scope("values"):
        return jnp.einsum("kgts,skh->tkgh", p, v)


def layer(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
    """Return the chapter's layer; an assertion on the page checks that it is the same program."""
    with jax.named_scope("qkv"):
        q = jnp.einsum("td,dkgh->tkgh", x, w["q"])
        k, v = (jnp.einsum("td,dkh->tkh", x, w[name]) for name in "kv")
    a = attend(q, k, v)
    with jax.named_scope("o"):
        x = x + jnp.einsum("tkgh,kghd->td", a, w["o"])
    with jax.named_scope("up"):
        h = jax.nn.gelu(x @ w["up"])
    with jax.named_scope("down"):
        return x + h @ w["down"]


@functools.cache
def compiled() -> aot.Program:
    """Return the layer compiled for one v5e."""
    return aot.compile(layer, "X[T, D]", WEIGHTS, topology="v5e:1x1", **LAYER)


def alive(program: aot.Program) -> dict[str, list[list[Any]]]:
    """Return the kernels of a program with positions and scopes, and its buffers with live ranges."""
    lines = {name: at for at, name in enumerate(program.parsed.entry.instructions)}
    kernels = [[k.name, lines[k.name], scopes.scope_names(k.source)[0]] for k in program.fusions]
    return {"kernels": kernels, "buffers": [[*b] for b in buffers.buffers(program)]}
