"""How long are somebody's kernels and collectives predicted to take, and how many parameters has a model?

By the fitted tables of `evidence.kernels` and `evidence.fabrics`. The factors of their bands hold four in
five of the visible rows of other systems. Chapters: Rooflines, GPUs, Transformers.
"""

import re
from dataclasses import replace
from math import prod
from typing import NamedTuple

from scalingbook_lib import roofline
from scalingbook_lib.collectives import FORMULAS, Collective
from scalingbook_lib.evidence import fabrics
from scalingbook_lib.evidence import kernels as fitted
from scalingbook_lib.evidence.reading.cells import (
    Cells,
    Refused,
    first,
    needed,
    number,
    precision,
    text,
    whole,
)
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import configured
from scalingbook_lib.evidence.scoring.report import Found, Interval
from scalingbook_lib.machines import Chip, Slice
from scalingbook_lib.machines.chips import Axis
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.units import BF16, MiB, dtype

LARGE_M, LARGE = 512, MiB
FACTORS = {
    "products m >= 512": 1.22,
    "products m < 512": 1.3,
    "attention prompt": 1.17,
    "attention decode": 1.27,
    "copies": 1.2,
    "collectives >= 1 MiB": 1.22,
    "collectives < 1 MiB": 1.25,
}
OPS = {"attention": "attention|attn|fmha", "products": "gemm|matmul|linear|dot", "copies": "copy|triad"}
NARROW = {"nvfp4": "fp4", "mxfp8": "fp8"}


class Timed(NamedTuple):
    """Of one kernel: its class, its predicted seconds, its FLOPs and bytes."""

    kind: str
    seconds: float
    flops: float
    nbytes: float


def _found(kind: str, chip: str, measured: float, predicted: float) -> Found:
    factor = FACTORS.get(kind, 1.0)
    same = Interval(measured, measured), Interval(predicted, predicted)
    return Found(kind=kind, chip=chip, measured=same[0], predicted=same[1], factor=factor)


def kernel(row: Cells) -> Found:
    """The seconds of a product, of attention, or of a copy; as printed, or from a rate."""
    on, one = timed(row)
    latency, reached, moved = (number(row, name) for name in ("latency_us", "tflops", "hbm_GBps"))
    measured = latency / 1e6 if latency else one.flops / reached / 1e12 if reached else 0.0
    measured = measured or (one.nbytes / moved / 1e9 if moved else 0.0)
    if not measured:
        raise Refused("the row prints no latency_us, tflops or hbm_GBps")
    return _found(one.kind, on.name, measured, one.seconds)


def timed(row: Cells) -> tuple[Chip, Timed]:
    """Where a kernel ran, and what is predicted of it, whatever was measured."""
    on, op = chip(text(row, "chip", "system")), first(OPS, text(row, "op"))
    if op is None:
        raise Refused(f"op is {text(row, 'op')[:40]!r}; gemm and attention are known")
    return on, {"attention": _attention, "products": _product, "copies": _copy}[op](row, on)


def _product(row: Cells, on: Chip) -> Timed:
    """In its type; or in bf16, where the weights alone are stored in it or the chip cannot compute in it."""
    m, n, k = (needed(row, letter) for letter in "mnk")
    said = text(row, "dtype").lower()
    name = precision(said)
    kind = dtype(NARROW.get(name, name))
    alone = re.search("_?wo$|weight|a16|awq|gptq", said) or kind.name not in on.rates()
    computed = BF16 if alone else kind
    line = fitted.products(on, replace(kind, name="fp8_block") if "block" in said else computed)
    bound = roofline.matmul(m, k, n, on, computed, weights=kind, out=BF16)
    told = f"products m {'>=' if m >= LARGE_M else '<'} {LARGE_M}"
    return Timed(told, line.seconds(m, k, n, on, computed, weights=kind), bound.flops, bound.bytes)


