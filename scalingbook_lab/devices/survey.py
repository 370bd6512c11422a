"""Benchmark this machine's devices: matmuls, copies, attention and collectives, each timed and predicted.

`survey()` takes a minute or two on a TPU or GPU and less on a CPU, where sizes are smaller and in fp32.
Predictions come from `calibrated.kernels` and `calibrated.fabrics` for a chip of the catalog, and from the
roofline of its own best rates for a CPU. Inputs are random, because with equal numbers fewer bits flip: the
chip would draw less power and clock higher than it does for a model.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from scalingbook_lab.devices import measure
from scalingbook_lib.calibrated import kernels
from scalingbook_lib.collectives import Collective
from scalingbook_lib.evidence import fabric_fit, kernel_fit
from scalingbook_lib.evidence.local_benchmark import (
    COPY,
    PRODUCT,
    PROMPT,
    TOKEN,
    DeviceBenchmark,
    TimedOperation,
    chip_of_device,
)
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.units import BF16, FP32, DType

type Report = Callable[[str], None]
# calls in one program, each on the previous result, because Python takes longer to dispatch some of them than
# the device takes to run them
CHAIN = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class SurveySizes:
    """The sizes of the benchmarks."""

    rows: tuple[int, ...]  # B of matmuls
    widths: tuple[int, ...]  # D = F of matmuls
    copied: tuple[int, ...]  # elements
    tokens: tuple[int, ...]  # of a sequence
    heads: int
    moved: tuple[int, ...]  # array bytes of collectives


LARGE = SurveySizes(
    rows=(1, 16, 128, 512, 2048, 8192),
    widths=(1024, 4096, 8192),
    copied=(2**20, 2**24, 2**28),
    tokens=(1024, 2048, 4096),
    heads=32,
    moved=tuple(2**k for k in range(12, 29, 2)),
)
SMALL = SurveySizes(
    rows=(1, 16, 128, 512), widths=(256, 1024), copied=(2**18, 2**22), tokens=(256,), heads=4, moved=()
)


def survey(report: Report = lambda _: None, sizes: SurveySizes | None = None) -> DeviceBenchmark:
    """Run all benchmarks on this machine's first device, and collectives over all devices if there are
    several.

    `report` receives each result as a line of text.
    """
    first, count = jax.devices()[0], len(jax.devices())
    chip = chip_of_device(first.device_kind)
    sizes = sizes or (LARGE if chip else SMALL)
    rows, memory = list(_rows(chip, sizes, report)), {} if chip else _memory()
    if chip and count > 1:
        rows += _collectives(chip, sizes, report)
    return DeviceBenchmark(
        device=first.device_kind,
        chip=chip.name if chip else "",
        count=count,
        jax=jax.__version__,
        date=str(date.today()),
        rows=tuple(rows),
        **memory,
    )


def _memory() -> dict[str, float]:
    """Return the size of this machine's memory in bytes, if the system reports it."""
    if not hasattr(os, "sysconf"):
        return {}
    return {"memory_bytes": float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))}


def _rows(chip: Chip | None, sizes: SurveySizes, report: Report) -> Iterator[TimedOperation]:
    """Yield the timed benchmarks of one device."""
    own_rates = measure.machine(size=1024, stream_bytes=2**26)
    dtype, jax_dtype = (BF16, jnp.bfloat16) if chip else (FP32, jnp.float32)
    groups = (kind(sizes, chip, dtype, jax_dtype) for kind in (_matmuls, _copies, _attention))
    for benchmark in chain.from_iterable(groups):
        seconds = measure.time(_chained(benchmark.run), *benchmark.inputs, samples=5).median_s / CHAIN
        predicted_s = (
            benchmark.predicted_s if chip else own_rates.operation(benchmark.flops, benchmark.nbytes).lower_s
        )
        row = TimedOperation(
            what=benchmark.what,
            dtype=dtype.name,
            sizes=benchmark.sizes,
            seconds=seconds,
            predicted_s=predicted_s,
        )
        report(str(row))
        yield row


