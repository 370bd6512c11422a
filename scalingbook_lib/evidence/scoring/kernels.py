"""How long are somebody's kernels and collectives predicted to take, and how many parameters has a model?

By the fitted tables of `evidence.kernels` and `evidence.fabrics`. The factors of their bands hold four in
five of the visible rows of other systems. Chapters: Rooflines, GPUs, Transformers.
"""

import re
from dataclasses import replace
from typing import NamedTuple

from scalingbook_lib import roofline
from scalingbook_lib.collectives import Collective
from scalingbook_lib.collectives.attained import Curve, Fabric
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
from scalingbook_lib.machines import Chip
from scalingbook_lib.units import BF16, MiB, dtype

LARGE_M, LARGE = 512, MiB
FULL = Curve(share=1.0, late_s=0.0, half_s=1.0)
IDEAL = Fabric(name="peak", launch_s=0.0, step_s=0.0, ring=FULL, in_switch=FULL, exchange=FULL)
FACTORS = {"products": 1.3, "attention": 1.3, "copies": 1.2, "collectives": 1.3}
OPS = {"attention": "attention|attn|fmha", "products": "gemm|matmul|linear|dot", "copies": "copy|triad"}
NARROW = {"nvfp4": "fp4", "mxfp8": "fp8"}


class Timed(NamedTuple):
    """Of one kernel: its class, where it ran, the type, its predicted seconds, its FLOPs and bytes.

    `ideal_s` is at documented rates: of what a constant share would be taken.
    """

    kind: str
    chip: Chip
    type: str
    seconds: float
    flops: float
    nbytes: float
    ideal_s: float

    @property
    def roofline_s(self) -> float:
        """As long as the FLOPs or the bytes take at documented rates; of a collective, its links."""
        return max(self.ideal_s, self.nbytes / self.chip.hbm_bytes_per_s if self.flops else 0.0)


def _found(kind: str, chip: str, measured: float, predicted: float) -> Found:
    factor = FACTORS.get(kind.split()[0], 1.0)
    same = Interval(measured, measured), Interval(predicted, predicted)
    return Found(kind=kind, chip=chip, measured=same[0], predicted=same[1], factor=factor)


def kernel(row: Cells) -> Found:
    """The seconds of a product, of attention, or of a copy; as printed, or from a rate."""
    one = timed(row)
    latency, reached, moved = (number(row, name) for name in ("latency_us", "tflops", "hbm_GBps"))
    measured = latency / 1e6 if latency else one.flops / reached / 1e12 if reached else 0.0
    measured = measured or (one.nbytes / moved / 1e9 if moved else 0.0)
    if not measured:
        raise Refused("the row prints no latency_us, tflops or hbm_GBps")
    return _found(one.kind, one.chip.name, measured, one.seconds)


def timed(row: Cells) -> Timed:
    """As predicted, whatever was measured."""
    on, op = chip(text(row, "chip", "system")), first(OPS, text(row, "op"))
    if op is None:
        raise Refused(f"op is {text(row, 'op')[:40]!r}; gemm and attention are known")
    return {"attention": _attention, "products": _product, "copies": _copy}[op](row, on)


def _product(row: Cells, on: Chip) -> Timed:
    m, n, k = (needed(row, letter) for letter in "mnk")
    name = precision(text(row, "dtype"))
    kind = dtype(NARROW.get(name, name))
    line = fitted.products(on, replace(kind, name="fp8_block") if "block" in text(row, "dtype") else kind)
    bound = roofline.matmul(m, k, n, on, kind, out=BF16)
    told = f"products m {'>=' if m >= LARGE_M else '<'} {LARGE_M}"
    seconds = line.seconds(m, k, n, on, kind)
    return Timed(told, on, kind.name, seconds, bound.flops, bound.bytes, bound.math_s)


def _attention(row: Cells, on: Chip) -> Timed:
    """Of a prompt, half of the pairs of positions; of a step, the cache is read."""
    B, T, N = (needed(row, column) for column in ("batch", "seq", "heads"))
    K, H, one = whole(row, "kv_heads") or N, needed(row, "head_dim"), fitted.attention(on)
    kind = dtype(precision(text(row, "kv_dtype", "dtype")))
    nbytes = 2 * B * T * K * H * kind.bytes
    if re.search("generation|decod", text(row, "op")):
        ideal_s = nbytes / on.hbm_bytes_per_s
        return Timed(
            "attention decode", on, kind.name, one.token_s(nbytes, on), 4.0 * B * N * T * H, nbytes, ideal_s
        )
    flops = 2.0 * B * N * T * T * H
    seconds, ideal_s = one.prompt_s(flops, T, on), flops / on.flops_per_s()
    return Timed("attention prompt", on, kind.name, seconds, flops, nbytes, ideal_s)


def _copy(row: Cells, on: Chip) -> Timed:
    """Read and written, at the share of the HBM's rate that products reach."""
    size = re.search(r"([\d,]+)-byte", text(row, "notes"))
    if not size:
        raise Refused("the row of a copy does not say how many bytes")
    nbytes = 2 * float(size[1].replace(",", ""))
    return Timed("copies", on, "", fitted.copy_s(nbytes, on), 0.0, nbytes, nbytes / on.hbm_bytes_per_s)


def collective(row: Cells) -> Found:
    """The seconds of a collective, on switches or through the host."""
    one = _moved(row)
    size, found = needed(row, "size_bytes"), fabrics.seconds(fabrics.fabric(one.cluster.chip), one)
    told = f"collectives {'>=' if size >= LARGE else '<'} 1 MiB"
    return _found(told, one.cluster.chip.name, one.seconds, found)


def links_s(row: Cells) -> float:
    """Of a collective, what its bytes take at the links' documented rates."""
    one = _moved(row)
    return IDEAL.seconds(one.what, one.nbytes, *one.cluster.levels, ring=one.ring)


def _moved(row: Cells) -> fabrics.Timed:
    on, size = chip(text(row, "chip", "system")), needed(row, "size_bytes")
    said = {name: text(row, name) for name in ("collective", "algo_or_tool")} | {"busbw_GBps": ""}
    time_us = number(row, "time_us") or _rated_us(row, size)
    counts = {"n_devices": needed(row, "n_devices"), "size_bytes": size, "time_us": time_us}
    return fabrics.timed(said | {name: str(value) for name, value in counts.items()}, on)


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