def _attention(row: Cells, on: Chip) -> Timed:
    """Of a prompt, half of the pairs of positions; of a step, the cache is read."""
    B, T, N, H = (needed(row, column) for column in ("batch", "seq", "heads", "head_dim"))
    kv_bytes = dtype(precision(text(row, "kv_dtype", "dtype"))).bytes
    of, one = Attending(B, T, N, whole(row, "kv_heads") or N, H, kv_bytes), fitted.attention(on)
    if re.search("generation|decod", text(row, "op")):
        return Timed("attention decode", one.token_s(of, on), of.token_flops, of.cache_bytes)
    return Timed("attention prompt", one.prompt_s(of, on), T * of.token_flops / 2, of.cache_bytes)


def _copy(row: Cells, on: Chip) -> Timed:
    """Read and written, at the share of the HBM's rate that products reach."""
    size = re.search(r"([\d,]+)-byte", text(row, "notes"))
    if not size:
        raise Refused("the row of a copy does not say how many bytes")
    nbytes = 2 * float(size[1].replace(",", ""))
    return Timed("copies", fitted.copy_s(nbytes, on), 0.0, nbytes)


class Moved(NamedTuple):
    """A collective of `nbytes`, as `collectives` counts them, along the axes of a torus."""

    what: str
    nbytes: float
    axes: tuple[Axis, ...]


def collective(row: Cells) -> Found:
    """The seconds of a collective, on switches or through the host."""
    on, said = _said(row)
    told = f"collectives {'>=' if float(said['size_bytes']) >= LARGE else '<'} 1 MiB"
    if on.torus:
        one = _on_torus(said, on)
        seconds = fabrics.torus_s(one.what, one.nbytes, on, *one.axes)
        return _found(told, on.name, float(said["time_us"]) / 1e6, seconds)
    timed = fabrics.timed(said, on)
    return _found(told, on.name, timed.seconds, fabrics.seconds(fabrics.fabric(on), timed))


def links_s(row: Cells) -> float:
    """What the bytes of a collective take at the documented rates of its links."""
    on, said = _said(row)
    if on.torus:
        what, nbytes, networks = _on_torus(said, on)
    else:
        timed = fabrics.timed(said, on)
        what, nbytes, networks = timed.what, timed.nbytes, timed.cluster.levels
    return FORMULAS[Collective.named(what)](nbytes, *networks).bandwidth_s


def _said(row: Cells) -> tuple[Chip, dict[str, str]]:
    """On which chip, and the cells that count, each with a figure."""
    on, size = chip(text(row, "chip", "system")), needed(row, "size_bytes")
    said = {name: text(row, name) for name in ("collective", "algo_or_tool", "n_nodes", "system")}
    time_us = number(row, "time_us") or _rated_us(row, size)
    counts = {"n_devices": needed(row, "n_devices"), "size_bytes": size, "time_us": time_us}
    return on, said | {"busbw_GBps": ""} | {name: str(value) for name, value in counts.items()}


def _on_torus(said: Cells, on: Chip) -> Moved:
    """Along the axis of so many chips, of a slice that the system's name tells; or over all of it."""
    n, what, size = int(said["n_devices"]), said["collective"], float(said["size_bytes"])
    shape = re.search(r"\d+(x\d+)+", said["system"])
    every = Slice.of(on, shape[0]).axes if shape else (on.axis(n),)
    axes = every if prod(axis.size for axis in every) == n else [a for a in every if a.size == n][:1]
    if not axes:
        raise Refused(f"{n} devices are no axis of {said['system']}")
    return Moved(what, size * n if Collective.named(what) is Collective.ALL_TO_ALL else size, tuple(axes))


def _rated_us(row: Cells, size: int) -> float:
    """From the rate of the array, or of the bus, which an all-reduce passes twice; if it has two digits."""
    n, sums = needed(row, "n_devices"), Collective.named(text(row, "collective")) is Collective.ALL_REDUCE
    for column, share in (("busbw_GBps", (1 + sums) * (n - 1) / n), ("algbw_GBps", 1.0)):
        rate = number(row, column)
        if rate and len(text(row, column).replace(".", "").strip("0")) > 1:
            return share * size / rate / 1e3
    raise Refused("the row prints no time_us, and no rate of two digits")


def parameters(row: Cells) -> Found:
    """All parameters, counted, beside the count of the reference code or else the published one."""
    published, counted = number(row, "total_params_computed", "published_params"), configured(row).params
    if not published:
        raise Refused("the row has no total_params_computed and no published_params")
    return _found("parameters", "", published, float(counted))
