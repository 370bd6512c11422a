"""The logs, tables, profile and script among the mysteries, each with one fault, or without it.

The losses come from a real training run, the log from real compilations, the routing from a real router, and
the profile repeats runs that were recorded on a CPU device. Times of machines that we don't have come from
the formulas of the library, with a little seeded noise. Nothing here depends on the speed of this machine.
"""

import io
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import jax.numpy as jnp
import numpy as np

from scalingbook_lab.profiler import lessons
from scalingbook_lab.train import text
from scalingbook_lib import models, profiles
from scalingbook_lib.collectives import all_reduce
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.profiles import Event, HostEvent, Trace
from scalingbook_lib.units import BF16

DATA, MODEL, SEQUENCES, T = 8, 2, 4, 256
NODES, GPUS, SLOW, SLOW_RATE = 4, 8, 19, 0.4
LAYERS, EXPERTS, HOT_LAYER, HOT = 8, 64, 5, 23
LONGEST = 1024  # tokens of a paragraph in the log of compilations


def loss_by_rank(steps: int = 30, *, fault: bool = True) -> str:
    """Losses and gradient norms of a byte model, trained with the same seed on all data-parallel ranks.

    The two ranks of a tensor-parallel pair read the same batch, as they have to.
    """
    lines = ["step,rank,tokens,loss,local_grad_norm,grad_norm"]
    weights = np.zeros((text.BYTES, text.BYTES))
    for step in range(steps):
        seeds = [
            1000 + step if fault else (1000 + step, rank) for rank in range(DATA)
        ]  # it leaves out the rank
        batches = [_batch(np.random.default_rng(seed)) for seed in seeds]
        found = [_bigram(weights, batch) for batch in batches]
        mean = sum(gradient for _, gradient in found) / DATA
        for rank in range(DATA * MODEL):
            loss, gradient = found[rank // MODEL]
            norms = np.linalg.norm(gradient), np.linalg.norm(mean)
            lines.append(f"{step},{rank},{DATA * SEQUENCES * T},{loss:.4f},{norms[0]:.4f},{norms[1]:.4f}")
        weights -= 20 * mean
    return "\n".join(lines) + "\n"


def _batch(random: np.random.Generator) -> np.ndarray:
    """Sequences at random places of the book, with one token more than they predict."""
    starts = random.integers(0, len(text.book()) - T - 1, SEQUENCES)
    return text.book()[starts[:, None] + np.arange(T + 1)]


def _bigram(weights: np.ndarray, batch: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss of predicting a byte from the previous one, and its gradient."""
    before, after = batch[:, :-1].ravel(), batch[:, 1:].ravel()
    logits = weights[before]
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    each = np.arange(len(after))
    loss = -np.log(shares[each, after]).mean()
    shares[each, after] -= 1
    gradient = np.zeros_like(weights)
    np.add.at(gradient, before, shares / len(after))
    return float(loss), gradient


def idle_chip(repeats: int = 5, every: int = 6, opening_s: float = 0.054, *, fault: bool = True) -> Trace:
    """The recorded runs of `input-before`, repeated; every sixth batch opens a new file.

    Without the fault, a thread reads the batches ahead, as in `input-after`.
    """
    recorded = profiles.load("input-before" if fault else "input-after")
    opening_s = opening_s if fault else 0.0
    waits = [m for m in recorded.host if m.name == lessons.WAITING]
    steps = [m for m in recorded.host if m.name == "step"]
    events, host, now_s = list[Event](), list[HostEvent](), 0.0
    for n in range(repeats * len(steps)):
        wait, step, event = waits[n % len(waits)], steps[n % len(steps)], recorded.events[n % len(steps)]
        wait_s = wait.duration_s + (opening_s if n % every == 2 else 0.0)
        host.append(HostEvent(lessons.WAITING, now_s, wait_s))
        host.append(HostEvent("step", now_s + wait_s, step.duration_s))
        start_s = now_s + wait_s + max(event.start_s - step.start_s, 0.0)
        events.append(event._replace(run=n, start_s=start_s))
        now_s += wait_s + step.duration_s
    return Trace(
        title="thirty steps of a training loop",
        platform=recorded.platform,
        kind=recorded.kind,
        devices=1,
        simulated=True,
        warmup=None,
        versions=recorded.versions,
        ops=recorded.ops,
        events=tuple(events),
        host=tuple(host),
    )


def compiler_log(steps: int = 48, *, fault: bool = True) -> str:
    """What JAX logs of a loop whose batches are as long as their longest paragraph, in multiples of 32.

    Without the fault, all batches are padded to the longest paragraph that the loop allows.

    The messages are JAX's own. Their times are not: they depend on the length alone.
    """
    stream = io.StringIO()
    handler, logger = logging.StreamHandler(stream), logging.getLogger("jax")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    jax.config.update("jax_log_compiles", True)
    try:
        lines = [*_logged_steps(stream, steps, multiple=32 if fault else LONGEST)]
    finally:
        jax.config.update("jax_log_compiles", False)
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
    return "\n".join(lines) + "\n"


def _logged_steps(stream: io.StringIO, steps: int, multiple: int) -> Iterator[str]:
    paragraphs = [len(part) for part in text.BOOK.read_text().split("\n\n") if part.strip()]
    table = jnp.zeros((256, 64))

    @jax.jit
    def step(table: jax.Array, tokens: jax.Array) -> jax.Array:
        def loss(table: jax.Array) -> jax.Array:
            logits = table[tokens[:, :-1]] @ table.T
            right = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)
            return (jax.nn.logsumexp(logits, -1) - right[..., 0]).mean()

        return table - 0.1 * jax.grad(loss)(table)

    @jax.jit
    def evaluate(table: jax.Array) -> jax.Array:
        return jnp.square(table).mean()

    for n in range(steps):
        longest = max(paragraphs[8 * n : 8 * n + 8])
        length = min(multiple * -(-longest // multiple), LONGEST)
        stream.seek(0)
        stream.truncate()
        table = step(table, jnp.ones((8, length), jnp.int32))
        if n == 24:
            evaluate(table)
        jax.block_until_ready(table)
        yield from _own_messages(stream.getvalue(), length)
        yield f"step {n:2} done: 8 x {length} tokens in {0.05 + 0.0002 * length:.3f} s"


def _own_messages(logged: str, length: int) -> Iterator[str]:
    """The messages about compilations of the loop's two functions, with times that the length determines."""
    seconds = {"step": 2.1 + 0.0025 * length, "evaluate": 0.6}
    for line in logged.splitlines():
        if line.startswith(("Compiling jit(step)", "Compiling jit(evaluate)")):
            yield line.partition(". Argument mapping")[0]
        elif found := re.match(r"Finished XLA compilation of jit\((step|evaluate)\)", line):
            yield f"{found[0]} in {seconds[found[1]]:.3f} sec"


def ranks(steps: int = 20, *, fault: bool = True) -> str:
    """Step times of 32 H100s on four nodes, one of whose NICs sends at two fifths of its rate.

    Each GPU reduces its part of the gradients in a ring with the same GPU of the other nodes, so a slow NIC
    holds up the three others of its ring.
    """
    model = models.find("Llama 3 8B")
    part_bytes = BF16.bytes * model.params / GPUS
    across = Cluster.of(chips.H100, NODES, domain=1).mesh(X=NODES).axes("X")
    ring_s = all_reduce(part_bytes, *across).total_s
    random = np.random.default_rng(7)
    lines = ["step,rank,compute_ms,ring_ms,nic_busy_ms,sent_MB"]
    for step in range(steps):
        compute_ms = 410 + random.normal(0, 2.5, NODES * GPUS)
        if step == 11:
            compute_ms[4] += 180  # a pause of one process, which its NIC did not cause
        busy_ms = 1e3 * ring_s * (1 + abs(random.normal(0, 0.01, NODES * GPUS)))
        busy_ms[SLOW] /= SLOW_RATE if fault else 1
        for rank in range(NODES * GPUS):
            ring_ms = max(busy_ms[rank % GPUS :: GPUS])
            sent_MB = 2 * (NODES - 1) / NODES * part_bytes / 1e6
            times = compute_ms[rank], ring_ms, busy_ms[rank]
            lines.append(f"{step},{rank},{times[0]:.1f},{times[1]:.1f},{times[2]:.1f},{sent_MB:.0f}")
    return "\n".join(lines) + "\n"


def experts(tokens: int = 32768, k: int = 2, *, fault: bool = True) -> str:
    """The tokens that each expert of eight layers receives from a router with one bias that is too large."""
    random = np.random.default_rng(11)
    lines = ["layer," + ",".join(f"expert_{e}" for e in range(EXPERTS))]
    for layer in range(LAYERS):
        x = random.standard_normal((tokens, 32), np.float32)
        router = random.standard_normal((32, EXPERTS)).astype(np.float32)
        router /= np.linalg.norm(router, axis=0)
        bias = np.zeros(EXPERTS, np.float32)
        if layer == HOT_LAYER and fault:
            bias[HOT] = 2.2
        chosen = np.argpartition(-(x @ router + bias), k, axis=1)[:, :k]
        counts = np.bincount(chosen.ravel(), minlength=EXPERTS)
        lines.append(f"{layer}," + ",".join(map(str, counts)))
    return "\n".join(lines) + "\n"


def long_context(*, fault: bool = True) -> str:
    """A script that starts MaxText with context parallelism whose causal blocks are not balanced."""
    balanced = str(not fault).lower()
    return f"""#!/bin/bash
# Continued pretraining at 128k tokens on 64 chips
python3 -m MaxText.train MaxText/configs/base.yml \\
  model_name=llama3.1-8b \\
  per_device_batch_size=0.125 \\
  max_target_length=131072 \\
  ici_fsdp_parallelism=8 \\
  ici_context_parallelism=8 \\
  context_parallel_strategy=ring \\
  context_parallel_load_balance={balanced} \\
  remat_policy=minimal \\
  dtype=bfloat16 \\
  steps=12000
"""


def stored(trace: Trace) -> str:
    """The text of a trace as `profiles.save` writes it."""
    with TemporaryDirectory() as folder:
        return profiles.save(trace, Path(folder) / "trace.json").read_text()


RECORDS: dict[str, Callable[..., str]] = {
    "loss-by-rank.csv": loss_by_rank,
    "idle-chip.json": lambda *, fault=True: stored(idle_chip(fault=fault)),
    "compile-log.txt": compiler_log,
    "ranks.csv": ranks,
    "experts.csv": experts,
    "long-context.sh": long_context,
}
