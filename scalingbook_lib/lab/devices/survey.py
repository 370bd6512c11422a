"""What do the devices of this machine attain? Products, copies, attention and collectives, each timed.

`survey()` takes a minute or two on a TPU or GPU and less on a CPU, where it asks for smaller sizes in fp32.
Predictions are those of `evidence.kernels` and `evidence.fabrics` for a chip of the catalogue; for a CPU, the
roofline of its own best rates. Numbers are drawn at random: where they are all alike fewer bits flip, a chip
draws less power, and clocks higher than it would for a model.
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

from scalingbook_lib.collectives import Collective
from scalingbook_lib.evidence import fabrics, kernels
from scalingbook_lib.evidence.local_benchmark import (
    COPY,
    PRODUCT,
    PROMPT,
    TOKEN,
    DeviceBenchmark,
    TimedOperation,
    chip_of_device,
)
from scalingbook_lib.lab.devices import measure
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.units import BF16, FP32, DType

type Say = Callable[[str], None]
# calls in one program, each on the last one's result: Python takes longer to start one than some run
CHAIN = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class SurveySizes:
    """What is asked of a device."""

    rows: tuple[int, ...]  # B of products
    widths: tuple[int, ...]  # their D = F
    copied: tuple[int, ...]  # elements
    tokens: tuple[int, ...]  # of a sequence
    heads: int
    moved: tuple[int, ...]  # bytes of collectives


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


def survey(say: Say = lambda _: None, sizes: SurveySizes | None = None) -> DeviceBenchmark:
    """Time all of them on this machine's first device, and collectives over all where there are several."""
    first, count = jax.devices()[0], len(jax.devices())
    chip = chip_of_device(first.device_kind)
    asked = sizes or (LARGE if chip else SMALL)
    rows, known = list(_rows(chip, asked, say)), {} if chip else _memory()
    if chip and count > 1:
        rows += _collectives(chip, asked, say)
    return DeviceBenchmark(
        device=first.device_kind,
        chip=chip.name if chip else "",
        count=count,
        jax=jax.__version__,
        date=str(date.today()),
        rows=tuple(rows),
        **known,
    )


def _memory() -> dict[str, float]:
    """That of this machine, where the system says it."""
    if not hasattr(os, "sysconf"):
        return {}
    return {"memory_bytes": float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))}


def _rows(chip: Chip | None, asked: SurveySizes, say: Say) -> Iterator[TimedOperation]:
    own = measure.machine(size=1024, stream_bytes=2**26)
    dtype, like = (BF16, jnp.bfloat16) if chip else (FP32, jnp.float32)
    kinds = (kind(asked, chip, dtype, like) for kind in (_products, _copies, _attention))
    for one in chain.from_iterable(kinds):
        seconds = measure.time(_chained(one.run), *one.given, samples=5).median_s / CHAIN
        predicted_s = one.predicted_s if chip else own.operation(one.flops, one.nbytes).lower_s
        row = TimedOperation(
            what=one.what, dtype=dtype.name, sizes=one.sizes, seconds=seconds, predicted_s=predicted_s
        )
        say(str(row))
        yield row