def _chained(run: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Combine CHAIN calls into one program; the barrier keeps XLA from fusing them or canceling them out."""

    def chained(x: jax.Array, *rest: jax.Array) -> jax.Array:
        for _ in range(CHAIN):
            x = jax.lax.optimization_barrier(run(x, *rest))
        return x

    return jax.jit(chained)


def _random(jax_dtype: Any, *shape: int, key: int = 0) -> jax.Array:
    """Return normally distributed numbers, scaled so that a matmul preserves the magnitude of its input."""
    return jax.random.normal(jax.random.key(key), shape, jax_dtype) * shape[0] ** -0.5


@dataclass(frozen=True, kw_only=True)
class SurveyOperation:
    """One operation, whose result has the shape of its first argument, and its predicted time."""

    what: str
    sizes: tuple[int, ...]
    run: Callable[..., jax.Array]
    inputs: tuple[jax.Array, ...]
    flops: float
    nbytes: float
    predicted_s: float  # 0 if the catalog has no such chip


def _matmuls(
    sizes: SurveySizes, chip: Chip | None, dtype: DType, jax_dtype: Any
) -> Iterator[SurveyOperation]:
    """Yield matmuls X[B, D] · W[D, D]."""
    for D in sizes.widths:
        w = _random(jax_dtype, D, D)
        for B in sizes.rows:
            yield SurveyOperation(
                what=PRODUCT,
                sizes=(B, D, D),
                run=jnp.matmul,
                inputs=(_random(jax_dtype, B, D), w),
                flops=2.0 * B * D * D,
                nbytes=dtype.bytes * (2 * B * D + D * D),
                predicted_s=kernels.products(chip, dtype).seconds(B, D, D, chip, dtype) if chip else 0.0,
            )


def _copies(sizes: SurveySizes, chip: Chip | None, dtype: DType, jax_dtype: Any) -> Iterator[SurveyOperation]:
    """Yield copies of arrays within HBM."""
    for n in sizes.copied:
        nbytes = 2 * dtype.bytes * n  # read once, written once
        yield SurveyOperation(
            what=COPY,
            sizes=(n,),
            run=jnp.negative,
            inputs=(_random(jax_dtype, n),),
            flops=n,
            nbytes=nbytes,
            predicted_s=kernels.copy_s(nbytes, chip) if chip else 0.0,
        )


def _attention(
    sizes: SurveySizes, chip: Chip | None, dtype: DType, jax_dtype: Any
) -> Iterator[SurveyOperation]:
    """Yield attention over one sequence's prompt, and over one new token of each of sixteen sequences."""
    N, H = sizes.heads, 128
    for T, (what, B) in product(sizes.tokens, ((PROMPT, 1), (TOKEN, 16))):
        decode = what == TOKEN
        attending = Attending(B, T, N, N, H, dtype.bytes)
        q = _random(jax_dtype, B, 1 if decode else T, N, H)
        k, v = (
            _random(jax_dtype, B, T, N, H, key=n) for n in (1, 2)
        )  # a single array for both would be read only once
        yield SurveyOperation(
            what=what,
            sizes=(B, T, N, N, H),
            run=_fused(q, k, not decode),
            inputs=(q, k, v),
            flops=attending.token_flops if decode else attending.prompt_flops,
            nbytes=attending.cache_bytes,
            predicted_s=kernel_fit.predicted_attention_s(
                kernels.attention(chip), kernel_fit.AttentionTime(chip, attending, decode, 0.0)
            )
            if chip
            else 0.0,
        )


def _fused(q: jax.Array, k: jax.Array, causal: bool) -> Callable[..., jax.Array]:
    """Return attention as one kernel if cuDNN has one for this GPU, otherwise as XLA compiles it."""
    run = partial(jax.nn.dot_product_attention, is_causal=causal)
    fused = partial(run, implementation="cudnn")
    try:
        jax.jit(fused).lower(q, k, k).compile()
    except Exception:  # the type depends on what is missing: a GPU, cuDNN, or a kernel for these shapes
        return run
    return fused


def _collectives(chip: Chip, sizes: SurveySizes, report: Report) -> Iterator[TimedOperation]:
    """Yield collectives over all devices of this machine."""
    n = len(jax.devices())
    mesh, networks = Mesh(np.array(jax.devices()), "X"), fabric_fit.networks(chip, n)
    bodies = {
        "all-reduce": (lambda x: jax.lax.psum(x, "X"), P(), P()),
        "all-gather": (lambda x: jax.lax.all_gather(x, "X", tiled=True), P("X"), P()),
        "reduce-scatter": (lambda x: jax.lax.psum_scatter(x, "X", tiled=True), P(), P("X")),
        "all-to-all": (lambda x: jax.lax.all_to_all(x, "X", 0, 0, tiled=True), P("X"), P("X")),
    }
    for what, (body, inputs, out_spec) in bodies.items():
        run = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=inputs, out_specs=out_spec, check_vma=False))
        for nbytes in sizes.moved:
            x = jax.device_put(jnp.ones(nbytes // 2, jnp.bfloat16), NamedSharding(mesh, inputs))
            seconds = measure.time(run, x, samples=5).median_s
            predicted_s = fabric_fit.predicted_s(
                fabric_fit.MeasuredCollective(chip, networks, Collective.named(what), nbytes)
            )
            row = TimedOperation(
                what=what, dtype="bf16", sizes=(n, nbytes), seconds=seconds, predicted_s=predicted_s
            )
            report(str(row))
            yield row