def _chained(run: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """So many calls as one program; without the barrier XLA would fuse them, or see that they cancel."""

    def chained(x: jax.Array, *rest: jax.Array) -> jax.Array:
        for _ in range(CHAIN):
            x = jax.lax.optimization_barrier(run(x, *rest))
        return x

    return jax.jit(chained)


def _drawn(like: Any, *shape: int, key: int = 0) -> jax.Array:
    """Normal numbers, so scaled that a product with them keeps the size of what it is given."""
    return jax.random.normal(jax.random.key(key), shape, like) * shape[0] ** -0.5


@dataclass(frozen=True, kw_only=True)
class SurveyOperation:
    """One operation, whose result is like what it is given first, and what a chip is predicted to take."""

    what: str
    sizes: tuple[int, ...]
    run: Callable[..., jax.Array]
    given: tuple[jax.Array, ...]
    flops: float
    nbytes: float
    predicted_s: float  # 0 where the catalogue has no such chip


def _products(asked: SurveySizes, chip: Chip | None, dtype: DType, like: Any) -> Iterator[SurveyOperation]:
    for D in asked.widths:
        w = _drawn(like, D, D)
        for B in asked.rows:
            yield SurveyOperation(
                what=PRODUCT,
                sizes=(B, D, D),
                run=jnp.matmul,
                given=(_drawn(like, B, D), w),
                flops=2.0 * B * D * D,
                nbytes=dtype.bytes * (2 * B * D + D * D),
                predicted_s=kernels.products(chip, dtype).seconds(B, D, D, chip, dtype) if chip else 0.0,
            )


def _copies(asked: SurveySizes, chip: Chip | None, dtype: DType, like: Any) -> Iterator[SurveyOperation]:
    for n in asked.copied:
        nbytes = 2 * dtype.bytes * n  # read once, written once
        yield SurveyOperation(
            what=COPY,
            sizes=(n,),
            run=jnp.negative,
            given=(_drawn(like, n),),
            flops=n,
            nbytes=nbytes,
            predicted_s=kernels.copy_s(nbytes, chip) if chip else 0.0,
        )


def _attention(asked: SurveySizes, chip: Chip | None, dtype: DType, like: Any) -> Iterator[SurveyOperation]:
    """A prompt of one sequence, and one token of sixteen."""
    N, H = asked.heads, 128
    for T, (what, B) in product(asked.tokens, ((PROMPT, 1), (TOKEN, 16))):
        decode = what == TOKEN
        of = Attending(B, T, N, N, H, dtype.bytes)
        q = _drawn(like, B, 1 if decode else T, N, H)
        k, v = (_drawn(like, B, T, N, H, key=n) for n in (1, 2))  # one array for both would be read once
        yield SurveyOperation(
            what=what,
            sizes=(B, T, N, N, H),
            run=_fused(q, k, not decode),
            given=(q, k, v),
            flops=of.token_flops if decode else of.prompt_flops,
            nbytes=of.cache_bytes,
            predicted_s=kernels.predicted_attention_s(
                kernels.attention(chip), kernels.AttentionTime(chip, of, decode, 0.0)
            )
            if chip
            else 0.0,
        )


def _fused(q: jax.Array, k: jax.Array, causal: bool) -> Callable[..., jax.Array]:
    """Attention in one kernel, where cuDNN has it for this GPU, else as XLA makes it."""
    run = partial(jax.nn.dot_product_attention, is_causal=causal)
    fused = partial(run, implementation="cudnn")
    try:
        jax.jit(fused).lower(q, k, k).compile()
    except Exception:  # of many types, by what is missing: a GPU, cuDNN, a kernel for these shapes
        return run
    return fused


def _collectives(chip: Chip, asked: SurveySizes, say: Say) -> Iterator[TimedOperation]:
    """Over all devices of this machine, of arrays of so many bytes."""
    n = len(jax.devices())
    mesh, joined = Mesh(np.array(jax.devices()), "X"), fabrics.networks(chip, n)
    bodies = {
        "all-reduce": (lambda x: jax.lax.psum(x, "X"), P(), P()),
        "all-gather": (lambda x: jax.lax.all_gather(x, "X", tiled=True), P("X"), P()),
        "reduce-scatter": (lambda x: jax.lax.psum_scatter(x, "X", tiled=True), P(), P("X")),
        "all-to-all": (lambda x: jax.lax.all_to_all(x, "X", 0, 0, tiled=True), P("X"), P("X")),
    }
    for what, (body, given, made) in bodies.items():
        run = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=given, out_specs=made, check_vma=False))
        for nbytes in asked.moved:
            x = jax.device_put(jnp.ones(nbytes // 2, jnp.bfloat16), NamedSharding(mesh, given))
            seconds = measure.time(run, x, samples=5).median_s
            predicted_s = fabrics.predicted_s(
                fabrics.MeasuredCollective(chip, joined, Collective.named(what), nbytes)
            )
            row = TimedOperation(
                what=what, dtype="bf16", sizes=(n, nbytes), seconds=seconds, predicted_s=predicted_s
            )
            say(str(row))
            yield row
